# Sourced by fetch: the distribution's kernel source, built as user-mode Linux with what uml.config
# asks for and nothing else.

modules='crc32_generic rdma_rxe siw rdma_ucm ib_umad'

# What of the source is neither built nor read by the configuration.
leave_out='*/Documentation/*.rst
*/arch/[!ux]*/*.[chS]
*/arch/*.dts*
*/drivers/gpu/*.[ch]
*/drivers/media/*.[ch]
*/drivers/net/ethernet/*.[ch]
*/drivers/net/wireless/*.[ch]
*/drivers/staging/*.[ch]
*/sound/*.[ch]
*/tools/*.[ch]'

key=$(cat "$guestdir/uml.config" "$guestdir/uml.patch" "$guestdir/fetch_uml.sh" | cksum | cut -d' ' -f1)

# By the version of the source and by what is built of it. Without package lists the newest that is
# there of this configuration will do.
name_kernel() {
	source=$(depends "$(meta_package linux-source linux-source)" '^linux-source-' | head -n 1)
	version=$(version_of "${source:-none}")
	kernel=uml-${version:-unknown}-$key
	[ -n "$version" ] || kernel=$(basename "$(newest_cached || echo "$kernel")")
}

in_source() { make -C "$tmp" ARCH=um KCFLAGS='-O1 -pipe' "$@" >>"$tmp/log" 2>&1; }

make_kernel() {
	[ -n "$source" ] || return 1
	say "building user-mode Linux from $source $version, which takes two to three minutes"
	echo "$leave_out" >"$tmp/leave-out"
	kernel_source "$source=$version" -X "$tmp/leave-out" || return 1
	patch -s -F0 -d "$tmp" -p1 <"$guestdir/uml.patch" >"$tmp/log" || return 1
	in_source KCONFIG_ALLCONFIG="$guestdir/uml.config" allnoconfig && has_config || return 1
	in_source -j"$(nproc)" linux modules || return 1
	strip -o "$tmp/out/linux" "$tmp/linux"
	in_source INSTALL_MOD_PATH="$tmp/root" INSTALL_MOD_STRIP=1 modules_install || return 1
	release=$(ls "$tmp/root/lib/modules")
	collect_modules || return 1
	runs_here || die "user-mode Linux does not run on this machine: see $tmp/boot/console"
	echo "$release" >"$tmp/out/release"
}

# Not every processor can be one for it.
runs_here() {
	EVR_GUEST=yes EVR_GUEST_ENGINE=uml EVR_GUEST_KERNEL=$tmp/out \
		"$guestdir/run" -t 60 -o "$tmp/boot" true >>"$tmp/log" 2>&1 </dev/null
}

# A name that the kernel does not know, or that something else switches off, is not an error to it.
has_config() {
	lost=$(grep '^CONFIG' "$guestdir/uml.config" | grep -vxFf "$tmp/.config" || :)
	[ -z "$lost" ] || { echo "not in this kernel: $lost" >>"$tmp/log"; return 1; }
}
