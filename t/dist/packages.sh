#!/bin/sh
# The Debian packages and the RPM spec, from the tarball that `make dist` left. Installs nothing.
. "${top_srcdir:-.}/t/lint/lint.sh"
unset MAKEFLAGS MFLAGS MAKELEVEL # the packages' make is no part of this one

version=$(make_var PACKAGE_VERSION)
tarball=$top_builddir/evrdma-$version.tar.xz
src=$scratch/evrdma-$version
root=$scratch/root

# run NAME COMMAND...: a verdict upon what it returns, with the end of what it printed.
run() {
	name=$1
	shift
	"$@" >"$scratch/run.log" 2>&1 </dev/null || tail -n 40 "$scratch/run.log" >"$findings"
	verdict "$name"
}

cp "$tarball" "$scratch/evrdma_$version.orig.tar.xz" && tar -xf "$tarball" -C "$scratch" || exit 99

# --- one version -------------------------------------------------------------

sed -n '1s/^evrdma (\(.*\)-[^-]*) .*/\1/p' "$src/debian/changelog" | grep -qxF "$version" ||
	echo "debian/changelog does not begin with $version" >"$findings"
sed -n 's/^Version: *//p' "$src/packaging/evrdma.spec" | grep -qxF "$version" ||
	echo "packaging/evrdma.spec is not of $version" >>"$findings"
verdict "the packages have the version of the tarball"

# --- Debian ------------------------------------------------------------------

packages='evrdma-rdmacm evrdma-rdmacm-dev evrdma-tools libevrdma-dev libevrdma0'

# The linker tells which files it takes.
build_packages() {
	(cd "$src" && DEB_LDFLAGS_APPEND=-Wl,--trace DEB_BUILD_OPTIONS="nocheck parallel=$(nproc)" \
		dpkg-buildpackage -us -uc) || return
	for p in $packages; do
		ls "$scratch/$p"_*.deb || return
	done
	: >"$scratch/built"
}

check_linked() {
	grep -q '/librdmacm\.so$' "$scratch/run.log" || echo "nothing was linked with a librdmacm"
	grep '^/usr/.*/librdmacm\.so$' "$scratch/run.log"
}

# The packages' files as `PACKAGE PATH`, for any machine.
contents() {
	for p in $packages; do
		dpkg-deb --fsys-tarfile "$scratch/$p"_*.deb | tar -t | sed "s|^\.|$p |"
	done | grep -v '/$' | sed "s|/$triplet/|/*/|"
}

# Each file has its place in this list, and each place has a file.
check_contents() {
	cat >"$scratch/places" <<-'PLACES'
		evrdma-rdmacm /usr/lib/\*/evrdma/librdmacm\.so\.1(\.[0-9.]+)?
		evrdma-rdmacm /usr/lib/\*/evrdma/librspreload\.so
		evrdma-rdmacm /usr/share/evrdma/man/man7/librspreload\.7(\.gz)?
		evrdma-rdmacm /usr/share/doc/evrdma-rdmacm/README\.Debian(\.gz)?
		evrdma-rdmacm-dev /usr/include/evrdma-rdmacm/(rdma/(rdma_cma|rdma_verbs|rsocket)|infiniband/ib)\.h
		evrdma-rdmacm-dev /usr/lib/\*/evrdma/librdmacm\.so
		evrdma-rdmacm-dev /usr/lib/\*/evrdma/pkgconfig/librdmacm\.pc
		evrdma-rdmacm-dev /usr/share/evrdma/man/man3/rdma_[a-z_]+\.3(\.gz)?
		evrdma-rdmacm-dev /usr/share/evrdma/man/man7/(rdma_cm|rsocket)\.7(\.gz)?
		evrdma-tools /usr/bin/(ev-[a-z_]+|evrdma-perf)
		evrdma-tools /usr/share/man/man1/(ev-[a-z_]+|evrdma-perf)\.1\.gz
		libevrdma-dev /usr/include/evrdma/[a-z]+\.h
		libevrdma-dev /usr/lib/\*/libevrdma\.so
		libevrdma-dev /usr/lib/\*/pkgconfig/evrdma\.pc
		libevrdma-dev /usr/share/doc/libevrdma-dev/examples/[0-9]+-[a-z-]+\.[ch]
		libevrdma-dev /usr/share/man/man3/evrdma_[a-z_]+\.3\.gz
		libevrdma-dev /usr/share/man/man7/evrdma(_[a-z]+)?\.7\.gz
		libevrdma0 /usr/lib/\*/libevrdma\.so\.0(\.[0-9.]+)?
		libevrdma0 /usr/share/doc/libevrdma0/(README|NEWS)(\.gz)?
		[a-z0-9-]+ /usr/share/doc/[a-z0-9-]+/(changelog\.Debian(\..+)?\.gz|copyright)
	PLACES
	grep -vxEf "$scratch/places" "$scratch/contents" | sed 's/$/: has no place/'
	while read -r place; do
		grep -qxE -e "$place" "$scratch/contents" || echo "$place: no such file"
	done <"$scratch/places"
}

# Both are there at once, so no path is in a package of rdma-core.
check_clashes() {
	dpkg-query -L librdmacm1 librdmacm-dev rdmacm-utils ibverbs-utils rdma-core |
		while read -r f; do [ -d "$f" ] || echo "$f"; done | sort -u >"$scratch/theirs"
	grep -q '/librdmacm\.so\.1$' "$scratch/theirs" || echo "no librdmacm1 to compare with"
	sed "s|^[^ ]* ||; s|/\*/|/$triplet/|" "$scratch/contents" | sort -u | comm -12 - "$scratch/theirs"
}

field() { dpkg-deb -f "$scratch/$1"_*.deb "$2"; }

# The librdmacm of the private folder is nobody's to depend on but as another way to librdmacm1.
check_depends() {
	for p in libevrdma0 evrdma-tools; do
		field $p Depends | tr ',' '\n' | grep -qx ' *librdmacm1 (>= [0-9~]*) | evrdma-rdmacm' ||
			echo "$p depends on: $(field $p Depends)"
	done
	field evrdma-rdmacm Depends | grep -o 'librdmacm1.*'
	dpkg-deb --ctrl-tarfile "$scratch"/evrdma-rdmacm_*.deb | tar -t | grep -E '/(shlibs|symbols|triggers)$'
	for p in $packages; do
		field "$p" Provides
		field "$p" Conflicts
	done | grep .
}

unpack_packages() {
	for p in $packages; do
		dpkg-deb -x "$scratch/$p"_*.deb "$root" || return
	done
}

# Every example of the package, with its headers, its library and its pkg-config alone.
compile_examples() {
	flags=$(PKG_CONFIG_PATH=$root/usr/lib/$triplet/pkgconfig \
		pkg-config --define-variable=prefix="$root/usr" --cflags --libs evrdma) || return
	for c in "$root"/usr/share/doc/libevrdma-dev/examples/*.c; do
		# shellcheck disable=SC2086 # flags
		$cc -Wall -Werror -o "$scratch/out/$(basename "$c" .c)" "$c" $flags -lpthread || return
	done
}

# librdmacm_of FOLDERS: the one that an example runs on.
librdmacm_of() {
	LD_LIBRARY_PATH=$1 ldd -r "$scratch/out/01-connect" >"$scratch/ldd" 2>&1
	! grep -E 'not found|undefined' "$scratch/ldd" || return
	sed -n 's/.*librdmacm\.so\.1 => \([^ ]*\) .*/\1/p' "$scratch/ldd"
}

check_libraries() {
	lib=$root/usr/lib/$triplet
	readelf -d "$lib/libevrdma.so.0" | grep -q "R.*PATH.*\[/usr/lib/$triplet/evrdma\]" ||
		echo "libevrdma.so.0 does not look into the private folder"
	LD_PRELOAD=$lib/evrdma/librspreload.so LD_LIBRARY_PATH=$lib/evrdma ldd -r /bin/true 2>&1 |
		grep -E 'not found|undefined|cannot'
	[ "$(librdmacm_of "$lib:$lib/evrdma")" = "$lib/evrdma/librdmacm.so.1" ] || cat "$scratch/ldd"
	case $(librdmacm_of "$lib") in
	/*) ;;
	*) cat "$scratch/ldd" ;;
	esac
}

debian() {
	triplet=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
	run "the packages are built" build_packages
	[ -f "$scratch/built" ] || return
	check_linked >"$findings"
	verdict "they are linked with the tree's own librdmacm, and the distribution's is not needed"
	run "lintian finds no error" lintian --fail-on error --allow-root "$scratch"/evrdma_*.changes
	contents >"$scratch/contents"
	check_contents >"$findings"
	verdict "each file is in its package"
	check_clashes >"$findings"
	verdict "they can be installed beside those of rdma-core"
	check_depends >"$findings"
	verdict "none has to do with librdmacm1 but to need it or evrdma-rdmacm"
	run "they unpack" unpack_packages
	run "the examples compile with what is in them" compile_examples
	check_libraries >"$findings"
	verdict "libevrdma0 runs on evrdma-rdmacm and without it, and the module loads"
}

if have dpkg-buildpackage && have dh && have lintian; then
	debian
else
	skip "the Debian packages" "dpkg-dev, debhelper or lintian is not installed"
fi

# --- RPM ---------------------------------------------------------------------

if have rpmspec; then
	run "the spec parses" rpmspec -P "$src/packaging/evrdma.spec"
else
	skip "the spec parses" "rpmspec is not installed"
fi
if have rpmlint; then
	run "rpmlint finds no error in it" rpmlint "$src/packaging/evrdma.spec"
else
	skip "rpmlint finds no error in it" "rpmlint is not installed"
fi

done_testing
