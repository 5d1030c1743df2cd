/*
 * The life of every object of the event layer, in one place.
 *
 *   live  --evr_obj_end()-->  ending  --end() says done-->  ended
 *                                                             |  when evr_obj_close() was called,
 *                                                             v  before or since
 *                                                   closed callback, free
 *
 * All steps run from the base's task queue, so never inside a call or a callback of the user's:
 * that is why close is legal everywhere, and why an object outlives every callback in which it is
 * closed. The one task of an object is queued at most once, and frees the object as its last act.
 */
#ifndef EVR_EV_OBJ_H
#define EVR_EV_OBJ_H

#include <stdbool.h>

#include "ev/core/task.h"
#include "util/list.h"

struct evrdma_base;
struct evr_dump;
struct evr_obj;

struct evr_obj_class {
	/* The end began: no work is taken any more. Called once, at once. May be NULL. */
	void (*down)(struct evr_obj *obj);
	/* What evr_obj_work() asked for; not called once the object is ending. May be NULL. */
	void (*work)(struct evr_obj *obj);
	/*
	 * One step of the release, at most one slow kernel call. Returns 0 when all is released;
	 * -EAGAIN to be called in a later step; -EINPROGRESS when evr_obj_continue() will follow.
	 */
	int (*end)(struct evr_obj *obj);
	/*
	 * The base is being shut down. Returns whether the object is waited for, until its end
	 * begins. NULL: it stays as it is until the base is closed.
	 */
	bool (*shutdown)(struct evr_obj *obj);
	/*
	 * Closed, and released: whether something is left to be told before that. Then
	 * evr_obj_continue() will follow. May be NULL.
	 */
	bool (*tells)(struct evr_obj *obj);
	/* Tells the user that the object is closed. */
	void (*closed)(struct evr_obj *obj);
	void (*free)(struct evr_obj *obj);
	/* Tells what is counted of it. May be NULL. */
	void (*dump)(const struct evr_obj *obj, const struct evr_dump *to);
};

struct evr_obj {
	struct evrdma_base *base;
	const struct evr_obj_class *cls;
	TAILQ_ENTRY(evr_obj) link;
	struct evr_task task;
	bool ending;
	bool ended;
	bool closing;
	bool draining;
};

TAILQ_HEAD(evr_obj_list, evr_obj);

/* 0, or -EPIPE when the base is closing. */
int evr_obj_init(struct evr_obj *obj, struct evrdma_base *base, const struct evr_obj_class *cls);
/* Takes the object off its base without ceremony: it was never shown, or goes to another base. */
void evr_obj_leave(struct evr_obj *obj);
/* What it does next is of this kind. */
void evr_obj_set_kind(struct evr_obj *obj, enum evr_task_kind kind);
void evr_obj_work(struct evr_obj *obj);
void evr_obj_end(struct evr_obj *obj);
void evr_obj_continue(struct evr_obj *obj);
void evr_obj_shutdown(struct evr_obj *obj);
void evr_obj_close(struct evr_obj *obj);

#endif
