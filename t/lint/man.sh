#!/bin/sh
# The manual pages: well-formed, and in step with the headers.
. "${top_srcdir:-.}/t/lint/lint.sh"
cd "$top_srcdir" || exit 99

own_pages=$(ls man/*.[137])

if have mandoc; then
	# shellcheck disable=SC2086
	mandoc -T lint -W warning $own_pages >"$findings" 2>&1
	verdict "mandoc finds nothing to warn of"
else
	skip "mandoc finds nothing to warn of" "mandoc is not installed"
fi

# What the pages say in their SYNOPSIS, against what the headers say; macros have no prototype there.
macros() { sed -n 's/^#define \(evrdma_[a-z0-9_]*\)(.*/\1/p' include/evrdma/*.h; }
macros | sed 's/$/ /' >"$scratch/macros"
awk -f "$lintdir/prototypes.awk" include/evrdma/*.h | sort -u >"$scratch/header"
awk -f "$lintdir/synopsis.awk" man/evrdma*.3 | grep -vF -f "$scratch/macros" | sort -u >"$scratch/pages"
comm -23 "$scratch/header" "$scratch/pages" | sed 's/^/only in the headers: /' >>"$findings"
comm -13 "$scratch/header" "$scratch/pages" | sed 's/^/only in the pages: /' >>"$findings"
[ -s "$scratch/header" ] || echo "no function was found" >>"$findings"
verdict "the SYNOPSIS of the pages is what include/evrdma declares"

# Every call and every macro of a header is found by its name: in NAME, and as a page or an alias.
calls() {
	awk -f "$lintdir/prototypes.awk" include/evrdma/*.h | grep -v ' typedef' | cut -d' ' -f1
	macros
}
named() { sed -n '/^\.Sh NAME/,/^\.Sh [^N]/s/^\.Nm \([a-z0-9_]*\).*/\1/p' man/evrdma_*.3; }
pages() {
	sed -n 's|.*\(evrdma_[a-z0-9_]*\)\.3.*|\1|p' man/local.mk
	ls man | sed -n 's/\.3$//p'
}

calls | sort -u >"$scratch/calls"
named | sort -u >"$scratch/named"
pages | sort -u >"$scratch/all"
comm -23 "$scratch/calls" "$scratch/named" | sed 's/$/: in the NAME of no page/' >>"$findings"
comm -13 "$scratch/calls" "$scratch/named" | sed 's/$/: in NAME, but not in the headers/' |
	grep -Ev '^evrdma_(base|id|listener|request|conn|dgram|mcast|pool|buf|error|domain|srq|work|peer):' >>"$findings"
comm -23 "$scratch/calls" "$scratch/all" | sed 's/$/: has no page, and no alias in man\/local.mk/' >>"$findings"
verdict "every public call has its page"

# References between our own pages.
# shellcheck disable=SC2086
sed -n 's/^\.Xr \([a-z0-9_-]*\) .*/\1/p' $own_pages | sort -u >"$scratch/referred"
{
	cat "$scratch/all"
	ls man | sed -n 's/\.[137]$//p'
} | sort -u >"$scratch/known"
comm -23 "$scratch/referred" "$scratch/known" | grep '^evrdma' | sed 's/$/: no such page/' >>"$findings"
verdict "every page that is referred to is there"

# The sections that each page has, in their order.
for page in man/evrdma_*.3; do
	sed -n 's/^\.Sh //p' "$page" | tr '\n' ',' >"$scratch/sections"
	grep -Eq '^NAME,SYNOPSIS,DESCRIPTION,RETURN VALUES,EXAMPLES,ERRORS,SEE ALSO,' "$scratch/sections" ||
		echo "$page: $(cat "$scratch/sections")" >>"$findings"
done
verdict "pages of section 3 have their sections"

done_testing
