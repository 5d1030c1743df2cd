/* What the parts of mckey share. */
#ifndef TOOLS_MCKEY_H
#define TOOLS_MCKEY_H

#include <stdint.h>

#include <evrdma/evrdma.h>

#include "address.h"
#include "common.h"

#define MCKEY "mckey"

struct mckey_options {
	const char *group;
	const char *bind;
	int raw_gid; /* the group is an MGID (-M) */
	int sender;
	int send_only;
	int no_loopback;
	long port_space;
	long connections;
	long messages;
	long size_bytes;
	long timeout_s;
	long pause_s; /* before sending, for the network to learn of the new members */
};

/* A datagram that came. */
struct mckey_record {
	uint64_t sender; /* of one of these tools: a number that it chose */
	uint32_t src_qp;
	uint32_t index;
	int marked; /* its contents are those of one of these tools */
};

/* An endpoint. */
struct mckey_node {
	struct mckey *test;
	struct evrdma_dgram *dgram;
	struct evrdma_mcast *group;
	struct evrdma_buf *next; /* the message that did not fit */
	uint64_t sender;
	uint32_t number;
	long sent;
	long acked;
	long received;
	struct mckey_record *records; /* as many as were received */
};

struct mckey {
	struct tool tool;
	struct mckey_options options;
	struct address_lookup local;
	struct address_lookup remote;
	struct evrdma_base *base;
	struct evrdma_pool *pool;
	struct event *timer; /* the deadline, then the pause before sending */
	struct mckey_node *nodes;
	/* sums over the nodes */
	long joined;
	long acked;
	long received;
	long closed;
};

/* Begins with the options that are read. Runs until everything is closed, and returns the status.
 */
void mckey_start(struct mckey *test);
int mckey_finish(struct mckey *test);

/* Returns 0, or not 0 after saying why on stderr. */
int mckey_read_options(struct mckey_options *options, int argc, char **argv);

/* tool_fail_error() and tool_fail_call() with what is known here of causes and remedies. */
void mckey_fail_error(struct mckey *test, const struct evrdma_error *error);
void mckey_fail_call(struct mckey *test, enum evrdma_step step, int err);

/* Makes the next message of a sender. Returns NULL and sets errno. */
struct evrdma_buf *mckey_make_message(struct mckey_node *node);

/* Checks a datagram and keeps a record of it. Returns 0, or -EBADMSG after a tool_fail(). */
int mckey_check_message(struct mckey_node *node, const struct evrdma_recv *recv);

/* Checks what a receiver has as a whole. Returns 0, or -EBADMSG after a tool_fail(). */
int mckey_check_records(struct mckey_node *node);

#endif
