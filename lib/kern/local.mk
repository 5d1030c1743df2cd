if !SYSTEM_RDMACM
noinst_LTLIBRARIES += libevr_kern.la
libevr_kern_la_SOURCES = \
	lib/kern/sys.c lib/kern/sys.h
libevr_kern_la_CFLAGS = $(AM_CFLAGS) $(NL_CFLAGS)
libevr_kern_la_LIBADD = $(NL_LIBS)
endif
