#!/bin/sh
# Every public header compiles alone, in each language that programs are written in.
. "${top_srcdir:-.}/t/lint/lint.sh"

cxx=
for candidate in "$(make_var CXX)" c++ g++ clang++; do
	if [ -n "$candidate" ] && have "${candidate%% *}"; then
		cxx=$candidate
		break
	fi
done

headers() {
	(cd "$top_srcdir/include" && find evrdma -name '*.h' | sort)
	own_rdmacm && (cd "$top_srcdir/include" && find rdma infiniband -name '*.h' 2>/dev/null | sort)
}

# compiles NAME COMMAND...: each header by itself, twice, so that its guard is tried too.
compiles() {
	what=$1
	suffix=$2
	shift 2
	for header in $(headers); do
		printf '#include <%s>\n#include <%s>\n' "$header" "$header" >"$scratch/one.$suffix"
		# shellcheck disable=SC2086
		"$@" -Wall -Wextra -Werror -pedantic $public_flags -fsyntax-only \
			"$scratch/one.$suffix" >>"$findings" 2>&1 ||
			echo "$header: does not compile alone as $what" >>"$findings"
	done
	verdict "public headers compile alone as $what"
}

# shellcheck disable=SC2086
{
	compiles C99 c $cc -std=c99
	compiles C11 c $cc -std=c11
	compiles C17 c $cc -std=c17
	if [ -n "$cxx" ]; then
		compiles C++98 cc $cxx -std=c++98
		compiles C++11 cc $cxx -std=c++11
		compiles C++17 cc $cxx -std=c++17
	else
		skip "public headers compile alone as C++" "no C++ compiler"
	fi
}

done_testing
