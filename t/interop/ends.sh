# Sourced by the interop scripts: the ends of a pair. An end is TOOLS@CORE, each `ours` or `stock`:
# whose ucmatose or mckey it is, and whose librdmacm.so.1 it runs on.
. "$top_srcdir/t/guest/lib.sh"

ours_libs=$top_builddir/.libs
ours_bin=$top_builddir/examples/tools/.libs
stock_libs=$(mktemp -d)
have_ours=
[ ! -x "$ours_bin/ucmatose" ] || have_ours=yes

# Our event library beside the distribution's librdmacm needs a folder that has the one without
# the other.
for lib in "$ours_libs"/libevrdma.so*; do
	[ ! -e "$lib" ] || ln -s "$lib" "$stock_libs/"
done

# A sanitized library under a binary that is not needs the runtime loaded first, and what the stock
# tools leak is not our affair.
sanitizer=$(ldd "$ours_libs/librdmacm.so.1" 2>/dev/null | sed -n 's/.*libasan[^ ]* => \([^ ]*\).*/\1/p')

# end_env END: the environment that chooses the core, as words for env(1).
end_env() {
	case $1 in
	stock@ours)
		echo "LD_LIBRARY_PATH=$ours_libs"
		[ -z "$sanitizer" ] || echo "LD_PRELOAD=$sanitizer ASAN_OPTIONS=detect_leaks=0"
		;;
	ours@ours) echo "LD_LIBRARY_PATH=$ours_libs" ;;
	ours@stock) echo "LD_LIBRARY_PATH=$stock_libs" ;;
	stock@stock) echo LD_BIND_NOW=1 ;;
	esac
}

# end_tool END TOOL: the binary.
end_tool() {
	case $1 in
	ours@*) echo "$ours_bin/$2" ;;
	*) echo "/usr/bin/$2" ;;
	esac
}

# end_core END TOOL: which librdmacm.so.1 the end really gets.
end_core() {
	# shellcheck disable=SC2046 # words
	env $(end_env "$1") ldd "$(end_tool "$1" "$2")" | sed -n 's/.*librdmacm\.so\.1 => \([^ ]*\).*/\1/p'
}

runs_on_its_core() {
	case $1:$(end_core "$1" "$2") in
	*@ours:"$ours_libs"/*) ;;
	*@stock:/lib/* | *@stock:/usr/lib*) ;;
	*) echo "$1 $2 runs on $(end_core "$1" "$2")"; return 1 ;;
	esac
}
