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
 *
 * In a program built with AddressSanitizer a buffer that was given back is poisoned until it is
 * taken again: whoever touches it is stopped.
 *
 * On iWARP memory that is read into is registered once more, with a key that the peer's answer
 * needs for writing. No other peer learns of it.
 */
#ifndef EVRDMA_BUF_H
#define EVRDMA_BUF_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct evrdma_base;
struct evrdma_domain;
struct evrdma_pool;
struct evrdma_buf;

/*
 * Makes a pool of buffers of buf_size bytes each (at least 1), at most max_bufs of them (0: no
 * limit). Memory is taken as it is needed, a slab of about 256 KiB at a time. A datagram is
 * received behind 40 bytes of address header, for which the buffer must have room.
 * Returns NULL and sets errno: EINVAL (buf_size is 0 or larger than 1 GiB), ENOMEM. Since 0.1.
 */
struct evrdma_pool *evrdma_pool_new(struct evrdma_base *base, size_t buf_size, size_t max_bufs);

/* Flags of a pool. */
#define EVRDMA_POOL_OPT_HUGE_PAGES 0x1u      /* slabs on huge pages of 2 MiB, as far as there are
                                                any; otherwise on plain ones */
#define EVRDMA_POOL_OPT_HUGE_PAGES_ONLY 0x2u /* on huge pages, or not at all: ENOMEM */

#define EVRDMA_POOL_OPT_POISON 0x4u          /* for debugging: buffers that are free are filled with
                                                0xdb, and when one is taken that was written to
                                                meanwhile, that goes to the log */

/* How a pool is made. Fill it with evrdma_pool_options_init(); it grows at its end only. */
struct evrdma_pool_options {
	size_t size;       /* set by evrdma_pool_options_init() */
	size_t max_bufs;   /* 0: no limit */
	size_t min_bufs;   /* 0: so many buffers get their memory at once, and keep it; no more than
	                      max_bufs when that is set */
	size_t alignment;  /* 64: of each buffer; a power of two, 8 to 4096 */
	size_t slab_bytes; /* 262144: memory taken at a time, and registered as one; as many buffers
	                      as fit, at least one; 4096 to 1 GiB, made up to whole pages */
	unsigned flags;     /* EVRDMA_POOL_OPT_*; of the two for huge pages ONLY is the stronger */
	unsigned buf_flags; /* 0: EVRDMA_BUF_OPT_*, what peers may do with a buffer once it was
	                       exposed to them. The key is that of its slab: a peer that has it
	                       reaches the slab's other buffers too, for as long as their memory is
	                       the pool's, whoever has them then. A pool for each tenant, or buffers
	                       of slab_bytes, which have a slab each, keep them apart */
};

void evrdma_pool_options_init_sized(struct evrdma_pool_options *options, size_t size);

/* Fills the options with their defaults. Any thread. Since 0.1. */
#define evrdma_pool_options_init(options)                                                          \
	evrdma_pool_options_init_sized((options), sizeof(*(options)))

/*
 * The same as evrdma_pool_new(), with options, which may be NULL for the defaults and are not kept.
 * Returns NULL and sets errno: EINVAL (also a value of the options that is out of range), ENOMEM
 * (also: no huge pages where there must be). Since 0.1.
 */
struct evrdma_pool *evrdma_pool_new_with_options(
	struct evrdma_base *base, size_t buf_size, const struct evrdma_pool_options *options);

/*
 * Buffers of the pool were to be received into, and cannot be: err says why they could not be
 * registered with a device, or have no memory (ENOMEM, EDQUOT, what verbs report). Whoever receives
 * goes on with the buffers that are posted already; it is tried again ten times a second. Comes
 * once for each connection, endpoint or shared queue that lacks buffers, until it lacks none.
 */
typedef void (*evrdma_pool_starved_cb)(struct evrdma_pool *pool, int err, void *arg);

/* Sets who is told, until evrdma_pool_free(). NULL: nobody but the log. Since 0.1. */
void evrdma_pool_set_starved_cb(struct evrdma_pool *pool, evrdma_pool_starved_cb cb, void *arg);

/*
 * Gives the system back what is free: all slabs of which nobody has a buffer, but those that
 * min_bufs needs. What they had registered is ended, which is slow. Returns how many bytes it was.
 * Since 0.1.
 */
size_t evrdma_pool_trim(struct evrdma_pool *pool);

/*
 * Gives the pool up. Its memory goes when the last buffer is back, and the last connection that
 * receives into it is closed. Pools still there when the base is closed are given up with it;
 * then, too, buffers that the caller holds stay valid, and the log tells how many they are, where
 * they were taken and their user pointers. NULL is fine. Since 0.1.
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

/* What peers may do with the memory of a reference, or of a pool, once it was exposed to them. */
#define EVRDMA_BUF_OPT_REMOTE_READ 0x1u   /* read it */
#define EVRDMA_BUF_OPT_REMOTE_WRITE 0x2u  /* write to it */
#define EVRDMA_BUF_OPT_REMOTE_ATOMIC 0x4u /* compare and swap, fetch and add; only with
                                             REMOTE_WRITE */

/* The memory is the caller's again, and registered nowhere. */
typedef void (*evrdma_buf_cleanup_cb)(void *data, size_t size, void *arg);

/*
 * Makes a buffer of the caller's own memory, with one reference, to send from it and receive into
 * it without a copy. The memory is registered with a device when the buffer is first used there,
 * which is slow and counts against the limit of locked memory (RLIMIT_MEMLOCK), and stays so until
 * the last reference goes; then cleanup (which may be NULL) is called, inside evrdma_buf_unref() or
 * after the last completion. Any base of the same thread may use it, and it must be given up before
 * that thread's bases are used by another. flags are EVRDMA_BUF_OPT_*.
 * Returns NULL and sets errno: EINVAL (no memory, an unknown flag, or REMOTE_ATOMIC without
 * REMOTE_WRITE), ENOMEM. Since 0.1.
 */
struct evrdma_buf *evrdma_buf_new_reference(
	void *data, size_t size, unsigned flags, evrdma_buf_cleanup_cb cleanup, void *arg);

/*
 * The same for all threads whose connections are in a domain of evrdma_domain_new_shared(): with
 * each of these, and with no others, any number of threads may use it at once. It is registered
 * once with each device, by the one that uses it first there, in that call, while others that want
 * it wait; all get the same key. That counts for no base, nor against its max_pinned_bytes. Its
 * references are counted for all threads; the thread that drops the last one, or has the last
 * completion, ends its registrations and calls cleanup.
 * What else is on it, the contents and the pointer of evrdma_buf_set_user(), is the program's to
 * guard. The domain may be given up before it.
 * Any thread. Returns NULL and sets errno: EINVAL (also: no domain, or one of a base), ENOMEM.
 * Since 0.1.
 */
struct evrdma_buf *evrdma_buf_new_shared(struct evrdma_domain *domain, void *data, size_t size,
	unsigned flags, evrdma_buf_cleanup_cb cleanup, void *arg);

/*
 * A pointer of the caller's on a buffer, of which the library makes nothing: NULL when the buffer
 * was made or taken out of its pool, and then what was set last, in callbacks too, until the last
 * reference goes. Since 0.1.
 */
void evrdma_buf_set_user(struct evrdma_buf *buf, void *user);
void *evrdma_buf_get_user(const struct evrdma_buf *buf);

/* A buffer's memory, in a pool aligned to 64 bytes, and its size in bytes. Since 0.1. */
void *evrdma_buf_data(struct evrdma_buf *buf);
size_t evrdma_buf_size(const struct evrdma_buf *buf);

#ifdef __cplusplus
}
#endif

#endif
