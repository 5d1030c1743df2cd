noinst_LTLIBRARIES += libevr_util.la
libevr_util_la_SOURCES = \
	lib/util/list.h \
	lib/util/clock.c lib/util/clock.h \
	lib/util/fdmap.c lib/util/fdmap.h \
	lib/util/idmap.c lib/util/idmap.h \
	lib/util/number.h \
	lib/util/options.c lib/util/options.h \
	lib/util/ptrmap.c lib/util/ptrmap.h \
	lib/util/sockaddr.h \
	lib/util/thread.c lib/util/thread.h
