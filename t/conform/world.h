/*
 * What the conformance tests stand on: a loop, a base, a pool, a listener with its connections,
 * and pairs of connections to it. One world per test; everything in it is gone at its end.
 */
#ifndef EVR_CONFORM_WORLD_H
#define EVR_CONFORM_WORLD_H

#include <check.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <evrdma/evrdma.h>

enum { PLACE_COUNTS = 5 };

struct world;

/* What not all devices have. */
enum place_option {
	PLACE_DATAGRAMS = 1,
	PLACE_GROUPS = 2,
	PLACE_SRQS = 4,
	PLACE_ATOMICS = 8,
	PLACE_IMMEDIATES = 16
};

/* Where the tests run: on the fake or on a real device, chosen by the program's main file. */
struct place {
	const char *ip; /* an address of the device */
	bool is_iwarp;
	unsigned lacks; /* of these options */
	unsigned most_reads; /* of a connection at once */
	bool own_core;
	void (*start)(void);                    /* before each test; may be NULL */
	void (*stop)(void);                     /* after each test; may be NULL */
	void (*watch)(bool on);                 /* around each world; may be NULL */
	void (*remove_device)(void);            /* returns at once */
	bool (*device_is_removed)(void);        /* whether that is over */
	void (*add_device)(void);               /* waits until it is there */
	void (*count)(int counts[PLACE_COUNTS]); /* QPs, CQs, MRs, PDs, ids of this process */
	int (*lost_fds)(void); /* that went with a device; may be NULL */
	uint64_t (*now_us)(void); /* a clock that runs while the library keeps the loop */
};

extern struct place place;

static inline bool place_has(unsigned options)
{
	return !(place.lacks & options);
}

/* One side of a connection, and what happened to it. */
struct side {
	struct world *world;
	struct evrdma_conn *conn;
	bool is_client;
	bool connected, down, closed;
	int error; /* of ERROR */
	enum evrdma_step step;
	unsigned sends_taken, sends_ok, sends_cancelled, received, calls_after_closed;
	void *tag;
};

struct world {
	struct event_base *loop;
	struct evrdma_base *base;
	struct evrdma_pool *pool;
	struct evrdma_base *other; /* a second base on the same loop, with world_add_other() */
	struct evrdma_pool *other_pool;
	struct evrdma_listener *listener;
	struct evrdma_conn_options options;
	bool base_closed, other_closed;
	unsigned established, closed, live;
	char last_error[EVRDMA_ERROR_TEXT_MAX];
	struct side *client, *server; /* the last ones made; NULL once closed */
	bool in_call;                 /* no callback may run now */
	int counts_before[PLACE_COUNTS];
	int fds_before;

	/* What a test adds to the default behaviour, each may be NULL. */
	void (*on_request)(struct world *, struct evrdma_request *);
	void (*on_event)(struct side *, enum evrdma_conn_event, const struct evrdma_error *);
	void (*on_recv)(struct side *, const struct evrdma_recv *);
	void (*on_sent)(struct side *, const struct evrdma_error *);
	void *tag;
};

struct world *world_new(void);
/* Closes all, runs the loop to the end, and checks that nothing is left. */
void world_free(struct world *w);
/* Begins to close the base, before world_free(). */
void world_close_base(struct world *w);
bool world_base_is_closed(struct world *w);
/* Before anything was made in it. */
void world_replace_base(struct world *w, const struct evrdma_base_options *options);
void world_add_other(struct world *w);
/* Closes the second base and waits for it. */
void world_close_other(struct world *w);

/*
 * Runs the loop until the condition holds, which is looked at after every turn; the test fails
 * after ms milliseconds of a loop that is not held up.
 */
void world_run_until(struct world *w, bool (*condition)(struct world *), int ms);
/* So many turns of the loop, as far as there is something to do. */
void world_run_turns(struct world *w, int turns);
/* Until the loop is at rest, a few times: what needs no time is done, by a device too. */
void world_run_a_little(struct world *w);

void world_listen(struct world *w);
void world_listen_on(struct world *w, const char *ip);
struct side *world_side_new(struct world *w, bool is_client);
struct side *world_side_new_on(struct world *w, struct evrdma_base *base, bool is_client);
void side_accept(struct side *side, struct evrdma_request *request);
struct side *world_connect(struct world *w);
struct side *world_connect_to(struct world *w, const char *ip, uint16_t port);
/* To several addresses, as if they were one name's. */
struct side *world_connect_to_each(
	struct world *w, const char *const *ips, unsigned n, uint16_t port);
/* Listens if nobody does yet, connects, and waits until both sides are up. */
void world_connect_pair(struct world *w);
bool world_none_live(struct world *w);
bool world_client_is_down(struct world *w);
bool world_client_is_closed(struct world *w);

/* Sends until the queue is full or n are taken; each is of len bytes. */
void side_send(struct side *side, unsigned n, size_t len);
/* Gives what evrdma_conn_send() gave. */
int side_send_buf(struct side *side, struct evrdma_buf *buf, size_t len);
/* What a world without on_event does with its sides. */
void side_close_if_down(struct side *side, enum evrdma_conn_event event);

void world_address(struct sockaddr_in *sin, const char *ip, uint16_t port);
int count_fds(void);

#endif
