#!/bin/sh
# What the headers declare, what the libraries export and what their maps say is the same.
. "${top_srcdir:-.}/t/lint/lint.sh"

prototypes() { awk -f "$lintdir/prototypes.awk" "$@"; }
functions() { prototypes "$@" | grep -v ' typedef' | cut -d' ' -f1 | sort -u; }

# exported LIBRARY: "name version", of a library in the build tree.
exported() {
	nm -D --defined-only --with-symbol-versions "$top_builddir/.libs/$1" |
		awk '$2 ~ /[TDBRVW]/ { sub(/@+/, " ", $3); print $3 }' | sort
}

# in_map FILE: "name version" of a symbol map.
in_map() {
	awk '/^[ \t]*#/ { next }
		/^[A-Z0-9_.]+[ \t]*\{/ { sub(/[ \t]*\{.*/, ""); version = $0; next }
		/local:/ { version = "" }
		version != "" && /^[ \t]*[a-z0-9_]+;/ { sub(/^[ \t]*/, ""); sub(/;.*/, ""); print $0, version }' \
		"$1" | sort
}

# differ A B WORDS_A WORDS_B: what only one of two sorted files has.
differ() {
	comm -23 "$1" "$2" | sed "s/\$/: $3/" >>"$findings"
	comm -13 "$1" "$2" | sed "s/\$/: $4/" >>"$findings"
	[ -s "$1" ] || echo "nothing was found to compare" >>"$findings"
}

functions "$top_srcdir"/include/evrdma/*.h >"$scratch/ev.declared"
exported libevrdma.so >"$scratch/ev.exported"
sed 's/$/ EVRDMA_1.0/' "$scratch/ev.declared" >"$scratch/ev.expected"
grep -v '^EVRDMA_1.0 ' "$scratch/ev.exported" >"$scratch/ev.symbols"
differ "$scratch/ev.expected" "$scratch/ev.symbols" "declared, not exported" "exported, not declared"
verdict "libevrdma exports what include/evrdma declares, as EVRDMA_1.0, and nothing else"

sed -n 's/^ \([a-z0-9_]*\)@\(EVRDMA_[0-9.]*\) .*/\1 \2/p' "$top_srcdir/debian/libevrdma0.symbols" >"$scratch/ev.packaged"
differ "$scratch/ev.expected" "$scratch/ev.packaged" "declared, not packaged" "packaged, not declared"
verdict "debian/libevrdma0.symbols has what include/evrdma declares"

# libevent's own symbols that are not its users' end in an underscore.
nm -D --undefined-only "$top_builddir/.libs/libevrdma.so" | awk '{ print $NF }' >"$scratch/ev.needed"
grep -q '^bufferevent_socket_new' "$scratch/ev.needed" || echo "nothing of libevent was found" >>"$findings"
grep -E '^(ev|buffer).*_(@.*)?$' "$scratch/ev.needed" >>"$findings"
verdict "libevrdma needs nothing of libevent's that is not public"

# The node that the distribution's librdmacm.so.1 has each symbol in.
stock_version() {
	awk '{
		v = "1.0"
		if ($1 == "rdma_join_multicast_ex") v = "1.1"
		if ($1 ~ /^rdma_(establish|init_qp_attr)$/) v = "1.2"
		if ($1 ~ /_ece$/) v = "1.3"
		if ($1 ~ /^rdma_(query_addrinfo|resolve_addrinfo|write_cm_event)$/) v = "1.4"
		if ($1 ~ /^repoll_/) v = "1.5"
		print $1, "RDMACM_" v
	}'
}

if own_rdmacm; then
	functions "$top_srcdir"/include/rdma/*.h >"$scratch/cm.declared"
	stock_version <"$scratch/cm.declared" >"$scratch/cm.expected"
	in_map "$top_srcdir/lib/cm/librdmacm.map" >"$scratch/cm.map"
	differ "$scratch/cm.expected" "$scratch/cm.map" "declared, not in the map" "in the map, not declared"
	verdict "librdmacm's map has what include/rdma declares, under the stock versions"

	exported librdmacm.so | grep -v '^RDMACM_' >"$scratch/cm.exported"
	differ "$scratch/cm.map" "$scratch/cm.exported" "in the map, not exported" "exported, not in the map"
	verdict "librdmacm exports what its map has, and nothing else"

	sed -n 's/^\t\t\([a-z0-9_]*\);$/\1/p' "$top_srcdir/lib/preload/librspreload.map" | sort >"$scratch/preload.map"
	exported librspreload.so | cut -d' ' -f1 >"$scratch/preload.exported"
	differ "$scratch/preload.map" "$scratch/preload.exported" "in the map, not exported" "exported, not in the map"
	verdict "librspreload exports what its map has, and nothing else"
fi

done_testing
