# Sourced by run and run2: one guest, from its initramfs to its verdict.

# What in a kernel's log fails a run.
kernel_trouble='WARNING: |BUG: |Oops|general protection fault|Kernel panic|blocked for more than'
kernel_trouble="$kernel_trouble|detected stalls|refcount_t: |UBSAN: |Call Trace:"

kernel_args='console=ttyS0 loglevel=5 panic=-1 mitigations=off nokaslr tsc=reliable'

# The initramfs: busybox, the modules, and the init of this checkout.
make_initramfs() {
	key=$(cksum <"$guestdir/init" | cut -d' ' -f1)
	initramfs=$kernel/initramfs-$key
	[ ! -f "$initramfs" ] || return 0
	tree=$(mktemp -d)
	mkdir -p "$tree/bin" "$tree/dev" "$tree/proc"
	cp /bin/busybox "$tree/bin/"
	ln -s busybox "$tree/bin/sh"
	cp "$guestdir/init" "$tree/init"
	chmod 755 "$tree/init"
	cp -r "$kernel/modules" "$tree/modules"
	(cd "$tree" && find . | cpio -o -H newc -R 0:0 2>/dev/null) >"$initramfs.$$"
	mv "$initramfs.$$" "$initramfs"
	rm -rf "$tree"
}

prepare_guest() {
	kernel=${EVR_GUEST_KERNEL:-$("$guestdir/fetch")}
	make_initramfs
	accel=kvm cpu=host
	kvm_boots || accel=tcg,thread=multi cpu=max
}

# Some machines offer a KVM that never gets a guest going: one that boots within seconds counts,
# asked once for each time this host starts.
kvm_boots() {
	[ -w /dev/kvm ] && [ "${EVR_GUEST_KVM:-auto}" != no ] || return 1
	verdict=$kernel/kvm-$(cat /proc/sys/kernel/random/boot_id)
	if [ ! -f "$verdict" ]; then
		rm -f "$kernel"/kvm-*
		probe_kvm && echo yes >"$verdict" || echo no >"$verdict"
	fi
	grep -q yes "$verdict"
}

probe_kvm() {
	probe=$(mktemp -d)
	(export EVR_GUEST_PROBE=1 && write_job "$probe" true)
	start_guest "$probe" . 6 >/dev/null 2>&1
	{ wait "$guest_pid" || :; } 2>/dev/null
	status=$(cat "$probe/status" 2>/dev/null || :)
	rm -rf "$probe"
	[ "$status" = 0 ]
}

# write_job FOLDER COMMAND...: what the guest runs, with our environment as far as it matters there.
write_job() {
	job=$1/job
	shift
	env | sed -n 's/^\(EVR_[A-Z0-9_]*\|CK_[A-Z_]*\|[A-Z]*SAN_OPTIONS\)=.*/\1/p' >"$job.names"
	echo top_srcdir top_builddir PATH | tr ' ' '\n' >>"$job.names"
	while read -r v; do
		eval "printf 'export %s=%s\n' $v \"\$(quote \"\$$v\")\""
	done <"$job.names" >"$job"
	rm "$job.names"
	printf 'exec /bin/sh %s' "$(quote "$guestdir/inside")" >>"$job"
	for a; do printf ' %s' "$(quote "$a")"; done >>"$job"
	echo >>"$job"
}

# start_guest DIR ROLE SECONDS [QEMU ARGUMENT]...: leaves guest_pid. The guest's files are in
# DIR/ROLE, and DIR is its /run/evrdma; what the script prints goes to our output.
start_guest() {
	shared=$1 role=$2 seconds=$3
	shift 3
	timeout -k 2 "$seconds" qemu-system-x86_64 -nodefaults -no-user-config -display none -no-reboot \
		-accel "$accel" -cpu "$cpu" -smp "${EVR_GUEST_CPUS:-2}" -m "${EVR_GUEST_MEM:-2048}" \
		-kernel "$kernel/vmlinuz" -initrd "$initramfs" \
		-append "$kernel_args EVR_ROLE=$role ${EVR_GUEST_APPEND:-}" \
		-serial "file:$shared/$role/console" \
		-chardev "stdio,id=out,signal=off,logfile=$shared/$role/output" -serial chardev:out \
		-fsdev local,id=host,path=/,security_model=none,readonly=on,multidevs=remap \
		-device virtio-9p-pci,fsdev=host,mount_tag=host \
		-fsdev "local,id=out,path=$shared,security_model=none" \
		-device virtio-9p-pci,fsdev=out,mount_tag=out "$@" </dev/null &
	guest_pid=$!
}

log_tail() {
	say "the last lines of the kernel's log (all of it in $1):"
	sed '1,/Run .init as init/d' "$1/dmesg" 2>/dev/null | tail -n 40 >&2
	[ -s "$1/dmesg" ] || tail -n 40 "$1/console" >&2
}

# verdict DIR: the script's status, or 125 when the guest broke.
verdict() {
	bad=$(cat "$1/console" "$1/dmesg" 2>/dev/null | grep -E -m 1 "$kernel_trouble" || :)
	status=$(cat "$1/status" 2>/dev/null || :)
	if [ -z "$status" ]; then
		say "the guest ended without a status"
		status=125
	elif [ -n "$bad" ]; then
		say "the kernel complained: $bad"
		status=125
	elif [ "$status" -eq 124 ]; then
		say "the script ran out of time"
	fi
	[ "$status" -eq 0 ] || log_tail "$1"
	return "$status"
}
