#!/bin/sh
# Our librdmacm and its headers against the distribution's: symbols, versions, layouts, values.
. "${top_srcdir:-.}/t/lint/lint.sh"

versions() {
	nm -D --defined-only --with-symbol-versions "$1" |
		awk '$2 ~ /[TDBRVW]/ { sub(/@+/, " ", $3); print $3 }' | grep -v '^RDMACM_' | sort
}

stock=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p | sed -n 's/.*librdmacm\.so\.1 .*=> //p' | head -n 1)
if ! own_rdmacm; then
	skip "the ABI of librdmacm" "this build has none of its own"
elif [ ! -e "$stock" ]; then
	skip "the ABI of librdmacm" "the distribution's librdmacm is not installed"
else
	versions "$top_builddir/.libs/librdmacm.so" >"$scratch/ours"
	versions "$stock" >"$scratch/stock"
	# Before rdma-core 60 the distribution's had no RDMACM_1.4.
	grep -q ' RDMACM_1\.4$' "$scratch/stock" || sed -i '/ RDMACM_1\.4$/d' "$scratch/ours"
	comm -23 "$scratch/ours" "$scratch/stock" >"$findings"
	[ -s "$scratch/ours" ] || echo "no symbols were found" >"$findings"
	verdict "every symbol is one of the distribution's, at its version"

	readelf -d "$top_builddir/.libs/librdmacm.so" | grep -q 'SONAME.*\[librdmacm\.so\.1\]' ||
		echo "not librdmacm.so.1" >"$findings"
	verdict "the library has the distribution's name"

	# The distribution's headers are where the compiler looks by itself.
	if ! echo '#include <rdma/rdma_cma.h>' | $cc -E - >/dev/null 2>&1; then
		skip "the layouts" "the distribution's headers are not installed"
	else
		$cc -I"$top_srcdir/include" -o "$scratch/layout-ours" "$lintdir/cm_abi.c" 2>>"$findings"
		$cc -o "$scratch/layout-stock" "$lintdir/cm_abi.c" 2>>"$findings"
		"$scratch/layout-ours" >"$scratch/ours" 2>>"$findings"
		"$scratch/layout-stock" >"$scratch/stock" 2>>"$findings"
		diff "$scratch/stock" "$scratch/ours" >>"$findings"
		[ -s "$scratch/ours" ] || echo "nothing was found to compare" >>"$findings"
		verdict "layouts and values are the distribution's"
	fi
fi
done_testing
