#!/bin/sh
# What the tools say to their options, and to a machine without a device.
. "${top_srcdir:-.}/t/lint/lint.sh"
tools=$top_builddir/examples/tools
out=$scratch/stdout
err=$scratch/stderr

# run TOOL ARGUMENT...: leaves the status and what was printed.
run() {
	tool=$1
	shift
	timeout 30 "$tools/$tool" "$@" >"$out" 2>"$err" </dev/null
	status=$?
}

expect_status() { [ "$status" -eq "$1" ] || echo "status $status, not $1" >>"$findings"; }

# expect_lines FILE COUNT
expect_lines() {
	[ "$(wc -l <"$1")" -eq "$2" ] || {
		echo "$(basename "$1") has not $2 lines:"
		cat "$1"
	} >>"$findings"
}

expect_text() {
	grep -qF -e "$2" "$1" || {
		echo "$(basename "$1") does not say \"$2\":"
		cat "$1"
	} >>"$findings"
}

# refuses NAME TEXT TOOL ARGUMENT...: one line on stderr that has the text, nothing on stdout.
refuses() {
	name=$1 text=$2
	shift 2
	run "$@"
	expect_status 1
	expect_lines "$err" 1
	expect_text "$err" "$text"
	expect_lines "$out" 0
	verdict "$name"
}

# shows_usage NAME TEXT TOOL ARGUMENT...
shows_usage() {
	name=$1 text=$2
	shift 2
	run "$@"
	expect_status 1
	expect_text "$err" "$text"
	expect_text "$err" "usage: $1"
	expect_lines "$out" 0
	verdict "$name"
}

for tool in ucmatose mckey; do
	run $tool -h
	expect_status 0
	expect_text "$out" "usage: $tool"
	expect_lines "$err" 0
	verdict "$tool -h shows the usage on stdout"

	shows_usage "$tool shows the usage for an unknown option" "invalid option" $tool -x
	shows_usage "$tool shows the usage for a missing argument" "requires an argument" $tool -c
	shows_usage "$tool shows the usage for a stray argument" "stray: not an option" $tool stray

	for bad in '' abc 10x -1 +1 ' 1' 0x10; do
		refuses "$tool refuses -c '$bad'" "-c $bad: not a number" $tool -m 239.0.0.1 -c "$bad"
	done
	refuses "$tool names the range of -c" "from 1 to 32767" $tool -m 239.0.0.1 -c 0
	refuses "$tool refuses a number past its range" "out of range" $tool -m 239.0.0.1 -C 65537
	refuses "$tool refuses a number past every range" "out of range" \
		$tool -m 239.0.0.1 -S 99999999999999999999
	refuses "$tool refuses a deadline of nothing" "-T 0: out of range" $tool -m 239.0.0.1 -T 0
done

refuses "ucmatose refuses a port past 65535" "-p 65536: out of range" ucmatose -p 65536
refuses "ucmatose refuses port 0" "-p 0: out of range" ucmatose -p 0
refuses "ucmatose refuses a type of service past 255" "-t 256: out of range" ucmatose -t 256
refuses "ucmatose refuses an ack timeout past 31" "-a 0x20: out of range" ucmatose -a 0x20
refuses "ucmatose refuses an unknown address format" "-f mac: no such format" ucmatose -f mac
refuses "ucmatose refuses an unknown port space" "-P udp: no such port space" ucmatose -P udp
refuses "mckey wants a group" "no group to join" mckey
refuses "mckey -M wants -b" "-M needs -b" mckey -M ff12::1
refuses "mckey -o wants -s" "-o needs -s" mckey -m 239.0.0.1 -o
refuses "mckey refuses a port space without datagrams" "-p 0x0106: no port space of datagrams" \
	mckey -m 239.0.0.1 -p 0x106

# --- the smaller tools on the CM ------------------------------------------------

common_cli() {
	run $1 -h
	expect_status 0
	expect_text "$out" "usage: $1"
	expect_lines "$err" 0
	verdict "$1 -h shows the usage on stdout"

	shows_usage "$1 shows the usage for an unknown option" "invalid option" "$@" -x
	shows_usage "$1 shows the usage for a missing argument" "requires an argument" "$@" -T
	shows_usage "$1 shows the usage for a stray argument" "stray: not an option" "$@" stray
	refuses "$1 refuses a number that is none" "-T 10x: not a number" "$@" -T 10x
	refuses "$1 refuses a deadline of nothing" "-T 0: out of range" "$@" -T 0
}
for tool in 'rping -s' udaddy cmtime rdma_client rdma_server rdma_xclient rdma_xserver \
	evrdma-perf; do
	# shellcheck disable=SC2086 # words
	common_cli $tool
done
for tool in 'rping -s' cmtime rdma_client rdma_server rdma_xclient rdma_xserver evrdma-perf; do
	# shellcheck disable=SC2086
	refuses "${tool%% *} refuses a port past 65535" "-p 65536: out of range" $tool -p 65536
done
refuses "rping wants to be one side" "give either -s, be the server, or -c" rping -a 127.0.0.1
refuses "rping is not both sides" "give either -s, be the server, or -c" rping -s -c
refuses "a client of rping wants a server" "-c needs -a" rping -c
refuses "a client of rping does not persist" "-P is the server's" rping -c -a 127.0.0.1 -P
refuses "a server of rping connects from nowhere" "-I is the client's" rping -s -I 127.0.0.1
refuses "rping refuses a text without room for its head" "-S 22: out of range" rping -s -S 22
refuses "rping refuses a text that is too large" "-S 65536: out of range" rping -s -S 65536
refuses "udaddy refuses an unknown port space" "-P tcp: no such port space" udaddy -P tcp
refuses "udaddy refuses a port space without datagrams" "-p 0x0106: no port space of datagrams" \
	udaddy -p 0x106
refuses "udaddy refuses an unknown format" "-f mac: no such format" udaddy -f mac
refuses "udaddy refuses a type of service" "-t: datagrams have no type of service" udaddy -t 1
refuses "cmtime refuses a retry count past 7" "-r 8: out of range" cmtime -r 8
refuses "cmtime refuses no threads" "-n 0: out of range" cmtime -n 0
refuses "cmtime refuses too many threads" "-n 257: out of range" cmtime -n 257
refuses "cmtime refuses a time that is none" "-m 1ms: not a number" cmtime -m 1ms
refuses "cmtime refuses the number of a queue pair that the CM has" "-q 1: out of range" cmtime -m 0 -q 1
refuses "cmtime refuses a number of more than 24 bits" "-q 16777216: out of range" cmtime -m 0 -q 16777216
refuses "cmtime -q wants -m" "-q is of the queue pairs of -m" cmtime -q 2000
refuses "cmtime has no queue pairs over TCP" "-S and -m" cmtime -S -m 0
refuses "cmtime is bound once" "-b and -B" cmtime -b 127.0.0.1 -B lo
for option in C L P; do
	shows_usage "cmtime has no -$option" "invalid option" cmtime -$option 2
done
refuses "evrdma-perf refuses an unknown test" "-t pong: no such test" evrdma-perf -t pong
refuses "evrdma-perf refuses a size that is a word" "-S most: not a number" evrdma-perf -s 127.0.0.1 -S most
refuses "evrdma-perf knows of one word for a size" "-S 64k: not a number; give a number from 1 to 67108864, or all" \
	evrdma-perf -s 127.0.0.1 -S 64k
refuses "evrdma-perf refuses a size of nothing" "-S 0: out of range" evrdma-perf -S 0
refuses "evrdma-perf refuses a window of nothing" "-w 0: out of range" evrdma-perf -w 0
refuses "evrdma-perf is not both ends of a group" "-s and -m" evrdma-perf -s 239.0.0.1 -m 239.0.0.1
refuses "evrdma-perf refuses a datagram without room for its number" "give at least 16" \
	evrdma-perf -t group -s 239.0.0.1 -S 15
refuses "evrdma-perf refuses all sizes of a connect" "-S all: -t connect sends no messages" \
	evrdma-perf -t connect -s 127.0.0.1 -S all
refuses "evrdma-perf has no idle ones beside a connect" "-t connect sends nothing on any" \
	evrdma-perf -t connect -s 127.0.0.1 -i 1
refuses "evrdma-perf refuses a server that is given a test" "the server runs what its clients ask for" \
	evrdma-perf -t ping
refuses "rdma_xclient refuses an unknown kind" "-c q: no such kind of queue pair" rdma_xclient -c q
refuses "rdma_xserver refuses no kind at all" "-c : no such kind of queue pair" rdma_xserver -c ''

# --- the tools on rsockets, where the librdmacm has them ------------------------

rsocket_tools=
[ ! -x "$tools/rstream" ] || rsocket_tools="rstream riostream udpong rcopy"

for tool in $rsocket_tools; do
	run $tool -h
	expect_status 0
	expect_text "$out" "usage: $tool"
	expect_lines "$err" 0
	verdict "$tool -h shows the usage on stdout"

	shows_usage "$tool shows the usage for an unknown option" "invalid option" $tool -x
	shows_usage "$tool shows the usage for a missing argument" "requires an argument" $tool -p
	for bad in '' abc 10x -1 +1 ' 1' 0x10; do
		refuses "$tool refuses -p '$bad'" "-p $bad: not a number" $tool -p "$bad"
	done
	refuses "$tool refuses port 0" "-p 0: out of range" $tool -p 0
	refuses "$tool refuses a port past 65535" "-p 65536: out of range" $tool -p 65536
	refuses "$tool refuses a number past every range" "out of range" \
		$tool -w 99999999999999999999
done

streams_cli() {
	for tool in rstream riostream; do
		refuses "$tool refuses no iterations" "-I 0: out of range" $tool -I 0
		refuses "$tool refuses no transfers" "-C 0: out of range" $tool -C 0
		refuses "$tool refuses a size of nothing" "-S 0: out of range" $tool -S 0
		refuses "$tool refuses a size that is a word" "-S most: not a number" $tool -S most
		refuses "$tool refuses -S all with a run" "a series of its own" $tool -S all -C 5
		refuses "$tool refuses an unknown format" "-f mac: no such format" $tool -f mac
		refuses "$tool refuses -T a with -T b" "exclude each other" $tool -T a -T b
		shows_usage "$tool shows the usage for a stray argument" "stray: not an option" \
			$tool stray
	done
	for bad in x '' ver asyncx e; do
		refuses "rstream refuses -T '$bad'" "-T $bad: no such test" rstream -T "$bad"
	done
	for bad in s f r; do
		refuses "riostream refuses -T $bad" "-T $bad: no such test" riostream -T $bad
	done
	for bad in f r v; do
		refuses "udpong refuses -T $bad" "-T $bad: no such test" udpong -T $bad
	done
	refuses "rstream refuses a GID over TCP" "which has no -T r and no -f gid" \
		rstream -T s -f gid
	refuses "rstream refuses keepalive of nothing" "-k 0: out of range" rstream -k 0
	refuses "rstream refuses a host that is none" "give an address" \
		rstream -T s -f ip -s nosuch.invalid
	refuses "udpong refuses a message without its header" "-S 15: out of range" udpong -S 15
	refuses "udpong refuses a message that is too large" "-S 2049: out of range" udpong -S 2049
	shows_usage "udpong shows the usage for a stray argument" "stray: not an option" \
		udpong stray
	shows_usage "rcopy wants a server" "a source, but no server" rcopy source
	shows_usage "rcopy refuses a third word" "c: not an option" rcopy a b c
	refuses "rcopy wants a destination after a colon" "no destination" rcopy a b:
	refuses "rcopy wants a server before a colon" "no server" rcopy a :b
	refuses "rcopy refuses -d of a client" "-d is the server's" rcopy a b -d /tmp
	refuses "rcopy says that there is no source" "/nosuch/file: No such file" \
		rcopy /nosuch/file 127.0.0.1
	refuses "rcopy copies no folder" "not an ordinary file" rcopy / 127.0.0.1
	mkfifo "$scratch/fifo"
	refuses "rcopy copies no pipe" "not an ordinary file" rcopy "$scratch/fifo" 127.0.0.1
	refuses "rcopy says that there is no folder" "-d /nosuch: No such file" rcopy -d /nosuch
}
[ -z "$rsocket_tools" ] || streams_cli

# What a machine without a device answers; one with a device has t/interop.
no_device() {
	if ls /sys/class/infiniband/* >/dev/null 2>&1; then
		skip "$1 says that there is no device" "there is a device; t/interop tests what it says"
	else
		refuses "$1 says that there is no device" "rdma link" "$@"
	fi
}
no_device ucmatose
no_device mckey -m 239.0.0.1
no_device rping -s
no_device udaddy
no_device cmtime
no_device evrdma-perf
for tool in $rsocket_tools; do
	[ $tool = udpong ] || no_device $tool
done

done_testing
