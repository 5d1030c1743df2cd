/* What ucmatose knows of the causes of errors, and of what to do about them. */
#include "ucmatose.h"
#include "capability.h"

#include <errno.h>

#include <rdma/rdma_cma.h>

static const struct tool_advice advice[] = {
	{ EVRDMA_STEP_LISTEN, EADDRINUSE,
		"another program has this port; choose one with -p, on both sides" },
	{ EVRDMA_STEP_LISTEN, EADDRNOTAVAIL,
		"another program has this port on other addresses (choose one with -p), or -b is "
		"no address of this machine (see ip address)" },
	{ EVRDMA_STEP_CONNECT, ECONNREFUSED,
		"see whether a server is running there, with the same -p, -P and -c" },
	{ EVRDMA_STEP_DEVICE, EINVAL,
		"the device does not take that many messages at once; make -C smaller" },
	{ EVRDMA_STEP_TRANSFER, EMSGSIZE, "give both sides the same -S, one the device can send" },
	{ EVRDMA_STEP_TRANSFER, 0, "see what the other side says, and give both the same options" },
	{ EVRDMA_STEP_DISCONNECT, ETIMEDOUT, "the data is through, but the other side is gone" },
	{ EVRDMA_STEP_NONE, 0, NULL },
};

static const char no_gids[] =
	"the addresses of -f gid (AF_IB) need an InfiniBand device; give IP addresses";
static const char no_port_space[] =
	"the port space of -P ib needs an InfiniBand or RoCE device; use -P tcp";

const char *ucmatose_missing_here(const struct ucmatose *test)
{
	const struct ucmatose_options *options = &test->options;

	if (options->format == ADDRESS_GID && !capability_infiniband())
		return no_gids;
	if (options->port_space == RDMA_PS_IB && !capability_ib_transport())
		return no_port_space;
	return NULL;
}

const char *ucmatose_missing_at(const struct ucmatose *test, const struct rdma_cm_id *id)
{
	if (test->options.port_space == RDMA_PS_IB && capability_is_iwarp(id))
		return no_port_space;
	return NULL;
}

void ucmatose_fail_error(struct ucmatose *test, const char *what, const struct evrdma_error *error)
{
	tool_fail_error(&test->tool, what, error, advice);
}

void ucmatose_fail_call(struct ucmatose *test, const char *what, enum evrdma_step step, int err)
{
	const struct evrdma_error error = { .err = err, .step = step, .cm_event = -1 };

	ucmatose_fail_error(test, what, &error);
}
