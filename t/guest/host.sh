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
cache=${EVR_GUEST_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/evrdma}
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

# --- engines -----------------------------------------------------------------

# LeakSanitizer polls, without sleeping, for the end of a thread that sleeps: in instant time it never ends.
tree_has_sanitizers() { grep -qs '^EVR_SAN_FLAGS = .*sanitize' "$top_builddir/Makefile"; }

have_uml() { "$guestdir/fetch" -n uml >/dev/null; }

# says SCRIPT TAG WORD: whether the script has the word in its line `# TAG: WORD...`.
says() { sed -n "s/^# $2: \(.*\)/ \1 /p" "$(script_file "$1")" 2>/dev/null | grep -q " $3 "; }

needs_qemu() { says "$1" needs two-processors || says "$1" needs own-processor || says "$1" needs probes; }

# engine_for SCRIPT: the quicker engine of those that have what it needs.
engine_for() {
	if [ -n "${EVR_GUEST_ENGINE:-}" ]; then
		echo "$EVR_GUEST_ENGINE"
	elif [ -n "${EVR_GUEST_KERNEL:-}" ]; then
		[ -e "$EVR_GUEST_KERNEL/linux" ] && echo uml || echo qemu
	elif says "$1" needs virtual-time; then
		echo uml
	elif needs_qemu "$1" || ! have_uml; then
		echo qemu
	else
		echo uml
	fi
}

# can_have SCRIPT: whether what it needs is to be had here.
can_have() { ! says "$1" needs virtual-time || { want_guest && [ "$(engine_for "$1")" = uml ] && have_uml; }; }

# time_for SCRIPT: real; virtual, which skips what nobody does; or instant, in which computing takes
# no time either, so that a run can be repeated, but whoever polls without sleeping never ends.
time_for() {
	if [ -n "${EVR_GUEST_TIME:-}" ]; then
		echo "$EVR_GUEST_TIME"
	elif says "$1" time instant; then
		tree_has_sanitizers && echo virtual || echo instant
	elif says "$1" time virtual || says "$1" needs virtual-time; then
		echo virtual
	else
		echo real
	fi
}

# choose_guest SCRIPT: what `run` and `run2` boot for it.
choose_guest() {
	EVR_GUEST_ENGINE=$(engine_for "$1")
	[ "$EVR_GUEST_ENGINE" = uml ] && EVR_GUEST_TIME=$(time_for "$1") || EVR_GUEST_TIME=real
	export EVR_GUEST_ENGINE EVR_GUEST_TIME
	# Hours may pass there; here the guest has its time as any other.
	if [ "$EVR_GUEST_TIME" != real ]; then
		export EVR_SCRIPT_TIMEOUT="${EVR_SCRIPT_TIMEOUT:-1000000}" EVR_TIMEOUT=1000000
	fi
}

# script_file SCRIPT: where it lies.
script_file() {
	for f in "$1" "$top_builddir/$1" "$top_srcdir/$1"; do
		[ ! -f "$f" ] || { echo "$f"; return; }
	done
	echo "$1"
}

quote() { printf "'%s'" "$(printf '%s' "$1" | sed "s/'/'\\\\''/g")"; }
