#!/bin/sh
# House rules that a reader can check line by line.
. "${top_srcdir:-.}/t/lint/lint.sh"
cd "$top_srcdir" || exit 99

sources '*.c' '*.h' >"$scratch/c"
{
	cat "$scratch/c"
	sources '*.sh' '*.awk' '*.mk' '*.in' '*.map'
	ls README NEWS Makefile.am configure.ac man/*
} | sort -u >"$scratch/text"

xargs awk -f "$lintdir/length.awk" <"$scratch/c" >"$findings"
verdict "no function is longer than 80 lines"

xargs grep -nE '[ 	]+$' <"$scratch/text" >"$findings"
verdict "no line ends in white space"

xargs awk '{ line = $0; gsub(/\t/, "        ", line) }
	length(line) > 100 { print FILENAME ":" FNR ": " length(line) " columns" }' <"$scratch/c" >"$findings"
verdict "no line of C is longer than 100 columns"

# Another may be behind data of a high priority, or be lost for want of memory.
sources '*.c' | grep '^lib/ev/' | grep -v '^lib/ev/core/timer.c$' |
	xargs grep -nE '(evtimer_(assign|new|set|add|del)|event_new|event_assign *\([^,]*,[^,]*, *-1|event_add *\([^,]*, *&) *[,(]?' >"$findings"
verdict "in lib/ev timers are those of timer.h"

# Places of one machine, and names of files that are nobody else's.
xargs grep -nE '(^|[^A-Za-z0-9_])/(wor[k]|hom[e])/' <"$scratch/text" >"$findings"
verdict "no path of one machine is in the tree"

# Scripts by their first line, those without a suffix included.
{
	sources '*.sh'
	{
		sources '*'
		echo .ci/run
	} | xargs awk 'FNR == 1 && /^#! ?\/bin\/(ba)?sh/ { print FILENAME }'
} | sort -u >"$scratch/scripts"

while read -r script; do
	case $(head -n 1 "$script") in
	*bash*) shell='bash' ;;
	*) shell='sh' ;;
	esac
	$shell -n "$script" >>"$findings" 2>&1 || echo "$script" >>"$findings"
done <"$scratch/scripts"
[ -s "$scratch/scripts" ] || echo "no script was found" >>"$findings"
verdict "every shell script parses"

# What it cannot follow: files that are sourced, and the variables that go in and out of them.
if have shellcheck; then
	xargs shellcheck -s sh -S warning -e SC1090,SC1091,SC2034,SC2154 -f gcc <"$scratch/scripts" >"$findings"
	verdict "shellcheck finds nothing to warn of"
else
	skip "shellcheck finds nothing to warn of" "shellcheck is not installed"
fi

done_testing
