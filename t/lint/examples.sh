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
