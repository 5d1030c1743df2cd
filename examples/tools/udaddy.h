/* What the parts of udaddy share. */
#ifndef TOOLS_UDADDY_H
#define TOOLS_UDADDY_H

#include <stdint.h>

#include <evrdma/evrdma.h>

#include "common.h"
#include "ends.h"

#define UDADDY "udaddy"

/* As ever, and there is no option for another. */
#define UDADDY_PORT 7174

struct event;

struct udaddy_options {
	const char *server; /* NULL: be the server */
	const char *bind;
	enum address_format format;
	long port_space;
	long connections;
	long messages;
	long size_bytes;
	long timeout_s;
};

/* What two of these tools tell each other in the private data, big-endian. */
struct udaddy_hello {
	char magic[8];
	uint32_t connection; /* the client's number of it */
	uint32_t connections;
	uint32_t messages;
	uint32_t size_bytes;
};

enum udaddy_phase { CONNECTING, RECEIVING, REPLYING, LEAVING };

/* An endpoint, and whom it talks to. */
struct udaddy_node {
	struct udaddy *test;
	struct evrdma_dgram *dgram;
	struct evrdma_peer *peer;
	struct evrdma_request *request; /* that a server has not answered yet */
	struct evrdma_buf *next;	/* the message that did not fit */
	char *seen;			/* for each message whether it came */
	uint32_t number;
	int peer_ready;
	int peer_is_ours;
	long sent;
	long acked;
	long received;
};

struct udaddy {
	struct tool tool;
	struct udaddy_options options;
	struct ends ends;
	struct evrdma_base *base;
	struct evrdma_pool *pool;
	struct evrdma_listener *listener;
	struct event *timer; /* since something came, or left */
	struct udaddy_node *nodes;
	enum udaddy_phase phase;
	/* sums over the nodes */
	long requested;
	long connected;
	long acked;
	long received;
	long closed;
};

void udaddy_start(struct udaddy *test);
int udaddy_finish(struct udaddy *test);

int udaddy_is_server(const struct udaddy *test);

/* Returns 0, or not 0 after saying why on stderr. */
int udaddy_read_options(struct udaddy_options *options, int argc, char **argv);

/* tool_fail_error() with what is known here of causes and remedies; node may be NULL. */
void udaddy_fail_error(
	struct udaddy *test, const struct udaddy_node *node, const struct evrdma_error *error);
void udaddy_fail_call(
	struct udaddy *test, const struct udaddy_node *node, enum evrdma_step step, int err);

/* Returns what these options need and no device here has, or NULL. */
const char *udaddy_missing_here(const struct udaddy *test);

void udaddy_make_hello(const struct udaddy *test, uint32_t connection, struct udaddy_hello *hello);

/* Returns whether private data is that of one of these tools. */
int udaddy_read_hello(const void *data, size_t len, struct udaddy_hello *hello);

/* Returns whether the other side's options fit to ours. */
int udaddy_same_options(const struct udaddy *test, const struct udaddy_hello *theirs);

/* Makes the next message of a node. Returns NULL and sets errno. */
struct evrdma_buf *udaddy_make_message(struct udaddy_node *node);

/* Checks a datagram. Returns 0, or -EBADMSG after a tool_fail(). */
int udaddy_check_message(struct udaddy_node *node, const struct evrdma_recv *recv);

#endif
