# Sourced by the mckey scripts: a multicast cell of one host or of two is the same thing.
. "$top_srcdir/t/interop/ends.sh"

tmp=$(mktemp -d)

# The group of a cell, and how /proc/net/igmp writes it.
group() { echo "239.77.${1:-0}.$2"; }
group_hex() { printf '%02X%02X4DEF' "$2" "$1"; }

# users SET CELL: how many joins of the cell's group the kernel knows of.
users() {
	awk -v g="$(group_hex "$1" "$2")" '$1 == g { n += $2 } END { print n + 0 }' /proc/net/igmp
}

has_users() { [ "$(users "$1" "$2")" -ge "$3" ]; }

# mckey_run NAME END ARGUMENT...: its output in $tmp/NAME, its status in $tmp/NAME.status.
mckey_run() {
	name=$1 end=$2 status=0
	shift 2
	(end_run "$end" 60 mckey "$@") >"$tmp/$name" 2>&1 || status=$?
	echo $status >"$tmp/$name.status"
}

# run_well NAME...: each ended with 0 and says that its transfers are complete.
run_well() {
	for name; do
		[ "$(cat "$tmp/$name.status")" = 0 ] && grep -q '^data transfers complete' "$tmp/$name" ||
			{ tail -n 8 "$tmp/$name"; return 1; }
	done
}
