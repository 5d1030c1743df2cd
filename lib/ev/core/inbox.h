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

/* Any thread. 0, or -EPIPE when the base is closing. */
int evr_inbox_put(struct evrdma_base *base, struct evr_inbox_item *item);
/*
 * The same for what becomes an object there, also -EPIPE when the base is being shut down. In two
 * steps, with no lock held between them: what is announced the base waits for before it ends. Then
 * the item comes, or NULL when nothing will; the item is the base's thread's.
 */
int evr_inbox_announce(struct evrdma_base *base);
void evr_inbox_bring(struct evrdma_base *base, struct evr_inbox_item *item);

/* Any announcement from now on gives -EPIPE; puts go on. */
void evr_inbox_refuse_objects(struct evrdma_base *base);
/* Any put from now on gives -EPIPE; what is there or announced already will be delivered. */
void evr_inbox_close(struct evrdma_base *base);
/* Delivers what is there, as far as a turn's budget goes. Returns whether there is more to come. */
bool evr_inbox_deliver(struct evrdma_base *base);

#endif
