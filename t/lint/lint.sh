# Sourced by the lints: what they print is TAP, and what they need to know of the tree.
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}" "${top_builddir:=$PWD}"
[ -f "$top_builddir/Makefile" ] || {
	echo "Bail out! top_builddir is no configured build tree: $top_builddir"
	exit 99
}
lintdir=$top_srcdir/t/lint
count=0
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
trap 'exit 99' HUP INT TERM
findings=$scratch/findings

note() { sed 's/^/# /'; }

# verdict NAME: ok when nothing was written to $findings; shows it otherwise, and empties it.
verdict() {
	count=$((count + 1))
	if [ -s "$findings" ]; then
		echo "not ok $count - $1"
		note <"$findings"
	else
		echo "ok $count - $1"
	fi
	: >"$findings"
}

# skip NAME REASON: what could not be looked at.
skip() {
	count=$((count + 1))
	echo "ok $count - $1 # SKIP $2"
}

done_testing() { echo "1..$count"; }

# make_var NAME: a variable as configure wrote it into the Makefile.
make_var() {
	sed -n "/^$1 = */{:a;/\\\\\$/{N;s/\\\\\n//;ba;};s/^$1 = *//p;q;}" "$top_builddir/Makefile"
}

# expand TEXT: with the two make variables that occur in it put in.
expand() {
	echo "$1" | sed "s|\$(top_srcdir)|$top_srcdir|g; s|\$(top_builddir)|$top_builddir|g"
}

have() { command -v "$1" >/dev/null 2>&1; }

cc=$(make_var CC)
cc=${cc:-cc}
public_flags="$(expand "$(make_var EVR_INCLUDES)") $(make_var VERBS_CFLAGS) $(make_var LIBEVENT_CFLAGS)"

# 0 when this build has a librdmacm of its own.
own_rdmacm() { grep -q '^S\["SYSTEM_RDMACM_TRUE"\]="#"' "$top_builddir/config.status"; }

# sources NAME_PATTERN...: the tree's files whose names match, without what a build leaves there.
sources() {
	for pattern; do
		(cd "$top_srcdir" && find lib include examples t -name "$pattern" -type f) |
			grep -Ev '/(cache|log|\.libs|\.deps)/'
	done | sort
}

# uncalled OBJECT...: the functions of libevrdma that none of these object files calls.
uncalled() {
	nm -D --defined-only "$top_builddir/.libs/libevrdma.so" |
		awk '{ sub(/@.*/, "", $3); if ($3 ~ /^evrdma_/) print $3 }' | sort -u >"$scratch/exported"
	nm -u "$@" 2>/dev/null | awk '$2 ~ /^evrdma_/ { print $2 }' | sort -u >"$scratch/called"
	comm -23 "$scratch/exported" "$scratch/called"
	[ -s "$scratch/exported" ] && [ -s "$scratch/called" ] || echo "nothing of what was found"
}

mkdir -p "$scratch/out"
: >"$findings"
