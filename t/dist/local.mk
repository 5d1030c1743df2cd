# What distributors take: built from the tarball, in the long check only. It needs no test's program.
EXTRA_DIST += t/dist/packages.sh
check-packages: dist
	$(MAKE) $(AM_MAKEFLAGS) check-TESTS TESTS=t/dist/packages.sh \
		check_PROGRAMS= check_LTLIBRARIES= check_SCRIPTS=
.PHONY: check-packages
