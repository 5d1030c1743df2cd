#include "ev/connection/kept.h"

#include <errno.h>
#include <stdlib.h>

enum { FIRST_ROOM = 16 };

void evr_kept_fini(struct evr_kept *kept)
{
	free(kept->recvs);
}

/* The oldest comes first in the new ring. */
int evr_kept_reserve(struct evr_kept *kept, uint32_t room)
{
	struct evr_kept_recv *recvs;
	uint32_t i;

	if (room <= kept->room)
		return 0;
	recvs = calloc(room, sizeof(*recvs));
	if (!recvs)
		return -ENOMEM;
	for (i = 0; i < kept->count; i++)
		recvs[i] = kept->recvs[(kept->first + i) % kept->room];
	free(kept->recvs);
	kept->recvs = recvs;
	kept->room = room;
	kept->first = 0;
	return 0;
}

static int make_room(struct evr_kept *kept)
{
	if (kept->count < kept->room)
		return 0;
	return evr_kept_reserve(kept, kept->room ? 2 * kept->room : FIRST_ROOM);
}

int evr_kept_add(struct evr_kept *kept, const struct evrdma_recv *recv)
{
	struct evr_kept_recv *last;
	int ret = make_room(kept);

	if (ret)
		return ret;
	last = &kept->recvs[(kept->first + kept->count++) % kept->room];
	last->recv = *recv;
	if (recv->wc)
		last->wc = *recv->wc;
	evrdma_buf_ref(recv->buf);
	return 0;
}

void evr_kept_take(struct evr_kept *kept, struct evr_kept_recv *taken)
{
	*taken = kept->recvs[kept->first];
	if (taken->recv.wc)
		taken->recv.wc = &taken->wc;
	kept->first = (kept->first + 1) % kept->room;
	kept->count--;
}
