/* What the parts of evrdma-perf share. */
#ifndef TOOLS_PERF_H
#define TOOLS_PERF_H

#include <stddef.h>
#include <stdint.h>

#include <evrdma/evrdma.h>

#include "common.h"
#include "ends.h"
#include "perf_hist.h"
#include "perf_watch.h"
#include "perf_wire.h"

#define PERF "evrdma-perf"
#define PERF_ALL_SIZES_MAX 1048576 /* of -S all */

enum {
	PERF_SIZE_MAX = 1 << 26, /* bytes of a message */
	PERF_GROUP_SIZE_MIN = 16,
	PERF_WINDOW_MAX = 4096,	   /* messages under way */
	PERF_MEMORY_MAX = 1 << 26, /* bytes of messages under way; see perf_window() */
	PERF_SERVER_MEMORY_MAX = 1 << 30, /* bytes that clients may fill, all together */
	PERF_READS = 16,	   /* RDMA reads under way, as far as the device has that many */
};

struct perf_options {
	const char *server; /* NULL: be the server */
	const char *bind;
	const char *group; /* be a receiver of it */
	int test;	   /* enum perf_test */
	int all_sizes;	   /* one after the other, up to size */
	int describes_run; /* an option was given that only who begins a run has */
	int json;
	long size;
	long count; /* messages of each connection */
	long window;
	long connections; /* at once */
	long idle;	  /* more of them, on which nothing is sent */
	long port;
	long spin_us;
	long patience_s;
};

/* What one run brought. Times are in nanoseconds of a clock that never goes back. */
struct perf_result {
	enum perf_test test;
	size_t size;
	long connections;
	long window;
	uint64_t messages;
	uint64_t lost; /* of a group */
	uint64_t begin_ns;
	uint64_t connected_ns; /* PERF_CONNECT: all are there */
	uint64_t end_ns;
	struct perf_hist hist; /* of what was timed one by one */
};

struct perf_client;
struct perf_server;
struct perf_group;

struct perf {
	struct tool tool;
	struct perf_options options;
	struct ends ends;
	struct evrdma_base *base;
	struct perf_watch watch; /* of the other side */
	struct perf_client *client;
	struct perf_server *server;
	struct perf_group *group;
};

/* Returns 0, or not 0 after saying why on stderr. */
int perf_read_options(struct perf_options *options, int argc, char **argv);

void perf_start(struct perf *perf);
int perf_finish(struct perf *perf);

/* From now on the run fails when nothing comes for -T seconds. */
void perf_begin_watch(struct perf *perf, uint64_t goal);

/* The parts, once the addresses are known; each is freed by its own end. */
void perf_client_start(struct perf *perf);
void perf_client_free(struct perf_client *client);
void perf_server_start(struct perf *perf);
void perf_server_free(struct perf_server *server);
void perf_group_send(struct perf *perf);
void perf_group_receive(struct perf *perf);
void perf_group_free(struct perf_group *group);

/* How many messages of the size may be under way when window are asked for. */
uint32_t perf_window(long window, size_t size);

/* What of a call of the library's that returned ret is an error ends the tool. Returns ret. */
int perf_check(struct perf *perf, enum evrdma_step step, int ret);

/* The results on stdout: for people the heading comes before the first. */
void perf_print(const struct perf_options *options, const struct perf_result *result, int first);
const char *perf_test_text(enum perf_test test);

#endif
