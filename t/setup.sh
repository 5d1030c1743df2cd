#!/bin/sh
# Installs what is missing to build, test and show evrdma on Debian or Ubuntu, as root or through
# sudo, and does nothing when nothing is missing. Elsewhere it names the packages and fails, unless
# EVR_SETUP=no says that everything is there.
#
#	t/setup.sh           all of it
#	t/setup.sh demo      what examples/demo.sh needs
#	t/setup.sh update    only fetches new package lists
set -eu

build='gcc make autoconf automake libtool pkg-config libibverbs-dev libevent-dev libnl-3-dev'
device='ibverbs-providers iproute2'
tests='check ccache librdmacm-dev rdmacm-utils ibverbs-utils rdma-core mandoc valgrind strace g++
	shellcheck patch libssl-dev zlib1g-dev dpkg-dev debhelper lintian rpm rpmlint procps'
others='perftest libfabric-bin dapl2-utils librpma0 python3-pyverbs libucx-dev'
programs='netcat-openbsd socat curl python3 iperf3 redis-tools memcached libmemcached-tools gnuplot-nox'
guest='qemu-system-x86 busybox-static cpio kmod xz-utils bzip2 zstd libelf-dev'
kernel='flex bison bc'

die() { echo "setup: $*" >&2; exit 1; }

missing() {
	# shellcheck disable=SC2086 # a list of words
	dpkg-query -W -f '${Package} ${db:Status-Abbrev}\n' $packages 2>/dev/null |
		awk -v want="$packages" '
			$2 == "ii" { have[$1] = 1 }
			END {
				n = split(want, w)
				for (i = 1; i <= n; i++)
					if (!(w[i] in have))
						print w[i]
			}'
}

as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		die "needs root or sudo for: $*"
	fi
}

apt_get() {
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o Dpkg::Use-Pty=0 "$@" </dev/null
}

# Programs for the tests are not to run here as services.
policy=/usr/sbin/policy-rc.d
without_services() {
	if [ -e $policy ]; then
		"$@"
		return
	fi
	printf '#!/bin/sh\nexit 101\n' | as_root tee $policy >/dev/null
	as_root chmod 755 $policy
	"$@" && status=0 || status=$?
	as_root rm -f $policy
	return $status
}

# The package lists may be missing or too old for the archive: once more with new ones.
install() {
	echo "setup: installing $*"
	apt_get install --no-install-recommends "$@" 2>/dev/null && return
	apt_get update
	apt_get install --no-install-recommends "$@" || die "could not install: $*"
}

setup() {
	[ "${EVR_SETUP:-}" != no ] || exit 0
	if ! command -v apt-get >/dev/null; then
		echo "setup: installs packages on Debian and Ubuntu only. By their names there it needs:"
		echo "$packages" | tr -s '\n\t' '  ' | fold -s -w 90 | sed 's/^/  /'
		die "install the like of them, then set EVR_SETUP=no"
	fi >&2
	need=$(missing)
	# shellcheck disable=SC2086 # a list of words
	[ -z "$need" ] || without_services install $need
}

case ${1:-} in
'')
	packages="$build $device $tests $others $programs $guest $kernel"
	setup
	;;
demo)
	packages="$build $device $guest"
	setup
	;;
update) apt_get update ;;
*) die "usage: t/setup.sh [demo|update]" ;;
esac
