#!/bin/sh
# perf_hostile.sh rxe|siw [SEED [RUNS]]: evrdma-perf beside a peer that says its words at any time.
# time: virtual
. "$top_srcdir/t/guest/lib.sh"
kind=$1 seed=${2:-1} runs=${3:-40}
perf=$top_builddir/examples/tools/evrdma-perf hostile=$top_builddir/t/interop/perf_hostile
tmp=$(mktemp -d)

# A client of it ends, well or with one line, with status LEAST at least; whatever it prints is its own.
client_ends() {
	least=$1
	for run in $(seq "$runs"); do
		test=$(echo ping send write | cut -d ' ' -f $((run % 3 + 1)))
		timeout 60 "$perf" -s "$EVR_IP4" -p 7475 -t $test -C 50 -n 2 -i 1 -T 2 >"$tmp/out" 2>"$tmp/err" &&
			status=0 || status=$?
		[ $status -le 1 ] && [ $status -ge "$least" ] && [ "$(wc -l <"$tmp/err")" -eq $status ] && continue
		echo "$test, run $run of seed $seed: status $status"
		cat "$tmp/err"
		return 1
	done
}

server_goes_on() { timeout 60 "$perf" -s "$EVR_IP4" -C 10 >"$tmp/out" && cat "$tmp/out"; }

# STATUS
server_ends() {
	kill $server
	wait $server && status=0 || status=$?
	cat "$tmp/server.err"
	[ $status -eq "$1" ]
}

dev_up "$kind"
"$hostile" "$seed" "$EVR_IP4" 7475 & server=$!
: >"$tmp/server.err"
wait_listener 7475
cell "$kind: a client ends, whatever its server says and when" client_ends 0
cell "$kind: that server ends well" server_ends 0
"$hostile" "$seed" "$EVR_IP4" 7475 keep & server=$!
wait_listener 7475
cell "$kind: a client is kept by no words that bring nothing" client_ends 1
cell "$kind: who said them ends well" server_ends 0
"$perf" -b "$EVR_IP4" 2>"$tmp/server.err" & server=$!
wait_listener 7474
cell "$kind: clients may say what they like" timeout 300 "$hostile" "$seed" "$EVR_IP4" 7474 $((5 * runs))
cell "$kind: its server serves others" server_goes_on
cell "$kind: and says that not all was well" server_ends 1
dev_down
rm -rf "$tmp"
done_testing
