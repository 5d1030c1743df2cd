#!/bin/sh
# Every program that the documentation shows compiles as it stands there.
. "${top_srcdir:-.}/t/lint/lint.sh"
cd "$top_srcdir" || exit 99

flags="-std=c11 -D_GNU_SOURCE -Wall -Wextra -Wno-unused-parameter -Wno-unused-function -Werror"

# compiles NAME FILE
compiles() {
	# shellcheck disable=SC2086
	$cc $flags $includes -fsyntax-only "$2" >>"$findings" 2>&1 ||
		echo "$2 does not compile" >>"$findings"
	[ -s "$2" ] || echo "no example was found" >>"$findings"
	verdict "$1"
}

# What a reader would include in front of a page's fragment.
prelude() {
	printf '#include <%s>\n' errno.h stdint.h stdio.h stdlib.h string.h arpa/inet.h netinet/in.h \
		fcntl.h netdb.h poll.h \
		event2/event.h event2/dns.h event2/util.h rdma/rdma_cma.h rdma/rdma_verbs.h evrdma/evrdma.h
}

# What our librdmacm has may be more than the one that is installed.
for page in man/evrdma*.[37] man/rdma_*.[37]; do
	case $page in
	man/evrdma_guide.7) continue ;;
	man/rdma_*) join=1 whole='' includes="-Iinclude $(make_var VERBS_CFLAGS) $(make_var LIBEVENT_CFLAGS)" ;;
	*) join='' whole=.1 includes=$public_flags ;;
	esac
	name=$scratch/out/$(basename "$page")
	awk -v out="$name" -v join="$join" -f "$lintdir/examples.awk" "$page"
	if [ -e "$name.c" ]; then
		prelude | cat - "$name.c" >"$scratch/fragments.c"
		compiles "the example of $page compiles" "$scratch/fragments.c"
	fi
	for program in "$name".[0-9].c; do
		[ ! -e "$program" ] || compiles "the program of $page compiles" "$program"
	done
	# What evrdma's pages have is whole, so that t/examples/run.sh can run it.
	[ -e "$name$whole.c" ] || echo "$page has no example that is whole" >>"$findings"
	[ ! -s "$findings" ] || verdict "$page has an example"
done

# What the guide's reader has after a step, built as he does it: with pkg-config alone, which finds this tree,
# and the guide's Makefile.
sed "s|^libdir=.*|libdir=$top_builddir/.libs|; s|^includedir=.*|includedir=$top_srcdir/include|" \
	"$top_builddir/lib/ev/evrdma.pc" >"$scratch/evrdma.pc"

# guide STEP TARGET...
guide() {
	dir=$scratch/out/guide.$1
	mkdir -p "$dir"
	awk -v files="$dir" -v step="$1" -f "$lintdir/examples.awk" man/evrdma_guide.7
	shift
	env -u MAKEFLAGS -u MAKEOVERRIDES LD_LIBRARY_PATH="$top_builddir/.libs" \
		PKG_CONFIG_PATH="$scratch${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}" \
		make -C "$dir" CC="$cc $flags" "$@" >"$scratch/made" 2>&1 || cat "$scratch/made" >>"$findings"
	for program; do
		[ -x "$dir/$program" ] || echo "there is no $program" >>"$findings"
	done
	verdict "after step ${dir##*.} of the guide make builds $*"
}

for step in 2 3; do
	guide $step server
done
for step in 4 5 6 7; do
	guide $step server client
done

# The README's client, from its first comment to the end of the indented block.
readme_client() {
	awk '/^\t\/\* / { inside = 1 }
		inside && /^[^\t]/ { exit }
		inside && /^$/ { blank++; next }
		inside { for (; blank; blank--) print ""; sub(/^\t/, ""); print }' README
}

includes=$public_flags
readme_client >"$scratch/readme.c"
compiles "the client of README compiles" "$scratch/readme.c"
diff "$scratch/readme.c" examples/01-connect.c >"$findings"
verdict "the client of README is examples/01-connect.c"

done_testing
