/*
 * The fault sweep of the event layer: what a scenario is made of. One run of it is with a fault,
 * the next without; whatever comes of it, the engine in sweep.c checks the end.
 */
#ifndef EVR_CONFORM_SWEEP_H
#define EVR_CONFORM_SWEEP_H

#include "fake/fake.h"

#include <event2/event.h>
#include <evrdma/evrdma.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

enum { SWEEP_LEN = 64, SWEEP_PORT = 7471 };

struct run {
	struct event_base *loop;
	struct evrdma_base *base; /* there when a scenario starts */
	unsigned bases;		  /* that are not closed yet */
	unsigned turns;		  /* of the loop */
	bool finished;		  /* all bases are being closed */

	/* What came of it. */
	bool through;  /* all of it went well */
	bool told;     /* some call or callback gave the reason */
	bool reads_names; /* from a file, of which the last is the right one */
	int awaited;   /* the error that the scenario is about, or 0 */
	int last;      /* the last error told before the end */
	int odd;       /* the first error that is neither the reason nor comes of it */
	unsigned made; /* objects */
	unsigned closed;
	unsigned connects_begun;
	unsigned requests; /* that came of them */
	unsigned asked;	   /* work that was taken */
	unsigned over;

	struct evrdma_buf *held[4]; /* released when all is over */
	unsigned held_count;
	void (*after)(struct run *r); /* the same; NULL: nothing is left to do */

	/* A listener and a connection to it: sweep_pair.c. */
	const char *ip;					 /* sweep_ip() */
	struct evrdma_base *listens, *serves, *connects; /* base */
	struct evrdma_pool *pool;
	struct evrdma_listener *listener;
	struct evrdma_conn *client, *server;
	struct evrdma_conn_options options;
	struct evrdma_listener_options listening;
	unsigned up; /* how many of the two are connected */
	/* What a scenario does differently; each may be NULL. */
	int (*connect)(struct run *r, struct evrdma_conn *conn);
	void (*on_request)(struct run *r, struct evrdma_request *request);
	void (*on_limited)(struct run *r);
	bool (*on_listener)(struct run *r, enum evrdma_listener_event event); /* true: seen to */
	void (*on_up)(struct run *r);					      /* both are */
	void (*on_recv)(struct run *r, struct evrdma_conn *conn, const struct evrdma_recv *recv);
	void (*on_answer)(struct run *r); /* in place of closing the client */
	void (*on_writable)(struct run *r);
	void (*on_error)(struct run *r, struct evrdma_conn *conn, const struct evrdma_error *error);
	void (*on_down)(struct run *r, struct evrdma_conn *conn);
	void (*on_closed)(struct run *r, struct evrdma_conn *conn);
};

struct scenario {
	const char *name;
	void (*start)(struct run *r);
	unsigned needs; /* enum fake_option, of the device */
};

/* What is tested, and where it is. */
extern enum fake_kind sweep_kind;
const char *sweep_ip(void);

/* Each ends in one without a name. */
extern const struct scenario sweep_alive[], sweep_base[], sweep_bufferevent[], sweep_conn[],
	sweep_connect[], sweep_device[], sweep_dgram[], sweep_id[], sweep_work[];

/* --- the engine ------------------------------------------------------------------------------ */

/* One more base on the loop, which is closed with the others. NULL: it has been told. */
struct evrdma_base *run_add_base(struct run *r, const struct evrdma_base_options *options);
/* Takes one made elsewhere; closed is called instead of run_on_base_closed(), and calls it. */
void run_take_base(struct run *r, struct evrdma_base *base, evrdma_base_cb closed);
/* Closes all bases, which is how each run ends. */
void run_finish(struct run *r);
/* Somebody was told of this error. */
void run_note(struct run *r, int err);
/* The same, and no more comes of it. */
void run_fail(struct run *r, int err);
/* What a call returned: false, when it is an error, after run_fail(). */
bool run_ok(struct run *r, int ret);
/* What a call made; NULL after run_fail() with errno. */
void *run_have(struct run *r, void *made);
/* The same for an object that will be told of its end. */
void *run_made(struct run *r, void *object);
/* Keeps the caller's reference until the end of the run. */
struct evrdma_buf *run_hold(struct run *r, struct evrdma_buf *buf);
/* For evrdma_base_close() and evrdma_base_shutdown(). */
void run_on_base_closed(struct evrdma_base *base, void *arg);
/* The time that the scenario takes, with nobody waiting. */
void run_after_ms(struct run *r, int ms, event_callback_fn cb);

struct sockaddr *run_address(const char *ip, uint16_t port);

/* --- a pair: sweep_pair.c -------------------------------------------------------------------- */

/* What a scenario may change before it starts. */
void pair_init(struct run *r);
/* Listens, and connects. */
void pair_start(struct run *r);
void pair_listen(struct run *r);
void pair_connect(struct run *r);
struct evrdma_conn *pair_new_conn(struct run *r, struct evrdma_base *base);
/* Accepts with a new connection, on the base that serves. */
void pair_accept(struct run *r, struct evrdma_request *request);
/* One message; it is asked for, and over. */
void pair_send(struct run *r, struct evrdma_conn *conn);
/* The callback of work that r is the argument of. */
void pair_on_work(struct evrdma_conn *conn, const struct evrdma_error *error, void *arg);

#endif
