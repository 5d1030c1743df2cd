#!/bin/sh
# migrate.sh rxe|siw: `ucmatose -m` between all ends. Of each side every connection's id is moved to
# the second channel before its disconnect, which is asked for there: so say the commands that the
# kernel was given.
# time: virtual
. "$top_srcdir/t/interop/ends.sh"

# Leaks are none of this test's, and cannot be looked for in a process that is traced.
export ASAN_OPTIONS=detect_leaks=0

kind=$1
conns=4
tmp=$(mktemp -d)

# traced NAME END [ARGUMENT]...: ucmatose -m in place of this shell, for a subshell; its commands are
# in $tmp/NAME.trace.
traced() {
	case $2 in
	ours@*) bin=$ours_bin/ucmatose ;;
	*) bin=/usr/bin/ucmatose ;;
	esac
	trace=$tmp/$1.trace
	exec >"$tmp/$1" 2>&1
	end_env "$2"
	shift 2
	exec busybox timeout 60 strace -qq -xx -s 24 -e trace=write -o "$trace" \
		"$bin" -m -c $conns "$@"
}

# moved NAME: each id that is disconnected was moved before, to the channel that it is disconnected
# on; there are as many as connections. A command begins with its number and its length: MIGRATE_ID
# is 18 and has the id at 16, DISCONNECT is 10 and has it at 8.
moved() {
	awk -v conns=$conns -v name="$1" '
		function hex(at, n) { return substr(bytes, at * 4 + 1, n * 4) }
		{
			split($0, part, "\"")
			bytes = part[2]
			fd = $0
			sub(/[^(]*\(/, "", fd)
			sub(/,.*/, "", fd)
		}
		!match($0, /= 24$|= 12$/) { next }
		hex(0, 4) == "\\x12\\x00\\x00\\x00" { channel[hex(16, 4)] = " " fd }
		hex(0, 4) == "\\x0a\\x00\\x00\\x00" {
			id = hex(8, 4)
			if (channel[id] != " " fd) {
				print name ": id " id " was not moved to " fd " before its disconnect"
				bad = 1
			}
			if (!seen[id]++)
				n++
		}
		END {
			if (n != conns)
				print name ": " n + 0 " ids disconnected, wanted " conns
			exit bad || n != conns
		}' "$tmp/$1.trace"
}

show() { sed "s/^/$1: /" "$tmp/$1"; }

# strace keeps signals from itself: what is ended is the tool under it.
attempt() {
	(traced server "$2" -b "$EVR_IP4") &
	pid=$!
	wait_listener 7471 && (traced client "$1" -s "$EVR_IP4") && client=0 || client=$?
	[ $client = 0 ] || pkill -P $pid
	wait $pid && server=0 || server=$?
	[ $client = 0 ] && [ $server = 0 ]
}

# pair CLIENT SERVER
pair() {
	tries=1
	until attempt "$@"; do
		came_too_early "$kind" "$tmp/client" && [ $tries -lt 4 ] ||
			{ echo "client $client, server $server"; show client; show server; return 1; }
		tries=$((tries + 1))
	done
	moved client && moved server
}

cell "$kind comes up" dev_up "$kind"
for ends in "stock@stock stock@stock" "ours@ours stock@stock" "stock@stock ours@ours" \
	"ours@ours ours@ours" "ours@stock stock@ours" "stock@ours ours@stock"; do
	# shellcheck disable=SC2086 # two words
	cell "$kind: ucmatose -m, ${ends% *} client, ${ends#* } server: all ids move" pair $ends
done
cell "$kind goes away" dev_down
done_testing
