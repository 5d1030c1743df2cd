/* An rdma_cm_id that an object owns, and the base whose channel its events come on. */
#ifndef EVR_EV_CMID_H
#define EVR_EV_CMID_H

#include <stdbool.h>
#include <stdint.h>

#include <event2/event.h>
#include <rdma/rdma_cma.h>

#include "ev/core/timer.h"
#include "util/list.h"

#include <evrdma/error.h>

struct evrdma_base;
struct evr_cmid;
struct evr_obj;

struct evr_cmid_ops {
	/* An event came. It is acknowledged; it lives until the call returns. */
	void (*event)(struct evr_cmid *cmid, const struct rdma_cm_event *event);
	/* No event will come any more: the channel cannot be read, for the reason err. */
	void (*lost)(struct evr_cmid *cmid, int err);
	/* Its device is being removed. NULL: it hears of that by its own event. */
	void (*gone)(struct evr_cmid *cmid);
};

struct evr_cmid {
	struct rdma_cm_id *cm; /* NULL while there is none */
	struct evrdma_base *base;
	struct evr_obj *owner;
	const struct evr_cmid_ops *ops;
	TAILQ_ENTRY(evr_cmid) link;
	bool asked;	   /* to connect or to accept, and the peer has not answered */
	bool unanswered;   /* see evr_cmid_asked() */
	bool lost;	   /* its owner was told that no event will come */
	bool listens;	   /* what the base has on its device stays */
	bool gone;	   /* its device is being removed, whether it was told so itself or not */
	struct evr_timer late; /* when no answer can come, the kernel has given up by then */
};

TAILQ_HEAD(evr_cmid_list, evr_cmid);

/*
 * A channel that is lost takes no id: making one, taking one and moving one there give why. So each
 * id on it was told, and nobody waits there for what cannot come.
 */

/* Makes an id on the base's channel. */
int evr_cmid_create(struct evr_cmid *cmid, struct evrdma_base *base, enum rdma_port_space ps);
/* Takes an id that is on the base's channel already. -EEXIST when somebody has it. */
int evr_cmid_take(struct evr_cmid *cmid, struct evrdma_base *base, struct rdma_cm_id *cm);
/* Gives the id up without destroying it. */
struct rdma_cm_id *evr_cmid_release(struct evr_cmid *cmid);
/* What an object of the base that begins with an id fails in, when it gets none. */
enum evrdma_step evr_cmid_first_step(const struct evrdma_base *base);
/* 0, or why nothing is heard of it: its channel is lost, though it may not have been told yet. */
int evr_cmid_check(const struct evr_cmid *cmid);
/* Hands the id from one owner to another on the same base. Cannot fail. */
void evr_cmid_hand_over(struct evr_cmid *from, struct evr_cmid *to);
/*
 * A connect or an accept was begun. Until it is answered, a disconnect or the end of an iWARP id
 * waits in the kernel for the peer. So its owner puts both off while unanswered says so; then it is
 * called by evr_obj_continue().
 */
void evr_cmid_asked(struct evr_cmid *cmid);
/* Nothing is heard of it any more. */
void evr_cmid_lost(struct evr_cmid *cmid, int err);
/* The base has learnt that a device is not in the list of devices any more. */
void evr_cmid_device_unlisted(struct evrdma_base *base, const char *name, int index);
/* Destroys the id, if there is one. Slow. */
void evr_cmid_destroy(struct evr_cmid *cmid);
int evr_cmid_migrate(struct evr_cmid *cmid, struct evrdma_base *base);

/* Reads events. 0: there is none left; 1: the time is up; else why none can be read. */
int evr_cmid_read_events(struct evrdma_base *base, uint64_t deadline_us);

#endif
