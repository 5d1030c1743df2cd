# Sourced by fetch: the distribution's own kernel, with the modules that the tests need; siw is built
# where it is not among them.

# In loading order; crc32_generic is what rxe asks the crypto layer for.
modules='virtio_pci 9pnet_virtio 9p overlay virtio_net veth dummy sch_netem
	crc32_generic rdma_rxe siw rdma_ucm ib_uverbs ib_umad'

key=$(echo $modules | cksum | cut -d' ' -f1)

name_kernel() { kernel=qemu-$key; }

# The image that the distribution's meta package stands for, with its module packages.
kernel_packages() {
	first=$(depends "$(meta_package linux-image-generic "linux-image-$(dpkg --print-architecture)")" '^linux-(image|modules)[a-z-]*-[0-9]')
	for p in $first; do
		echo "$p"
		depends "$p" '^linux-modules[a-z-]*-[0-9]'
	done | sort -u
}

unpack() {
	for deb in "$tmp"/debs/*.deb; do
		dpkg -x "$deb" "$tmp/root" || return 1
		rm -f "$deb"
	done
	[ -e "$tmp/root/lib" ] || ln -s usr/lib "$tmp/root/lib"
}

get_kernel() {
	packages=$(kernel_packages)
	[ -n "$packages" ] || return 1
	say "fetching" $packages
	download $packages && unpack || return 1
	release=$(ls "$tmp/root/lib/modules")
}

# The headers' makefile names its companion by absolute path.
get_headers() {
	headers=linux-headers-$release
	# shellcheck disable=SC2046 # words
	set -- "$headers" $(depends "$headers" '^linux-(headers|kbuild)-')
	download "$@" && unpack || return 1
	hdr=$tmp/root/usr/src/$headers
	sed -i 's,^include /usr/src/,include $(dir $(lastword $(MAKEFILE_LIST)))../,' "$hdr/Makefile"
}

# siw's folder alone out of the source package of the very same version.
get_siw_source() {
	short=$(echo "$release" | cut -d. -f1,2)
	version=$(version_of "$headers")
	kernel_source "linux-source-$short=$version" --wildcards '*/drivers/infiniband/sw/siw/*'
}

build_siw() {
	say "building siw for $release"
	get_headers || return 1
	get_siw_source || return 1
	siw=$tmp/drivers/infiniband/sw/siw
	cc=$(depends "$headers" '^linux-compiler-gcc' | sed -n 's/linux-compiler-\(gcc-[0-9]*\).*/\1/p')
	command -v "${cc:-none}" >/dev/null || cc=gcc
	make -j2 -C "$hdr" M="$siw" CC="$cc" CONFIG_RDMA_SIW=m modules >"$tmp/log" 2>&1 || return 1
	mkdir -p "$tmp/root/lib/modules/$release/extra"
	strip --strip-debug -o "$tmp/root/lib/modules/$release/extra/siw.ko" "$siw/siw.ko"
}

need_siw() { [ -z "$(find "$tmp/root/lib/modules/" -name 'siw.ko*')" ]; }

field() { od -An -t "$2" -j "$1" -N "$3" "$tmp/out/vmlinuz" | tr -d ' '; }

# An emulator takes seconds to unpack the kernel, so it is done here: the payload lies where the
# x86 boot protocol says (setup_sects, payload_offset, payload_length).
unpack_kernel() {
	cp "$tmp/root/boot/vmlinuz-$release" "$tmp/out/vmlinuz"
	start=$((($(field 0x1f1 u1 1) + 1) * 512 + $(field 0x248 u4 4)))
	tail -c +$((start + 1)) "$tmp/out/vmlinuz" |
		head -c "$(field 0x24c u4 4)" >"$tmp/payload"
	for tool in xz zstd gzip lz4; do
		$tool -dc <"$tmp/payload" >"$tmp/vmlinux" 2>/dev/null || :
		if [ "$(head -c 4 "$tmp/vmlinux" | tail -c 3)" = ELF ]; then
			mv "$tmp/vmlinux" "$tmp/out/vmlinuz"
			break
		fi
	done
}

make_kernel() {
	get_kernel || return 1
	! need_siw || build_siw || return 1
	collect_modules || return 1
	unpack_kernel
	echo "$release" >"$tmp/out/release"
}
