#!/bin/sh
# libevent_source.sh: prints the folder with the source of the distribution's libevent, fetching it with apt when
# the cache has none. It needs no deb-src line and no package lists, and installs nothing. What it fetches is
# signed by a key of the machine's, whatever its lists say.
set -eu

cache=${EVR_GUEST_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/evrdma}

die() { echo "libevent_source.sh: $*" >&2; exit 1; }

# The machine's own lists, of sources in place of packages.
source_lists() {
	mkdir -p "$tmp/parts" "$tmp/lists/partial" "$tmp/cache/archives/partial"
	for list in /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list.d/ubuntu.sources; do
		[ ! -f "$list" ] ||
			sed -e 's/^Types:.*/Types: deb-src/' -e '/^Trusted:/d' "$list" >"$tmp/parts/$(basename "$list")"
	done
	[ ! -f /etc/apt/sources.list ] ||
		sed -n -e 's/trusted=[a-z]*//' -e 's/\[ *\]//' -e 's/^deb[[:space:]]/deb-src /p' /etc/apt/sources.list \
			>"$tmp/parts/main.list"
}

apt_get() {
	apt-get -q -y -o APT::Sandbox::User=root -o Acquire::Retries=2 -o Dir::Etc::sourcelist=/dev/null \
		-o Dir::Etc::sourceparts="$tmp/parts" -o Dir::State::lists="$tmp/lists" -o Dir::Cache="$tmp/cache" \
		-o Acquire::AllowInsecureRepositories=false -o Acquire::AllowWeakRepositories=false \
		-o Acquire::AllowDowngradeToInsecureRepositories=false -o APT::Get::AllowUnauthenticated=false \
		"$@" >>"$tmp/log" 2>&1 </dev/null
}

fetch() {
	source_lists
	apt_get -o APT::Update::Error-Mode=any update || return 1
	(cd "$tmp" && apt_get source --download-only libevent) || return 1
	mkdir "$tmp/out"
	tar -xf "$(ls "$tmp/libevent_$version".orig.tar.[gx]z)" -C "$tmp/out" --strip-components=1 2>>"$tmp/log"
}

# keep: into the cache, once, whoever else wants it.
keep() {
	rm -rf "$cache"/libevent-tmp.*
	tmp=$cache/libevent-tmp.$$
	mkdir "$tmp"
	trap 'rm -rf "$tmp"' EXIT
	trap 'exit 1' HUP INT TERM
	fetch || { tail -n 5 "$tmp/log" >&2; die "the source of libevent $version cannot be had"; }
	rm -rf "$kept"
	mv "$tmp/out" "$kept"
}

version=$(pkg-config --modversion libevent) || die "there is no libevent, or no pkg-config"
kept=$cache/libevent-$version
mkdir -p "$cache"
exec 9>"$cache/libevent-lock"
flock 9
if [ ! -f "$kept/test/regress_bufferevent.c" ]; then
	command -v apt-get >/dev/null || die "there is no apt-get to fetch the source of libevent with"
	keep
fi
echo "$kept"
