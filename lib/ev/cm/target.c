#include "ev/cm/target.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <limits.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>

#include "ev/cm/addr.h"

static int alloc(struct evr_targets *targets, size_t n)
{
	evr_targets_fini(targets);
	targets->list = calloc(n ? n : 1, sizeof(*targets->list));
	return targets->list ? 0 : -ENOMEM;
}

void evr_targets_fini(struct evr_targets *targets)
{
	free(targets->list);
	*targets = (struct evr_targets){ 0 };
}

static int add(struct evr_targets *targets, const struct sockaddr *src, const struct sockaddr *dst)
{
	struct evr_conn_target *target = &targets->list[targets->count];
	int ret = evr_addr_copy(&target->src, src);

	if (!ret)
		ret = evr_addr_copy(&target->dst, dst);
	if (!ret)
		targets->count++;
	return ret;
}

int evr_targets_set(
	struct evr_targets *targets, const struct sockaddr *src, const struct sockaddr *dst)
{
	int ret = alloc(targets, 1);

	return ret ? ret : add(targets, src, dst);
}

/* --- names ---------------------------------------------------------------------------------- */

int evr_targets_set_names(struct evr_targets *targets, const struct sockaddr *src,
	const struct evutil_addrinfo *addresses)
{
	const struct evutil_addrinfo *ai;
	size_t n = 0;
	int ret;

	for (ai = addresses; ai; ai = ai->ai_next)
		n++;
	ret = alloc(targets, n);
	if (ret)
		return ret;
	for (ai = addresses; ai; ai = ai->ai_next)
		if (!src || src->sa_family == ai->ai_addr->sa_family)
			add(targets, src, ai->ai_addr);
	return targets->count ? 0 : -EAFNOSUPPORT;
}

/* --- rdma_getaddrinfo() --------------------------------------------------------------------- */

static bool is_usable(const struct rdma_addrinfo *result)
{
	return result->ai_dst_addr && (!result->ai_qp_type || result->ai_qp_type == IBV_QPT_RC) &&
	       result->ai_connect_len <= EVR_TARGET_DATA_MAX;
}

/* A result's own source address comes first; the user's may be of another family. */
static const struct sockaddr *source_of(
	const struct rdma_addrinfo *result, const struct sockaddr *src)
{
	if (result->ai_src_addr)
		return result->ai_src_addr;
	return src && src->sa_family == result->ai_dst_addr->sa_family ? src : NULL;
}

static void add_result(
	struct evr_targets *targets, const struct sockaddr *src, const struct rdma_addrinfo *result)
{
	struct evr_conn_target *target = &targets->list[targets->count];

	if (!is_usable(result) || add(targets, source_of(result, src), result->ai_dst_addr))
		return;
	target->port_space = result->ai_port_space;
	target->data_len = result->ai_connect_len;
	if (target->data_len)
		memcpy(target->data, result->ai_connect, target->data_len);
}

int evr_targets_set_results(struct evr_targets *targets, const struct sockaddr *src,
	const struct rdma_addrinfo *results)
{
	const struct rdma_addrinfo *result;
	size_t n = 0;
	int ret;

	for (result = results; result; result = result->ai_next)
		n++;
	ret = alloc(targets, n);
	if (ret)
		return ret;
	for (result = results; result; result = result->ai_next)
		add_result(targets, src, result);
	return targets->count ? 0 : -EINVAL;
}

/* --- in turn -------------------------------------------------------------------------------- */

struct evr_conn_target *evr_targets_get(struct evr_targets *targets)
{
	return &targets->list[targets->at];
}

bool evr_targets_next(struct evr_targets *targets)
{
	if (targets->at + 1 >= targets->count)
		return false;
	targets->at++;
	return true;
}

bool evr_targets_other_port(struct evr_targets *targets)
{
	struct evr_conn_target *target;

	if (targets->at >= targets->count)
		return false;
	target = evr_targets_get(targets);
	if (evr_addr_has_port(&target->src) || target->ports == EVR_OTHER_PORTS)
		return false;
	target->ports++;
	return true;
}

int evr_targets_turn_ms(const struct evr_targets *targets, int turn_ms)
{
	unsigned turns;

	if (targets->at + 1 >= targets->count)
		return 0;
	for (turns = targets->list[targets->at].turns; turns && turn_ms <= INT_MAX / 2; turns--)
		turn_ms *= 2;
	return turn_ms;
}

void evr_targets_postpone(struct evr_targets *targets)
{
	struct evr_conn_target *at = evr_targets_get(targets);
	struct evr_conn_target postponed = *at;
	size_t others = targets->count - targets->at - 1;

	postponed.turns++;
	memmove(at, at + 1, others * sizeof(*at));
	at[others] = postponed;
}

void evr_targets_settle(struct evr_targets *targets)
{
	targets->count = 0;
}
