/* What mckey knows of the causes of errors, and of what to do about them. */
#include "mckey.h"
#include "capability.h"

#include <errno.h>
#include <stdio.h>
#include <netinet/in.h>

#include <infiniband/ib.h>
#include <rdma/rdma_cma.h>

static const struct tool_advice advice[] = {
	{ EVRDMA_STEP_DEVICE, EINVAL,
		"the device does not take that many messages at once; make -C smaller" },
	{ EVRDMA_STEP_JOIN, EINVAL, "give -m the address of a multicast group" },
	{ EVRDMA_STEP_JOIN, 0, "see whether the device is up and knows multicast (rdma link)" },
	{ EVRDMA_STEP_NONE, 0, NULL },
};

static const char no_assigned_groups[] =
	"only InfiniBand assigns groups (-M 0, -m 0.0.0.0); give a group's address";

static int is_assigned(const struct mckey *test)
{
	const struct sockaddr *addr = (const struct sockaddr *)&test->remote.addr;
	const struct sockaddr_in *ipv4 = (const struct sockaddr_in *)addr;
	const struct sockaddr_in6 *ipv6 = (const struct sockaddr_in6 *)addr;
	const struct sockaddr_ib *ib = (const struct sockaddr_ib *)addr;

	if (addr->sa_family == AF_INET)
		return ipv4->sin_addr.s_addr == htonl(INADDR_ANY);
	if (addr->sa_family == AF_INET6)
		return IN6_IS_ADDR_UNSPECIFIED(&ipv6->sin6_addr);
	return !ib->sib_addr.sib_addr64[0] && !ib->sib_addr.sib_addr64[1];
}

static const char *missing_for_join(const struct mckey *test)
{
	if (is_assigned(test))
		return no_assigned_groups;
	if (test->options.raw_gid)
		return "only InfiniBand joins a group by its GID (-M); use -m";
	if (test->remote.addr.ss_family == AF_INET6)
		return "this device joins no IPv6 groups; give an IPv4 group";
	return NULL;
}

static int is_iwarp(const struct mckey *test)
{
	const struct mckey_node *node = test->nodes;

	return node->dgram && capability_is_iwarp(evrdma_dgram_get_cm_id(node->dgram));
}

static const char *missing_for_device(const struct mckey *test)
{
	if (is_iwarp(test))
		return "an iWARP device has no datagrams; use an InfiniBand or RoCE device";
	if (test->options.no_loopback)
		return "this device cannot block the loop-back of multicast (-l); leave -l out";
	return NULL;
}

static const char *missing_for_address(const struct mckey *test)
{
	if (test->options.port_space == RDMA_PS_IPOIB)
		return "only InfiniBand has the IPoIB port space (-p 0x0002); leave -p out";
	return is_assigned(test) ? no_assigned_groups : NULL;
}

/* What these options need, and the device has not; NULL when that is not the cause. */
static const char *missing_capability(const struct mckey *test, const struct evrdma_error *error)
{
	int unsupported = error->err == EOPNOTSUPP;

	if (error->step == EVRDMA_STEP_DEVICE && unsupported)
		return missing_for_device(test);
	if (!unsupported && error->err != EINVAL)
		return NULL;
	if (error->step == EVRDMA_STEP_ADDR)
		return missing_for_address(test);
	return error->step == EVRDMA_STEP_JOIN ? missing_for_join(test) : NULL;
}

void mckey_fail_error(struct mckey *test, const struct evrdma_error *error)
{
	const char *missing = missing_capability(test, error);
	char text[EVRDMA_ERROR_TEXT_MAX];

	if (test->tool.stopping)
		return;
	if (error->cm_event >= 0)
		printf("mckey: event: %s, error: %d\n",
			rdma_event_str((enum rdma_cm_event_type)error->cm_event), error->cm_status);
	if (missing)
		tool_fail(&test->tool, "%s: %s; %s", test->options.group,
			evrdma_error_text(error, text, sizeof(text)), missing);
	else
		tool_fail_error(&test->tool, test->options.group, error, advice);
}

void mckey_fail_call(struct mckey *test, enum evrdma_step step, int err)
{
	const struct evrdma_error error = { .err = err, .step = step, .cm_event = -1 };

	mckey_fail_error(test, &error);
}
