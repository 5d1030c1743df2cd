GUEST_TESTS += t/interop/examples.sh
GUEST_TESTS += t/interop/key_value.sh:rxe t/interop/key_value.sh:siw t/interop/multicast.sh
EXTRA_DIST += t/interop/key_value.sh t/interop/multicast.sh

# The programs and the script of evrdma_guide(7), as they are at its end.
EVR_GUIDE = t/interop/guide
EVR_GUIDE_FILES = $(EVR_GUIDE)/server.c $(EVR_GUIDE)/listen.c $(EVR_GUIDE)/echo.c \
	$(EVR_GUIDE)/server.h $(EVR_GUIDE)/client.c $(EVR_GUIDE)/try.sh $(EVR_GUIDE)/Makefile
check_PROGRAMS += t/interop/guide/server t/interop/guide/client
nodist_t_interop_guide_server_SOURCES = \
	t/interop/guide/server.c t/interop/guide/listen.c t/interop/guide/echo.c
t_interop_guide_server_LDFLAGS = $(EVR_EXAMPLES_LINK)
t_interop_guide_server_LDADD = $(EVR_EXAMPLES_LIBS)
nodist_t_interop_guide_client_SOURCES = t/interop/guide/client.c
t_interop_guide_client_LDFLAGS = $(EVR_EXAMPLES_LINK)
t_interop_guide_client_LDADD = $(EVR_EXAMPLES_LIBS)
CLEANFILES += $(EVR_GUIDE_FILES) $(EVR_GUIDE)/stamp
# The stamp is the older, or they would be made anew each time.
$(EVR_GUIDE)/stamp: $(srcdir)/man/evrdma_guide.7 $(srcdir)/t/lint/examples.awk
	$(AM_V_GEN)$(MKDIR_P) $(EVR_GUIDE) && : >$@-new && \
	$(AWK) -v files=$(EVR_GUIDE) -f $(srcdir)/t/lint/examples.awk $(srcdir)/man/evrdma_guide.7 && \
	mv $@-new $@
$(EVR_GUIDE_FILES): $(EVR_GUIDE)/stamp ;
GUEST_TESTS += t/interop/guide.sh:rxe t/interop/guide.sh:siw
EXTRA_DIST += t/interop/guide.sh

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
GUEST_TESTS += t/interop/preload.sh:rxe t/interop/preload.sh:siw
GUEST_TESTS += t/interop/rstream.sh:rxe t/interop/rstream.sh:siw
check_PROGRAMS += t/interop/echo_stream
t_interop_echo_stream_SOURCES = t/interop/echo_stream.c
t_interop_echo_stream_LDFLAGS = $(AM_LDFLAGS) -no-install
t_interop_echo_stream_LDADD = libevrdma.la $(LIBEVENT_LIBS)
GUEST_TESTS += t/interop/echo_stream.sh:rxe t/interop/echo_stream.sh:siw
GUEST_TESTS += t/interop/riostream.sh:rxe t/interop/riostream.sh:siw
endif
endif
EXTRA_DIST += t/interop/echo_stream.sh t/interop/preload.sh t/interop/calls.awk t/interop/calls.sh t/interop/dropin.sh t/interop/errors.sh \
	t/interop/fields.sh t/interop/files.sh t/interop/join_ex.sh t/interop/removal.sh t/interop/riostream.sh t/interop/rstream.sh \
	t/interop/commands.awk t/interop/probes.sh t/interop/stall.awk t/interop/stall.sh \
	t/interop/others.sh t/interop/others_pyverbs.py t/interop/others_rpma.py

# What our tools say when something is wrong.
GUEST_TESTS += t/interop/tool_errors.sh:rxe t/interop/tool_errors.sh:siw
GUEST_TESTS += t/interop/perf.sh:rxe t/interop/perf.sh:siw
EXTRA_DIST += t/interop/perf.sh
check_PROGRAMS += t/interop/perf_hostile
t_interop_perf_hostile_SOURCES = t/interop/perf_hostile.c t/schedule/random.h \
	examples/tools/perf_wire.c examples/tools/perf_wire.h
t_interop_perf_hostile_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/t -I$(top_srcdir)/examples/tools
t_interop_perf_hostile_LDFLAGS = $(AM_LDFLAGS) -no-install
t_interop_perf_hostile_LDADD = libevrdma.la $(LIBEVENT_LIBS)
GUEST_TESTS += t/interop/perf_hostile.sh:rxe t/interop/perf_hostile.sh:siw
EXTRA_DIST += t/interop/perf_hostile.sh
EXTRA_DIST += t/interop/tool_errors.sh

# The smaller tools, all pairs in one boot.
if !SYSTEM_RDMACM
GUEST_TESTS += t/interop/cm_tools.sh:rxe t/interop/cm_tools.sh:siw
endif
EXTRA_DIST += t/interop/cm_tools.sh t/interop/cm_cmtime.sh t/interop/cm_rping.sh \
	t/interop/cm_simple.sh t/interop/cm_udaddy.sh

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

# Our tools for rsockets on our librdmacm, with each other and with the stock ones on the stock one;
# without arguments these scripts run the pairs with ours on the stock one, too.
EVR_LONG_TESTS += t/interop/rtools_tcp.sh
RTOOLS_ENDS = ours@ours:stock@stock:stock@stock:ours@ours:ours@ours:ours@ours
GUEST_TESTS += \
	t/interop/rtools_rstream.sh:rxe:$(RTOOLS_ENDS) t/interop/rtools_rstream.sh:siw:$(RTOOLS_ENDS) \
	t/interop/rtools_riostream.sh:rxe:$(RTOOLS_ENDS) t/interop/rtools_riostream.sh:siw:$(RTOOLS_ENDS) \
	t/interop/rtools_rcopy.sh:rxe:$(RTOOLS_ENDS) t/interop/rtools_rcopy.sh:siw:$(RTOOLS_ENDS)
# iWARP has no datagrams: there those of ours go by UDP, and the stock library's do not.
GUEST_TESTS += \
	t/interop/rtools_udpong.sh:rxe:stock@stock:stock@stock:$(RTOOLS_ENDS):stock@ours:ours@ours \
	t/interop/rtools_udpong.sh:siw:ours@ours:ours@ours
if TESTS_ENABLED
# A client of rcopy that keeps to no rule.
check_PROGRAMS += t/interop/rcopy_raw
t_interop_rcopy_raw_SOURCES = t/interop/rcopy_raw.c
t_interop_rcopy_raw_LDADD = $(RDMACM_LIBS)
check_LTLIBRARIES += t/interop/few.la
t_interop_few_la_SOURCES = t/interop/few.c
t_interop_few_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere
check_LTLIBRARIES += t/interop/steady.la
t_interop_steady_la_SOURCES = t/interop/steady.c
t_interop_steady_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere
check_LTLIBRARIES += t/interop/global_ah.la
t_interop_global_ah_la_SOURCES = t/interop/global_ah.c
t_interop_global_ah_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere
t_interop_global_ah_la_LIBADD = $(VERBS_LIBS)
endif
EXTRA_DIST += t/interop/rtools.sh t/interop/rtools_rcopy.sh \
	t/interop/rtools_riostream.sh t/interop/rtools_rstream.sh t/interop/rtools_tcp.sh \
	t/interop/rtools_udpong.sh

# HTTP over bufferevents over RDMA.
if TESTS_ENABLED
if !SYSTEM_RDMACM
check_PROGRAMS += t/interop/http_server t/interop/http_client \
	t/interop/http_rsocket t/interop/http_rsockets
t_interop_http_server_SOURCES = t/interop/http_server.c t/interop/http.h
t_interop_http_server_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/t -I$(top_srcdir)
t_interop_http_server_LDFLAGS = $(AM_LDFLAGS) -no-install
t_interop_http_server_LDADD = libevrdma.la $(LIBEVENT_LIBS)
t_interop_http_client_SOURCES = t/interop/http_client.c t/interop/http.h
t_interop_http_client_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/t
t_interop_http_client_LDFLAGS = $(AM_LDFLAGS) -no-install
t_interop_http_client_LDADD = libevrdma.la $(LIBEVENT_LIBS)
t_interop_http_rsocket_SOURCES = t/interop/http_rsocket.c t/interop/http.h \
	t/interop/http_ask.c t/interop/http_ask.h t/interop/http_ends.c t/interop/http_ends.h
t_interop_http_rsocket_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/t
t_interop_http_rsocket_LDADD = librdmacm.la $(VERBS_LIBS)
t_interop_http_rsockets_SOURCES = t/interop/http_rsockets.c t/interop/http.h
t_interop_http_rsockets_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/t
t_interop_http_rsockets_LDADD = librdmacm.la $(VERBS_LIBS)
GUEST_TESTS += t/interop/http.sh:rxe t/interop/http.sh:siw
endif
endif
EXTRA_DIST += t/interop/http.sh

# What breaks beneath bufferevents over RDMA.
if TESTS_ENABLED
if !SYSTEM_RDMACM
check_PROGRAMS += t/interop/bufferevent_faults
t_interop_bufferevent_faults_SOURCES = \
	t/interop/bufferevent_faults.c \
	t/interop/faults.h t/interop/faults_peer.c t/interop/faults_stream.c \
	t/schedule/random.h \
	t/schedule/resources.c t/schedule/resources.h \
	t/schedule/wire.c t/schedule/wire.h
t_interop_bufferevent_faults_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/t $(NL_CFLAGS)
t_interop_bufferevent_faults_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_interop_bufferevent_faults_LDADD = \
	libevr_clock.la libevrdma.la $(RDMACM_LIBS) $(VERBS_LIBS) $(LIBEVENT_LIBS) \
	$(CHECK_LIBS) $(NL_LIBS)
GUEST_TESTS += t/interop/bufferevent_faults.sh:rxe t/interop/bufferevent_faults.sh:siw
endif
endif
EXTRA_DIST += t/interop/bufferevent_faults.sh
