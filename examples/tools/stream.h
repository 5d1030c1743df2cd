/* What rstream and riostream have in common: connections, one run after the other on each, timed.
 */
#ifndef TOOLS_STREAM_H
#define TOOLS_STREAM_H

#include <stdint.h>

#include "counting.h"
#include "hello.h"
#include "lookup.h"
#include "series.h"
#include "sock.h"
#include "stream_options.h"

/*
 * One run: a greeting each way, then so many turns of messages. Turns alternate, and the first one
 * is the client's.
 */
struct run {
	struct series_run what;
	long turn;    /* 0 and 1 are the greetings */
	long message; /* of this turn */
	long offset;  /* in this message */
	int tried;    /* to move this message, though nothing of it may have gone */
	int waited;   /* with -T a, for what comes next */
	double since;
	int differs; /* the client's options, which it is told before the end */
	uint8_t hello[HELLO_BYTES];
};

enum stream_phase {
	STREAM_OPEN,
	STREAM_ACCEPT,
	STREAM_CHILD, /* with -T f, another process runs it */
	STREAM_CONNECT,
	STREAM_CONNECTED,
	STREAM_NEXT,
	STREAM_RUN,
	STREAM_LINGER, /* a server waits for its client to end first */
	STREAM_CLOSE,
	STREAM_OVER,
};

struct stream;

/* How a tool moves its data; what is NULL is as in a plain stream. */
struct stream_ops {
	int (*prepare)(struct stream *test, struct sock *sock); /* before it listens or connects */
	int (*begin)(struct stream *test);			/* a run */
	int (*move)(struct stream *test); /* as a step does, by a call or so */
	int (*end)(struct stream *test);  /* a run that came to its end */
};

struct stream {
	const struct stream_ops *ops;
	struct stream_options options;
	struct lookup lookup;
	struct sock listener;
	struct sock sock;
	enum stream_phase phase;
	enum series_kind kind;
	int n; /* of the run in the series */
	struct run run;
	struct counting sent;
	struct counting received;
	uint8_t *data;
	uint8_t marker; /* of riostream: what the last byte of the next turn is */
	pid_t child;	/* 0 in the child */
	int forked;	/* this is the child */
};

/* Runs it all. Returns the status of the program. */
int stream_main(struct stream *test);

/* Says what failed, and returns DRIVE_FAILED. */
int stream_fail(const struct stream *test, const char *what, int err);

/* Goes as far as it can, and returns as a step does. */
int run_step(struct stream *test);
void run_start(struct stream *test);

int run_is_client(const struct stream *test);
int run_is_sending(const struct stream *test);
/* Whether it is the first time for this message. */
int run_is_first_try(struct run *run);
/* After a message: the next one, or the other's turn. */
int run_next(struct stream *test);
/* Says that data is wrong behind so many right bytes, and returns DRIVE_FAILED. */
int run_fail_data(const struct stream *test);

#endif
