/*
 * A listener: listening from the start, until it is closed or its device is removed. A disabled one
 * keeps the requests in a list. One that is to listen again is away while its device is: it has no
 * id then, and tries for one from time to time.
 */
#ifndef EVR_EV_LISTENER_H
#define EVR_EV_LISTENER_H

#include <stdbool.h>
#include <stdint.h>

#include "ev/cm/cmid.h"
#include "ev/connection/request.h"
#include "ev/core/obj.h"
#include "ev/core/timer.h"

#include <evrdma/listener.h>
#include <evrdma/stats.h>

struct evrdma_listener {
	struct evr_obj obj;
	struct evr_cmid cmid;
	struct evrdma_listener_options options;
	evrdma_listener_request_cb request_cb;
	evrdma_listener_event_cb event_cb;
	void *arg;
	struct evr_request_list waiting;
	struct evr_request_list pending; /* by listener_link: those that it let in, on its base */
	struct evr_slots *slots;
	struct evrdma_listener_stats stats;
	bool disabled;
	bool limited; /* it was told, and nobody was let in since */
	uint16_t port;
	struct sockaddr_storage addr; /* with the port */
	bool away;
	bool due; /* to be tried */
	int again_err; /* said last, of what an attempt failed with */
	struct evr_timer again_timer;
	void *acceptor; /* of whoever made it to accept by itself, or NULL */
	void (*gone)(struct evrdma_listener *listener); /* for the acceptor; may be NULL */
};

/* A pending request is no more so: somebody answered it, or it is late, or went elsewhere. */
void evr_listener_settled(struct evrdma_listener *listener, struct evrdma_request *request);

#endif
