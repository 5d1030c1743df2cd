/* A connection request that nobody has answered yet. */
#ifndef EVR_EV_REQUEST_H
#define EVR_EV_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "ev/cm/cmid.h"
#include "ev/cm/slots.h"
#include "ev/core/inbox.h"
#include "ev/core/obj.h"
#include "ev/core/timer.h"

#include <evrdma/listener.h>

struct evrdma_request {
	struct evr_obj obj;
	struct evr_cmid cmid;
	TAILQ_ENTRY(evrdma_request) waiting_link;
	struct evr_request_list *waiting_on; /* the list of a disabled listener, or NULL */
	struct sockaddr_storage peer_addr;
	unsigned char private_data[255];
	size_t private_data_len;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	bool for_dgram;

	/* From its listener, while it is on that one's base: NULL and none after. */
	struct evrdma_listener *listener;
	TAILQ_ENTRY(evrdma_request) listener_link;
	struct evrdma_domain *domain; /* for a connection that has none of its own, or NULL */
	struct evrdma_srq *srq;
	int ack_timeout;         /* the same, or -1 */
	struct evr_slots *slots; /* one is held, or NULL */
	bool pending;            /* nobody has answered, and it has not ended */

	int timeout_ms;
	uint64_t end_us; /* of that */
	struct evr_timer timer;
	int err; /* why it was rejected already: late, its device was removed, ... */

	/* on its way to another base */
	struct evr_inbox_item item;
	evrdma_request_cb cb;
	void *arg;
};

TAILQ_HEAD(evr_request_list, evrdma_request);

/*
 * Takes over the id of a CONNECT_REQUEST. NULL, with the id still the caller's: no memory. The
 * caller sets what comes from the listener, and starts the timer.
 */
struct evrdma_request *evr_request_new(
	struct evrdma_base *base, const struct rdma_cm_event *event);
void evr_request_start_timer(struct evrdma_request *request);
/* 0, -EPIPE when it is being closed, or why it has ended. */
int evr_request_check(const struct evrdma_request *request);
/* Somebody took it over, with what it needs of it but the slot. The request ends. */
struct evr_slots *evr_request_accepted(struct evrdma_request *request);
/* Nobody did. */
void evr_request_close(struct evrdma_request *request);

#endif
