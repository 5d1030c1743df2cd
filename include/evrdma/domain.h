/*
 * evrdma_domain: what the peers of one connection can reach is nothing of another's.
 *
 * A remote key opens its memory to every connection of the same protection domain. All connections
 * of a base are in one, unless they name a domain: a server that faces strangers gives each tenant,
 * or each listener, its own.
 *
 * Or what the bases of one process share: memory that loops in several threads serve is registered
 * once, under one key, with evrdma_buf_new_shared().
 */
#ifndef EVRDMA_DOMAIN_H
#define EVRDMA_DOMAIN_H

#ifdef __cplusplus
extern "C" {
#endif

struct evrdma_base;
struct evrdma_domain;

/*
 * Makes a domain for connections, listeners and endpoints of the base: it goes into their options.
 * Costs a protection domain on each device where it is used, and memory is registered once more
 * there. Returns NULL and sets errno: ENOMEM. Since 0.1.
 */
struct evrdma_domain *evrdma_domain_new(struct evrdma_base *base);

/*
 * Makes a domain that connections, listeners and endpoints of any base of the process may name.
 * Has one protection domain on each device where it is used, whichever bases do: that begins with
 * the first of them to come there, and ends, with all that is registered in it, when the last one
 * has left the device, device_idle_ms after it had a connection or endpoint there. A thread that
 * makes or ends any of it keeps the others waiting that want the same meanwhile.
 * Any thread. Returns NULL and sets errno: ENOMEM. Since 0.1.
 */
struct evrdma_domain *evrdma_domain_new_shared(void);

/*
 * Gives it up: it goes with the last object that uses it. Domains still there when the base is
 * closed go with it. NULL is fine. One of no base stays until it is given up, which any thread may
 * do, once no call that names it is under way or comes later; objects that name it keep it, and its
 * buffers stay what they are. Since 0.1.
 */
void evrdma_domain_free(struct evrdma_domain *domain);

#ifdef __cplusplus
}
#endif

#endif
