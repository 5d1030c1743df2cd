/* A connection request that nobody has answered yet. */
#ifndef EVR_EV_REQUEST_H
#define EVR_EV_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "ev/cmid.h"
#include "ev/inbox.h"
#include "ev/obj.h"

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
	int ack_timeout; /* for a connection that has none of its own, or -1 */

	/* on its way to another base */
	struct evr_inbox_item item;
	struct evrdma_base *from;
	evrdma_request_cb cb;
	void *arg;
};

TAILQ_HEAD(evr_request_list, evrdma_request);

/* Takes over the id of a CONNECT_REQUEST. NULL, with the id still the caller's: no memory. */
struct evrdma_request *evr_request_new(
	struct evrdma_base *base, const struct rdma_cm_event *event);
void evr_request_close(struct evrdma_request *request);

#endif
