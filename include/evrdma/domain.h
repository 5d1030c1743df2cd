/*
 * evrdma_domain: what the peers of one connection can reach is nothing of another's.
 *
 * A remote key opens its memory to every connection of the same protection domain. All connections
 * of a base are in one, unless they name a domain: a server that faces strangers gives each tenant,
 * or each listener, its own.
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
 * Gives it up: it goes with the last object that uses it. Domains still there when the base is
 * closed go with it. NULL is fine. Since 0.1.
 */
void evrdma_domain_free(struct evrdma_domain *domain);

#ifdef __cplusplus
}
#endif

#endif
