# Sourced by fetch: getting at the distribution's packages without installing them. `tmp` is the
# folder of the attempt.

apt_get() { apt-get -q -y -o APT::Sandbox::User=root "$@"; }

# $1: what the meta packages of a distribution end in, for Ubuntu and for Debian
meta_package() {
	. /etc/os-release
	case " $ID ${ID_LIKE:-} " in
	*" ubuntu "*) echo "$1" ;;
	*" debian "*) echo "$2" ;;
	*) die "knows where to get a kernel on Debian and Ubuntu only; see EVR_GUEST_KERNEL in t/guest/README" ;;
	esac
}

# $1: package, $2: pattern of the names wanted among its dependencies
depends() {
	apt-cache depends -i "$1" 2>/dev/null |
		sed -n 's/^[ |]*Depends: \([^<].*\)/\1/p' | grep -E "$2" || :
}

version_of() { apt-cache show "$1" 2>/dev/null | sed -n 's/^Version: //p' | head -n 1; }

download() {
	(cd "$tmp/debs" && apt_get download "$@" >"$tmp/log" 2>&1)
}

# kernel_source PACKAGE TAR_OPTION...: what the options choose of the kernel's source, into $tmp
# without its first folder.
kernel_source() {
	download "$1" && dpkg -x "$tmp"/debs/linux-source-*.deb "$tmp/source" || return 1
	shift
	tar -xf "$(find "$tmp/source" -name 'linux-source-*.tar.*')" -C "$tmp" --strip-components=1 "$@" || return 1
	rm -rf "$tmp/source" "$tmp"/debs/*.deb
}

# What $modules need of $release in $tmp/root: one file each, uncompressed, and the order to load
# them in.
collect_modules() {
	mkdir "$tmp/out/modules"
	depmod -b "$tmp/root" "$release"
	for m in $modules; do
		modprobe -d "$tmp/root" -S "$release" --show-depends "$m" || return 1
	done | sed -n 's/^insmod \([^ ]*\).*/\1/p' | awk '!seen[$0]++' >"$tmp/chain"
	while read -r path; do
		name=$(basename "$path" | sed 's/\.ko.*//')
		case $path in
		*.zst) zstd -qdc "$path" ;;
		*.xz) xz -dc "$path" ;;
		*) cat "$path" ;;
		esac >"$tmp/out/modules/$name.ko"
		echo "$name"
	done <"$tmp/chain" >"$tmp/out/modules/order"
	grep -qx siw "$tmp/out/modules/order"
}
