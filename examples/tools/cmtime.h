/* What the parts of cmtime share. */
#ifndef TOOLS_CMTIME_H
#define TOOLS_CMTIME_H

#include <stdint.h>

#include <evrdma/evrdma.h>

#include "common.h"
#include "ends.h"

#define CMTIME "cmtime"

struct cmtime_options {
	const char *server; /* NULL: be the server */
	const char *bind;
	long port;
	long connections;
	long retries;
	long timeout_ms; /* of finding an address, and a route */
	long patience_s; /* of connecting and disconnecting */
};

/* What is timed, in this order. */
enum cmtime_step {
	CMTIME_CREATE_ID,
	CMTIME_BIND_ADDR,
	CMTIME_RESOLVE_ADDR,
	CMTIME_RESOLVE_ROUTE,
	CMTIME_CREATE_QP,
	CMTIME_CONNECT,
	CMTIME_DISCONNECT,
	CMTIME_DESTROY,
	CMTIME_STEPS
};

/* When a step of one connection began and was over, in microseconds. */
struct cmtime_span {
	double begin_us;
	double end_us;
};

/* One connection of the client. */
struct cmtime_node {
	struct cmtime *test;
	struct evrdma_id *id;
	long retries; /* that are left */
	int disconnected;
	struct cmtime_span spans[CMTIME_STEPS];
};

struct cmtime {
	struct tool tool;
	struct cmtime_options options;
	struct ends ends;
	struct evrdma_base *base;
	struct evrdma_listener *listener;
	struct cmtime_node *nodes;
	enum cmtime_step step;
	long done; /* nodes whose step is over */
	struct cmtime_span spans[CMTIME_STEPS];
	long served; /* a server's connections so far */
};

void cmtime_start(struct cmtime *test);
int cmtime_finish(struct cmtime *test);

/* Returns 0, or not 0 after saying why on stderr. */
int cmtime_read_options(struct cmtime_options *options, int argc, char **argv);

/* The two sides, once their addresses are known. */
void cmtime_serve(struct cmtime *test);
void cmtime_run(struct cmtime *test);

const char *cmtime_step_text(enum cmtime_step step);
double cmtime_now_us(void);

/* What the steps took. */
void cmtime_print(const struct cmtime *test);

#endif
