/*
 * Receives that are complete and were not told yet, in the order they came: a copy of what is said
 * of each, and a reference to its buffer.
 */
#ifndef EVR_EV_KEPT_H
#define EVR_EV_KEPT_H

#include <infiniband/verbs.h>
#include <stdint.h>

#include <evrdma/conn.h>

struct evr_kept_recv {
	struct evrdma_recv recv;
	struct ibv_wc wc;
};

/* Zeroed, it is empty. */
struct evr_kept {
	struct evr_kept_recv *recvs; /* a ring */
	uint32_t room;
	uint32_t first;
	uint32_t count;
};

void evr_kept_fini(struct evr_kept *kept);
/* Makes room for so many in all: 0 or -ENOMEM. */
int evr_kept_reserve(struct evr_kept *kept, uint32_t room);
/* 0 or -ENOMEM, which cannot be while there is room. */
int evr_kept_add(struct evr_kept *kept, const struct evrdma_recv *recv);
/* The oldest of those that there are, with the reference; the copy points to itself. */
void evr_kept_take(struct evr_kept *kept, struct evr_kept_recv *taken);

#endif
