# Sourced by the scripts that run where RDMA is: devices, waiting, cells.
# Sets nothing but functions and EVR_*; `cells` and `failed` count the TAP output.

cells=0
failed=0

# --- TAP ---------------------------------------------------------------------

ok() {
	cells=$((cells + 1))
	echo "ok $cells - $*"
}

not_ok() {
	cells=$((cells + 1))
	failed=$((failed + 1))
	echo "not ok $cells - $*"
}

note() { echo "$*" | sed 's/^/# /'; }

# cell NAME COMMAND...: one cell, ok when the command ends with 0; what it printed is shown when not.
cell() {
	cell_name=$1
	shift
	cell_log=$(mktemp)
	if "$@" >"$cell_log" 2>&1; then
		ok "$cell_name"
	else
		not_ok "$cell_name (status $?)"
		note "$(tail -n 100 "$cell_log")"
	fi
	rm -f "$cell_log"
}

# The last line of every script.
done_testing() {
	echo "1..$cells"
	exit $((failed > 0))
}

# --- waiting -----------------------------------------------------------------

# wait_until SECONDS COMMAND...: asks every 20 ms until the command ends with 0.
wait_until() {
	deadline=$(($(date +%s) + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$(date +%s)" -lt "$deadline" ] || return 1
		sleep 0.02
	done
}

is_listening() { rdma resource show cm_id | grep 'state LISTEN' | grep -q "[]:]$1 "; }

# wait_listener PORT [SECONDS]
wait_listener() { wait_until "${2:-60}" is_listening "$1"; }

# resources PID: how many objects of each kind the process holds, as "qp 1 cq 2 ...".
resources() {
	for kind in qp cq mr pd cm_id ctx; do
		n=$(rdma resource show $kind 2>/dev/null | grep -c " pid $1 " || :)
		printf '%s %s ' "$kind" "$n"
	done
	echo
}

# --- devices -----------------------------------------------------------------

is_active() { rdma link show "$1/1" | grep -q 'state ACTIVE'; }

# dev_up rxe|siw [NAME]: a device on a pair of its own, 192.168.77.1/24 and fd77:77::1/64; sets
# EVR_DEV, EVR_NETDEV, EVR_IP4 and EVR_IP6. Where that can't be made, a device of the machine's own
# of the same kind (RoCE for rxe, iWARP for siw) with its addresses.
dev_up() {
	EVR_DEV=${2:-${1}0} EVR_NETDEV=evr$1
	EVR_IP4=192.168.77.1 EVR_IP6=fd77:77::1
	export EVR_DEV EVR_NETDEV EVR_IP4 EVR_IP6
	# siw counts what root has locked, too.
	prlimit --pid $$ --memlock=unlimited 2>/dev/null || :
	if [ -n "${EVR_IN_GUEST:-}" ]; then
		dev_make "$1"
	else
		dev_make "$1" 2>/dev/null || dev_find "$1"
	fi
}

dev_make() {
	case ${EVR_IN_GUEST:-no}:$1 in
	no:rxe) modprobe -q rdma_rxe || return 1 ;;
	no:siw) modprobe -q siw || return 1 ;;
	esac
	ip link add "$EVR_NETDEV" type veth peer name "${EVR_NETDEV}p" || return 1
	ip addr add "$EVR_IP4/24" dev "$EVR_NETDEV"
	echo 0 >"/proc/sys/net/ipv6/conf/$EVR_NETDEV/accept_dad"
	ip addr add "$EVR_IP6/64" dev "$EVR_NETDEV"
	ip link set "${EVR_NETDEV}p" up
	ip link set "$EVR_NETDEV" up
	ip route replace "239.0.0.0/8" dev "$EVR_NETDEV"
	wait_until 60 netdev_ready &&
		rdma link add "$EVR_DEV" type "$1" netdev "$EVR_NETDEV" &&
		wait_until 60 is_active "$EVR_DEV" && return
	dev_down
	return 1
}

# Up, with its addresses usable: there is no other to detect duplicates with.
netdev_ready() { ip -br link show dev "$EVR_NETDEV" | grep -q LOWER_UP; }

dev_find() {
	case $1 in rxe) want=CA ;; *) want=RNIC ;; esac
	for d in /sys/class/infiniband/*; do
		grep -q "$want" "$d/node_type" && is_active "${d##*/}" || continue
		EVR_DEV=${d##*/}
		EVR_NETDEV=$(rdma link show "$EVR_DEV/1" | sed -n 's/.* netdev \([^ ]*\).*/\1/p')
		EVR_IP4=$(dev_addr -4)
		EVR_IP6=$(dev_addr -6)
		[ -z "$EVR_IP4" ] || return 0
	done
	return 1
}

dev_addr() {
	ip "$1" -o addr show dev "$EVR_NETDEV" scope global |
		sed -n 's,.*inet6* \([^/ ]*\).*,\1,p' | head -n 1
}

dev_is_made() { case $EVR_NETDEV in evr*) ;; *) return 1 ;; esac; }

# The device goes away once nobody has it open; deleting it waits for that.
dev_down() {
	dev_is_made || return 0
	[ ! -e "/sys/class/infiniband/$EVR_DEV" ] || rdma link delete "$EVR_DEV"
	ip link delete "$EVR_NETDEV" 2>/dev/null || :
}

# came_too_early KIND FILE: whether a client of ucmatose, whose output is in the file, met what siw
# does to a server that speaks first. iWARP wants the connecting side to send first (RFC 5044), and
# the stock ucmatose's server sends as soon as it is established: siw's client, when late to read
# the reply, takes the data behind it for a violation and fails the connection with EINVAL. Nothing
# but another try can help a pair of stock tools there; it happens on the stock core as well. With
# many connections the client then ends, or polls for ever and is ended by its time limit.
came_too_early() {
	[ "$1" = siw ] && grep -q 'CONNECT_ERROR, error: -22' "$2"
}

# dev_up_eth0: in each of two guests, rxe on the network between them.
dev_up_eth0() {
	EVR_DEV=rxe0 EVR_NETDEV=eth0 EVR_IP4=$EVR_SELF_IP4 EVR_IP6=$EVR_SELF_IP6
	export EVR_DEV EVR_NETDEV EVR_IP4 EVR_IP6
	rdma link add rxe0 type rxe netdev eth0
	wait_until 60 is_active rxe0
}

# --- two guests --------------------------------------------------------------

# barrier NAME [SECONDS]: returns once both guests have come here.
barrier() {
	: >"$EVR_SHARED/$1.$EVR_ROLE"
	wait_until "${2:-120}" test -e "$EVR_SHARED/$1.$EVR_PEER"
}
