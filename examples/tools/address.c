#include "address.h"
#include "common.h"

#include <errno.h>
#include <endian.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <arpa/inet.h>
#include <net/if.h>
#include <sys/time.h>

#include <event2/dns.h>
#include <event2/event.h>
#include <event2/util.h>
#include <infiniband/ib.h>

int address_format(const char *text)
{
	static const struct {
		const char *prefix;
		enum address_format format;
	} formats[] = {
		{ "ipv6", ADDRESS_IPV6 },
		{ "ip", ADDRESS_IP },
		{ "gid", ADDRESS_GID },
		{ "name", ADDRESS_NAME },
	};

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (!strncasecmp(text, formats[i].prefix, strlen(formats[i].prefix)))
			return formats[i].format;
	return -1;
}

static int parse_gid(struct sockaddr_storage *addr, const char *text, int port_space, uint16_t port)
{
	struct sockaddr_ib *sib = (struct sockaddr_ib *)addr;

	if (inet_pton(AF_INET6, text, &sib->sib_addr) != 1)
		return -EINVAL;
	sib->sib_family = AF_IB;
	sib->sib_pkey = htobe16(0xffff);
	sib->sib_sid = htobe64((uint64_t)port_space << 16 | port);
	sib->sib_sid_mask = htobe64(UINT64_MAX);
	return 0;
}

/* A scope (fe80::1%eth0) is read too. This asks nobody. */
static int parse_ip(struct sockaddr_storage *addr, int family, const char *text, uint16_t port)
{
	const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
		.ai_family = family,
		.ai_socktype = SOCK_STREAM };
	struct addrinfo *found;
	char service[8];

	snprintf(service, sizeof(service), "%u", port);
	if (getaddrinfo(text, service, &hints, &found))
		return -EINVAL;
	memcpy(addr, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	return 0;
}

int address_parse(struct sockaddr_storage *addr, enum address_format format, const char *text,
	int port_space, uint16_t port)
{
	memset(addr, 0, sizeof(*addr));
	if (format == ADDRESS_GID)
		return parse_gid(addr, text, port_space, port);
	return parse_ip(addr, format == ADDRESS_IPV6 ? AF_INET6 : AF_UNSPEC, text, port);
}

const char *address_text(char *text, const struct sockaddr *addr)
{
	const socklen_t len = addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
							 : sizeof(struct sockaddr_in6);
	char node[INET6_ADDRSTRLEN + IF_NAMESIZE], service[8];

	if (getnameinfo(addr, len, node, sizeof(node), service, sizeof(service),
		    NI_NUMERICHOST | NI_NUMERICSERV))
		snprintf(text, ADDRESS_TEXT_MAX, "an address of InfiniBand");
	else
		snprintf(text, ADDRESS_TEXT_MAX, "%s port %s", node, service);
	return text;
}

/* A machine without a resolv.conf still has its hosts file, which is read before it. */
struct evdns_base *address_resolver(struct tool *tool)
{
	if (tool->evdns)
		return tool->evdns;
	tool->evdns = evdns_base_new(tool->event_base, EVDNS_BASE_DISABLE_WHEN_INACTIVE);
	if (!tool->evdns)
		tool_fail(tool, "cannot make a resolver: out of memory; give a numeric address");
	else
		evdns_base_resolv_conf_parse(tool->evdns, DNS_OPTIONS_ALL, "/etc/resolv.conf");
	return tool->evdns;
}

static void fail_lookup(struct address_lookup *lookup, int err, int eai)
{
	const struct evrdma_error error = {
		.err = err, .step = EVRDMA_STEP_NAME, .cm_event = -1, .eai = eai
	};

	tool_fail_error(lookup->tool, lookup->text, &error, NULL);
}

static void lookup_over(struct address_lookup *lookup)
{
	lookup->busy = 0;
	lookup->request = NULL;
	lookup->tool->lookup = NULL;
	event_free(lookup->timer);
	lookup->timer = NULL;
}

/* May run inside evdns_getaddrinfo(), for what the hosts file has. */
static void lookup_done(int eai, struct evutil_addrinfo *found, void *arg)
{
	struct address_lookup *lookup = arg;
	struct tool *tool = lookup->tool;

	lookup_over(lookup);
	if (lookup->timed_out)
		fail_lookup(lookup, ETIMEDOUT, 0);
	else if (eai)
		fail_lookup(lookup, ENOENT, eai);
	else
		memcpy(&lookup->addr, found->ai_addr, found->ai_addrlen);
	if (found)
		evutil_freeaddrinfo(found);
	if (!tool->stopping)
		lookup->cb(lookup->arg);
	tool_release(tool);
}

static void lookup_timed_out(evutil_socket_t fd, short what, void *arg)
{
	struct address_lookup *lookup = arg;

	lookup->timed_out = 1;
	address_lookup_cancel(lookup);
}

static int start_timer(struct address_lookup *lookup)
{
	const struct timeval timeout = { .tv_sec = lookup->timeout_s };

	lookup->timer = evtimer_new(lookup->tool->event_base, lookup_timed_out, lookup);
	if (!lookup->timer)
		return -ENOMEM;
	evtimer_add(lookup->timer, &timeout);
	return 0;
}

static void ask_evdns(struct address_lookup *lookup, struct evdns_base *evdns)
{
	const struct evutil_addrinfo hints = {
		.ai_family = lookup->family, .ai_socktype = SOCK_STREAM, .ai_protocol = IPPROTO_TCP
	};
	struct evdns_getaddrinfo_request *request;
	char service[8];

	lookup->busy = 1;
	lookup->tool->lookup = lookup;
	tool_hold(lookup->tool);
	snprintf(service, sizeof(service), "%u", lookup->port);
	request = evdns_getaddrinfo(evdns, lookup->text, service, &hints, lookup_done, lookup);
	if (lookup->busy)
		lookup->request = request;
}

static void look_up_name(struct address_lookup *lookup)
{
	struct evdns_base *evdns = address_resolver(lookup->tool);

	if (!evdns)
		return;
	if (start_timer(lookup))
		fail_lookup(lookup, ENOMEM, 0);
	else
		ask_evdns(lookup, evdns);
}

void address_lookup_start(struct address_lookup *lookup)
{
	if (!lookup->text[0])
		tool_fail(lookup->tool, "an address is empty; give one, or a name");
	else if (!address_parse(&lookup->addr, lookup->format, lookup->text, lookup->port_space,
			 lookup->port))
		lookup->cb(lookup->arg);
	else if (lookup->format == ADDRESS_NAME)
		look_up_name(lookup);
	else
		tool_fail(lookup->tool,
			"%s: not an address of the format that -f names; "
			"give one, or leave -f out",
			lookup->text);
}

void address_lookup_cancel(struct address_lookup *lookup)
{
	if (lookup->request)
		evdns_getaddrinfo_cancel(lookup->request);
}
