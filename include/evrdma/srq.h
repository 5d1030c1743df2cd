/* evrdma_srq: receive buffers that many connections share. */
#ifndef EVRDMA_SRQ_H
#define EVRDMA_SRQ_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct evrdma_base;
struct evrdma_pool;
struct evrdma_srq;

/*
 * Keeps depth buffers of the pool posted for all connections and endpoints that name it in their
 * options, in place of buffers for each: a server's memory then follows its traffic, not the number
 * of its connections. 1 to 65536; a device's limit shows when the first connection is made
 * (EINVAL or ENOMEM with EVRDMA_STEP_DEVICE). A peer that finds no buffer waits and tries again, as
 * its RNR retry count says. When the device's queue breaks, the connections on it end with their
 * error, and those that come later are on a new one.
 *
 * Returns NULL and sets errno: EINVAL (no pool, another base's, or depth out of range), ENOMEM.
 * Since 0.1.
 */
struct evrdma_srq *evrdma_srq_new(
	struct evrdma_base *base, struct evrdma_pool *pool, uint32_t depth);

/*
 * Fewer buffers than the limit are posted on one device, in one domain. It comes once: the limit is
 * to be set again, which may be done in the callback.
 */
typedef void (*evrdma_srq_limit_cb)(struct evrdma_srq *srq, void *arg);

/*
 * Watches for a queue that runs low, with the device's own limit: messages came faster than their
 * buffers were released. At most depth; 0, with which cb may be NULL, watches no longer. Costs a
 * verbs call for each device and domain where the queue is in use; where it comes into use later
 * the limit holds from then on, and a connection on a device that has none ends with its error.
 * Returns 0; -EINVAL (limit is more than depth, or there is no cb); what the device says, such as
 * -EOPNOTSUPP or -ENOSYS: then nothing is known of which devices watch. Since 0.1.
 */
int evrdma_srq_set_limit(
	struct evrdma_srq *srq, uint32_t limit, evrdma_srq_limit_cb cb, void *arg);

/*
 * Gives it up: it goes with the last connection that uses it, and its limit is told no more. Those
 * still there when the base is closed go with it. NULL is fine. Since 0.1.
 */
void evrdma_srq_free(struct evrdma_srq *srq);

#ifdef __cplusplus
}
#endif

#endif
