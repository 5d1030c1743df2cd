# What can be told about the tree by reading it. Each is a TAP script; see lint.sh.
EVR_LINTS_TEXT = \
	t/lint/cm_abi.sh \
	t/lint/destroy.sh \
	t/lint/errors.sh \
	t/lint/examples.sh \
	t/lint/include.sh \
	t/lint/man.sh \
	t/lint/schedule.sh \
	t/lint/sweep.sh \
	t/lint/tree.sh
EVR_LINTS_BUILT = t/lint/headers.sh t/lint/needs.sh t/lint/symbols.sh
# The text is the same however it is built.
TESTS += t/lint/tools_cli.sh
if !SANITIZERS
TESTS += $(EVR_LINTS_BUILT)
if !SYSTEM_RDMACM
TESTS += $(EVR_LINTS_TEXT)
endif
endif
EXTRA_DIST += $(EVR_LINTS_TEXT) $(EVR_LINTS_BUILT) t/lint/tools_cli.sh \
	t/lint/cm_abi.beyond t/lint/cm_abi.open \
	t/lint/errnos.awk \
	t/lint/examples.awk \
	t/lint/include.awk \
	t/lint/installed.sh \
	t/lint/layout.awk \
	t/lint/length.awk \
	t/lint/lint.sh \
	t/lint/prototypes.awk \
	t/lint/synopsis.awk

# Another project's way to us: the installed headers and libraries, found with pkg-config alone.
installcheck-local:
	CC='$(CC) $(EVR_SAN_FLAGS)' $(SHELL) $(top_srcdir)/t/lint/installed.sh \
		'$(libdir)' '$(cmlibdir)' $(top_srcdir)/examples/01-connect.c
