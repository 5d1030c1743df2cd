/*
 * What the conformance tests stand on: a loop, a base, a pool, a listener with its connections,
 * and pairs of connections to it. One fixture per test; everything in it is gone at its end.
 */
#ifndef EVR_CONFORM_FIXTURE_H
#define EVR_CONFORM_FIXTURE_H

#include <check.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <evrdma/evrdma.h>

enum { TESTBED_COUNTS = 5 };

struct fixture;

/* What not all devices have. */
enum testbed_option {
	TESTBED_DATAGRAMS = 1,
	TESTBED_GROUPS = 2,
	TESTBED_SRQS = 4,
	TESTBED_ATOMICS = 8,
	TESTBED_IMMEDIATES = 16,
	TESTBED_DEEP_QUEUES = 32 /* of 256 and more */
};

/* Where the tests run: on the fake or on a real device, chosen by the program's main file. */
struct testbed {
	const char *ip; /* an address of the device */
	const char *ip6; /* and another */
	bool is_iwarp;
	bool is_infiniband;
	unsigned lacks;	     /* of these options */
	unsigned most_reads; /* of a connection at once */
	bool own_core;
	void (*start)(void);			   /* before each test; may be NULL */
	void (*stop)(void);			   /* after each test; may be NULL */
	void (*watch)(bool on);			   /* around each fixture; may be NULL */
	void (*remove_device)(void);		   /* returns at once */
	bool (*device_is_removed)(void);	   /* whether that is over */
	void (*add_device)(void);		   /* waits until it is there */
	void (*count)(int counts[TESTBED_COUNTS]); /* QPs, CQs, MRs, PDs, ids of this process */
	int (*lost_fds)(void);			   /* that went with a device; may be NULL */
	uint64_t (*now_us)(void); /* a clock that runs while the library keeps the loop */
	void (*own_time)(bool on); /* around each fixture not on the machine's; may be NULL */
};

extern struct testbed testbed;

static inline bool testbed_has(unsigned options)
{
	return !(testbed.lacks & options);
}

/* One end of a connection, and what happened to it. */
struct endpoint {
	struct fixture *fixture;
	struct evrdma_conn *conn;
	bool is_client;
	bool connected, down, closed;
	int error; /* of ERROR */
	enum evrdma_step step;
	unsigned sends_taken, sends_ok, sends_cancelled, received, calls_after_closed;
	void *tag;
};

struct fixture {
	struct event_base *loop;
	struct evrdma_base *base;
	struct evrdma_pool *pool;
	struct evrdma_base *other; /* a second base on the same loop, with fixture_add_other() */
	struct evrdma_pool *other_pool;
	struct evrdma_listener *listener;
	struct evrdma_conn_options options;
	bool base_closed, other_closed;
	unsigned established, closed, live;
	char last_error[EVRDMA_ERROR_TEXT_MAX];
	struct endpoint *client, *server; /* the last ones made; NULL once closed */
	bool in_call;			  /* no callback may run now */
	int counts_before[TESTBED_COUNTS];
	int fds_before;

	/* What a test adds to the default behaviour, each may be NULL. */
	void (*on_request)(struct fixture *, struct evrdma_request *);
	void (*on_event)(struct endpoint *, enum evrdma_conn_event, const struct evrdma_error *);
	void (*on_recv)(struct endpoint *, const struct evrdma_recv *);
	void (*on_sent)(struct endpoint *, const struct evrdma_error *);
	void *tag;
};

struct fixture *fixture_new(void);
/* The same, of a loop that waits for more than the device: other threads, sockets. */
struct fixture *fixture_new_on_machine_time(void);
/* Closes all, runs the loop to the end, and checks that nothing is left. */
void fixture_free(struct fixture *f);
/* Begins to close the base, before fixture_free(). */
void fixture_close_base(struct fixture *f);
bool fixture_base_is_closed(struct fixture *f);
/* What is closing, or being shut down, makes nothing that talks; memory goes with it. */
void fixture_expect_closing(struct evrdma_base *base);
/* Before anything was made in it. */
void fixture_replace_base(struct fixture *f, const struct evrdma_base_options *options);
void fixture_add_other(struct fixture *f);
/* Closes the second base and waits for it. */
void fixture_close_other(struct fixture *f);

/*
 * Runs the loop until the condition holds, which is looked at after every turn; the test fails
 * after ms milliseconds of a loop that is not held up.
 */
void fixture_run_until(struct fixture *f, bool (*condition)(struct fixture *), int ms);
/* So many turns of the loop, as far as there is something to do. */
void fixture_run_turns(struct fixture *f, int turns);
/* Until the loop is at rest, a few times: what needs no time is done, by a device too. */
void fixture_run_a_little(struct fixture *f);

void fixture_listen(struct fixture *f);
void fixture_listen_on(struct fixture *f, const char *ip);
struct endpoint *fixture_endpoint_new(struct fixture *f, bool is_client);
struct endpoint *fixture_endpoint_new_on(
	struct fixture *f, struct evrdma_base *base, bool is_client);
void endpoint_accept(struct endpoint *endpoint, struct evrdma_request *request);
struct endpoint *fixture_connect(struct fixture *f);
struct endpoint *fixture_connect_to(struct fixture *f, const char *ip, uint16_t port);
/* To several addresses, as if they were one name's. */
struct endpoint *fixture_connect_to_each(
	struct fixture *f, const char *const *ips, unsigned n, uint16_t port);
/* Listens if nobody does yet, connects, and waits until both ends are up. */
void fixture_connect_pair(struct fixture *f);
struct evrdma_base_stats fixture_stats(const struct fixture *f); /* of its base */
bool fixture_pair_is_up(struct fixture *f);
bool fixture_none_live(struct fixture *f);
/* No id of the base waits for its peer's last answer. */
bool fixture_none_lingers(struct fixture *f);
bool fixture_client_is_down(struct fixture *f);
bool fixture_client_is_closed(struct fixture *f);

/* Sends until the queue is full or n are taken; each is of len bytes. */
void endpoint_send(struct endpoint *endpoint, unsigned n, size_t len);
/* Gives what evrdma_conn_send() gave. */
int endpoint_send_buf(struct endpoint *endpoint, struct evrdma_buf *buf, size_t len);
/* What a fixture without on_event does with its endpoints. */
void endpoint_close_if_down(struct endpoint *endpoint, enum evrdma_conn_event event);

void fixture_address(struct sockaddr_in *sin, const char *ip, uint16_t port);
int count_fds(void);

#endif
