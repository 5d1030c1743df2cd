/* A buffer: registered memory with a count of those who hold it. */
#ifndef EVR_EV_BUF_H
#define EVR_EV_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ev/device/region.h"

#include <evrdma/buf.h>

struct evr_pd;

struct evrdma_buf {
	struct evr_region *region; /* the buffer is in it */
	void *data;
	size_t size;
	void *user;
	const void *taken_at; /* out of its pool: where in the program; NULL: to receive into */
	unsigned refs;	/* of a shared one, atomic */
	bool shared;	/* among threads */
	/* The last reference is gone. */
	void (*unused)(struct evrdma_buf *buf);
	struct evrdma_buf *next_free; /* in its pool */
};

/* What there is then. Only who shares a buffer pays for it. */
static inline unsigned evr_buf_count(struct evrdma_buf *buf, unsigned change)
{
	if (buf->shared)
		return __atomic_add_fetch(&buf->refs, change, __ATOMIC_ACQ_REL);
	return buf->refs += change;
}

/* As evrdma_buf_ref() and evrdma_buf_unref(), without the call. */
static inline struct evrdma_buf *evr_buf_ref(struct evrdma_buf *buf)
{
	if (buf)
		evr_buf_count(buf, 1);
	return buf;
}

static inline void evr_buf_unref(struct evrdma_buf *buf)
{
	if (buf && !evr_buf_count(buf, -1u))
		buf->unused(buf);
}

/* What verbs call the rights that EVRDMA_BUF_OPT_* give; -EINVAL when there are others. */
int evr_buf_access(unsigned flags);

/* What a key has to have besides for reading into it on iWARP: the peer writes the answer. */
enum { EVR_BUF_SINK = IBV_ACCESS_REMOTE_WRITE };

/*
 * The key of a buffer in a PD, with more rights, EVR_BUF_SINK, or 0; registers its region there the
 * first time, which is slow.
 */
static inline int evr_buf_lkey(
	struct evrdma_buf *buf, struct evr_pd *pd, int more, uint32_t *lkey)
{
	const struct ibv_mr *mr = evr_region_first_mr(buf->region, pd, more);
	int ret = mr ? 0 : evr_region_get_mr(buf->region, pd, more, &mr);

	if (!ret)
		*lkey = mr->lkey;
	return ret;
}

/* The key for a peer: -EACCES when the buffer was made without any right for peers. */
int evr_buf_rkey(struct evrdma_buf *buf, struct evr_pd *pd, uint32_t *rkey);

#endif
