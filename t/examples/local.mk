# The examples of the pages and of examples/, run on the fake.
check_LTLIBRARIES += libevr_other_end.la
libevr_other_end_la_SOURCES = t/examples/other_end.c
libevr_other_end_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/t
EVR_LONG_TESTS += t/examples/run.sh
EXTRA_DIST += t/examples/run.sh
