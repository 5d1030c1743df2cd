#!/bin/sh
# libevent_source.sh: prints the folder with the source of the distribution's libevent, fetching it with apt when
# the cache has none. It needs no deb-src line, and installs nothing.
set -eu

version=$(pkg-config --modversion libevent)
cache=${EVR_GUEST_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/evrdma}
kept=$cache/libevent-$version

die() { echo "libevent_source.sh: $*" >&2; exit 1; }

# The machine's own lists, of sources in place of packages.
source_lists() {
	mkdir -p "$tmp/parts" "$tmp/lists/partial" "$tmp/cache/archives/partial"
	for list in /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list.d/ubuntu.sources; do
		[ ! -f "$list" ] || sed 's/^Types:.*/Types: deb-src/' "$list" >"$tmp/parts/$(basename "$list")"
	done
	[ ! -f /etc/apt/sources.list ] || sed -n 's/^deb /deb-src /p' /etc/apt/sources.list >"$tmp/parts/main.list"
}

apt_get() {
	apt-get -q -y -o APT::Sandbox::User=root -o Acquire::Retries=0 -o Dir::Etc::sourcelist=/dev/null \
		-o Dir::Etc::sourceparts="$tmp/parts" -o Dir::State::lists="$tmp/lists" \
		-o Dir::Cache="$tmp/cache" "$@" >>"$tmp/log" 2>&1
}

fetch() {
	source_lists
	apt_get update || return 1
	(cd "$tmp" && apt_get source --download-only libevent) || return 1
	mkdir "$tmp/out"
	tar -xf "$(ls "$tmp/libevent_$version"*.orig.tar.gz)" -C "$tmp/out" --strip-components=1
}

if [ ! -f "$kept/test/regress_bufferevent.c" ]; then
	command -v apt-get >/dev/null || die "there is no apt-get"
	mkdir -p "$cache"
	tmp=$(mktemp -d "$cache/libevent-tmp.XXXXXX")
	trap 'rm -rf "$tmp"' EXIT
	fetch || { tail -n 5 "$tmp/log" >&2; die "the source cannot be had"; }
	rm -rf "$kept"
	mv "$tmp/out" "$kept"
fi
echo "$kept"
