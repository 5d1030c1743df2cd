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

# 0 when this machine can run the scripts itself.
host_has_rdma() {
	[ -c /dev/infiniband/rdma_cm ] && [ -n "$(ls /sys/class/infiniband 2>/dev/null)" ]
}

want_guest() {
	case ${EVR_GUEST:-auto} in
	yes) return 0 ;;
	no) return 1 ;;
	*) ! host_has_rdma ;;
	esac
}

quote() { printf "'%s'" "$(printf '%s' "$1" | sed "s/'/'\\\\''/g")"; }
