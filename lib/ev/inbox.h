/* What other threads hand to a base. */
#ifndef EVR_EV_INBOX_H
#define EVR_EV_INBOX_H

#include <stdbool.h>

#include "util/list.h"

struct evrdma_base;

struct evr_inbox_item {
	TAILQ_ENTRY(evr_inbox_item) link;
	/* Runs on the base's thread, once; the item is its own to free. */
	void (*deliver)(struct evrdma_base *base, struct evr_inbox_item *item);
};

TAILQ_HEAD(evr_inbox, evr_inbox_item);

int evr_inbox_init(struct evrdma_base *base);
void evr_inbox_fini(struct evrdma_base *base);

/*
 * Any thread. prepare (or NULL) runs under the inbox's lock when the base takes items, and may
 * refuse. 0, -EPIPE when the base is closing, or what prepare returned.
 */
int evr_inbox_put(struct evrdma_base *base, struct evr_inbox_item *item,
	int (*prepare)(struct evrdma_base *base, struct evr_inbox_item *item));

/* Any put from now on gives -EPIPE; what is there already will be delivered. */
void evr_inbox_close(struct evrdma_base *base);
/* Delivers what is there. */
void evr_inbox_deliver(struct evrdma_base *base);

#endif
