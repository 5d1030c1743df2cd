/*
 * What rdma_client, rdma_server, rdma_xclient and rdma_xserver share: a client connects and sends
 * one message, and that is nearly all.
 */
#ifndef TOOLS_SIMPLE_H
#define TOOLS_SIMPLE_H

#include <evrdma/evrdma.h>

#include "common.h"
#include "ends.h"

#define SIMPLE_MESSAGE_BYTES 16

/* What one of them is. */
struct simple_kind {
	const char *name;
	int is_client;
	int has_reply; /* the server sends a message back */
	int has_xrc;   /* there is -c */
};

struct simple_options {
	const char *server;
	long port;
	long timeout_s;
	int xrc;
};

struct simple {
	struct tool tool;
	const struct simple_kind *kind;
	struct simple_options options;
	struct ends ends;
	struct evrdma_base *base;
	struct evrdma_pool *pool;
	struct evrdma_listener *listener;
	struct evrdma_conn *conn;
	int sent;
	int received;
};

/* The whole program. Returns what main() returns. */
int simple_main(const struct simple_kind *kind, int argc, char **argv);

/* Its parts: begins with the kind and the options; runs until everything is closed. */
void simple_start(struct simple *test);
int simple_finish(struct simple *test);

/* Begins with the kind. Returns 0, or not 0 after saying why on stderr. */
int simple_read_options(struct simple *test, int argc, char **argv);

#endif
