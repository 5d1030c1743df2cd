#!/bin/sh
# installed.sh LIBDIR CMLIBDIR SOURCE: builds SOURCE as a project of its own would, with what
# `make install` left and pkg-config, and sees that it runs against it.
set -eu
libdir=$1 cmlibdir=$2 source=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# pkg_config PATH ARGUMENT...: with PATH before the default one.
pkg_config() {
	path=$1
	shift
	PKG_CONFIG_PATH=$path${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH} "${PKG_CONFIG:-pkg-config}" "$@"
}

# build NAME PATH PACKAGE...
build() {
	out=$1 path=$2
	shift 2
	# shellcheck disable=SC2046,SC2086
	${CC:-cc} -Wall -o "$scratch/$out" "$source" $(pkg_config "$path" --cflags --libs "$@")
}

build client "$libdir/pkgconfig" evrdma
if [ -f "$cmlibdir/pkgconfig/librdmacm.pc" ]; then
	cat >"$scratch/cm.c" <<-'END'
		#include <rdma/rdma_cma.h>
		#include <stdio.h>
		int main(void) { return puts(rdma_event_str(RDMA_CM_EVENT_ESTABLISHED)) < 0; }
	END
	source=$scratch/cm.c
	build cm "$cmlibdir/pkgconfig" librdmacm
fi

# Who asks for librdmacm and does not know of evrdma gets the distribution's, or none.
[ ! -e "$libdir/pkgconfig/librdmacm.pc" ]
default_path=$("${PKG_CONFIG:-pkg-config}" --variable pc_path pkg-config)
[ -n "$default_path" ]
case :$default_path: in
*:"$cmlibdir/pkgconfig":*) exit 1 ;;
esac

# libevrdma finds the librdmacm that it was built with by itself.
LD_LIBRARY_PATH=$libdir ldd "$scratch/client" >"$scratch/client.libs"
grep -q "$libdir/libevrdma\.so" "$scratch/client.libs"
if [ -f "$scratch/cm" ]; then
	grep -q "$cmlibdir/librdmacm\.so" "$scratch/client.libs"
	LD_LIBRARY_PATH=$cmlibdir ldd "$scratch/cm" | grep -q "$cmlibdir/librdmacm\.so"
	LD_LIBRARY_PATH=$cmlibdir "$scratch/cm" | grep -qx RDMA_CM_EVENT_ESTABLISHED
fi

# The module, by each of the stock one's names.
if [ -e "$libdir/rsocket/librspreload.so" ]; then
	for name in librspreload.so librspreload.so.1 librspreload.so.1.0.0; do
		LD_LIBRARY_PATH=$cmlibdir LD_PRELOAD=$libdir/rsocket/$name true 2>"$scratch/preloaded"
		[ ! -s "$scratch/preloaded" ]
	done
fi
echo "installed.sh: a program outside the tree builds and runs against what was installed"
