# The tools. They have the names of the distribution's in the build tree, and are installed as
# ev-NAME, so that they shadow none of those.
EVR_TOOLS = examples/tools/ucmatose examples/tools/mckey examples/tools/rping \
	examples/tools/udaddy examples/tools/cmtime \
	examples/tools/rdma_client examples/tools/rdma_server \
	examples/tools/rdma_xclient examples/tools/rdma_xserver \
	examples/tools/rcopy examples/tools/riostream examples/tools/rstream examples/tools/udpong
EVR_TOOL_PAGES = man/ucmatose.1 man/mckey.1 man/rcopy.1 man/riostream.1 man/rping.1 man/rstream.1 \
	man/udaddy.1 man/udpong.1 man/cmtime.1 \
	man/rdma_client.1 man/rdma_server.1 man/rdma_xclient.1 man/rdma_xserver.1

noinst_LTLIBRARIES += libevr_tools.la
libevr_tools_la_SOURCES = \
	examples/tools/address.c examples/tools/address.h \
	examples/tools/capability.c examples/tools/capability.h \
	examples/tools/common.c examples/tools/common.h \
	examples/tools/ends.c examples/tools/ends.h \
	examples/tools/options.c examples/tools/options.h \
	examples/tools/pattern.c examples/tools/pattern.h \
	examples/tools/perf_complaints.c examples/tools/perf_complaints.h \
	examples/tools/perf_hist.c examples/tools/perf_hist.h \
	examples/tools/perf_watch.c examples/tools/perf_watch.h

EVR_TOOL_LIBS = libevr_tools.la libevrdma.la $(RDMACM_LIBS) $(VERBS_LIBS) $(LIBEVENT_LIBS)

noinst_PROGRAMS += $(EVR_TOOLS)
examples_tools_ucmatose_SOURCES = \
	examples/tools/ucmatose.c examples/tools/ucmatose.h \
	examples/tools/ucmatose_error.c \
	examples/tools/ucmatose_main.c \
	examples/tools/ucmatose_message.c \
	examples/tools/ucmatose_options.c \
	examples/tools/ucmatose_phase.c
examples_tools_ucmatose_LDADD = $(EVR_TOOL_LIBS)
examples_tools_mckey_SOURCES = \
	examples/tools/mckey.c examples/tools/mckey.h \
	examples/tools/mckey_error.c \
	examples/tools/mckey_main.c \
	examples/tools/mckey_message.c \
	examples/tools/mckey_options.c
examples_tools_mckey_LDADD = $(EVR_TOOL_LIBS)
examples_tools_rping_SOURCES = \
	examples/tools/rping.c examples/tools/rping.h \
	examples/tools/rping_conn.c \
	examples/tools/rping_main.c \
	examples/tools/rping_options.c \
	examples/tools/rping_own.c \
	examples/tools/rping_qp.c examples/tools/rping_qp.h
examples_tools_rping_LDADD = $(EVR_TOOL_LIBS)
examples_tools_udaddy_SOURCES = \
	examples/tools/udaddy.c examples/tools/udaddy.h \
	examples/tools/udaddy_main.c \
	examples/tools/udaddy_message.c \
	examples/tools/udaddy_options.c
examples_tools_udaddy_LDADD = $(EVR_TOOL_LIBS)
examples_tools_cmtime_SOURCES = \
	examples/tools/cmtime.c examples/tools/cmtime.h \
	examples/tools/cmtime_client.c \
	examples/tools/cmtime_fake.c \
	examples/tools/cmtime_interface.c \
	examples/tools/cmtime_loop.c \
	examples/tools/cmtime_main.c \
	examples/tools/cmtime_node.c \
	examples/tools/cmtime_options.c \
	examples/tools/cmtime_server.c \
	examples/tools/cmtime_tcp.c
examples_tools_cmtime_LDADD = $(EVR_TOOL_LIBS)

# One program of four names.
noinst_LTLIBRARIES += libevr_simple.la
libevr_simple_la_SOURCES = \
	examples/tools/simple.c examples/tools/simple.h \
	examples/tools/simple_options.c
examples_tools_rdma_client_SOURCES = examples/tools/rdma_client.c
examples_tools_rdma_client_LDADD = libevr_simple.la $(EVR_TOOL_LIBS)
examples_tools_rdma_server_SOURCES = examples/tools/rdma_server.c
examples_tools_rdma_server_LDADD = libevr_simple.la $(EVR_TOOL_LIBS)
examples_tools_rdma_xclient_SOURCES = examples/tools/rdma_xclient.c
examples_tools_rdma_xclient_LDADD = libevr_simple.la $(EVR_TOOL_LIBS)
examples_tools_rdma_xserver_SOURCES = examples/tools/rdma_xserver.c
examples_tools_rdma_xserver_LDADD = libevr_simple.la $(EVR_TOOL_LIBS)

# The tools on rsockets.
noinst_LTLIBRARIES += libevr_rtools.la
libevr_rtools_la_SOURCES = \
	examples/tools/counting.c examples/tools/counting.h \
	examples/tools/drive.c examples/tools/drive.h \
	examples/tools/hello.c examples/tools/hello.h \
	examples/tools/lookup.c examples/tools/lookup.h \
	examples/tools/remedy.c examples/tools/remedy.h \
	examples/tools/series.c examples/tools/series.h \
	examples/tools/sock.c examples/tools/sock.h \
	examples/tools/stream.c examples/tools/stream.h \
	examples/tools/stream_run.c \
	examples/tools/stream_options.c examples/tools/stream_options.h \
	examples/tools/watch.c examples/tools/watch.h
EVR_RTOOL_LIBS = libevr_rtools.la $(EVR_TOOL_LIBS)

examples_tools_rstream_SOURCES = examples/tools/rstream.c
examples_tools_rstream_LDADD = $(EVR_RTOOL_LIBS)
examples_tools_udpong_SOURCES = \
	examples/tools/udpong.c examples/tools/udpong.h \
	examples/tools/udpong_client.c \
	examples/tools/udpong_server.c
examples_tools_udpong_LDADD = $(EVR_RTOOL_LIBS)
examples_tools_rcopy_SOURCES = \
	examples/tools/rcopy.c examples/tools/rcopy.h \
	examples/tools/rcopy_client.c \
	examples/tools/rcopy_file.c \
	examples/tools/rcopy_server.c \
	examples/tools/rcopy_wire.c
examples_tools_rcopy_LDADD = $(EVR_RTOOL_LIBS)
examples_tools_riostream_SOURCES = examples/tools/riostream.c
examples_tools_riostream_LDADD = $(EVR_RTOOL_LIBS)

# One of our own, which shadows none.
bin_PROGRAMS += examples/tools/evrdma-perf
dist_man_MANS += man/evrdma-perf.1
examples_tools_evrdma_perf_SOURCES = \
	examples/tools/perf.c examples/tools/perf.h \
	examples/tools/perf_client.c \
	examples/tools/perf_group.c \
	examples/tools/perf_main.c \
	examples/tools/perf_options.c \
	examples/tools/perf_report.c \
	examples/tools/perf_server.c \
	examples/tools/perf_wire.c examples/tools/perf_wire.h
examples_tools_evrdma_perf_LDADD = $(EVR_TOOL_LIBS)

EXTRA_DIST += $(EVR_TOOL_PAGES)

# The libraries are there by now, for libtool to link the programs with again.
install-exec-hook: install-tools
install-tools: $(EVR_TOOLS)
	@$(NORMAL_INSTALL)
	$(MKDIR_P) '$(DESTDIR)$(bindir)'
	@for tool in $(EVR_TOOLS); do \
		to='$(DESTDIR)$(bindir)'/ev-`basename $$tool`$(EXEEXT); \
		echo " install $$tool $$to"; \
		$(LIBTOOL) $(AM_LIBTOOLFLAGS) --mode=install $(INSTALL_PROGRAM) \
			$$tool$(EXEEXT) "$$to" || exit 1; \
	done

install-data-hook: install-tool-pages
install-tool-pages:
	@$(NORMAL_INSTALL)
	$(MKDIR_P) '$(DESTDIR)$(man1dir)'
	@for page in $(EVR_TOOL_PAGES); do \
		$(INSTALL_DATA) $(srcdir)/$$page \
			'$(DESTDIR)$(man1dir)'/ev-`basename $$page` || exit 1; \
	done

uninstall-hook: uninstall-tools
uninstall-tools:
	@for tool in $(EVR_TOOLS); do \
		rm -f '$(DESTDIR)$(bindir)'/ev-`basename $$tool`$(EXEEXT); \
	done
	@for page in $(EVR_TOOL_PAGES); do \
		rm -f '$(DESTDIR)$(man1dir)'/ev-`basename $$page`; \
	done

.PHONY: install-tools install-tool-pages uninstall-tools
