#include "ev/cm/lookup.h"

#include <arpa/inet.h>
#include <event2/dns.h>
#include <event2/util.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ev/core/base.h"

/*
 * evdns may answer at once, and answers after it was cancelled as well. So the lookup lives until
 * evdns has answered and the answer was passed on from the base's queue.
 */
struct evr_lookup {
	struct evr_task task;
	struct evrdma_base *base;
	struct evdns_getaddrinfo_request *request; /* NULL: answered, or cancelled */
	struct evutil_addrinfo *addresses;
	int result;
	evr_lookup_cb cb;
	void *arg;
};

static void pass_on(struct evr_task *task)
{
	struct evr_lookup *lookup = evr_container_of(task, struct evr_lookup, task);

	lookup->cb(lookup->result, lookup->addresses, lookup->arg);
	free(lookup);
}

static void on_answer(int result, struct evutil_addrinfo *addresses, void *arg)
{
	struct evr_lookup *lookup = arg;

	lookup->request = NULL;
	lookup->result = result;
	lookup->addresses = addresses;
	evr_base_queue(lookup->base, &lookup->task);
}

/* Such as no name server knows, also where it is not an address of the family asked for. */
static bool is_no_name(const char *host)
{
	struct in_addr in;

	return !*host || strchr(host, ':') || inet_pton(AF_INET, host, &in) == 1;
}

struct evr_lookup *evr_lookup_start(struct evrdma_base *base, struct evdns_base *evdns, int family,
	const char *host, uint16_t port, evr_lookup_cb cb, void *arg)
{
	struct evutil_addrinfo hints = { .ai_family = family, .ai_socktype = SOCK_STREAM };
	struct evdns_getaddrinfo_request *request;
	struct evr_lookup *lookup = calloc(1, sizeof(*lookup));
	char service[8];

	if (!lookup)
		return NULL;
	lookup->task.run = pass_on;
	lookup->base = base;
	lookup->cb = cb;
	lookup->arg = arg;
	if (is_no_name(host))
		hints.ai_flags = EVUTIL_AI_NUMERICHOST;
	snprintf(service, sizeof(service), "%u", port);
	request = evdns_getaddrinfo(evdns, host, service, &hints, on_answer, lookup);
	/* NULL when it was answered already. */
	if (request)
		lookup->request = request;
	return lookup;
}

void evr_lookup_cancel(struct evr_lookup *lookup)
{
	struct evdns_getaddrinfo_request *request = lookup ? lookup->request : NULL;

	if (!request)
		return;
	lookup->request = NULL;
	evdns_getaddrinfo_cancel(request);
}
