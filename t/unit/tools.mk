# The tools on the fake. Their sources are compiled again here, for the fake's verbs.
EVR_UNIT_TESTS += t/unit/tools_ucmatose.t t/unit/tools_mckey.t
EVR_TOOLS_UNIT = t/unit/tools_unit.h t/unit/tools_unit.c $(EVR_FAKE_MAIN)
EVR_TOOLS_LIBS = libevr_tools.la libevr_ev.la libevr_cm.la libevr_fake.la \
	$(LIBEVENT_LIBS) $(CHECK_LIBS)

t_unit_tools_ucmatose_t_SOURCES = t/unit/tools_ucmatose.c $(EVR_TOOLS_UNIT) \
	examples/tools/ucmatose.c \
	examples/tools/ucmatose_error.c \
	examples/tools/ucmatose_message.c \
	examples/tools/ucmatose_options.c \
	examples/tools/ucmatose_phase.c
t_unit_tools_ucmatose_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS) -I$(top_srcdir)
t_unit_tools_ucmatose_t_LDADD = $(EVR_TOOLS_LIBS)

t_unit_tools_mckey_t_SOURCES = t/unit/tools_mckey.c $(EVR_TOOLS_UNIT) \
	examples/tools/mckey.c \
	examples/tools/mckey_error.c \
	examples/tools/mckey_message.c \
	examples/tools/mckey_options.c
t_unit_tools_mckey_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS) -I$(top_srcdir)
t_unit_tools_mckey_t_LDADD = $(EVR_TOOLS_LIBS)
