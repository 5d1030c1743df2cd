# Sourced by the scripts that count or time what a process asks the kernel for: probes on the
# entries of the CM's device and of the verbs' device.
tracing=/sys/kernel/tracing

tracing_up() { [ -e $tracing/kprobe_events ] || mount -t tracefs tracefs $tracing; }

# each_command COMMAND: the command with NAME FUNCTION FETCH FILTER, for each probe. A command begins
# with its number. An ioctl has object and method at 2; a command of the older kind is one of them
# (method 0 of object 0), with its number in the first attribute.
each_command() {
	"$1" cm ucma_write 'number=+u0($arg2):u32' '' &&
		"$1" verbs_write ib_uverbs_write 'number=+u0($arg2):u32' '' &&
		"$1" ioctl ib_uverbs_ioctl 'number=+u2($arg3):u32' 'number != 0' &&
		"$1" verbs ib_uverbs_ioctl 'number=+u32($arg3):u64 call=+u2($arg3):u32' 'call == 0'
}

# probe_new NAME FUNCTION [FETCH]
probe_new() { echo "p:evrdma/$1 $2 ${3:-}" >>$tracing/kprobe_events; }

probe_gone() { echo "-:evrdma/$1" >>$tracing/kprobe_events; }
