#!/bin/sh
# Makes ./configure, when it is missing or older than what it is made from.
set -eu
cd "$(dirname "$0")/.."

if [ -f config.status ]; then
	echo "bootstrap: the checkout itself is configured: run make distclean in it first" >&2
	exit 1
fi
if [ ! -f configure ] || [ ! -f Makefile.in ] ||
	[ -n "$(find configure.ac Makefile.am m4 ./*/local.mk ./*/*/local.mk -newer Makefile.in)" ]; then
	autoreconf -fi
fi
