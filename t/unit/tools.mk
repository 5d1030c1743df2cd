# The tools on the fake. Their sources are compiled again here, for the fake's verbs.
EVR_UNIT_TESTS += t/unit/tools_ucmatose.t t/unit/tools_mckey.t t/unit/tools_cm.t
EVR_TOOLS_LIBS = libevr_test.la libevr_tools.la libevr_ev.la libevr_cm.la libevr_fake.la \
	$(LIBEVENT_LIBS) $(CHECK_LIBS)

t_unit_tools_ucmatose_t_SOURCES = t/unit/tools_ucmatose.c \
	examples/tools/ucmatose.c \
	examples/tools/ucmatose_error.c \
	examples/tools/ucmatose_message.c \
	examples/tools/ucmatose_options.c \
	examples/tools/ucmatose_phase.c
t_unit_tools_ucmatose_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS) -I$(top_srcdir)
t_unit_tools_ucmatose_t_LDADD = $(EVR_TOOLS_LIBS)

t_unit_tools_mckey_t_SOURCES = t/unit/tools_mckey.c \
	examples/tools/mckey.c \
	examples/tools/mckey_error.c \
	examples/tools/mckey_message.c \
	examples/tools/mckey_options.c
t_unit_tools_mckey_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS) -I$(top_srcdir)
t_unit_tools_mckey_t_LDADD = $(EVR_TOOLS_LIBS)

t_unit_tools_cm_t_SOURCES = t/unit/tools_cm.c \
	examples/tools/cmtime.c \
	examples/tools/cmtime_client.c \
	examples/tools/cmtime_fake.c \
	examples/tools/cmtime_interface.c \
	examples/tools/cmtime_loop.c \
	examples/tools/cmtime_node.c \
	examples/tools/cmtime_options.c \
	examples/tools/cmtime_server.c \
	examples/tools/cmtime_tcp.c \
	examples/tools/rping.c \
	examples/tools/rping_conn.c \
	examples/tools/rping_options.c \
	examples/tools/rping_own.c \
	examples/tools/rping_qp.c \
	examples/tools/simple.c \
	examples/tools/simple_options.c \
	examples/tools/udaddy.c \
	examples/tools/udaddy_message.c \
	examples/tools/udaddy_options.c
t_unit_tools_cm_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS) -I$(top_srcdir)
t_unit_tools_cm_t_LDADD = $(EVR_TOOLS_LIBS)
