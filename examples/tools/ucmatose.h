/* What the parts of ucmatose share. */
#ifndef TOOLS_UCMATOSE_H
#define TOOLS_UCMATOSE_H

#include <stdint.h>

#include <evrdma/evrdma.h>

#include "address.h"
#include "common.h"

#define UCMATOSE "ucmatose"

struct rdma_cm_id;

struct ucmatose_options {
	const char *server; /* NULL: be the server */
	const char *bind;
	enum address_format format;
	int port_space;
	long port;
	long connections;
	long messages;
	long size_bytes;
	long tos;	  /* -1: not set */
	long ack_timeout; /* -1: not set */
	long timeout_s;
	int migrate;
};

/* What two of these tools tell each other in the private data, big-endian. */
struct ucmatose_hello {
	char magic[8];
	uint32_t connection; /* the client's number of it */
	uint32_t connections;
	uint32_t messages;
	uint32_t size_bytes;
};

/* What is waited for. */
enum ucmatose_phase { CONNECTING, SENDING, RECEIVING, LEAVING, GONE };

/* A connection. */
struct ucmatose_node {
	struct ucmatose *test;
	struct evrdma_conn *conn;
	struct evrdma_buf *next; /* the message that did not fit */
	uint32_t number;
	int connected;
	int disconnected;
	long sent;
	long acked;
	long received;
};

struct ucmatose {
	struct tool tool;
	struct ucmatose_options options;
	struct address_lookup local;
	struct address_lookup remote;
	struct evrdma_base *base;
	struct evrdma_base *spare; /* where -m moves the connections */
	struct evrdma_pool *pool;
	struct evrdma_listener *listener;
	struct ucmatose_node *nodes;
	const enum ucmatose_phase *phase;
	/* sums over the nodes */
	long requested;
	long connected;
	long acked;
	long received;
	long disconnected;
	long closed;
};

/* Begins with the options that are read. Runs until everything is closed, and returns the status.
 */
void ucmatose_start(struct ucmatose *test);
int ucmatose_finish(struct ucmatose *test);

int ucmatose_is_server(const struct ucmatose *test);
long ucmatose_messages_wanted(const struct ucmatose *test);

/* How messages on stderr call the other side. */
const char *ucmatose_peer_text(const struct ucmatose *test);

/* Returns 0, or not 0 after saying why on stderr. */
int ucmatose_read_options(struct ucmatose_options *options, int argc, char **argv);

/* tool_fail_error() and tool_fail_call() with what is known here of causes and remedies. */
void ucmatose_fail_error(struct ucmatose *test, const char *what, const struct evrdma_error *error);
void ucmatose_fail_call(struct ucmatose *test, const char *what, enum evrdma_step step, int err);

/*
 * Returns what these options need and no device here has, or the device of an id has not. NULL when
 * nothing is missing, or it cannot be told.
 */
const char *ucmatose_missing_here(const struct ucmatose *test);
const char *ucmatose_missing_at(const struct ucmatose *test, const struct rdma_cm_id *id);

void ucmatose_make_hello(
	const struct ucmatose *test, uint32_t connection, struct ucmatose_hello *hello);

/* Returns whether private data is that of one of these tools. */
int ucmatose_read_hello(const void *data, size_t len, struct ucmatose_hello *hello);

/* Returns whether the other side's options fit to ours. */
int ucmatose_same_options(const struct ucmatose *test, const struct ucmatose_hello *theirs);

/* Sets the first phase, and goes on to the next ones as far as the sums allow. */
void ucmatose_begin(struct ucmatose *test);
void ucmatose_advance(struct ucmatose *test);

/* Sends until everything is sent or the connection takes no more. */
void ucmatose_send_more(struct ucmatose_node *node);

/* Checks a message that came, and counts it. The node is the arg. */
void ucmatose_message_came(struct evrdma_conn *conn, const struct evrdma_recv *recv, void *arg);

#endif
