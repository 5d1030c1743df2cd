# Sourced by scripts with a wire: two devices, EVR_DEV_A with 10.77.0.1 and EVR_DEV_B with 10.77.0.2,
# on network devices whose other ends are wire_a and wire_b in the namespace `wire`; see wire.h.
. "$top_srcdir/t/guest/lib.sh"

# Both ends are in this namespace, since rxe knows no other; what one sends to the other takes the
# wire all the same.
wire_up() {
	ip netns add wire
	for end in a b; do
		ip link add "evr_$end" type veth peer name "wire_$end"
		ip link set "wire_$end" netns wire
		ip -n wire link set "wire_$end" up
		for setting in accept_local=1 rp_filter=0 arp_ignore=1; do
			echo "${setting#*=}" >"/proc/sys/net/ipv4/conf/evr_$end/${setting%=*}"
		done
		echo 0 >"/proc/sys/net/ipv6/conf/evr_$end/accept_dad"
		ip link set "evr_$end" up
	done
}

addresses_up() {
	echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter
	ip addr add 10.77.0.1/24 dev evr_a
	ip addr add 10.77.0.2/24 dev evr_b
	ip rule add pref 10 iif evr_a lookup local
	ip rule add pref 11 iif evr_b lookup local
	ip rule add pref 20 to 10.77.0.2 lookup 101
	ip rule add pref 21 to 10.77.0.1 lookup 102
	ip rule add pref 100 lookup local
	ip rule delete pref 0
	ip route add 10.77.0.2/32 dev evr_a src 10.77.0.1 table 101
	ip route add 10.77.0.1/32 dev evr_b src 10.77.0.2 table 102
	# Nobody is there, but somebody is to be asked.
	ip neigh add 10.77.0.9 lladdr 02:00:00:77:00:09 nud permanent dev evr_a
	ip link add nordma type dummy
	ip addr add 10.78.0.1/24 dev nordma
	ip link set nordma up
	ip route add 239.0.0.0/8 dev evr_a
}

# wired_up rxe|siw
wired_up() {
	export EVR_KIND="$1" EVR_DEV_A="${1}0" EVR_DEV_B="${1}1" EVR_NETDEV_A=evr_a EVR_NETDEV_B=evr_b
	prlimit --pid $$ --memlock=unlimited 2>/dev/null || :
	wire_up
	addresses_up
	for end in a b; do
		eval "dev=\$EVR_DEV_$(echo $end | tr ab AB)"
		rdma link add "$dev" type "$1" netdev "evr_$end"
		wait_until 60 is_active "$dev"
	done
}
