/*
 * evrdma_pool and evrdma_buf: registered memory.
 *
 * A pool hands out buffers of one size, carved from page-aligned slabs. A slab is registered with a
 * device when one of its buffers is first used there.
 *
 * A buffer is counted. evrdma_pool_get() gives it with one reference, the caller's. From submit to
 * completion the library holds a reference of its own, and the contents belong to the library;
 * when the last reference goes the buffer is back in its pool. So a buffer may be unreferenced
 * right after it was sent.
 */
#ifndef EVRDMA_BUF_H
#define EVRDMA_BUF_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct evrdma_base;
struct evrdma_pool;
struct evrdma_buf;

/*
 * Makes a pool of buffers of buf_size bytes each (at least 1), at most max_bufs of them (0: no
 * limit). Memory is taken as it is needed, a slab of about 256 KiB at a time. A datagram is
 * received behind 40 bytes of address header, for which the buffer must have room.
 * Returns NULL and sets errno: EINVAL (buf_size is 0 or larger than 1 GiB), ENOMEM. Since 0.1.
 */
struct evrdma_pool *evrdma_pool_new(struct evrdma_base *base, size_t buf_size, size_t max_bufs);

/*
 * Gives the pool up. Its memory goes when the last buffer is back, and the last connection that
 * receives into it is closed. Pools still there when the base is closed are given up with it;
 * then, too, buffers that the caller holds stay valid. NULL is fine. Since 0.1.
 */
void evrdma_pool_free(struct evrdma_pool *pool);

/*
 * Takes a buffer, with one reference. Returns NULL and sets errno: ENOBUFS (the pool's limit),
 * ENOMEM. Since 0.1.
 */
struct evrdma_buf *evrdma_pool_get(struct evrdma_pool *pool);

/* The size of the pool's buffers in bytes. Since 0.1. */
size_t evrdma_pool_buf_size(const struct evrdma_pool *pool);

/* Adds and drops a reference. NULL is fine. Since 0.1. */
struct evrdma_buf *evrdma_buf_ref(struct evrdma_buf *buf);
void evrdma_buf_unref(struct evrdma_buf *buf);

/* What peers may do with the memory of a reference, once it was exposed to them. */
#define EVRDMA_BUF_OPT_REMOTE_READ 0x1u   /* read it */
#define EVRDMA_BUF_OPT_REMOTE_WRITE 0x2u  /* write to it */
#define EVRDMA_BUF_OPT_REMOTE_ATOMIC 0x4u /* compare and swap, fetch and add; with REMOTE_WRITE */

/* The memory is the caller's again, and registered nowhere. */
typedef void (*evrdma_buf_cleanup_cb)(void *data, size_t size, void *arg);

/*
 * Makes a buffer of the caller's own memory, with one reference, to send from it and receive into
 * it without a copy. The memory is registered with a device when the buffer is first used there,
 * which is slow and counts against the limit of locked memory (RLIMIT_MEMLOCK), and stays so until
 * the last reference goes; then cleanup (which may be NULL) is called, inside evrdma_buf_unref() or
 * after the last completion. Any base of the same thread may use it, and it must be given up before
 * that thread's bases are used by another. flags are EVRDMA_BUF_OPT_*.
 * Returns NULL and sets errno: EINVAL (no memory, or an unknown flag), ENOMEM. Since 0.1.
 */
struct evrdma_buf *evrdma_buf_new_reference(
	void *data, size_t size, unsigned flags, evrdma_buf_cleanup_cb cleanup, void *arg);

/* A buffer's memory, in a pool aligned to 64 bytes, and its size in bytes. Since 0.1. */
void *evrdma_buf_data(struct evrdma_buf *buf);
size_t evrdma_buf_size(const struct evrdma_buf *buf);

#ifdef __cplusplus
}
#endif

#endif
