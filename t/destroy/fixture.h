/*
 * What the tests that close objects run on: a loop, a base, and the objects of the
 * library, each with what happened to it. One fixture per run; everything in it is gone at its end.
 *
 * Every callback is a point. At one of them the run ends its victim, an object, by its action; from
 * then on calls may fail, but each closed callback still comes once, and last, and each piece of
 * work that was taken is told once.
 */
#ifndef EVR_DESTROY_STAGE_H
#define EVR_DESTROY_STAGE_H

#include <event2/event.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include <evrdma/evrdma.h>

#include "fake/fake.h"
#include "unit/must.h"

struct event_base;
struct evdns_base;
struct rdma_cm_event;
struct object;
struct fixture;

enum {
	MAX_OBJECTS = 48,
	MAX_OPS = 128,
	MAX_POINTS = 128,
	BUF_SIZE = 256,
	SMALL_SLAB = 4096,
	MESSAGE = 64,
	SHUTDOWN_MS = 20,
};

/* Everything that the library calls. */
enum row {
	ROW_BASE_CLOSED,
	ROW_BASE_EVENT,
	ROW_BASE_DEVICE,
	ROW_RUN_IN_LOOP,
	ROW_LISTENER_REQUEST,
	ROW_LISTENER_ERROR,
	ROW_LISTENER_CLOSED,
	ROW_REQUEST_MOVED,
	ROW_ID_EVENT,
	ROW_ID_CLOSED,
	ROW_ID_DONE,
	ROW_ID_FAILED,
	ROW_CONN_CONNECTED,
	ROW_CONN_DISCONNECTED,
	ROW_CONN_ERROR,
	ROW_CONN_WRITABLE,
	ROW_CONN_CLOSED,
	ROW_CONN_RECV,
	ROW_CONN_RECV_FAILED,
	ROW_CONN_SENT,
	ROW_CONN_SEND_FAILED,
	ROW_CONN_WORKED,
	ROW_CONN_WORK_FAILED,
	ROW_DGRAM_READY,
	ROW_DGRAM_ERROR,
	ROW_DGRAM_WRITABLE,
	ROW_DGRAM_CLOSED,
	ROW_DGRAM_RECV,
	ROW_DGRAM_SENT,
	ROW_DGRAM_SEND_FAILED,
	ROW_MCAST_JOINED,
	ROW_MCAST_ERROR,
	ROW_MCAST_CLOSED,
	ROW_PEER_READY,
	ROW_PEER_ERROR,
	ROW_PEER_CLOSED,
	ROW_SRQ_LIMIT,
	ROW_POOL_STARVED,
	ROW_BUF_CLEANUP,
	ROW_BUFFEREVENT_ARRIVED,
	ROW_BUFFEREVENT_ACCEPTED,
	ROW_BUFFEREVENT_NOT_ACCEPTED,
	ROWS
};

struct row_info {
	const char *type; /* the callback's type in the headers */
	const char *what;
};

extern const struct row_info row_infos[ROWS];

/* Everything that the library can be asked to end. */
enum type { BASE, LISTENER, REQUEST, ID, CONN, DGRAM, MCAST, PEER, POOL, SRQ, DOMAIN, BUF, TYPES };

struct object {
	struct fixture *fixture;
	enum type type;
	struct object *base;
	void *it;	/* NULL once it is gone, or given away */
	bool shared;	/* of the process: it is there when its base is gone */
	bool bystander; /* it is there to be ended: what it is told is no point */
	bool user_receives;
	bool leaving;		/* a base that is shut down */
	bool ending;		/* its end was asked for: nothing new is to be told of it */
	unsigned ended, closed; /* how often that was told */

	/* of a listener: what it does with requests, and what came of the last one */
	enum { ACCEPT, KEEP, MOVE, REJECT, SERVE } answer;
	struct evrdma_conn_options *options;
	struct object *accepted, *request;
	struct object *endpoint; /* SERVE: who answers */
};

/* Work that was asked for, or a buffer to be cleaned up. */
struct op {
	struct object *object;
	enum row good, bad;
	void *buf;
	bool taken;
	unsigned told;
};

/* Ends with NULL. */
#define STEPS(name) void (*const name##_steps[])(struct fixture * fixture)

struct scenario {
	const char *name;
	void (*const *steps)(struct fixture *fixture);
	unsigned needs; /* enum fake_option, of the device */
};

/* What a bystander is while something else calls. */
struct state {
	enum type type;
	const char *name;
	void (*reach)(struct fixture *fixture);
	bool not_on_iwarp; /* whose handshake has no third message */
	unsigned needs;	   /* enum fake_option, of the device */
};

struct action {
	const char *name;
	void (*end)(struct object *victim);
	enum { OF_ALL, OF_THOSE_THAT_STAY, OF_THOSE_ON_A_BASE, OF_BASES } of;
};

struct plan {
	const struct scenario *scenario;
	const struct state *state; /* of the bystander that is the victim, or NULL */
	const struct action *action;
	unsigned point; /* without a state: the n-th, from 0, and which object */
	unsigned object;
	enum row row; /* with a state: the first of the row */
};

struct point {
	enum row row;
	bool alive[MAX_OBJECTS];
};

struct fixture {
	const struct plan *plan;
	enum fake_kind kind;
	int relisten_ms; /* of listeners that are made */
	struct event_base *loop;
	struct object *base;
	struct evrdma_conn_options options;
	bool late, playing, acted, in_call, by_hand;
	bool bystanders; /* what is made now are bystanders */
	unsigned bases;
	bool removed[FAKE_KINDS];

	struct object objects[MAX_OBJECTS];
	unsigned num_objects;
	struct op ops[MAX_OPS];
	unsigned num_ops;
	struct point points[MAX_POINTS];
	unsigned num_points;
	unsigned calls;
	struct object *victim; /* the bystander */

	/* what the steps of scenarios and states share */
	struct object *pool, *listener, *client, *server, *second, *endpoint, *other_endpoint;
	struct object *far_client; /* on the second base */
	struct object *group, *peer, *id, *buf, *srq, *domain;
	struct evrdma_remote remote;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *stray;
	struct ibv_srq *verbs_srq;
	struct evrdma_buf *kept; /* of a message that came, while keeps is set */
	bool keeps, finds_sender;
	struct evdns_base *dns;
	int dns_fd;
	char memory[4096];
};

extern const struct scenario conn_scenarios[], dgram_scenarios[];
extern const unsigned num_conn_scenarios, num_dgram_scenarios;
extern const struct state conn_states[], id_states[], more_states[];
extern const unsigned num_conn_states, num_id_states, num_more_states;
extern const struct action actions[];
extern const unsigned num_actions;

/* --- fixture.c --- */

extern char running[256]; /* what runs now, for whoever reports a crash */

/* One run. With a plan whose action is NULL nobody is ended, and the points are kept. */
void fixture_run(struct fixture *fixture, enum fake_kind kind, const struct plan *plan);
/* Runs the loop, and the work of all but bystanders, until nothing happens any more. */
void fixture_settle(struct fixture *fixture);
/* From now on work is done by the loop of the run only, or not at all. */
void fixture_stop_work(struct fixture *fixture);
void fixture_go_on_working(struct fixture *fixture);
/* Each connect is answered at last, one way or the other: on iWARP its end waits for that. */
void fixture_answer(struct fixture *fixture);
void fixture_pull(struct fixture *fixture, enum fake_kind kind);
const char *fixture_ip(enum fake_kind kind);

/* --- action.c --- */

struct object *object_new(struct fixture *fixture, enum type type, struct object *base, void *it);
/* A callback came: may be where the action is done. */
void point(struct object *object, enum row row);
/* The last one. */
void last_point(struct object *object, enum row row);
/* The end of an object, one reference, or a request. NULL, and one that is gone, is fine. */
void end_object(struct object *object);
void shut_down(struct object *base);

struct op *op_new(struct object *object, enum row good, enum row bad);
/* What the call gave that was to begin it: gives it back. */
int op_begun(struct op *op, int ret);
void op_told(struct op *op, bool failed);
void on_base_closed(struct evrdma_base *base, void *arg);

/* --- objects.c: makes objects; each call does nothing when what it needs is gone --- */

struct sockaddr *address(const char *ip, uint16_t port);
struct object *make_base(struct fixture *fixture);
struct object *make_pool(struct object *base);
/* One with a slab for each buffer. */
struct object *make_small_pool(struct object *base);
struct object *make_srq(struct object *base, struct object *pool);
struct object *make_domain(struct object *base);
/* One of the process, that the base is the first to use. */
struct object *make_shared_domain(struct object *base);
struct object *make_listener(struct object *base, enum fake_kind kind, int port_space);
struct object *make_conn(struct object *base, const struct evrdma_conn_options *options);
void conn_connect(struct object *conn, const struct object *listener, enum fake_kind kind);
void conn_send(struct object *conn, unsigned n);
void conn_send_buf(struct object *conn, struct object *buf);
void conn_expose(struct object *conn, struct object *buf);
void conn_receive(struct object *conn, unsigned n);
void conn_write(struct object *conn, const struct evrdma_remote *remote);
/* A pair on a listener of its own, both up. */
void make_pair(struct fixture *fixture, enum fake_kind kind);
struct object *make_buf(struct object *pool);
struct object *make_reference(struct fixture *fixture);
struct object *make_shared_buf(struct object *domain);

/* --- bufferevents.c: steps --- */

/* One connects to a listener for them; and one to a listener whose requests are accepted so. */
void bufferevents_meet(struct fixture *fixture);
void bufferevents_are_accepted(struct fixture *fixture);
/* To the latter, whose device refuses what that needs. */
void bufferevents_are_refused(struct fixture *fixture);

/* --- scenarios.c --- */

/* A step: a callback at which what is under way is so. */
void tick(struct fixture *fixture);

/* --- objects_dgram.c --- */

struct object *make_endpoint(struct object *base, struct object *pool);
void endpoint_open(struct object *endpoint, const char *src, const char *dst);
struct object *make_ready_endpoint(struct fixture *fixture, enum fake_kind kind);
void endpoint_send(struct object *endpoint, struct object *group, struct object *peer, unsigned n);
struct object *join(struct object *endpoint);
struct object *find_peer(
	struct object *endpoint, const struct object *listener, enum fake_kind kind);
struct object *make_id(struct object *base, int port_space);
void id_resolve(struct object *id, enum fake_kind kind);
void on_id_done(struct evrdma_id *it, const struct evrdma_error *error,
	const struct rdma_cm_event *event, void *arg);

#endif
