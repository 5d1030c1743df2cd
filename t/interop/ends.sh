# Sourced by the interop scripts: the ends of a pair. An end is TOOLS@CORE, each `ours` or `stock`:
# whose ucmatose or mckey it is, and whose librdmacm.so.1 it runs on.
. "$top_srcdir/t/guest/lib.sh"

ours_libs=$top_builddir/.libs
ours_bin=$top_builddir/examples/tools/.libs
stock_libs=$(mktemp -d)

# Our event library beside the distribution's librdmacm needs a folder that has the one without
# the other.
for lib in "$ours_libs"/libevrdma.so*; do
	[ ! -e "$lib" ] || ln -s "$lib" "$stock_libs/"
done

# And where that is: libevrdma alone would take a program to the one that it was built with.
stock_core=$(PATH=$PATH:/sbin ldconfig -p | sed -n 's|.*librdmacm\.so\.1 .*=> \(.*\)/librdmacm\.so\.1$|\1|p' | head -n 1)

# A sanitized library under a binary that is not needs the runtime loaded first, and what the stock
# tools leak is not our affair.
sanitizer=$(ldd "$ours_libs/librdmacm.so.1" 2>/dev/null | sed -n 's/.*libasan[^ ]* => \([^ ]*\).*/\1/p')

# end_env END: chooses the core for what this shell runs from now on; for a subshell.
end_env() {
	case $1 in
	*@ours) export LD_LIBRARY_PATH="$ours_libs" ;;
	ours@stock) export LD_LIBRARY_PATH="$stock_libs:$stock_core" ;;
	esac
	case $sanitizer:$1 in
	?*:stock@ours) export LD_PRELOAD="$sanitizer" ASAN_OPTIONS=detect_leaks=0 ;;
	esac
}

# end_run END SECONDS TOOL [ARGUMENT]...: the tool in place of this shell; for a subshell. The time
# limit is busybox's because a static program starts several times faster under emulation. A stock
# tool says each line at once, as ours do: what it said is known of one that is ended, too.
end_run() {
	end=$1 seconds=$2 tool=$3
	shift 3
	case $end in
	ours@*) set -- "$ours_bin/$tool" "$@" ;;
	*) set -- stdbuf -oL "/usr/bin/$tool" "$@" ;;
	esac
	[ "$seconds" -eq 0 ] || set -- busybox timeout "$seconds" "$@"
	end_env "$end"
	exec "$@"
}

# end_core END TOOL: which librdmacm.so.1 the end really gets.
end_core() {
	case $1 in
	ours@*) bin=$ours_bin/$2 ;;
	*) bin=/usr/bin/$2 ;;
	esac
	(end_env "$1" && ldd "$bin") | sed -n 's/.*librdmacm\.so\.1 => \([^ ]*\).*/\1/p'
}

runs_on_its_core() {
	case $1:$(end_core "$1" "$2") in
	*@ours:"$ours_libs"/*) ;;
	*@stock:/lib/* | *@stock:/usr/lib*) ;;
	*) echo "$1 $2 runs on $(end_core "$1" "$2")"; return 1 ;;
	esac
}
