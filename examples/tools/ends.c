#include "ends.h"

#include <errno.h>
#include <string.h>
#include <netinet/in.h>

static const struct tool_advice advice[] = {
	{ EVRDMA_STEP_LISTEN, EADDRINUSE, "another program has this port; choose another with -p" },
	{ EVRDMA_STEP_LISTEN, EADDRNOTAVAIL,
		"another program has this port, so choose another with -p, or this is no address "
		"of this machine (see ip address)" },
	{ EVRDMA_STEP_CONNECT, ECONNREFUSED,
		"see whether a server is running there, on the same port and on addresses of that "
		"family, and what it says" },
	{ EVRDMA_STEP_ADDR, EADDRNOTAVAIL, "connect from an address of this machine" },
	{ EVRDMA_STEP_DEVICE, EOPNOTSUPP, "the device cannot do that; iWARP has no datagrams" },
	{ EVRDMA_STEP_JOIN, EOPNOTSUPP, "the device joins no such group; rxe joins none of IPv6" },
	{ EVRDMA_STEP_DEVICE, 0, "the device may not have that many resources" },
	{ EVRDMA_STEP_TRANSFER, 0, "see what the other side says, and give both the same options" },
	{ EVRDMA_STEP_DISCONNECT, ETIMEDOUT, "the data is through, but the other side is gone" },
	{ EVRDMA_STEP_NONE, 0, NULL },
};

const struct sockaddr *ends_local(const struct ends *ends)
{
	const struct sockaddr *addr = (const struct sockaddr *)&ends->local.addr;

	return addr->sa_family == AF_UNSPEC ? NULL : addr;
}

const struct sockaddr *ends_remote(const struct ends *ends)
{
	return (const struct sockaddr *)&ends->remote.addr;
}

const char *ends_peer_text(const struct ends *ends)
{
	return ends->server ? ends->server : "client";
}

/* Where it connects from, when that is what is wrong. */
static const char *culprit(const struct ends *ends, const struct evrdma_error *error)
{
	int is_source = error->step == EVRDMA_STEP_ADDR && error->err == EADDRNOTAVAIL;

	return is_source && ends->bind ? ends->bind : ends_peer_text(ends);
}

void ends_fail_error(const struct ends *ends, const struct evrdma_error *error)
{
	tool_fail_error(ends->tool, culprit(ends, error), error, advice);
}

void ends_tell_error(const struct ends *ends, const struct evrdma_error *error)
{
	tool_tell_error(ends->tool, culprit(ends, error), error, advice);
}

const char *ends_error_text(char *text, const struct evrdma_error *error)
{
	return tool_error_text(text, error, advice);
}

void ends_fail_call(const struct ends *ends, enum evrdma_step step, int err)
{
	const struct evrdma_error error = { .err = err, .step = step, .cm_event = -1 };

	ends_fail_error(ends, &error);
}

void ends_tell_call(const struct ends *ends, enum evrdma_step step, int err)
{
	const struct evrdma_error error = { .err = err, .step = step, .cm_event = -1 };

	ends_tell_error(ends, &error);
}

void ends_fail_listen(const struct ends *ends, int err)
{
	if (err == EACCES && ends->port < IPPORT_RESERVED)
		tool_fail(ends->tool, "port %ld: %s; only root may use it, choose another with -p",
			ends->port, strerror(err));
	else if (!ends->bind && (err == EADDRINUSE || err == EADDRNOTAVAIL))
		tool_fail(ends->tool,
			"port %ld: %s; another program has it, choose another with -p", ends->port,
			strerror(err));
	else
		tool_fail_call(ends->tool, ends->bind ? ends->bind : "any address",
			EVRDMA_STEP_LISTEN, err, advice);
}

/* The source is known, so that the server's name is asked for in its family. */
static void find_remote(void *arg)
{
	struct ends *ends = arg;

	ends->remote.family = ends->local.addr.ss_family;
	address_lookup_start(&ends->remote);
}

static void fill(const struct ends *ends, struct address_lookup *lookup, const char *text,
	uint16_t port, address_lookup_cb cb)
{
	lookup->tool = ends->tool;
	lookup->text = text;
	lookup->format = ends->format;
	lookup->family = AF_UNSPEC;
	lookup->port_space = ends->port_space;
	lookup->port = port;
	lookup->timeout_s = ends->timeout_s;
	lookup->cb = cb;
	lookup->arg = ends->arg;
}

static void find_server(struct ends *ends)
{
	const char *any = "0.0.0.0";

	if (ends->format == ADDRESS_GID || ends->format == ADDRESS_IPV6)
		any = "::";
	fill(ends, &ends->local, ends->bind ? ends->bind : any, (uint16_t)ends->port, ends->cb);
	address_lookup_start(&ends->local);
}

void ends_find(struct ends *ends)
{
	if (!ends->server) {
		find_server(ends);
		return;
	}
	fill(ends, &ends->remote, ends->server, (uint16_t)ends->port, ends->cb);
	fill(ends, &ends->local, ends->bind, 0, find_remote);
	ends->local.arg = ends;
	address_lookup_start(ends->bind ? &ends->local : &ends->remote);
}
