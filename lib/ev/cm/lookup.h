/* A name looked up through the user's evdns_base, which is in use until the callback. */
#ifndef EVR_EV_LOOKUP_H
#define EVR_EV_LOOKUP_H

#include <event2/util.h>
#include <stdint.h>

struct evdns_base;
struct evrdma_base;
struct evr_lookup;

/* result is EVUTIL_EAI_* or 0; the addresses are the callee's, for evutil_freeaddrinfo(). */
typedef void (*evr_lookup_cb)(int result, struct evutil_addrinfo *addresses, void *arg);

/*
 * Starts. The callback comes from a later turn of the loop, once, and the lookup is gone then:
 * only then has evdns let go of it, whose own cancelling takes a turn and needs the evdns_base.
 * NULL for want of memory.
 */
struct evr_lookup *evr_lookup_start(struct evrdma_base *base, struct evdns_base *evdns, int family,
	const char *host, uint16_t port, evr_lookup_cb cb, void *arg);
/*
 * Makes the callback come soon, with EVUTIL_EAI_CANCEL unless there is an answer already. A second
 * call changes nothing. NULL is fine.
 */
void evr_lookup_cancel(struct evr_lookup *lookup);

#endif
