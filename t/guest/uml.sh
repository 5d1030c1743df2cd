# Sourced by boot.sh: guests in user-mode Linux, the kernel as a process.

prepare_guest() {
	kernel=${EVR_GUEST_KERNEL:-$("$guestdir/fetch" -n uml || "$guestdir/fetch" uml)}
	[ "${EVR_GUEST_TIME:-}" != instant ] || make_same_random
}

# What is drawn by chance is the same in every run then: see same_random.c.
make_same_random() {
	same_random=$kernel/same_random.so
	[ -z "$(find "$same_random" -newer "$guestdir/same_random.c" 2>/dev/null)" ] || return 0
	cc -shared -fPIC -O1 -o "$same_random.$$" "$guestdir/same_random.c" && mv "$same_random.$$" "$same_random"
}

# Its processes stop and go on as traced ones do, one for the other; across processors that takes
# ten times as long, so all of them keep to one of those that we may use.
one_processor() {
	taskset -cp $$ | sed 's/.*: //' | tr , '\n' |
		awk -F- -v slot="${EVR_GUEST_SLOT:-$$}" '
			{ for (i = $1; i <= $NF; i++) cpu[n++] = i }
			END { print cpu[slot % n] }'
}

time_args() {
	case ${EVR_GUEST_TIME:-real} in
	virtual) echo time-travel ;;
	instant) echo time-travel=inf-cpu time-travel-start=1700000000000000000 ;;
	esac
}

# start_guest DIR ROLE SECONDS [KERNEL ARGUMENT]...: leaves guest_pid. The guest's files are in
# DIR/ROLE, and DIR is its /run/evrdma; what the script prints goes to our output.
start_guest() {
	shared=$1 role=$2 seconds=$3
	shift 3
	: >"$shared/$role/output"
	# shellcheck disable=SC2046,SC2086 # parameters are words
	timeout -k 2 "$seconds" taskset -c "$(one_processor)" env ${same_random:+LD_PRELOAD="$same_random"} "$kernel/linux" \
		mem="${EVR_GUEST_MEM:-2048}M" root=host rootfstype=hostfs rootflags=/ ro \
		init="$guestdir/init_uml" con0=null,fd:3 console=ttyS0 ssl0=null,fd:4 umid=guest uml_dir="$shared/$role/" \
		loglevel=5 panic=-1 random.trust_cpu=on EVR_ROLE="$role" EVR_SHARED="$shared" EVR_MODULES="$kernel/modules" $(time_args) ${EVR_GUEST_APPEND:-} "$@" \
		</dev/null 3>"$shared/$role/output" 4>"$shared/$role/console" >&4 2>&1 &
	guest_pid=$!
	tail -n +1 -s 0.05 -f --pid="$guest_pid" "$shared/$role/output" &
}

# with_wire COMMAND...: what two guests have for a network, a pair of sockets that both inherit.
with_wire() {
	[ -z "${EVR_WIRE:-}" ] || return 0
	EVR_WIRE=1 exec perl -MSocket -MPOSIX=dup2 -e '
		socketpair(A, B, AF_UNIX, SOCK_SEQPACKET, 0) or die "socketpair: $!\n";
		dup2(fileno(A), 8) && dup2(fileno(B), 9) && exec @ARGV;
		die "$ARGV[0]: $!\n"' "$@"
}

# wire_end a|b: the kernel's parameters for that end.
wire_end() {
	case $1 in
	a) echo vec0:transport=fd,fd=8,mac=52:54:00:77:00:01 ;;
	b) echo vec0:transport=fd,fd=9,mac=52:54:00:77:00:02 ;;
	esac
}
