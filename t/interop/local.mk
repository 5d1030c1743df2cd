GUEST_TESTS += t/interop/examples.sh

# The stock tools on our librdmacm, and a device removed under a living process.
if TESTS_ENABLED
if !SYSTEM_RDMACM
check_PROGRAMS += t/interop/files t/interop/removal
t_interop_files_SOURCES = t/interop/files.c
t_interop_files_LDADD = librdmacm.la $(VERBS_LIBS)
t_interop_removal_SOURCES = t/interop/removal.c
t_interop_removal_LDADD = librdmacm.la $(VERBS_LIBS)
check_PROGRAMS += t/interop/fields
t_interop_fields_SOURCES = \
	t/interop/fields.c t/interop/fields.h \
	t/interop/fields_show.c t/interop/fields_step.c
t_interop_fields_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/t
t_interop_fields_LDADD = librdmacm.la $(VERBS_LIBS)
check_PROGRAMS += t/interop/join_ex
t_interop_join_ex_SOURCES = $(EVR_JOIN_EX_SOURCES) t/interop/join_ex_device.c
t_interop_join_ex_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/t
t_interop_join_ex_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_interop_join_ex_LDADD = librdmacm.la $(VERBS_LIBS) $(CHECK_LIBS)
check_PROGRAMS += t/interop/errors
t_interop_errors_SOURCES = t/interop/errors.c $(EVR_ERRORS)
t_interop_errors_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/t
t_interop_errors_LDADD = librdmacm.la $(VERBS_LIBS)
# The same for a library that ends with RDMACM_1.3.
check_PROGRAMS += t/interop/errors_1_3
t_interop_errors_1_3_SOURCES = $(t_interop_errors_SOURCES)
t_interop_errors_1_3_CPPFLAGS = $(t_interop_errors_CPPFLAGS) -DERRORS_UP_TO_1_3
t_interop_errors_1_3_LDADD = $(t_interop_errors_LDADD)
GUEST_TESTS += t/interop/errors.sh:rxe t/interop/errors.sh:siw
GUEST_TESTS += \
	t/interop/join_ex.sh:rxe:ours t/interop/join_ex.sh:siw:ours \
	t/interop/join_ex.sh:rxe:stock t/interop/join_ex.sh:siw:stock
GUEST_TESTS += t/interop/calls.sh:rxe t/interop/calls.sh:siw
GUEST_TESTS += t/interop/stall.sh:rxe t/interop/stall.sh:siw
check_PROGRAMS += t/interop/privileges
t_interop_privileges_SOURCES = t/interop/privileges.c
t_interop_privileges_LDADD = librdmacm.la $(VERBS_LIBS)
GUEST_TESTS += t/interop/privileges.sh:rxe
GUEST_TESTS += t/interop/fields.sh:rxe t/interop/fields.sh:siw
GUEST_TESTS += t/interop/dropin.sh:rxe t/interop/dropin.sh:siw
GUEST_TESTS += t/interop/others.sh:rxe t/interop/others.sh:siw
GUEST_TESTS += t/interop/files.sh:rxe t/interop/files.sh:siw
GUEST_TESTS += t/interop/removal.sh:rxe t/interop/removal.sh:siw
GUEST_TESTS += t/interop/rstream.sh:rxe t/interop/rstream.sh:siw
GUEST_TESTS += t/interop/riostream.sh:rxe t/interop/riostream.sh:siw
endif
endif
EXTRA_DIST += t/interop/calls.awk t/interop/calls.sh t/interop/dropin.sh t/interop/errors.sh \
	t/interop/fields.sh t/interop/files.sh t/interop/join_ex.sh t/interop/removal.sh t/interop/riostream.sh t/interop/rstream.sh \
	t/interop/commands.awk t/interop/probes.sh t/interop/stall.awk t/interop/stall.sh \
	t/interop/others.sh t/interop/others_pyverbs.py t/interop/others_rpma.py

# What our tools say when something is wrong.
GUEST_TESTS += t/interop/tool_errors.sh:rxe t/interop/tool_errors.sh:siw
EXTRA_DIST += t/interop/tool_errors.sh

# Every pair of {ours, stock} tools on {our, the stock} librdmacm.
if !SYSTEM_RDMACM
GUEST_TESTS += t/interop/cores.sh t/interop/ucmatose.sh:rxe t/interop/ucmatose.sh:siw \
	t/interop/mckey.sh:rxe t/interop/migrate.sh:rxe t/interop/migrate.sh:siw \
	t/interop/migrate_rounds.sh:rxe t/interop/migrate_rounds.sh:siw \
	t/interop/crowd.sh:rxe t/interop/crowd.sh:siw
GUEST2_TESTS += t/interop/mckey2.sh
endif

EXTRA_DIST += t/interop/cores.sh t/interop/crowd.sh t/interop/ends.sh t/interop/examples.sh t/interop/groups.sh \
	t/interop/mckey.sh t/interop/mckey2.sh t/interop/migrate.sh t/interop/migrate_rounds.sh t/interop/ucmatose.sh

# libevrdma beside a library that was built on the stock librdmacm.
if !SYSTEM_RDMACM
TESTS += t/interop/second.sh
endif
EXTRA_DIST += t/interop/privileges.sh t/interop/second.c t/interop/second.sh t/interop/second_lib.c

# Our tools for rsockets on our librdmacm and the stock ones on the stock one; without arguments these
# scripts run the pairs of both on the stock one.
TESTS += t/interop/rtools_tcp.sh
RTOOLS_ENDS = ours@ours:stock@stock:stock@stock:ours@ours
GUEST_TESTS += \
	t/interop/rtools_rstream.sh:rxe:$(RTOOLS_ENDS) t/interop/rtools_rstream.sh:siw:$(RTOOLS_ENDS) \
	t/interop/rtools_riostream.sh:rxe:$(RTOOLS_ENDS) t/interop/rtools_riostream.sh:siw:$(RTOOLS_ENDS) \
	t/interop/rtools_rcopy.sh:rxe:$(RTOOLS_ENDS) t/interop/rtools_rcopy.sh:siw:$(RTOOLS_ENDS)
EXTRA_DIST += t/interop/rtools.sh t/interop/rtools_rcopy.sh \
	t/interop/rtools_riostream.sh t/interop/rtools_rstream.sh t/interop/rtools_tcp.sh
