include examples/tools/local.mk

noinst_PROGRAMS += examples/01-connect examples/02-echo-server
examples_01_connect_SOURCES = examples/01-connect.c
examples_01_connect_LDFLAGS = $(AM_LDFLAGS) -no-install
examples_01_connect_LDADD = libevrdma.la $(LIBEVENT_LIBS)
examples_02_echo_server_SOURCES = examples/02-echo-server.c
examples_02_echo_server_LDFLAGS = $(AM_LDFLAGS) -no-install
examples_02_echo_server_LDADD = libevrdma.la $(LIBEVENT_LIBS)

EXTRA_DIST += examples/demo.sh
