if !SYSTEM_RDMACM
noinst_LTLIBRARIES += libevr_kern.la
libevr_kern_la_SOURCES = \
	lib/kern/device.c lib/kern/device.h \
	lib/kern/nldev.c lib/kern/nldev.h \
	lib/kern/sys.c lib/kern/sys.h \
	lib/kern/ucma.c lib/kern/ucma.h lib/kern/ucma_abi.h \
	lib/kern/ucma_event.c lib/kern/ucma_event.h
libevr_kern_la_CFLAGS = $(AM_CFLAGS) $(NL_CFLAGS)
libevr_kern_la_LIBADD = $(NL_LIBS)
endif
