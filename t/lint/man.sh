#!/bin/sh
# The manual pages: well-formed, and in step with the headers.
. "${top_srcdir:-.}/t/lint/lint.sh"
cd "$top_srcdir" || exit 99

own_pages=$(ls man/*.[137])
ev_headers=$(ls include/evrdma/*.h)
# rsockets have one page for all their calls.
cm_headers="include/rdma/rdma_cma.h include/rdma/rdma_verbs.h"
ev_pages=$(ls man/evrdma_*.3)
cm_pages=$(ls man/rdma_*.3)

if have mandoc; then
	# shellcheck disable=SC2086
	mandoc -T lint -W warning $own_pages >"$findings" 2>&1
	verdict "mandoc finds nothing to warn of"
else
	skip "mandoc finds nothing to warn of" "mandoc is not installed"
fi

# wide COMMAND...: the lines that a page has beyond the 80th column of a terminal, and those that begin so
# far to the right that they are the rest of a row of a table, put below its end.
wide() {
	"$@" 2>/dev/null | sed "s/$(printf '\033')\\[[0-9;]*m//g" | col -bx | awk 'length > 80 || match($0, /[^ ]/) > 60' | sed "s|^|$page: |" >>"$findings"
}

# On 80 columns man(1) sets lines of 78, which is also what both do unasked.
if have mandoc && have col; then
	for page in $own_pages; do
		wide mandoc -T ascii -O width=80 "$page"
		wide mandoc -T ascii -O width=78 "$page"
	done
	verdict "no page is wider than a terminal, by mandoc"
else
	skip "no page is wider than a terminal, by mandoc" "mandoc or col is not installed"
fi
if have groff && have col && groff -mdoc -T ascii /dev/null >/dev/null 2>&1; then
	for page in $own_pages; do
		wide groff -T ascii -mdoc -rLL=80n "$page"
		wide groff -T ascii -mdoc -rLL=78n "$page"
	done
	verdict "no page is wider than a terminal, by groff"
else
	skip "no page is wider than a terminal, by groff" "groff or col is not installed"
fi

# The mdoc of old has nine arguments in a line, and loses what is beyond.
awk '/^\.[A-Z][a-z]/ {
	line = $0
	sub(/^\.[A-Z][a-z] */, "", line)
	gsub(/"[^"]*"/, "x", line)
	if (split(line, words, " ") > 9)
		print FILENAME ":" FNR ": " $0
}' man/evrdma*.[37] | grep -E ':\.(It|Fn|Fa|Xr|Pq) .* Ta ' >>"$findings"
verdict "no row of a table has more than nine arguments"

# differ A B WORDS_A WORDS_B: what only one of two files has.
differ() {
	sort -u "$1" >"$scratch/one"
	sort -u "$2" >"$scratch/two"
	comm -23 "$scratch/one" "$scratch/two" | sed "s|\$|: $3|" >>"$findings"
	comm -13 "$scratch/one" "$scratch/two" | sed "s|\$|: $4|" >>"$findings"
	[ -s "$scratch/one" ] || echo "nothing was found to compare" >>"$findings"
}

# What the pages say in their SYNOPSIS, against what the headers say; macros have no prototype there.
macros() {
	# shellcheck disable=SC2086
	sed -n 's/^#define \(evrdma_[a-z0-9_]*\)(.*/\1/p' $ev_headers
}
prototypes() { awk -v inlines=1 -f "$lintdir/prototypes.awk" "$@"; }
macros | sed 's/$/ /' >"$scratch/macros"

# synopsis WHAT HEADERS PAGES
synopsis() {
	# shellcheck disable=SC2086
	prototypes $2 >"$scratch/header"
	# shellcheck disable=SC2086
	awk -f "$lintdir/synopsis.awk" $3 | grep -vF -f "$scratch/macros" >"$scratch/pages"
	differ "$scratch/header" "$scratch/pages" "only in the headers" "only in the pages"
	verdict "the SYNOPSIS of the pages is what $1 declares"
}

synopsis include/evrdma "$ev_headers" "$ev_pages man/evrdma.7"
synopsis include/rdma "$cm_headers" "$cm_pages"

# "name page" for each name in the NAME of a page.
named() {
	for page; do
		sed -n "/^\.Sh NAME/,/^\.Sh [^N]/s|^\.Nm \([a-z0-9_]*\).*|\1 $(basename "$page" .3)|p" "$page"
	done
}

# The same from the rules of the aliases, and from the pages themselves.
found() {
	awk '/_ALIASES = / { list = $1 }
		list != "" && match($0, /man\/[a-z0-9_]+\.3/) {
			names[list] = names[list] " " substr($0, RSTART + 4, RLENGTH - 6)
		}
		!/\\$/ { list = "" }
		/^\$\([A-Z_]*\):/ { rule = $1; gsub(/[$():]/, "", rule) }
		rule != "" && match($0, /man3\/[a-z0-9_]+/) {
			page = substr($0, RSTART + 5, RLENGTH - 5)
			n = split(names[rule], alias, " ")
			for (i = 1; i <= n; i++)
				print alias[i], page
			rule = ""
		}' man/*.mk
	for page; do
		echo "$(basename "$page" .3) $(basename "$page" .3)"
	done
}

# shellcheck disable=SC2086
{
	named $ev_pages $cm_pages >"$scratch/named"
	found $ev_pages $cm_pages >"$scratch/all"
}
differ "$scratch/named" "$scratch/all" "a name and its page, not a page or an alias in man/*.mk" \
	"a page, or an alias and its page, not in the NAME there"
verdict "a page is found under each name that it has"

# Every call and every macro of a header is in the NAME of a page, and nothing else but objects.
calls() { prototypes "$@" | grep -v ' typedef' | cut -d' ' -f1; }
# shellcheck disable=SC2086
{
	calls $cm_headers | sort -u >"$scratch/cm_calls"
	calls $ev_headers
	macros
	cat "$scratch/cm_calls"
} >"$scratch/calls"
cut -d' ' -f1 "$scratch/named" |
	grep -Evx 'evrdma_(base|id|listener|request|conn|dgram|mcast|pool|buf|error|domain|srq|work|peer|stats|log|bufferevent)' >"$scratch/names"
differ "$scratch/calls" "$scratch/names" "in the NAME of no page" "in NAME, but not in the headers"
verdict "every public call has its page"

# evrdma(7) says where a call is that is not on the page that its name begins with.
sed -n '/^\.Ss Where a call is/,/^\.El/s/^\.It \(evrdma[a-z_*]*\) Ta Xr \([a-z_]*\) 3.*/\1 \2/p' man/evrdma.7 >"$scratch/index"
while read -r name page; do
	found=
	while read -r pattern where; do
		# shellcheck disable=SC2254
		case ${name%_sized} in $pattern) [ "$page" != "$where" ] || found=yes ;; esac
	done <"$scratch/index"
	case $name in rdma_* | "$page" | "${page}"_*) found=yes ;; esac
	[ "$found" ] || echo "$name: on the page $page, and not in the list of evrdma(7)"
done <"$scratch/named" >>"$findings"
[ -s "$scratch/index" ] || echo "evrdma(7) has no list" >>"$findings"
verdict "evrdma(7) says where a call is"

# rdma_cm(7) is the way in to all of them.
sed -n '/^\.Sh SEE/,/^\.Sh [^S]/s/^\.Xr \(rdma_[a-z0-9_]*\) 3.*/\1/p' man/rdma_cm.7 >"$scratch/seen"
differ "$scratch/cm_calls" "$scratch/seen" "not in rdma_cm(7)" "in rdma_cm(7), but not in the headers"
verdict "rdma_cm(7) refers to every call of the CM"

# The header that the page of a call has the reader include.
for header in $cm_headers; do
	calls "$header" | while read -r call; do
		page=$(sed -n "s/^$call //p" "$scratch/named")
		[ -z "$page" ] || grep -q "^\.In ${header#include/}\$" "man/$page.3" ||
			echo "$page: does not include $header"
	done
done >>"$findings"
verdict "pages include the header that has their calls"

# What a header says that a call fails with, and what the tests of errors see it fail with, is explained
# where its page has the ERRORS.
known=" $(echo '#include <errno.h>' | $cc -E -dM - | sed -n 's/^#define \(E[A-Z0-9]*\) .*/\1/p' | tr '\n' ' ')"
promised() {
	# shellcheck disable=SC2086
	awk -v known="$known" -f "$lintdir/errnos.awk" $cm_headers
}
tested() {
	cat t/errors/*.def t/unit/cm_errors.def | tr '\n' ' ' | sed 's/CASE(/\n&/g' |
		sed -n 's/^CASE([A-Z]*, [A-Z_]*, \([a-z_]*\),[ 	]*"[^"]*",[ 	]*\(E[A-Z0-9]*\),.*/\1 \2/p'
}
errors() {
	for page; do
		sed -n '/^\.Sh ERRORS/,/^\.Sh [^E]/p' "$page" | sed -n 's/^\.\(It Bq \)\{0,1\}Er \(E[A-Z0-9]*\).*/\2/p' |
			sort -u | sed "s/^/$(basename "$page" .3) /"
	done
}
# shellcheck disable=SC2086
errors $cm_pages | sort -u >"$scratch/explained"
sort "$scratch/named" >"$scratch/page_of"

# explains NAME SOURCE: SOURCE prints "call errno".
explains() {
	$2 | sort -u | join "$scratch/page_of" - | cut -d' ' -f2- | sort -u >"$scratch/expected"
	[ -s "$scratch/expected" ] || echo "$2: nothing was found" >>"$findings"
	comm -23 "$scratch/expected" "$scratch/explained" | sed 's/$/: not in the ERRORS/' >>"$findings"
	verdict "$1"
}

explains "ERRORS has what the headers say that calls fail with" promised
explains "ERRORS has what the table of errors tries" tested

# References between our own pages.
# shellcheck disable=SC2086
sed -n 's/^\.Xr \([a-z0-9_-]*\) .*/\1/p' $own_pages | sort -u >"$scratch/referred"
{
	cut -d' ' -f1 "$scratch/all"
	ls man | sed -n 's/\.[137]$//p'
} | sort -u >"$scratch/known"
comm -23 "$scratch/referred" "$scratch/known" | grep -E '^(evrdma|rdma_)' | sed 's/$/: no such page/' >>"$findings"
verdict "every page that is referred to is there"

# sections PAGES WANTED: the sections that each page has, in their order.
sections() {
	for page in $1; do
		sed -n 's/^\.Sh //p' "$page" | tr '\n' ',' | grep -q "^$2," ||
			echo "$page: $(sed -n 's/^\.Sh //p' "$page" | tr '\n' ',')" >>"$findings"
	done
}

sections "$ev_pages" 'NAME,SYNOPSIS,DESCRIPTION,RETURN VALUES,EXAMPLES,ERRORS,SEE ALSO'
sections "$cm_pages" \
	'NAME,LIBRARY,SYNOPSIS,DESCRIPTION,RETURN VALUES,EXAMPLES,COMPATIBILITY,ERRORS,SEE ALSO,HISTORY'
verdict "pages of section 3 have their sections"

done_testing
