/*
 * An id in any state that it can be in, reached by the calls that lead there, for tests that let
 * every event come in every state.
 */
#ifndef UNIT_CM_SUBJECT_H
#define UNIT_CM_SUBJECT_H

#include "unit/cm_unit.h"

/* What the state means for the events. */
enum {
	CM_HAS_DEVICE = 1, /* the kernel knows the id's device */
	CM_UNACCEPTED = 2, /* a child that has no uid yet */
	CM_FAILED = 4,	   /* its answer could not be served, which has been told */
	CM_REMOVED = 8,	   /* its device is gone, which has been told */
	CM_MEMBER = 16,	   /* of one group */
	CM_NEEDS_QP = 32,  /* cannot be reached without a queue pair */
	CM_HAS_NO_QP = 64, /* cannot have one */
	CM_DATAGRAM = 128,
	CM_CONNECTS = 256, /* by the call that it allows */
};

struct cm_subject {
	struct rdma_event_channel *channel; /* of all ids but a synchronous subject */
	struct rdma_cm_id *listener, *client, *server;
	struct rdma_cm_id *id; /* one of them */
	bool qp;
	bool sync;
};

struct cm_state {
	const char *name;
	void (*reach)(struct cm_subject *s);
	unsigned traits;
	/* What the state allows and what waits on a synchronous id, or NULL. */
	int (*call)(struct rdma_cm_id *id);
};

extern const struct cm_state cm_states[];
extern const size_t cm_num_states;
/* Two of them by name. */
extern const struct cm_state *const cm_connecting, *const cm_connected;

/* With a queue pair if the state can have one. On a channel of its own if sync. */
void cm_subject_reach(struct cm_subject *s, const struct cm_state *state, bool qp, bool sync);
/* Destroys all there is; the fake must be clean then. */
void cm_subject_end(struct cm_subject *s);

/* Ends the test when the call failed; unlike Check's own, it costs nothing when it did not. */
#define CM_MUST(call) cm_must((call) == 0, #call)
void cm_must(bool ok, const char *what);

#endif
