# Sourced by boot.sh: guests in QEMU.

kernel_args='console=ttyS0 loglevel=5 panic=-1 mitigations=off nokaslr tsc=reliable'

# The initramfs: busybox, the modules, and the init of this checkout.
make_initramfs() {
	key=$(cksum <"$guestdir/init_qemu" | cut -d' ' -f1)
	initramfs=$kernel/initramfs-$key
	[ ! -f "$initramfs" ] || return 0
	tree=$(mktemp -d)
	mkdir -p "$tree/bin" "$tree/dev" "$tree/proc"
	cp /bin/busybox "$tree/bin/"
	ln -s busybox "$tree/bin/sh"
	cp "$guestdir/init_qemu" "$tree/init"
	chmod 755 "$tree/init"
	cp -r "$kernel/modules" "$tree/modules"
	(cd "$tree" && find . | cpio -o -H newc -R 0:0 2>/dev/null) >"$initramfs.$$"
	mv "$initramfs.$$" "$initramfs"
	rm -rf "$tree"
}

prepare_guest() {
	kernel=${EVR_GUEST_KERNEL:-$("$guestdir/fetch" qemu)}
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

# with_wire COMMAND...: what two guests have for a network, a pair of sockets in a folder; the path
# of a socket has to be short.
with_wire() {
	wire=$(mktemp -d)
	trap 'rm -rf "$wire"' EXIT
}

# wire_end a|b: the emulator's arguments for that end.
wire_end() {
	case $1 in
	a) peer=b mac=52:54:00:77:00:01 ;;
	b) peer=a mac=52:54:00:77:00:02 ;;
	esac
	echo "-netdev dgram,id=n,local.type=unix,local.path=$wire/$1,remote.type=unix,remote.path=$wire/$peer"
	echo "-device virtio-net-pci,netdev=n,mac=$mac,speed=1000,duplex=full"
}
