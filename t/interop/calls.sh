#!/bin/sh
# calls.sh rxe|siw: what one more connection costs in trips to the kernel, on our librdmacm and on
# the stock one: the commands of the CM's device and the calls of the verbs' device, by name, as the
# kernel itself counts them by probes on its entries. The tools are the distribution's.
# needs: probes
. "$top_srcdir/t/interop/ends.sh"
. "$top_srcdir/t/interop/probes.sh"

kind=$1
probes='cm verbs_write ioctl verbs'
tmp=$(mktemp -d)

# siw has queues for some thirty connections, rxe for any number.
case $kind in rxe) few=10 many=110 ;; *) few=4 many=24 ;; esac

# probe NAME FUNCTION FETCH FILTER: counts the function's calls by process and number.
probe() {
	probe_new "$1" "$2" "$3" &&
		echo "hist:keys=common_pid,number${4:+ if $4}" >"$tracing/events/evrdma/$1/trigger"
}

probes_up() { tracing_up && each_command probe; }

probes_down() {
	for p in $probes; do
		sed -n 's/^hist/!hist/p' "$tracing/events/evrdma/$p/trigger" |
			sed 's/ \[active\]//' >"$tracing/events/evrdma/$p/trigger"
		probe_gone "$p"
	done
}

# counted PID CORE SIDE CONNECTIONS: what the process asked the kernel for.
counted() {
	for p in $probes; do
		sed -n "s/^{ common_pid: *$1, number: *\([0-9]*\) } hitcount: *\([0-9]*\)$/\
$2 $3 $4 ${p%_write} \1 \2/p" "$tracing/events/evrdma/$p/hist"
	done
}

# Both ends on one core; the pids are the tools' own, because busybox's timeout takes the place of
# the process that it watches.
pair() {
	core=$1 conns=$2 server=$3 client=$4
	(end_run stock@$core 60 $server -c $conns) >"$tmp/server" 2>&1 &
	passive=$!
	wait_listener "$port" || return 1
	(end_run stock@$core 60 $client -c $conns) >"$tmp/client" 2>&1 &
	active=$!
	wait $active && active_status=0 || active_status=$?
	wait $passive && passive_status=0 || passive_status=$?
	echo "client $active_status, server $passive_status"
	cat "$tmp/client" "$tmp/server"
	[ $active_status = 0 ] && [ $passive_status = 0 ] || return 1
	counted $active $core active $conns >>"$tmp/counts"
	counted $passive $core passive $conns >>"$tmp/counts"
}

# pairs PORT SERVER CLIENT: fills $tmp/counts.
pairs() {
	port=$1
	: >"$tmp/counts"
	for core in stock ours; do
		for conns in $few $many; do
			pair $core $conns "$2" "$3" || return 1
		done
	done
}

# compare NAME PORT SERVER CLIENT
compare() {
	name="$kind: $1"
	shift
	cell "$name, $few and $many at a time on each core" pairs "$@"
	awk -v few=$few -v many=$many -f "$top_srcdir/t/interop/commands.awk" \
		-f "$top_srcdir/t/interop/calls.awk" \
		"$tmp/counts" >"$tmp/table" &&
		ok "$name: ours asks the kernel for no more than stock" ||
		not_ok "$name: ours asks the kernel for no more than stock"
	note "$(cat "$tmp/table")"
}

cell "$kind comes up" dev_up "$kind"
cell "the kernel counts what it is asked for" probes_up
compare "connections" 7471 "ucmatose -b $EVR_IP4 -C 0" "ucmatose -s $EVR_IP4 -C 0"
[ "$kind" = siw ] ||
	compare "datagram services" 7174 "udaddy -b $EVR_IP4 -C 1" "udaddy -s $EVR_IP4 -C 1"
cell "the probes go away" probes_down
cell "$kind goes away" dev_down
done_testing
