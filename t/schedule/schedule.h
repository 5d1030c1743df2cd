/*
 * Random schedules. A schedule is what follows from one number: a machine, a loop, one or two bases
 * and what is on them, and what is done with it, step by step. The schedule is a model as well: it
 * knows what may be called back and what may not, and says so when it is.
 */
#ifndef EVR_SCHEDULE_SCHEDULE_H
#define EVR_SCHEDULE_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <netinet/in.h>

#include <evrdma/evrdma.h>

#include "schedule/clock.h"
#include "schedule/cover.h"
#include "schedule/random.h"

struct event_base;
struct evdns_base;
struct ibv_qp;
struct rdma_cm_id;
struct schedule;

enum {
	OWNERS = 2,
	MAX_OBJECTS = 256,
	ENOUGH_OBJECTS = 120, /* no more are asked for */
	MAX_HELD = 16,
	MAX_LIVE = 10, /* of one kind, closed ones apart */
	BUF_SIZE = 128,
	MEMORY_SIZE = 256,
	SLACK_US = 60000, /* as late as anything may be */
	SETTLE_US = 60000, /* acknowledgements may still come, before a drain begins */
	US_PER_MS = 1000,
};

/* An object of the library's, as its user sees it. It stays in the schedule when that is gone. */
struct object {
	struct schedule *schedule;
	enum kind kind;
	unsigned number;
	unsigned state;
	unsigned owner; /* the base that it is on */
	bool gone;	/* nothing may be called back any more */
};

/* What is on a base, and has no end that is told. */
struct store {
	struct object object;
	struct evrdma_pool *pool;
	unsigned bufs; /* the most */
};

struct shared {
	struct object object;
	struct evrdma_srq *srq;
	uint32_t depth, limit; /* 0: nobody watches */
};

/* A base and what belongs to it. */
struct owner {
	struct object object;
	struct evrdma_base *base;
	struct rdma_event_channel *channel; /* the user's, or NULL */
	struct store *store;
	struct shared *shared; /* may be NULL, as the domain */
	struct evrdma_domain *domain;
	struct evrdma_id *witness; /* of a shutdown: it is closed with the base, not before */
	int shutdown_ms;
	unsigned removals; /* of devices that it was told of */
	uint64_t since_us;
	unsigned calls_pending; /* of evrdma_base_run_in_loop() */
	bool given_up;		/* the SRQ and the domain were */
	bool was_shut_down;
};

struct port {
	struct object object;
	struct evrdma_listener *listener;
	uint16_t number;
	bool for_dgrams, disabled, comes_back;
	unsigned max_pending;	/* 0: any number */
	int request_timeout_ms; /* 0: none */
	bool shares;		/* its queue, with connections that have none */
};

struct ask {
	struct object object;
	struct evrdma_request *request;
	struct port *port;
	unsigned from; /* the number of the one who asks, 0 for nobody's */
	unsigned moving_to;
	bool has_moved; /* what it shared with others stays behind */
	uint64_t since_us;
};

enum receiving { BY_POOL, BY_SRQ, BY_HAND };
extern const char *const receiving_names[];

/* A work request on its way, of a connection or an endpoint. */
struct ticket {
	TAILQ_ENTRY(ticket) link;
	struct object *object;
	const struct object *to; /* a group or peer, or NULL */
	enum evrdma_op op;
	unsigned serial;
	unsigned message; /* which one of its connection, from 1; 0: it is none */
	struct evrdma_buf *buf;
	size_t len;
	unsigned slot;
	uint64_t add, compare;
	bool inlined, with_imm, over;
	bool is_reply; /* to one whose address may have to be asked for first */
};
TAILQ_HEAD(tickets, ticket);

struct connection {
	struct object object;
	struct evrdma_conn *conn;
	unsigned events_owner; /* the base that the CM's events come on */
	struct connection *peer;
	struct evrdma_conn_options options;
	enum receiving receiving;
	bool was_up, ended, want_writable, was_exposed, peer_spoke;
	bool not_reading, did_not_read; /* now, and ever */
	uint64_t since_us;
	struct tickets tickets; /* under way, in order */
	unsigned under_way;
	unsigned messages_sent, messages_told, messages_received;
	struct evrdma_buf *posted[8]; /* by hand */
	unsigned posted_count;
	unsigned char *bytes; /* memory that the peer reaches */
	struct evrdma_buf *memory;
	unsigned shared; /* of its domain, when that is of all bases */
	struct evrdma_remote remote;
	unsigned last_writer[4]; /* of each part of it */
	uint64_t counter;	 /* what is in its first 8 bytes */
};

struct endpoint {
	struct object object;
	struct evrdma_dgram *dgram;
	struct evrdma_dgram_options options;
	enum receiving receiving;
	bool want_writable, ended;
	uint64_t since_us;
	struct tickets tickets;
	unsigned under_way, serial, taken, bytes_taken;
};

struct member {
	struct object object;
	struct evrdma_mcast *group;
	struct endpoint *endpoint;
	const char *ip;
	bool ended;
};

struct friend
{
	struct object object;
	struct evrdma_peer *peer;
	struct endpoint *endpoint;
	uint64_t since_us;
	int timeout_ms;
	bool ended;
};

struct foreign {
	struct object object;
	struct rdma_cm_id *cm;
};

struct plain;

struct operation {
	struct plain *plain;
	bool under_way;
	uint64_t since_us;
	int timeout_ms; /* 0: none */
	unsigned mark;
};

struct plain {
	struct object object;
	struct evrdma_id *id;
	unsigned events_owner;
	struct operation operations[3];
};

/* What a schedule makes use of, so that each has depth in something. */
struct profile {
	bool holds, by_hand, faults, polls, pulls, injects, closes_bases, dgrams, ids, async, loses;
	unsigned acts_in_callbacks; /* once in so many of them; 0: never */
};

struct schedule {
	struct random random;
	struct profile profile;
	const char *ip;	   /* the device's address */
	uint16_t stranger; /* the port of a peer in another process; 0: there is none */
	const char *stranger_ip;
	bool is_iwarp, has_atomics, has_immediates, has_dgrams, has_srqs;
	struct event_base *loop;
	int priorities;	  /* of the loop */
	bool time_passes; /* with each look at the clock; in a guest it hardly does */
	struct evdns_base *names;
	unsigned *weights;
	struct owner *owners[OWNERS];
	unsigned owner_count;
	struct object *objects[MAX_OBJECTS];
	unsigned object_count;
	struct evrdma_buf *held[MAX_HELD];
	unsigned held_count;
	struct tickets spent;
	unsigned serials;
	struct evrdma_domain *shared; /* of all bases, or NULL */
	unsigned shared_number;	      /* which one: it is replaced */
	int references;		      /* of the user's memory that are not cleaned up yet */
	bool in_call;
	bool ending;
	bool hands_in;	    /* the user reads the asynchronous events of the devices */
	uint16_t open_port; /* that an id listened at, 0: none has */
	unsigned pulls;
	bool troubled; /* calls were made to fail, memory is short, or the device was pulled */
	bool pulled;
	bool broken;	 /* the device said so, and is believed */
	unsigned losses; /* of event channels: they cannot be read any more, or at the next try */
	unsigned depth; /* of callbacks */
	int fds;	/* open before it began */
};

/* --- what is said, and found wrong ----------------------------------------------------------- */

extern bool trace_on;

void trace_begin(uint64_t seed, const char *program);
void trace(struct schedule *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* What has happened so far, as one number. */
void trace_mix(unsigned a, unsigned b, unsigned c);
uint64_t trace_digest(void);
/* Ends the program. */
_Noreturn void wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define MUST(condition, ...)                                                                       \
	do {                                                                                       \
		if (!(condition))                                                                  \
			wrong(__VA_ARGS__);                                                        \
	} while (0)

/* --- objects --------------------------------------------------------------------------------- */

void *object_new(struct schedule *s, enum kind kind, unsigned owner, size_t size);
/* Counts a call, and forbids callbacks until it is over. */
void object_call(struct object *object, unsigned mark);
/* Says what it returned. */
int object_returned(struct object *object, unsigned mark, int ret);
/* The same around a call that is of no object, or whose object is not there yet. */
#define INSIDE(s, statement)                                                                       \
	do {                                                                                       \
		MUST(!(s)->in_call, "a call within a call");                                       \
		(s)->in_call = true;                                                               \
		statement;                                                                         \
		(s)->in_call = false;                                                              \
	} while (0)
/* A callback: checks that it may come. */
void object_event(struct object *object, unsigned mark);
/* The last one. */
void object_gone(struct object *object);
/* When all is over: nothing of it may be left. */
void object_check_end(struct object *object);
/* One that is not gone, in one of the states, or NULL. */
void *object_pick(struct schedule *s, enum kind kind, unsigned states);
unsigned object_live(struct schedule *s, enum kind kind);
struct object *object_numbered(struct schedule *s, enum kind kind, unsigned number);
#define ANY_STATE ~0u
#define IN(state) (1u << (state))
#define FOR_EACH_OBJECT(s, object, i)                                                              \
	for (i = 0; i < (s)->object_count && ((object) = (s)->objects[i]); i++)

/* --- the schedule --------------------------------------------------------------------------------
 */

struct schedule *schedule_new(uint64_t seed);
/* Does one action. */
void schedule_step(struct schedule *s);
/* Closes all and runs to the end, and finds what is left. */
void schedule_end(struct schedule *s);
/* A turn of the loop; false when there was nothing to do. */
bool schedule_turn(struct schedule *s);
void schedule_settle(struct schedule *s);
/* To the next timer. */
void schedule_skip(struct schedule *s);
void schedule_address(struct sockaddr_in *sin, const char *ip, uint16_t port);
/* Whether a call may give that because one below was made to fail. */
bool schedule_excuses(const struct schedule *s, int ret);
/* Whether who has that id, or none, hears nothing of what completes. */
bool schedule_is_deaf(const struct rdma_cm_id *cm);
/* In a callback: sometimes the user does something there. */
void schedule_act(struct schedule *s);

/*
 * Bases that were shut down are closed when the library finds that it is time: all that is closed
 * with them is in state by now. To be called before states are looked at.
 */
void schedule_sync(struct schedule *s);

/* A base that takes objects, or NULL. */
struct owner *schedule_owner(struct schedule *s);
struct owner *owner_new(struct schedule *s);
bool owner_has_room(struct owner *owner, enum kind kind);
/* A new object could not be made: only for a reason. */
void owner_refused(struct owner *owner, int err);
void owner_close(struct owner *owner);
void owner_check_idle(struct owner *owner, bool for_ever);
void owner_check_balance(struct owner *owner);
/* The last of the base, from here on. */
void owner_free_channel(struct owner *owner);

/* A buffer to send from or receive into, or NULL; and one of the user's own memory. */
struct evrdma_buf *schedule_buf(struct schedule *s, unsigned owner);
struct evrdma_buf *schedule_reference(struct schedule *s, size_t size, unsigned flags, void **data);
void schedule_share(struct schedule *s);
void schedule_share_no_more(struct schedule *s);
/* A domain for something on a base, or none. */
struct evrdma_domain *owner_choose_domain(struct owner *owner);
/* For a connection: as schedule_buf() and schedule_reference(), or for all bases. */
struct evrdma_buf *connection_buf(struct connection *connection);
struct evrdma_buf *connection_reference(
	struct connection *connection, size_t size, unsigned flags, void **data);
/* Keeps a buffer until later. */
void schedule_hold(struct schedule *s, struct evrdma_buf *buf);
void schedule_release_one(struct schedule *s);

/* NULL where it cannot be made. */
struct store *store_new(struct owner *owner);
void store_give_up(struct owner *owner);
struct shared *shared_new(struct owner *owner);
void shared_give_up(struct owner *owner);
struct evrdma_srq *owner_srq(const struct owner *owner);

/* --- actions --------------------------------------------------------------------------------- */

struct action {
	const char *name;
	unsigned weight;
	void (*run)(struct schedule *s);
};

/* Ends with one without a name. */
extern const struct action base_actions[], store_actions[], port_actions[], conn_actions[],
	dgram_actions[], member_actions[], id_actions[], foreign_actions[], stream_actions[];

/* Bufferevents: begins to end them, and runs until that is over. */
void streams_close(struct schedule *s);
void streams_end(struct schedule *s);

/* --- the machine ----------------------------------------------------------------------------- */

/*
 * What a schedule runs on. On an exact machine all that follows from a call is there when the call
 * returns, the time is the schedule's own, and the seed says all.
 */
struct machine {
	bool exact;
	const char *silent_ip, *no_rdma_ip, *no_route_ip;
	void (*set_up)(void);		    /* once */
	void (*begin)(struct schedule *s);  /* chooses the device */
	void (*answer)(struct schedule *s); /* from here on all is answered, or said to be lost */
	void (*end)(void);		    /* nothing may be left */
	int fds_kept;			    /* at most, by the CM for its devices */
	/* Completions that the loop would sleep on. May be NULL. */
	unsigned (*unpolled)(void);
	/* Whether some of what it completes is lost, and the rest need not come. May be NULL. */
	bool (*is_deaf)(const struct ibv_qp *qp);
	const struct action *actions;
};

extern const struct machine machine;

/* --- what goes over the wire ----------------------------------------------------------------- */

enum { MESSAGE_HEADER = 16 };

void message_fill(void *to, size_t len, unsigned sender, unsigned serial);
/* Whether it is one, whole; whose, and which. */
bool message_check(const void *from, size_t len, unsigned *sender, unsigned *serial);
size_t message_len(struct schedule *s, size_t most);

struct ticket *ticket_new(struct object *object, struct tickets *tickets);
void ticket_drop(struct ticket *ticket, struct tickets *tickets);
/* The oldest is over. */
void ticket_over(struct ticket *ticket, struct tickets *tickets);

/* --- each kind, for the others ---------------------------------------------------------------- */

struct connection *connection_new(struct schedule *s, unsigned owner);
void connection_connect(struct connection *connection, uint16_t port);
void connection_accept(struct connection *connection, struct ask *ask);
void connection_close(struct connection *connection);
void connection_closing(struct connection *connection);
void connection_check_idle(struct connection *connection, bool for_ever);
void connection_check_end(struct connection *connection);
void connection_on_recv(struct evrdma_conn *conn, const struct evrdma_recv *recv, void *arg);
void connection_recv(struct schedule *s);
void connection_enable(struct schedule *s);
void connection_disable(struct schedule *s);
void connection_send(struct schedule *s);
void connection_flood(struct schedule *s);
void connection_submit(struct schedule *s);
void connection_expose(struct schedule *s);
/* When the loop would sleep. */
void connection_check_told(const struct connection *connection);

struct port *port_new(struct schedule *s, unsigned owner, bool for_dgrams);
void port_close(struct port *port);
struct port *port_for_dgrams(struct schedule *s);
void ask_reject(struct ask *ask);
/* Whether it may have ended, for that reason, while nobody has answered. */
bool ask_may_end(const struct ask *ask, int ret);
/* It belongs to the library again. */
void ask_forget(struct ask *ask);
void ask_check_idle(const struct ask *ask);

struct endpoint *endpoint_new(struct schedule *s, unsigned owner);
void endpoint_open(struct endpoint *endpoint);
void endpoint_accept(struct endpoint *endpoint, struct ask *ask);
void endpoint_close(struct endpoint *endpoint);
void endpoint_closing(struct endpoint *endpoint);
void endpoint_check_idle(struct endpoint *endpoint, bool for_ever);
struct ticket *endpoint_make_datagram(struct endpoint *endpoint);
/* What is sent to a group or peer is over before that is closed. */
void endpoint_check_sent(const struct endpoint *endpoint, const struct object *to);
/* Whether it is up, and its base is not shut down. */
bool endpoint_can_send(const struct endpoint *endpoint);
/* can: whether the state of all who take part allows it. */
void endpoint_submitted(struct endpoint *endpoint, struct ticket *ticket, bool can, int ret);
/* Whether a call on who sent something may give that. */
bool endpoint_is_unreachable(int ret);
void endpoint_sent(struct evrdma_dgram *dgram, struct evrdma_buf *buf,
	const struct evrdma_error *error, void *arg);
struct friend *friend_new(struct endpoint *endpoint, const struct evrdma_recv *recv);
void friend_check_idle(struct friend *friend, bool for_ever);

void plain_close(struct plain *plain);
/* Of an id that the user made: from here on it is the object's, unless that is refused. */
void plain_adopt(struct foreign *foreign, struct owner *owner);
void plain_check_idle(struct plain *plain, bool for_ever);

/* What a request to an id brings: the user keeps it, or does not. */
void foreign_take(struct schedule *s, unsigned owner, struct rdma_cm_id *cm);
void foreign_destroy(struct foreign *foreign);
void foreign_on_event(struct evrdma_base *base, const struct rdma_cm_event *event, void *arg);

#endif
