/* What the parts of cmtime share. */
#ifndef TOOLS_CMTIME_H
#define TOOLS_CMTIME_H

#include <pthread.h>
#include <stdint.h>
#include <sys/queue.h>

#include <evrdma/evrdma.h>

#include "common.h"
#include "ends.h"

#define CMTIME "cmtime"

struct event;
struct evconnlistener;

struct cmtime_options {
	const char *server; /* NULL: be the server */
	const char *bind;
	const char *interface; /* NULL: none; its address is used */
	long port;
	long connections;
	long retries;
	long timeout_ms; /* of finding an address, and a route */
	long patience_s; /* of connecting and disconnecting */
	long fake_us;	 /* -1: they are made; otherwise what making one takes */
	long first_qpn;	 /* of those that are not made; -1: not given */
	long threads;
	int tcp; /* the same over TCP */
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

struct cmtime_loop;

/* One connection of the client. */
struct cmtime_node {
	struct cmtime_loop *loop;
	struct evrdma_id *id;
	int fd;		     /* over TCP */
	struct event *event; /* that ends a wait for a time, or for the socket */
	uint32_t qpn;	     /* of a queue pair that is not made */
	long retries;	     /* that are left */
	int disconnected;
	struct cmtime_span spans[CMTIME_STEPS];
};

/* Rung on one thread, it is heard on the loop of another. */
struct cmtime_bell {
	int fd; /* an eventfd */
	struct event *event;
};

/* A loop, on a thread of its own but for the first one, and what is its share. */
struct cmtime_loop {
	struct cmtime *test;
	struct event_base *event_base;
	struct evrdma_base *base; /* NULL over TCP */
	pthread_t thread;
	int started;
	int stopping;
	struct cmtime_node *nodes;
	long n;
	long done; /* nodes whose step is over */
	int through;
	enum cmtime_step step;
	long served; /* a server's connections so far */
	LIST_HEAD(, cmtime_socket) sockets;
	/* What is told from the first thread to the loop's, and the other way round. */
	struct cmtime_bell begin;
	struct cmtime_bell end;
	struct cmtime_bell socket;
	struct cmtime_bell over;
	struct cmtime_bell failed;
	int has_failed;
	struct evrdma_error error;
	const char *text; /* NULL: error has it */
};

/* A connection that a server over TCP has. */
struct cmtime_socket {
	struct cmtime_loop *loop;
	struct event *event; /* NULL: handed over, and not seen by the loop yet */
	int fd;
	LIST_ENTRY(cmtime_socket) link;
};

typedef void (*cmtime_step_cb)(struct cmtime_node *node);

struct cmtime {
	struct tool tool;
	struct cmtime_options options;
	struct ends ends;
	struct evrdma_base *base; /* of the first loop */
	struct evrdma_listener *listener;
	struct evrdma_id *listening;
	struct evconnlistener *tcp_listener;
	pthread_mutex_t lock; /* of what servers on several threads share: sockets, and stderr */
	struct cmtime_loop *loops;
	long next_loop; /* whose turn it is to serve */
	uint32_t next_qpn;
	struct cmtime_node *nodes;
	const cmtime_step_cb *steps;
	enum cmtime_step step;
	long loops_done;
	struct cmtime_span spans[CMTIME_STEPS];
	long served; /* on all loops, at the end */
};

void cmtime_start(struct cmtime *test);
int cmtime_finish(struct cmtime *test);

/* Returns 0, or not 0 after saying why on stderr. */
int cmtime_read_options(struct cmtime_options *options, int argc, char **argv);

/* The address of -B, once the family is known. Returns 0, or -1 after a tool_fail(). */
int cmtime_use_interface(struct cmtime *test);

/* The two sides, once their addresses are known. */
void cmtime_serve(struct cmtime *test);
void cmtime_serve_fake(struct cmtime *test);
void cmtime_serve_tcp(struct cmtime *test);
void cmtime_run(struct cmtime *test);

/* The steps of a connection; those that are NULL are none. Each ends in cmtime_step_done(). */
extern const cmtime_step_cb cmtime_cm_steps[CMTIME_STEPS];
extern const cmtime_step_cb cmtime_tcp_steps[CMTIME_STEPS];
int cmtime_has_step(const struct cmtime *test, enum cmtime_step step);
void cmtime_step_done(struct cmtime_node *node);
void cmtime_tcp_fini(struct cmtime *test);
void cmtime_tcp_take(struct cmtime_loop *loop);

/* Loops. Making and starting them returns 0, or -1 after a tool_fail(). */
int cmtime_loops_make(struct cmtime *test);
int cmtime_loops_start(struct cmtime *test);
void cmtime_loops_finish(struct cmtime *test);

void cmtime_ring(const struct cmtime_bell *bell);

/* The loop has nothing left to do in this step, and begins one. */
void cmtime_loop_over(struct cmtime_loop *loop);
void cmtime_loop_begin(struct cmtime_loop *loop);
void cmtime_loop_came(struct cmtime_loop *loop);

int cmtime_loop_is_stopping(const struct cmtime_loop *loop);

/* Whose turn it is. */
struct cmtime_loop *cmtime_next_loop(struct cmtime *test);

/* A failure on any loop, that ends the program; or is told only. */
void cmtime_fail_error(struct cmtime_loop *loop, const struct evrdma_error *error);
void cmtime_fail_call(struct cmtime_loop *loop, enum evrdma_step step, int err);
void cmtime_fail_text(struct cmtime_loop *loop, const char *text);
void cmtime_tell_error(struct cmtime_loop *loop, const struct evrdma_error *error);
void cmtime_tell_call(struct cmtime_loop *loop, enum evrdma_step step, int err);

/* What the queue pairs of -m take, from now on; and what is said of them on iWARP. */
void cmtime_fake_time(const struct cmtime_loop *loop, struct timeval *wait);
extern const char cmtime_no_fake[];

const char *cmtime_step_text(enum cmtime_step step);
double cmtime_now_us(void);

/* What the steps took. */
void cmtime_print(const struct cmtime *test);

#endif
