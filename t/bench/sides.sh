# Sourced by the scripts here: one run of one side, which prints its number, or nothing when it failed. Each
# has a port of its own.
. "$top_srcdir/t/interop/ends.sh"

perf_bin=$top_builddir/examples/tools/.libs/evrdma-perf
minimal=$top_builddir/t/bench/.libs/minimal
bench=$top_builddir/t/bench/.libs
tmp=$(mktemp -d)
echo 20000 >"$tmp/port"
scale=${BENCH_SCALE:-100}

# Into $port; a side may be a subshell. What says nothing else is run on the distribution's librdmacm.
next_port() {
	core=stock@stock
	port=$(($(cat "$tmp/port") + 1))
	echo $port >"$tmp/port"
}

# scaled COUNT [LEAST]: as many as the scale leaves of them, 10 or so many at least.
scaled() {
	set -- $(($1 * scale / 100)) "${2:-10}"
	[ "$1" -ge "$2" ] && echo "$1" || echo "$2"
}

# row NAME UNIT lower|higher GOAL, then the sides; the first is ours. The goal is one of the ratio; a row whose
# goal is - has none, and =NUMBER is one for ours alone.
row() {
	end_row
	name=$1 unit=$2 better=$3 goal=$4
}

# side WHOSE COMMAND...: of words that have no blanks. What cannot be measured here is no side.
side() {
	case $1 in ib_*) perftest_knows_time || return 0 ;; esac
	printf '%s\t' "$1" >>"$tmp/sides"
	shift
	echo "$*" >>"$tmp/sides"
}

# end_row: runs the sides, which begin with the first one and the last by turns, as $round has it; each gives a
# sample for table.awk.
end_row() {
	[ -s "$tmp/sides" ] || return 0
	[ $((round % 2)) -eq 1 ] && order="cat" || order="tac"
	$order "$tmp/sides" >"$tmp/in_turn"
	rm "$tmp/sides"
	while IFS="$(printf '\t')" read -r whose words <&3; do
		value=$($words)
		printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$name" "$unit" "$better" "$goal" "$whose" "$value" >>"$EVR_OUT/samples"
		echo "$name, $whose: ${value:-failed} $unit"
	done 3<"$tmp/in_turn"
}

# begin_samples: of the rows that follow, and what each side of them runs.
begin_samples() {
	: >"$EVR_OUT/samples"
	printf 'row\twhose\tlibrdmacm\tthe client\n' >"$EVR_OUT/commands"
}

# note_command WORD...: what a side runs, the last one of a row that it runs.
note_command() {
	[ -n "$whose" ] || return 0
	at=$(printf '%s\t%s\t' "$name" "$whose")
	grep -vF "$at" "$EVR_OUT/commands" >"$tmp/commands"
	printf '%s%s\t%s\n' "$at" "${core#*@}" "$*" |
		sed "s|${top_builddir}[^ ]*/||g; s|$ours_bin/||g; s|/usr/bin/||g
			s|$EVR_IP4|ADDRESS|g; s|$port|PORT|g; s|$EVR_DEV|DEVICE|g" >>"$tmp/commands"
	mv "$tmp/commands" "$EVR_OUT/commands"
}

limit() { busybox timeout -k 5 120 "$@"; }

# What a client is run under, if by anything: one of these.
spent="$top_builddir/t/bench/spent $tmp/spent"
traced="strace -f -c -o $tmp/calls"
under=
whose=

# after WAIT SERVER... -- CLIENT...: what the client prints, once the server is there; nothing if that does not
# come, or the client fails. The server ends by itself, or is ended.
after() {
	wait=$1 server_words=
	shift
	while [ "$1" != -- ]; do
		server_words="$server_words $1"
		shift
	done
	shift
	note_command "$@"
	# shellcheck disable=SC2086 # words
	(exec busybox timeout -k 5 120 $server_words) >/dev/null 2>&1 & # what is killed is the server itself
	server=$!
	# shellcheck disable=SC2086 # words
	$wait $port >/dev/null 2>&1 && limit $under "$@" >"$tmp/said" 2>/dev/null && cat "$tmp/said"
	kill $server 2>/dev/null
	wait $server 2>/dev/null
}

# A stock program in the environment of the core that it is to run on.
at_core() {
	core=$1
	shift
	(end_env "$core" && "$@")
}

# field NAME: of the JSON on stdin.
field() { sed -n "s/.*\"$1\":\\([0-9.]*\\).*/\\1/p"; }

# perf FIELD ARGUMENT...: of both sides.
perf() {
	next_port
	want=$1
	shift
	spin=
	case " $* " in *" -e "*) spin='-e 1000' ;; esac
	# shellcheck disable=SC2086 # an option with its value
	at_core ours@ours after wait_listener "$perf_bin" -b "$EVR_IP4" -p $port $spin -- \
		"$perf_bin" -s "$EVR_IP4" -p $port -J "$@" | field "$want"
}

perf_mb() { perf bytes_per_s "$@" | awk '{ printf "%.5g\n", $1 / 1e6 }'; }

# perf_us COUNT ARGUMENT...: microseconds of a round, of all of them as the others count them.
perf_us() {
	count=$1
	shift
	perf seconds -t ping -C "$count" "$@" | awk -v n="$count" '{ printf "%.2f\n", 1e6 * $1 / n }'
}

# perf_connect N: microseconds of a connection, made and ended.
perf_connect() {
	next_port
	at_core ours@ours after wait_listener "$perf_bin" -b "$EVR_IP4" -p $port -- \
		"$perf_bin" -s "$EVR_IP4" -p $port -J -t connect -n "$1" >"$tmp/json"
	awk -v n="$1" -v made="$(field connect_s <"$tmp/json")" \
		-v ended="$(field disconnect_s <"$tmp/json")" \
		'BEGIN { if (made) printf "%.1f\n", (made + ended) * 1e6 / n }'
}

# cmtime END N: the same, by the sum of its steps.
cmtime_sum() {
	next_port
	case $1 in ours@*) bin=$ours_bin ;; *) bin=/usr/bin ;; esac
	at_core "$1" after wait_listener "$bin/cmtime" -b "$EVR_IP4" -p $port -- \
		"$bin/cmtime" -s "$EVR_IP4" -p $port -c "$2" | awk '
		/^[a-z ]+ *:? +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+$/ { sum += $NF }
		END { if (sum) printf "%.1f\n", sum }'
}

minimal_ping() {
	next_port
	at_core ours@ours after wait_listener "$minimal" $port "$EVR_IP4" -- \
		"$minimal" $port "$EVR_IP4" "$1"
}

tcp_listens() { wait_until 20 sh -c "ss -Hltn 'sport = :$1' | grep -q ."; }

# ibv_pingpong COUNT [-e]: of verbs alone, which meets over TCP.
ibv_pingpong() {
	next_port
	count=$1
	shift
	set -- ibv_rc_pingpong -d "$EVR_DEV" -g 1 -s 64 -p $port -n "$count" "$@"
	after tcp_listens "$@" -- "$@" "$EVR_IP4" |
		sed -n 's/.* = \([0-9.]*\) usec\/iter.*/\1/p'
}

# Its clock is the one that /proc/cpuinfo has the speed of; without, as in user-mode Linux, it knows no times.
perftest_knows_time() { grep -q '^cpu MHz' /proc/cpuinfo; }

# perftest COLUMN TOOL SIZE COUNT [OPTION]...: a column of its row, of MB/s or messages; at most 64 are under
# way (of reads 16), and each 16th is signalled, as with evrdma-perf, but of a list the last. Of small ones its
# MB/s have no digits left.
perftest() {
	perftest_knows_time || return 0
	next_port
	column=$1 tool=$2 size=$3 count=$4
	shift 4
	case " $* " in *" -l "*) ;; *) set -- -Q 16 "$@" ;; esac
	case $tool in ib_read_*) set -- -o 16 "$@" ;; esac
	set -- "$tool" -R -d "$EVR_DEV" -F -p $port -s "$size" -n "$count" -t 64 "$@"
	after wait_listener "$@" -- "$@" "$EVR_IP4" | awk -v size="$size" -v column="$column" '
		$1 != size || NF < 5 || $5 <= 0 { next }
		column == "rate" { printf "%.0f\n", $5 * 1e6 }
		column == "mb" { print size < 4096 ? $5 * size : $4 * 1048576 / 1e6 }'
}

# rstream_us CORE SIZE COUNT [OPTION]...: microseconds of a transfer by the stock tool, which blocks unless -T
# says how else.
rstream_us() {
	next_port
	core=$1 size=$2 count=$3
	shift 3
	case " $* " in *" -T "*) ;; *) set -- -T b "$@" ;; esac
	set -- rstream -p $port -S "$size" -C "$count" "$@"
	at_core "stock@$core" after wait_listener "$@" -b "$EVR_IP4" -- "$@" -s "$EVR_IP4" |
		awk '$1 == "custom" { print $NF }'
}

# rstream_rate CORE SIZE COUNT: messages a second, one way, by the same.
rstream_rate() {
	rstream_us "$@" | awk '{ if ($1) printf "%.1f\n", 1e6 / $1 }'
}

# rstream_mb CORE SIZE COUNT: MB/s. It says what a transfer there and back takes, per transfer one way.
rstream_mb() { rstream_us "$@" | mb_of "$2"; }

# group RECEIVERS SIZE COUNT: what its sender says, in JSON, if each receiver comes to its end; and what that
# says, in $tmp/got.RECEIVERS.N.
group() {
	next_port
	receivers=
	rm -f "$tmp/got.$1".* "$tmp/said"
	for n in $(seq "$1"); do
		(at_core ours@ours limit "$perf_bin" -m 239.9.9.9 -b "$EVR_IP4" -p $port -J) >"$tmp/got.$1.$n" &
		receivers="$receivers $!"
	done
	sleep 1
	set -- "$perf_bin" -t group -s 239.9.9.9 -b "$EVR_IP4" -p $port -S "$2" -C "$3" -J
	core=ours@ours
	note_command "$@"
	# shellcheck disable=SC2086 # words
	at_core $core limit $under "$@" >"$tmp/said" && ended=yes || ended=no
	for receiver in $receivers; do
		wait "$receiver" || ended=no
	done
	[ $ended = no ] || cat "$tmp/said"
}

group_sent() { group "$@" | field messages_per_s; }

# group_got RECEIVERS COUNT: of the last run with so many, per cent of the count, of the receiver that got
# least; nothing if one did not say.
group_got() {
	for n in $(seq "$1"); do
		field messages <"$tmp/got.$1.$n"
	done | sort -n | awk -v sent="$2" -v all="$1" '
		NR == 1 { least = $1 }
		END { if (NR == all) printf "%.2f\n", 100 * least / sent }'
}

# datagrams_got SIZE COUNT: the same of perftest's, whose server ends when it has all, and does not say how many
# it has else: 100, or 0.
datagrams_got() {
	perftest_knows_time || return 0
	next_port
	set -- ib_send_bw -R -d "$EVR_DEV" -F -p $port -s "$1" -n "$2" -t 64 -Q 16 -c UD
	note_command "$@" "$EVR_IP4"
	(exec busybox timeout -k 5 120 "$@") >/dev/null 2>&1 &
	server=$!
	wait_listener $port && limit "$@" "$EVR_IP4" >/dev/null 2>&1 && ended=yes || ended=no
	got=100
	wait_until 20 is_gone $server || { got=0 && kill $server; }
	wait $server || [ $got -eq 0 ] || ended=no
	[ $ended = no ] || echo $got
}

# is_gone PID: one that nobody waited for yet is still there, as a zombie.
is_gone() { [ ! -d "/proc/$1" ] || grep -q '^State:[[:space:]]*Z' "/proc/$1/status"; }

# rounds_us WAY PROGRAM WORD...: of a program whose server takes the same words behind -l.
rounds_us() {
	case $1 in tcp) listens=tcp_listens ;; *) listens=wait_listener ;; esac
	program=$2
	shift 2
	after $listens "$program" -l "$@" -- "$program" "$@"
}

# sockets_us CORE WAY SOCKETS BYTES ANSWER ROUNDS: of a round, as t/bench/sockets.c has it. The address
# is the machine's own, and all come back before the link: TCP by the loopback device, and rxe inside.
sockets_us() {
	next_port
	core=$1 way=$2
	shift 2
	at_core "stock@$core" rounds_us "$way" "$bench/sockets" "$way" "$EVR_IP4" $port "$@"
}

# stream_us rdma|tcp BYTES ANSWER ROUNDS: the same of a bufferevent.
stream_us() {
	next_port
	way=$1
	shift
	at_core ours@ours rounds_us "$way" "$bench/stream" "$way" "$EVR_IP4:$port" "$@"
}

# mb_of BYTES: MB/s, where the microseconds that they took are on stdin.
mb_of() { awk -v bytes="$1" '$1 > 0 { printf "%.5g\n", bytes / $1 }'; }

# http_rate rdma|tcp COUNT: requests a second on one connection.
http_rate() {
	next_port
	other=$port
	next_port
	server=$top_builddir/examples/09-http-server
	case $1 in
	tcp) set -- "$@" tcp_listens "$EVR_IP4:$other" "$EVR_IP4:$port" ;;
	*) set -- "$@" wait_listener "$EVR_IP4:$port" "$EVR_IP4:$other" ;;
	esac
	at_core ours@ours after "$3" "$server" "$4" "$5" -- "$bench/requests" "$1" "$EVR_IP4" $port "$2"
}

# loops_rate LOOPS MESSAGES: messages a second that came back, of so many loops on either side.
loops_rate() {
	next_port
	server=$top_builddir/examples/06-many-threads
	at_core ours@ours after wait_listener "$server" "$EVR_IP4:$port" "$1" -- \
		"$bench/loops" "$EVR_IP4:$port" "$1" "$2"
}

# spent_by FIELDS COMMAND...: what the client of a side spent, as spent.c has it.
spent_by() {
	fields=$1 under=$spent
	shift
	rm -f "$tmp/spent"
	[ -n "$("$@")" ] && cut -d ' ' -f "$fields" "$tmp/spent"
}

# Whether the kernel counts calls. strace does where it does not, but makes each so slow that threads wait for
# each other that otherwise do not meet, which are calls again.
counts_calls() {
	[ -d /sys/kernel/tracing/events ] || mount -t tracefs none /sys/kernel/tracing 2>/dev/null || :
	$spent true && [ "$(cut -d ' ' -f 7 "$tmp/spent")" != - ]
}

# calls_of COMMAND...: how often it called the kernel.
calls_of() {
	if counts_calls; then
		spent_by 7 "$@"
		return
	fi
	under=$traced
	rm -f "$tmp/calls"
	[ -n "$("$@")" ] && awk '$NF == "total" { print $4 }' "$tmp/calls"
}

# perf_peak N, cmtime_peak N: kB of a client with so many connections.
perf_peak() { spent_by 6 perf mean -t ping -C 1 -i $(($1 - 1)); }
cmtime_peak() { spent_by 6 cmtime_sum stock@stock "$1"; }

# perf_calls N, perftest_calls N [OPTION]..., stream_calls N: kernel calls of who sends so many messages of
# 64 bytes, 64 of them at a time; rstream sends one half of them and gets the other.
perf_calls() { calls_of perf messages -t send -S 64 -w 64 -C "$1"; }
perftest_calls() { calls_of perftest rate ib_send_bw 64 "$@"; }
stream_calls() { calls_of rstream_us stock 64 $(($1 / 2)) -I 1; }

# per_message CALLS N [OPTION]...: of what a message adds.
per_message() {
	what=$1 many=$2
	shift 2
	echo "$("$what" $((many / 10)) "$@") $("$what" "$many" "$@")" |
		awk -v n="$((many - many / 10))" 'NF == 2 { printf "%.3f\n", ($2 - $1) / n }'
}

# per_connection PEAK N: kB that a connection adds to those of a client with one.
per_connection() {
	echo "$("$1" 1) $("$1" "$2")" |
		awk -v n="$2" 'NF == 2 { printf "%.2f\n", ($2 - $1) / (n - 1) }'
}
