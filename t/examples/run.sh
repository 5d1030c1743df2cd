#!/bin/sh
# Every program that the pages show, and every numbered example, runs on the fake against the other end that it
# is made for, ends with 0, prints what is said here, and leaves nothing behind.
. "${top_srcdir:-.}/t/lint/lint.sh"
cd "$top_srcdir" || exit 99

fake_ip=192.0.2.1
flags="-std=c11 -D_GNU_SOURCE $(make_var CFLAGS) $(make_var EVR_SAN_FLAGS)"
libs="libevr_other_end.la libevr_ev.la libevr_cm.la libevr_fake.la $(make_var LIBEVENT_LIBS) -lpthread"

# build PROGRAM SOURCE...
build() {
	program=$1
	shift
	objects=
	for source; do
		object=$program-$(basename "$source" .c).o
		objects="$objects $object"
		# shellcheck disable=SC2086
		$cc $flags $public_flags -Dmain=example_main -c -o "$object" "$source" || return
	done
	# shellcheck disable=SC2086
	(cd "$top_builddir" && ./libtool --silent --tag=CC --mode=link $cc $flags -o "$program" $objects $libs)
}

# Who is at the other end of each of them (other_end.c), its arguments, what it prints, and its status
# where that is not 0. What stands behind a colon is one of several cases of a program.
cases() {
	cat <<-END
	01-connect          EVR_OTHER_END=server|$fake_ip:7471|hello
	02-echo-server      EVR_OTHER_END=client EVR_CLIENTS=3 EVR_INTERRUPT=1|$fake_ip:7471|listening on port 7471
	04-datagram-service EVR_OTHER_END=asker EVR_INTERRUPT=1|$fake_ip:7471|listening on port 7471
	05-datagram-client  EVR_OTHER_END=server|$fake_ip:7471 again|again
	06-many-threads     EVR_OTHER_END=client EVR_CLIENTS=3 EVR_INTERRUPT=1|$fake_ip:7471 2|thread 1 served 1
	07-reconnect        EVR_OTHER_END=fickle|$fake_ip:7471 3|the server has left
	evrdma.1            EVR_OTHER_END=client EVR_INTERRUPT=1|$fake_ip|5 bytes
	evrdma.2            EVR_OTHER_END=server|$fake_ip|it has arrived
	evrdma_base.1       |$fake_ip|nothing of it is left
	evrdma_buf.1        EVR_OTHER_END=server|$fake_ip:7471|copied
	evrdma_bufferevent.1 |$fake_ip:7471|it came back: hello
	evrdma_conn.1       EVR_OTHER_END=server|$fake_ip|1000 messages have arrived
	evrdma_dgram.1      EVR_OTHER_END=asker|$fake_ip|5 bytes from queue pair
	evrdma_domain.1     EVR_OTHER_END=client|$fake_ip:7471|connected, in a domain of its own
	evrdma_error.1      |$fake_ip:9|connecting: Connection refused
	evrdma_errors.1     |$fake_ip:9|connecting: Connection refused
	guide.2-server      EVR_OTHER_END=client EVR_INTERRUPT=TERM|$fake_ip:7471|hello, $fake_ip
	guide.3-server      EVR_OTHER_END=client EVR_MESSAGES=64 EVR_CLIENTS=3 EVR_INTERRUPT=TERM|$fake_ip:7471|: closed
	guide.4-client      EVR_OTHER_END=server|$fake_ip:7471|1000 of 1000 messages came back
	guide.4-client:none |$fake_ip:9 1|connecting: Connection refused|1
	guide.4-client:silent |192.0.2.250:7471 1|Connection timed out|1
	guide.5-server      EVR_OTHER_END=client EVR_MESSAGES=64 EVR_CLIENTS=3 EVR_INTERRUPT=TERM|$fake_ip:7471|: closed
	guide.6-server      EVR_OTHER_END=client EVR_MESSAGES=64 EVR_CLIENTS=3 EVR_INTERRUPT=USR1,TERM|$fake_ip:7471|base: sends 192
	guide.6-server:long EVR_OTHER_END=client EVR_MESSAGES=64 EVR_CLIENTS=2 EVR_FIRST_BYTES=8192 EVR_INTERRUPT=TERM|$fake_ip:7471|a message larger than its buffer
	guide.6-server:empty EVR_OTHER_END=client EVR_MESSAGES=64 EVR_CLIENTS=2 EVR_FIRST_BYTES=0 EVR_INTERRUPT=TERM|$fake_ip:7471|an empty message
	guide.6-client      EVR_OTHER_END=server|$fake_ip:7471 100 64|100 of 100 messages came back
	evrdma_id.1         |$fake_ip:9|port 1 of fake0
	evrdma_lifetime.1   EVR_OTHER_END=server|$fake_ip:7471|a send is over
	evrdma_listener.1   EVR_OTHER_END=client EVR_CLIENTS=2|$fake_ip:7471|1 served
	evrdma_log.1        |$fake_ip|evrdma 0
	evrdma_mcast.1      |$fake_ip|hello, all
	evrdma_peer.1       EVR_OTHER_END=server|$fake_ip|hello
	evrdma_porting.1    EVR_OTHER_END=server|$fake_ip|hello
	evrdma_porting.2    EVR_OTHER_END=server|$fake_ip|hello
	evrdma_srq.1        EVR_OTHER_END=client EVR_CLIENTS=2|$fake_ip:7471|5 bytes
	evrdma_stats.1      |$fake_ip|pool of 4096: bufs 64
	evrdma_threads.1    EVR_OTHER_END=client EVR_CLIENTS=2|$fake_ip:7471|a connection for thread 0
	evrdma_work.1       |$fake_ip:7471|page 7: 13 bytes: written there
	END
}

# play CASE: runs its program, and says what was not as expected.
play() {
	cases | sed -n "s/^$1  *//p" >"$scratch/case"
	[ -s "$scratch/case" ] || echo "$1 is not among the cases of $0"
	IFS='|' read -r other arguments expected expected_status <"$scratch/case"
	# shellcheck disable=SC2086
	env $other timeout 60 "$scratch/out/${1%:*}" $arguments >"$scratch/printed" 2>&1
	status=$?
	[ $status -eq "${expected_status:-0}" ] || echo "it ended with $status"
	grep -qF -- "$expected" "$scratch/printed" || echo "it did not print: $expected"
}

# plays CASE: a case of a program that is built.
plays() {
	play "$1" >>"$findings"
	[ ! -s "$findings" ] || head -n 20 "$scratch/printed" >>"$findings"
	verdict "$1 runs"
}

# shows NAME SOURCE...
shows() {
	name=$1
	shift
	if build "$scratch/out/$name" "$@" >"$scratch/printed" 2>&1; then
		plays "$name"
	else
		{ echo "it cannot be built"; head -n 20 "$scratch/printed"; } >>"$findings"
		verdict "$name runs"
	fi
}

# guide STEP: the folder with the files of the guide as they are after that step.
guide() {
	mkdir -p "$scratch/out/guide.$1"
	awk -v files="$scratch/out/guide.$1" -v step="$1" -f t/lint/examples.awk man/evrdma_guide.7
	echo "$scratch/out/guide.$1"
}

for page in man/evrdma*.[37]; do
	name=$(basename "$page" | sed 's/\.[37]$//')
	awk -v out="$scratch/out/$name" -f t/lint/examples.awk "$page"
done
# Two of 03-rdma-write are needed, of 08-shared-memory, and 10-http-client for 09-http-server:
# t/interop/examples.sh has them.
for source in examples/0[!389]-*.c "$scratch"/out/*.[0-9].c; do
	shows "$(basename "$source" .c)" "$source"
done

for step in 2 3 5 6; do
	dir=$(guide $step)
	shows guide.$step-server "$dir/server.c" "$dir/listen.c" "$dir/echo.c"
done
plays guide.6-server:long
plays guide.6-server:empty
for step in 4 6; do
	shows guide.$step-client "$(guide $step)/client.c"
done
plays guide.4-client:none
plays guide.4-client:silent

done_testing
