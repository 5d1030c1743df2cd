/* evrdma-perf: how long messages and connections of evrdma take, and how many there are a second.
 */
#include "perf.h"

#include <netinet/in.h>
#include <rdma/rdma_cma.h>

/* Few large completion queues for any number of connections; see siw in evrdma(7). */
enum { CQ_ENTRIES = 32768 };

uint32_t perf_window(long window, size_t size)
{
	size_t most = PERF_MEMORY_MAX / size;

	if (!most)
		most = 1;
	return (uint32_t)((size_t)window < most ? (size_t)window : most);
}

int perf_check(struct perf *perf, enum evrdma_step step, int ret)
{
	if (ret)
		ends_fail_call(&perf->ends, step, -ret);
	return ret;
}

/* --- does anything come ---------------------------------------------------------------------- */

/* What its progress counts. */
static const char *unit(const struct perf *perf)
{
	return perf->options.test == PERF_CONNECT ? "connections" : "messages";
}

static void silent(void *arg)
{
	struct perf *perf = arg;

	tool_fail(&perf->tool,
		"%s: nothing came for %ld s, after %llu %s; see what the other side says, or wait "
		"longer (-T)",
		ends_peer_text(&perf->ends), perf->options.patience_s,
		(unsigned long long)perf->watch.progress, unit(perf));
}

void perf_begin_watch(struct perf *perf, uint64_t goal)
{
	perf->watch.patience_s = perf->options.patience_s;
	perf->watch.cb = silent;
	perf->watch.arg = perf;
	if (perf_watch_start(&perf->watch, perf->tool.event_base, goal))
		tool_fail(&perf->tool, "out of memory");
}

/* --- the program ---------------------------------------------------------------------------- */

static int is_server(const struct perf *perf)
{
	return !perf->options.server && !perf->options.group;
}

/* That is how a server ends. */
static void interrupted(void *arg)
{
	struct perf *perf = arg;

	perf_watch_stop(&perf->watch);
	if (is_server(perf))
		tool_stop(&perf->tool);
	else
		tool_fail(&perf->tool, "interrupted after %llu %s",
			(unsigned long long)perf->watch.progress, unit(perf));
}

static int is_group(const struct perf *perf)
{
	return perf->options.group || perf->options.test == PERF_GROUP;
}

static int is_multicast(const struct sockaddr *addr)
{
	if (addr->sa_family == AF_INET)
		return IN_MULTICAST(ntohl(((const struct sockaddr_in *)addr)->sin_addr.s_addr));
	return IN6_IS_ADDR_MULTICAST(&((const struct sockaddr_in6 *)addr)->sin6_addr);
}

static int check_remote(struct perf *perf)
{
	if (is_server(perf) || is_group(perf) == is_multicast(ends_remote(&perf->ends)))
		return 0;
	tool_fail(&perf->tool,
		is_group(perf) ? "%s: not the address of a group, as 239.1.1.1 and ff05::1 are"
			       : "%s: the address of a group; give -t group, or a server",
		ends_peer_text(&perf->ends));
	return -1;
}

static int check_local(struct perf *perf)
{
	const struct sockaddr *local = ends_local(&perf->ends);

	if (is_server(perf) || !perf->options.bind ||
		local->sa_family == ends_remote(&perf->ends)->sa_family)
		return 0;
	tool_fail(&perf->tool, "%s: not of the family of %s; give two of IPv4 or two of IPv6",
		perf->options.bind, ends_peer_text(&perf->ends));
	return -1;
}

static void ends_found(void *arg)
{
	struct perf *perf = arg;

	if (check_remote(perf) || check_local(perf))
		return;
	if (perf->options.group)
		perf_group_receive(perf);
	else if (!perf->options.server)
		perf_server_start(perf);
	else if (perf->options.test == PERF_GROUP)
		perf_group_send(perf);
	else
		perf_client_start(perf);
}

/* For one who receives a group it is what ends_remote() finds, as for one who sends to it. */
static void find_ends(struct perf *perf)
{
	const struct perf_options *options = &perf->options;

	perf->ends.tool = &perf->tool;
	perf->ends.server = options->group ? options->group : options->server;
	perf->ends.bind = options->bind;
	perf->ends.port_space = is_group(perf) ? RDMA_PS_UDP : RDMA_PS_TCP;
	perf->ends.port = options->port;
	perf->ends.timeout_s = options->patience_s;
	perf->ends.cb = ends_found;
	perf->ends.arg = perf;
	ends_find(&perf->ends);
}

void perf_start(struct perf *perf)
{
	struct evrdma_base_options options;

	if (tool_init(&perf->tool, PERF, interrupted, perf))
		return;
	evrdma_base_options_init(&options);
	options.spin_us = (unsigned)perf->options.spin_us;
	options.cq_entries = CQ_ENTRIES;
	perf->base = tool_add_base(&perf->tool, &options);
	if (perf->base)
		find_ends(perf);
}

int perf_finish(struct perf *perf)
{
	int status = tool_run(&perf->tool);

	perf_watch_free(&perf->watch);
	perf_client_free(perf->client);
	perf_server_free(perf->server);
	perf_group_free(perf->group);
	tool_fini(&perf->tool);
	return status;
}
