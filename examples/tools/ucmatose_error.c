/* What ucmatose knows of the causes of errors, and of what to do about them. */
#include "ucmatose.h"

#include <errno.h>

#include <rdma/rdma_cma.h>

static const struct tool_advice advice[] = {
	{ EVRDMA_STEP_LISTEN, EADDRINUSE,
		"another program has this port; choose one with -p, on both sides" },
	{ EVRDMA_STEP_CONNECT, ECONNREFUSED,
		"see whether a server is running there, with the same -p, -P and -c" },
	{ EVRDMA_STEP_CONNECT, ENOMEM,
		"allow more locked memory (ulimit -l), or make -c, -C or -S smaller" },
	{ EVRDMA_STEP_DEVICE, EINVAL,
		"the device does not take that many messages at once; make -C smaller" },
	{ EVRDMA_STEP_TRANSFER, EMSGSIZE, "give both sides the same -S, one the device can send" },
	{ EVRDMA_STEP_TRANSFER, 0, "see what the other side says, and give both the same options" },
	{ EVRDMA_STEP_DISCONNECT, ETIMEDOUT, "the data is through, but the other side is gone" },
	{ EVRDMA_STEP_NONE, 0, NULL },
};

/* What this combination of options needs, and the device has not; NULL when that is not the cause.
 */
static const char *missing_capability(const struct ucmatose *test, const struct evrdma_error *error)
{
	if (error->err == EACCES || error->err == EPERM || error->err == ENOMEM)
		return NULL;
	if (error->step != EVRDMA_STEP_ADDR && error->step != EVRDMA_STEP_LISTEN &&
		error->step != EVRDMA_STEP_ROUTE)
		return NULL;
	if (test->options.format == ADDRESS_GID)
		return "the addresses of -f gid (AF_IB) need an InfiniBand device; give IP "
		       "addresses";
	if (test->options.port_space == RDMA_PS_IB && error->err != EADDRINUSE)
		return "the port space of -P ib needs an InfiniBand or RoCE device; use -P tcp";
	return NULL;
}

void ucmatose_fail_error(struct ucmatose *test, const char *what, const struct evrdma_error *error)
{
	const char *missing = missing_capability(test, error);
	char text[EVRDMA_ERROR_TEXT_MAX];

	if (missing)
		tool_fail(&test->tool, "%s: %s; %s", what,
			evrdma_error_text(error, text, sizeof(text)), missing);
	else
		tool_fail_error(&test->tool, what, error, advice);
}

void ucmatose_fail_call(struct ucmatose *test, const char *what, enum evrdma_step step, int err)
{
	const struct evrdma_error error = { .err = err, .step = step, .cm_event = -1 };

	ucmatose_fail_error(test, what, &error);
}
