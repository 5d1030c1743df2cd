/* What the parts of rping share. */
#ifndef TOOLS_RPING_H
#define TOOLS_RPING_H

#include <stddef.h>
#include <stdint.h>

#include <evrdma/evrdma.h>

#include "common.h"
#include "ends.h"

#define RPING "rping"

/* A message between the two sides says where one of the client's buffers is. Big-endian there. */
#define RPING_MESSAGE_BYTES 16

struct rping_options {
	int server;
	int client;
	const char *addr; /* to listen on, or to connect to */
	const char *src;  /* a client connects from there */
	long port;
	long count; /* 0: for ever */
	long size_bytes;
	long timeout_s;
	int print;
	int verify;
	int debug;
	int persistent;
	int own_qp;
};

/* What is waited for. The client has one of the first two, the server one of the others. */
enum rping_state {
	RPING_SOURCE_TAKEN, /* that the server has read our source */
	RPING_SINK_FILLED,  /* that the server has written to our sink */
	RPING_SOURCE_TOLD,  /* where the client's source is */
	RPING_READ_DONE,
	RPING_SINK_TOLD, /* where the client's sink is */
	RPING_WRITE_DONE,
	RPING_OVER
};

struct rping_peer;

/*
 * What carries the pings: an evrdma_conn, or with -q a queue pair of our own. They return 0 or
 * -errno, and answer from the loop with the rping_*() calls below.
 */
struct rping_link {
	int (*send)(struct rping_peer *peer, const void *message); /* RPING_MESSAGE_BYTES */
	int (*expose)(struct rping_peer *peer, int sink, struct evrdma_remote *remote);
	int (*read)(struct rping_peer *peer, const struct evrdma_remote *from, size_t len);
	int (*write)(struct rping_peer *peer, const struct evrdma_remote *to, size_t len);
	void (*disconnect)(struct rping_peer *peer);
	void (*close)(struct rping_peer *peer); /* ends in rping_closed() */
};

/* One connection. */
struct rping_peer {
	struct rping *test;
	const struct rping_link *link;
	void *carrier; /* the link's */
	char *source;  /* the client's text */
	char *sink;    /* what comes back; for a server what it has read */
	enum rping_state state;
	long ping; /* the number of the one under way */
	size_t len;
	int disconnecting;
	int failed;
};

struct rping {
	struct tool tool;
	struct rping_options options;
	struct ends ends;
	struct evrdma_base *base;
	struct evrdma_pool *pool; /* of messages */
	struct evrdma_listener *listener;
	struct evrdma_id *listening; /* in its place with -q */
	long peers;		     /* that there are now */
	long served;		     /* that there ever were */
	int finishing;		     /* after this ping the client stops */
};

void rping_start(struct rping *test);
int rping_finish(struct rping *test);

/* Returns 0, or not 0 after saying why on stderr. */
int rping_read_options(struct rping_options *options, int argc, char **argv);

/* Prints a line of -d. */
void rping_debug(const struct rping *test, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Makes a peer with its memory; NULL after a tool_fail(). rping_closed() frees it. */
struct rping_peer *rping_new_peer(struct rping *test, const struct rping_link *link);
void rping_free_peer(struct rping_peer *peer);

/* Whether one more client is to be served. */
int rping_has_room(const struct rping *test);

/* What the link reports. */
void rping_connected(struct rping_peer *peer);
void rping_message_came(struct rping_peer *peer, const void *data, size_t len);
void rping_work_done(struct rping_peer *peer); /* the read or the write */
void rping_disconnected(struct rping_peer *peer);
void rping_failed(struct rping_peer *peer, const struct evrdma_error *error);
void rping_closed(struct rping_peer *peer);

/* The same about a call that failed on the way; err is a positive errno. */
void rping_call_failed(struct rping_peer *peer, enum evrdma_step step, int err);

/* The two links: connect to the found address, or listen on it. Failures are told. */
void rping_conn_start(struct rping *test);
void rping_own_start(struct rping *test);

/* The text of a ping, of size bytes with its end; and whether data is that. */
void rping_fill_text(char *text, size_t size, long ping);
int rping_is_text(const char *data, size_t size, long ping);

#endif
