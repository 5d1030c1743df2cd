# Tests for the real kernel. A folder adds its scripts or programs (with :ARGUMENT if they take one)
# to GUEST_TESTS, each of which runs in one guest, or to GUEST2_TESTS, which run in two at once.
GUEST_TESTS += t/guest/smoke.sh
check_PROGRAMS += t/guest/registers
t_guest_registers_SOURCES = t/guest/registers.c
t_guest_registers_LDFLAGS = -pthread
GUEST2_TESTS += t/guest/net.sh

GUEST_FILES = \
	t/guest/README \
	t/guest/boot.sh t/guest/cells t/guest/eth0.sh t/guest/fetch t/guest/fetch_qemu.sh \
	t/guest/fetch_uml.sh t/guest/host.sh t/guest/init_qemu t/guest/init_uml t/guest/inside \
	t/guest/lib.sh t/guest/many t/guest/net.sh t/guest/packages.sh t/guest/qemu.sh t/guest/run \
	t/guest/run2 t/guest/same_random.c t/guest/smoke.sh t/guest/suite t/guest/tap.awk t/guest/uml.config t/guest/uml.patch \
	t/guest/uml.sh
EXTRA_DIST += $(GUEST_FILES) t/setup.sh t/bootstrap.sh t/check.sh t/cells

GUEST_ENV = top_srcdir='$(abs_top_srcdir)' top_builddir='$(abs_top_builddir)'

check-guest: all
	@$(MAKE) -s $(AM_MAKEFLAGS) $(check_PROGRAMS) $(check_LTLIBRARIES)
	@rm -rf t/guest/log/all
	@$(GUEST_ENV) $(srcdir)/t/guest/suite -o t/guest/log/all $(GUEST_TESTS) -- $(GUEST2_TESTS)

# Some of it, for a short check: both devices, each kind of test, one pair of each kind.
GUEST_SHORT_TESTS = \
	t/conform/device.sh:siw:ours t/conform/device.sh:rxe:ours \
	t/schedule/device.sh:rxe:1:50 t/schedule/device.sh:siw:1:25 \
	t/guest/smoke.sh t/interop/examples.sh t/interop/errors.sh:rxe t/interop/errors.sh:siw \
	t/interop/guide.sh:rxe t/interop/guide.sh:siw \
	t/interop/ucmatose.sh:rxe:ours@stock:stock@ours t/interop/ucmatose.sh:siw:ours@ours:ours@ours \
	t/interop/mckey.sh:rxe:ours@ours:ours@stock t/rs/descriptor.sh:rxe

check-guest-short: all
	@$(MAKE) -s $(AM_MAKEFLAGS) $(check_PROGRAMS) $(check_LTLIBRARIES)
	@rm -rf t/guest/log/short
	@$(GUEST_ENV) $(srcdir)/t/guest/suite -o t/guest/log/short $(GUEST_SHORT_TESTS)

# And for a build that is slow: with sanitizers, say. EVR_BRIEF=yes: without what takes longest, and of
# what is alike, here and in all of them, some.
GUEST_BRIEF_TESTS = \
	t/guest/smoke.sh t/conform/device.sh:rxe:ours t/conform/device.sh:siw:ours \
	$(if $(EVR_BRIEF),,t/interop/examples.sh t/interop/tool_errors.sh:rxe) t/interop/crowd.sh:siw \
	t/interop/join_ex.sh:rxe:ours t/interop/removal.sh:siw \
	t/interop/mckey.sh:rxe:ours@ours:ours@ours t/interop/ucmatose.sh:rxe:ours@ours:ours@ours

check-guest-brief: all
	@$(MAKE) -s $(AM_MAKEFLAGS) $(check_PROGRAMS) $(check_LTLIBRARIES)
	@rm -rf t/guest/log/brief
	@$(GUEST_ENV) $(srcdir)/t/guest/suite -o t/guest/log/brief $(GUEST_BRIEF_TESTS)

clean-local: clean-guest
clean-guest:
	rm -rf t/guest/log

.PHONY: check-guest check-guest-short check-guest-brief clean-guest
