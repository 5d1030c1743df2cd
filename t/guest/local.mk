# Tests for the real kernel. A folder adds its scripts or programs (with :ARGUMENT if they take one)
# to GUEST_TESTS, each of which runs in one guest, or to GUEST2_TESTS, which run in two at once.
GUEST_TESTS += t/guest/smoke.sh
GUEST2_TESTS += t/guest/net.sh

GUEST_FILES = \
	t/guest/README \
	t/guest/boot.sh t/guest/both t/guest/eth0.sh t/guest/fetch t/guest/host.sh t/guest/init t/guest/inside \
	t/guest/lib.sh t/guest/many t/guest/net.sh t/guest/run t/guest/run2 t/guest/smoke.sh \
	t/guest/suite t/guest/tap.awk
EXTRA_DIST += $(GUEST_FILES) t/setup.sh t/bootstrap.sh t/check.sh t/cells

GUEST_ENV = top_srcdir='$(abs_top_srcdir)' top_builddir='$(abs_top_builddir)'

check-guest: all
	@$(MAKE) -s $(AM_MAKEFLAGS) $(check_PROGRAMS) $(check_LTLIBRARIES)
	@$(GUEST_ENV) $(srcdir)/t/guest/both -o t/guest/log/one $(GUEST_TESTS); one=$$?; \
	$(GUEST_ENV) $(srcdir)/t/guest/suite -2 -o t/guest/log/two $(GUEST2_TESTS); two=$$?; \
	cat t/guest/log/*/count; \
	test $$one -eq 0 && test $$two -eq 0

# Some of it, for a build that is slow: with sanitizers, say.
GUEST_BRIEF_TESTS = \
	t/guest/smoke.sh t/conform/device.sh:rxe:ours t/conform/device.sh:siw:ours \
	t/interop/examples.sh t/interop/tool_errors.sh:rxe t/interop/crowd.sh:siw \
	t/interop/join_ex.sh:rxe:ours t/interop/removal.sh:siw \
	t/interop/mckey.sh:rxe:ours@ours:ours@ours t/interop/ucmatose.sh:rxe:ours@ours:ours@ours

check-guest-brief: all
	@$(MAKE) -s $(AM_MAKEFLAGS) $(check_PROGRAMS) $(check_LTLIBRARIES)
	@$(GUEST_ENV) $(srcdir)/t/guest/both -o t/guest/log/brief $(GUEST_BRIEF_TESTS)

clean-local: clean-guest
clean-guest:
	rm -rf t/guest/log

distclean-local: distclean-guest
distclean-guest:
	rm -rf t/guest/cache

.PHONY: check-guest check-guest-brief clean-guest distclean-guest
