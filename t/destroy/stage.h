/*
 * The stage on which objects are closed: a loop, a base, and the actors, each an object of the
 * library with what happened to it. One stage per run; everything on it is gone at its end.
 *
 * Every callback is a moment. In one of them the run ends its victim, an actor, by its act; from
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

struct event_base;
struct evdns_base;
struct rdma_cm_event;
struct actor;
struct stage;

enum {
	MAX_ACTORS = 48,
	MAX_OPS = 128,
	MAX_MOMENTS = 128,
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
	ROWS
};

struct row_info {
	const char *type; /* the callback's type in the headers */
	const char *what;
};

extern const struct row_info row_infos[ROWS];

/* Everything that the library can be asked to end. */
enum object {
	BASE,
	LISTENER,
	REQUEST,
	ID,
	CONN,
	DGRAM,
	MCAST,
	PEER,
	POOL,
	SRQ,
	DOMAIN,
	BUF,
	OBJECTS
};

struct actor {
	struct stage *stage;
	enum object object;
	struct actor *base;
	void *it;	/* NULL once it is gone, or given away */
	bool bystander; /* it is there to be ended: what it is told is no moment */
	bool user_receives;
	bool leaving;		/* a base that is shut down */
	bool ending;		/* its end was asked for: nothing new is to be told of it */
	unsigned ended, closed; /* how often that was told */

	/* of a listener: what it does with requests, and what came of the last one */
	enum { ACCEPT, KEEP, MOVE, REJECT, SERVE } answer;
	struct evrdma_conn_options *options;
	struct actor *accepted, *request;
	struct actor *endpoint; /* SERVE: who answers */
};

/* Work that was asked for, or a buffer to be cleaned up. */
struct op {
	struct actor *actor;
	enum row good, bad;
	void *buf;
	bool taken;
	unsigned told;
};

/* Ends with NULL. */
#define STEPS(name) void (*const name##_steps[])(struct stage * stage)

struct scene {
	const char *name;
	void (*const *steps)(struct stage *stage);
	unsigned needs; /* enum fake_option, of the device */
};

/* What a bystander is while something else calls. */
struct state {
	enum object object;
	const char *name;
	void (*reach)(struct stage *stage);
	bool not_on_iwarp; /* whose handshake has no third message */
	unsigned needs;	   /* enum fake_option, of the device */
};

struct act {
	const char *name;
	void (*end)(struct actor *victim);
	enum { OF_ALL, OF_THOSE_THAT_STAY, OF_THOSE_ON_A_BASE, OF_BASES } of;
};

struct plan {
	const struct scene *scene;
	const struct state *state; /* of the bystander that is the victim, or NULL */
	const struct act *act;
	unsigned moment; /* without a state: the n-th, from 0, and which actor */
	unsigned actor;
	enum row row; /* with a state: the first of the row */
};

struct moment {
	enum row row;
	bool alive[MAX_ACTORS];
};

struct stage {
	const struct plan *plan;
	enum fake_kind kind;
	int relisten_ms; /* of listeners that are made */
	struct event_base *loop;
	struct actor *base;
	struct evrdma_conn_options options;
	bool late, playing, acted, in_call, by_hand;
	bool bystanders; /* what is made now are bystanders */
	unsigned bases;
	bool removed[FAKE_KINDS];

	struct actor actors[MAX_ACTORS];
	unsigned num_actors;
	struct op ops[MAX_OPS];
	unsigned num_ops;
	struct moment moments[MAX_MOMENTS];
	unsigned num_moments;
	unsigned calls;
	struct actor *victim; /* the bystander */

	/* what the steps of scenes and states share */
	struct actor *pool, *listener, *client, *server, *second, *endpoint, *other_endpoint;
	struct actor *group, *peer, *id, *buf, *srq, *domain;
	struct evrdma_remote remote;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *stray;
	struct ibv_srq *verbs_srq;
	struct evrdma_buf *kept; /* of a message that came, while keeps is set */
	bool keeps;
	struct evdns_base *dns;
	int dns_fd;
	char memory[4096];
};

extern const struct scene conn_scenes[], dgram_scenes[];
extern const unsigned num_conn_scenes, num_dgram_scenes;
extern const struct state conn_states[], id_states[], more_states[];
extern const unsigned num_conn_states, num_id_states, num_more_states;
extern const struct act acts[];
extern const unsigned num_acts;

/* --- stage.c --- */

extern char running[256]; /* what runs now, for whoever reports a crash */

/* One run. With a plan whose act is NULL nobody is ended, and the moments are kept. */
void stage_run(struct stage *stage, enum fake_kind kind, const struct plan *plan);
/* Runs the loop, and the work of all but bystanders, until nothing happens any more. */
void stage_settle(struct stage *stage);
/* From now on work is done by the loop of the run only, or not at all. */
void stage_stop_work(struct stage *stage);
void stage_go_on_working(struct stage *stage);
/* Each connect is answered at last, one way or the other: on iWARP its end waits for that. */
void stage_answer(struct stage *stage);
void stage_pull(struct stage *stage, enum fake_kind kind);
const char *stage_ip(enum fake_kind kind);

/* --- act.c --- */

struct actor *actor_new(struct stage *stage, enum object object, struct actor *base, void *it);
/* A callback came: may be where the act is done. */
void moment(struct actor *actor, enum row row);
/* The last one. */
void last_moment(struct actor *actor, enum row row);
/* The end of an object, one reference, or a request. NULL, and one that is gone, is fine. */
void end_actor(struct actor *actor);
void shut_down(struct actor *base);

struct op *op_new(struct actor *actor, enum row good, enum row bad);
/* What the call gave that was to begin it: gives it back. */
int op_begun(struct op *op, int ret);
void op_told(struct op *op, bool failed);
void on_base_closed(struct evrdma_base *base, void *arg);

/* --- cast.c: makes actors; each call does nothing when what it needs is gone --- */

struct sockaddr *address(const char *ip, uint16_t port);
struct actor *make_base(struct stage *stage);
struct actor *make_pool(struct actor *base);
/* One with a slab for each buffer. */
struct actor *make_small_pool(struct actor *base);
struct actor *make_srq(struct actor *base, struct actor *pool);
struct actor *make_domain(struct actor *base);
struct actor *make_listener(struct actor *base, enum fake_kind kind, int port_space);
struct actor *make_conn(struct actor *base, const struct evrdma_conn_options *options);
void conn_connect(struct actor *conn, const struct actor *listener, enum fake_kind kind);
void conn_send(struct actor *conn, unsigned n);
int conn_send_buf(struct actor *conn, struct actor *buf, struct op *op);
void conn_receive(struct actor *conn, unsigned n);
void conn_write(struct actor *conn, const struct evrdma_remote *remote);
/* A pair on a listener of its own, both up. */
void make_pair(struct stage *stage, enum fake_kind kind);
struct actor *make_buf(struct actor *pool);
struct actor *make_reference(struct stage *stage);

/* --- scenes.c --- */

/* A step: a callback at which what is under way is so. */
void tick(struct stage *stage);

/* --- cast_dgram.c --- */

struct actor *make_endpoint(struct actor *base, struct actor *pool);
void endpoint_open(struct actor *endpoint, const char *src, const char *dst);
struct actor *make_ready_endpoint(struct stage *stage, enum fake_kind kind);
void endpoint_send(struct actor *endpoint, struct actor *group, struct actor *peer, unsigned n);
struct actor *join(struct actor *endpoint);
struct actor *find_peer(struct actor *endpoint, const struct actor *listener, enum fake_kind kind);
struct actor *make_id(struct actor *base, int port_space);
void id_resolve(struct actor *id, enum fake_kind kind);
void on_id_done(struct evrdma_id *it, const struct evrdma_error *error,
	const struct rdma_cm_event *event, void *arg);

#endif
