/* A CM event as the kernel reported it, in a form that needs no care to read. */
#ifndef EVR_KERN_UCMA_EVENT_H
#define EVR_KERN_UCMA_EVENT_H

#include "kern/ucma_abi.h"

#include <stddef.h>
#include <stdint.h>

struct evr_ucma_event_data {
	const uint8_t *bytes; /* inside the event; NULL when there is none */
	uint8_t len;
};

struct evr_ucma_event {
	uint64_t uid;	 /* as given at CREATE_ID, JOIN_MCAST or ACCEPT; 0 before ACCEPT */
	uint32_t handle; /* of the id, the child of a connect request, or the membership */
	uint32_t type;
	int status;
	struct evr_ucma_ece ece;
	/* The kernel fills one of them; which, follows from the type of the id's queue pair. */
	union {
		struct evr_ucma_conn_param conn;
		struct evr_ucma_ud_param ud;
		uint32_t arg32[2]; /* in an event that was written: see below */
	} param;
};

/* Takes the next event off the channel; waits when there is none and the channel blocks. */
int evr_ucma_event_read(int fd, struct evr_ucma_event *event);
void evr_ucma_event_decode(const struct evr_ucma_resp_event *resp, struct evr_ucma_event *event);

struct evr_ucma_event_data evr_ucma_event_conn_data(const struct evr_ucma_event *event);
struct evr_ucma_event_data evr_ucma_event_ud_data(const struct evr_ucma_event *event);
/* What the writer of the event passed along. */
uint64_t evr_ucma_event_arg(const struct evr_ucma_event *event);

#endif
