# Shared by the scripts that run on the host. They set `self` to their own name first.

guestdir=$(cd "$(dirname "$0")" && pwd)
top_srcdir=$(cd "${top_srcdir:-$guestdir/../..}" && pwd)

say() { echo "$self: $*" >&2; }
die() { say "$*"; exit 1; }

# The build tree: the caller's word, the folder we are in, or the checkout itself.
find_builddir() {
	if [ -n "${top_builddir:-}" ]; then
		(cd "$top_builddir" && pwd)
	elif [ -f config.status ]; then
		pwd
	else
		echo "$top_srcdir"
	fi
}

top_builddir=$(find_builddir)
cache=${EVR_GUEST_CACHE:-$top_builddir/t/guest/cache}
export top_srcdir top_builddir

# host_can CA|RNIC MODULE: a device of this kind is here, or root can make one in software.
host_can() {
	grep -qs "$1" /sys/class/infiniband/*/node_type ||
		{ [ "$(id -u)" -eq 0 ] && modprobe -n -q "$2" 2>/dev/null; }
}

# This machine runs the scripts itself if it has RDMA, both kinds that they ask for.
host_has_rdma() {
	[ -c /dev/infiniband/rdma_cm ] && host_can CA rdma_rxe && host_can RNIC siw
}

want_guest() {
	case ${EVR_GUEST:-auto} in
	yes) return 0 ;;
	no) return 1 ;;
	*) ! host_has_rdma ;;
	esac
}

quote() { printf "'%s'" "$(printf '%s' "$1" | sed "s/'/'\\\\''/g")"; }
