include examples/tools/local.mk

EVR_EXAMPLES = \
	examples/01-connect \
	examples/02-echo-server \
	examples/03-rdma-write \
	examples/04-datagram-service \
	examples/05-datagram-client \
	examples/06-many-threads \
	examples/07-reconnect \
	examples/08-shared-memory
noinst_PROGRAMS += $(EVR_EXAMPLES)
EVR_EXAMPLES_LINK = $(AM_LDFLAGS) -no-install
EVR_EXAMPLES_LIBS = libevrdma.la $(LIBEVENT_LIBS)
examples_01_connect_SOURCES = examples/01-connect.c
examples_01_connect_LDFLAGS = $(EVR_EXAMPLES_LINK)
examples_01_connect_LDADD = $(EVR_EXAMPLES_LIBS)
examples_02_echo_server_SOURCES = examples/02-echo-server.c
examples_02_echo_server_LDFLAGS = $(EVR_EXAMPLES_LINK)
examples_02_echo_server_LDADD = $(EVR_EXAMPLES_LIBS)
examples_03_rdma_write_SOURCES = examples/03-rdma-write.c
examples_03_rdma_write_LDFLAGS = $(EVR_EXAMPLES_LINK)
examples_03_rdma_write_LDADD = $(EVR_EXAMPLES_LIBS)
examples_04_datagram_service_SOURCES = examples/04-datagram-service.c
examples_04_datagram_service_LDFLAGS = $(EVR_EXAMPLES_LINK)
examples_04_datagram_service_LDADD = $(EVR_EXAMPLES_LIBS)
examples_05_datagram_client_SOURCES = examples/05-datagram-client.c
examples_05_datagram_client_LDFLAGS = $(EVR_EXAMPLES_LINK)
examples_05_datagram_client_LDADD = $(EVR_EXAMPLES_LIBS)
examples_06_many_threads_SOURCES = examples/06-many-threads.c
examples_06_many_threads_LDFLAGS = $(EVR_EXAMPLES_LINK)
examples_06_many_threads_LDADD = $(EVR_EXAMPLES_LIBS) -lpthread
examples_07_reconnect_SOURCES = examples/07-reconnect.c
examples_07_reconnect_LDFLAGS = $(EVR_EXAMPLES_LINK)
examples_07_reconnect_LDADD = $(EVR_EXAMPLES_LIBS)
examples_08_shared_memory_SOURCES = examples/08-shared-memory.c
examples_08_shared_memory_LDFLAGS = $(EVR_EXAMPLES_LINK)
examples_08_shared_memory_LDADD = $(EVR_EXAMPLES_LIBS) -lpthread

# To read, and to begin from.
exampledir = $(docdir)/examples
dist_example_DATA = $(EVR_EXAMPLES:=.c)

EXTRA_DIST += examples/demo.sh
