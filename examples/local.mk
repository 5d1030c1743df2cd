include examples/tools/local.mk

EVR_EXAMPLES = \
	examples/01-connect \
	examples/02-echo-server \
	examples/03-rdma-write \
	examples/04-datagram-service \
	examples/05-datagram-client \
	examples/06-many-threads \
	examples/07-reconnect \
	examples/08-shared-memory \
	examples/09-http-server \
	examples/10-http-client \
	examples/11-kv-server \
	examples/12-kv-client \
	examples/13-multicast
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
examples_09_http_server_SOURCES = examples/09-http-server.c
examples_09_http_server_LDFLAGS = $(EVR_EXAMPLES_LINK)
examples_09_http_server_LDADD = $(EVR_EXAMPLES_LIBS)
examples_10_http_client_SOURCES = examples/10-http-client.c
examples_10_http_client_LDFLAGS = $(EVR_EXAMPLES_LINK)
examples_10_http_client_LDADD = $(EVR_EXAMPLES_LIBS)
examples_11_kv_server_SOURCES = examples/11-kv-server.c examples/11-key-value.h
examples_11_kv_server_LDFLAGS = $(EVR_EXAMPLES_LINK)
examples_11_kv_server_LDADD = $(EVR_EXAMPLES_LIBS)
examples_12_kv_client_SOURCES = examples/12-kv-client.c examples/11-key-value.h
examples_12_kv_client_LDFLAGS = $(EVR_EXAMPLES_LINK)
examples_12_kv_client_LDADD = $(EVR_EXAMPLES_LIBS)
examples_13_multicast_SOURCES = examples/13-multicast.c
examples_13_multicast_LDFLAGS = $(EVR_EXAMPLES_LINK)
examples_13_multicast_LDADD = $(EVR_EXAMPLES_LIBS)

# To read, and to begin from.
exampledir = $(docdir)/examples
dist_example_DATA = $(EVR_EXAMPLES:=.c) examples/11-key-value.h

EXTRA_DIST += examples/demo.sh
