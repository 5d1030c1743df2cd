/*
 * A connection.
 *
 *   NEW --connect(), accept()--> SETUP --established--> UP
 *    any of them --ended, failed, closed--> DOWN
 *
 * In DOWN the object is ending (obj.h): its timers stop, the QP goes to the error state and is
 * drained, destroyed, the rest is cancelled, and the id is destroyed, or lingers until the peer has
 * answered the disconnect (linger.h). DOWN is entered once; that is when DISCONNECTED or ERROR is
 * told, unless the user closed first.
 */
#ifndef EVR_EV_CONN_H
#define EVR_EV_CONN_H

#include <stdbool.h>

#include "ev/cm/cmid.h"
#include "ev/cm/lookup.h"
#include "ev/cm/slots.h"
#include "ev/cm/target.h"
#include "ev/connection/kept.h"
#include "ev/core/obj.h"
#include "ev/core/timer.h"
#include "ev/device/source.h"
#include "ev/queue/qp.h"

#include <evrdma/conn.h>

enum {
	EVR_CONN_PRIVATE_DATA_MAX = 255,
	/* How long an iWARP connection that was accepted waits for its peer to speak first. */
	EVR_CONN_HOLD_MS = 100,
	/* How long the acknowledgements of a peer that disconnected may still be on their way. */
	EVR_CONN_SETTLE_MS = 50,
};

enum evr_conn_state {
	EVR_CONN_NEW,
	EVR_CONN_SETUP,
	EVR_CONN_UP,
	EVR_CONN_DOWN,
};

/* The next step of the setup, made from the task queue. */
enum evr_conn_next {
	EVR_CONN_RESOLVE,
	EVR_CONN_BIND_QP,
	EVR_CONN_CONNECT,
	EVR_CONN_ACCEPT,
	EVR_CONN_DISCONNECT,
	EVR_CONN_GIVE_UP, /* an address that did not work: what completed there is told first */
	EVR_CONN_DROP_QP,
	EVR_CONN_DROP_ID,
};

/* The next step of the end. */
enum evr_conn_end {
	EVR_CONN_END_START,
	EVR_CONN_END_DRAIN,
	EVR_CONN_END_QP,
	EVR_CONN_END_ID,
};

struct evrdma_conn {
	struct evr_obj obj;
	struct evr_cmid cmid;
	struct evr_qp qp;
	struct evrdma_conn_options options;
	unsigned char private_data[EVR_CONN_PRIVATE_DATA_MAX];

	evrdma_conn_recv_cb recv_cb;
	evrdma_conn_event_cb event_cb;
	void *arg;
	/*
	 * Of one that carries something more: there is a QP, for each address that is tried, and
	 * the private data can be filled in. 0 or -errno. May be NULL.
	 */
	int (*ready)(struct evrdma_conn *conn, void *arg);
	bool owned; /* by a stream, which ends it when the base is shut down */

	enum evr_conn_state state;
	enum evr_conn_next next;
	enum evr_conn_end end;
	enum evrdma_step step;
	bool passive;
	bool connected; /* CONNECTED was told */
	bool handshaking; /* the CM was asked to connect or accept: the peer may know of us */
	bool disconnecting;
	bool probing; /* the peer is asked whether it is there */
	bool to_ask;  /* as soon as there is room for that */
	bool settled;
	bool settling;
	bool linked; /* established for the CM, neither disconnected nor cut off: it can answer */
	bool told; /* the peer, of our disconnect */
	bool ends; /* it is down, and that is told after what came before */
	enum evrdma_conn_event end_event;
	struct evrdma_error end_error;
	uint64_t wait_end_us;  /* of a disconnect, or for the answer to that of the end */
	uint64_t wait_left_us; /* of that, while it is in our own queue */
	bool peer_left; /* it disconnected, in order: what it acknowledged before is still coming */
	struct evr_timer deadline;
	struct evr_timer attempt_timer; /* of one address, while others are left */
	struct evr_timer hold_timer;
	struct evr_timer alive_timer;
	uint64_t last_heard_us;
	uint64_t last_message_us;
	uint64_t asked_us;
	struct evr_timer wait_timer;

	bool read_disabled;
	struct evr_kept kept;
	struct evr_task read_task; /* tells what is kept */

	struct evr_lookup *lookup; /* until evdns has let go of it */
	bool late; /* the deadline came */
	struct evr_source source;
	struct sockaddr_storage src;
	struct evr_targets targets;
	struct evr_slots *slots; /* of the listener, or NULL: one is ours */
	struct evr_lingering *lingering; /* our id, while it is there without us */

	uint8_t peer_responder_resources; /* of the request that is accepted */
	uint8_t peer_initiator_depth;
	struct sockaddr_storage local_addr;
	struct sockaddr_storage peer_addr;
	unsigned char peer_data[EVR_CONN_PRIVATE_DATA_MAX];
	size_t peer_data_len;
};

extern const struct evr_cmid_ops evr_conn_cmid_ops;

/* conn_setup.c */
void evr_conn_work(struct evr_obj *obj);
/* At once when it is down: they act on what is being set up. */
void evr_conn_stop_timers(struct evrdma_conn *conn);
void evr_conn_setup_failed(struct evrdma_conn *conn, const struct evrdma_error *error);
void evr_conn_on_attempt_timer(evutil_socket_t fd, short what, void *arg);
/* Whether what the peer says can still make the connection. */
bool evr_conn_may_establish(const struct evrdma_conn *conn);
void evr_conn_established(struct evrdma_conn *conn);
void evr_conn_setup_on_event(struct evrdma_conn *conn, const struct rdma_cm_event *event);
/* The CM says so: the QP is connected, on the side that connects just now. */
void evr_conn_linked(struct evrdma_conn *conn, const struct rdma_cm_event *established);

/* conn_alive.c: from CONNECTED to the end. */
void evr_conn_start_alive(struct evrdma_conn *conn);
void evr_conn_stop_alive(struct evrdma_conn *conn);
void evr_conn_received(struct evrdma_conn *conn);
/* A piece of work is done, and whether it was a message. */
void evr_conn_sent(struct evrdma_conn *conn, enum ibv_wr_opcode opcode, bool message);
/* All that was complete when the timer came is told. */
void evr_conn_judge_alive(struct evrdma_conn *conn);
void evr_conn_on_alive_timer(evutil_socket_t fd, short what, void *arg);

/* conn_read.c */
void evr_conn_init_read(struct evrdma_conn *conn);
/* Tells it, or keeps it until reading is enabled and all before it was told. */
void evr_conn_read(struct evrdma_conn *conn, const struct evrdma_recv *recv);
/* Whether something that is kept may be told; then evr_conn_has_read() follows. */
bool evr_conn_must_read(struct evrdma_conn *conn);
/* Before CLOSED: what is kept is told as cancelled, to those who gave the buffers. */
bool evr_conn_must_cancel_read(struct evr_obj *obj);
/* What an address said that is given up. */
void evr_conn_forget_read(struct evrdma_conn *conn);
void evr_conn_fini_read(struct evrdma_conn *conn);

/* conn.c */
void evr_conn_tell(
	struct evrdma_conn *conn, enum evrdma_conn_event event, const struct evrdma_error *error);
void evr_conn_down(
	struct evrdma_conn *conn, enum evrdma_conn_event event, const struct evrdma_error *error);
void evr_conn_fail(struct evrdma_conn *conn, int err, enum evrdma_step step);
/* Nothing that is kept may be told, now. */
void evr_conn_has_read(struct evrdma_conn *conn);
/* Where a write is over when it has left, and a read may be made. */
bool evr_conn_asks_by_reading(const struct evrdma_conn *conn);
/* Asks the peer for nothing but an answer. 0, or why there is no room for it. */
int evr_conn_probe(struct evrdma_conn *conn);
void evr_conn_keep_peer_data(struct evrdma_conn *conn, const void *data, size_t len);
void evr_conn_keep_addresses(struct evrdma_conn *conn);

#endif
