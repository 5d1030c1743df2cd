#include "ev/datagram/mcast.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ev/cm/addr.h"
#include "ev/core/base.h"
#include "ev/core/error.h"
#include "ev/datagram/dgram.h"

static struct evrdma_mcast *of_obj(struct evr_obj *obj)
{
	return evr_container_of(obj, struct evrdma_mcast, obj);
}

static void tell(struct evrdma_mcast *group, enum evrdma_mcast_event event,
	const struct evrdma_error *error)
{
	if (group->cb)
		group->cb(group, event, error, group->arg);
}

static void fail(struct evrdma_mcast *group, const struct evrdma_error *error)
{
	if (group->state == EVR_MCAST_DOWN)
		return;
	evr_obj_end(&group->obj);
	tell(group, EVRDMA_MCAST_ERROR, error);
}

static void fail_errno(struct evrdma_mcast *group, int err)
{
	struct evrdma_error error;

	evr_error_set(&error, err, EVRDMA_STEP_JOIN);
	fail(group, &error);
}

/* --- joining -------------------------------------------------------------------------------- */

/* Another membership of the same endpoint in the same group, or NULL. */
static struct evrdma_mcast *next_same(
	const struct evrdma_mcast *group, struct evrdma_mcast *other)
{
	while (other && (other == group || memcmp(&other->addr, &group->addr, sizeof(other->addr))))
		other = TAILQ_NEXT(other, link);
	return other;
}

/*
 * Of two memberships with one address Linux's rdma_leave_multicast() ends the later one, whichever
 * is left, and keeps a pointer to the one that is freed: an event that then comes of it is for
 * nobody, and never acknowledged. So the one that ends goes before the next begins.
 */
static void leave_same(struct evrdma_mcast *group)
{
	struct evrdma_mcast *other = TAILQ_FIRST(&group->dgram->groups);

	while ((other = next_same(group, other))) {
		evr_mcast_leave(other);
		other = TAILQ_NEXT(other, link);
	}
}

static bool is_there(const struct evrdma_mcast *group, const struct evrdma_dgram *dgram)
{
	struct evrdma_mcast *other = TAILQ_FIRST(&dgram->groups);

	while ((other = next_same(group, other)) && other->obj.ending)
		other = TAILQ_NEXT(other, link);
	return other;
}

static int join(struct evrdma_mcast *group)
{
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = group->flags & EVRDMA_MCAST_OPT_SENDONLY
			? RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER
			: RDMA_MC_JOIN_FLAG_FULLMEMBER,
		.addr = (struct sockaddr *)&group->addr,
	};

	if (!group->dgram->cmid.cm)
		return -ENOTCONN;
	leave_same(group);
	if (rdma_join_multicast_ex(group->dgram->cmid.cm, &attr, group))
		return -errno;
	group->asked = true;
	return 0;
}

/* Whatever answer comes now finds nobody who waits for it. */
static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	fail_errno(arg, ETIMEDOUT);
}

static void mcast_work(struct evr_obj *obj)
{
	int ret = join(of_obj(obj));

	if (ret)
		fail_errno(of_obj(obj), -ret);
}

static struct evrdma_mcast *find(struct evrdma_dgram *dgram, const void *context)
{
	struct evrdma_mcast *group;

	TAILQ_FOREACH (group, &dgram->groups, link)
		if (group == context)
			break;
	return group;
}

static void on_joined(struct evrdma_mcast *group, const struct rdma_ud_param *param)
{
	int ret;

	if (group->state != EVR_MCAST_JOINING)
		return;
	group->ah_attr = param->ah_attr;
	ret = evr_dgram_get_ah(group->dgram, &group->ah_attr, &group->dest.ah);
	if (ret) {
		fail_errno(group, -ret);
		return;
	}
	group->dest.qp_num = param->qp_num;
	group->dest.qkey = param->qkey;
	evr_timer_stop(&group->deadline);
	group->state = EVR_MCAST_MEMBER;
	group->joined = true;
	tell(group, EVRDMA_MCAST_JOINED, NULL);
}

void evr_mcast_on_event(struct evrdma_dgram *dgram, const struct rdma_cm_event *event)
{
	struct evrdma_mcast *group = find(dgram, event->param.ud.private_data);
	struct evrdma_error error;

	if (!group)
		return;
	if (event->event == RDMA_CM_EVENT_MULTICAST_JOIN) {
		on_joined(group, &event->param.ud);
		return;
	}
	evr_error_from_event(&error, event, EVRDMA_STEP_JOIN);
	fail(group, &error);
}

/* --- sending -------------------------------------------------------------------------------- */

bool evr_mcast_is_member(const struct evrdma_mcast *group)
{
	return group->state == EVR_MCAST_MEMBER;
}

/* --- the end -------------------------------------------------------------------------------- */

void evr_mcast_end_with_dgram(struct evrdma_mcast *group)
{
	struct evrdma_error error;

	if (group->state != EVR_MCAST_DOWN && !group->dgram->obj.closing) {
		evr_error_set(&error, ENETDOWN, EVRDMA_STEP_JOIN);
		fail(group, &error);
	}
	evr_obj_close(&group->obj);
}

void evr_mcast_leave(struct evrdma_mcast *group)
{
	if (group->asked)
		rdma_leave_multicast(group->dgram->cmid.cm, (struct sockaddr *)&group->addr);
	group->asked = false;
}

/* Leaves at once, and waits for what is still on its way. */
static int mcast_end(struct evr_obj *obj)
{
	struct evrdma_mcast *group = of_obj(obj);

	evr_mcast_leave(group);
	return evr_dest_end(&group->dest);
}

static void mcast_down(struct evr_obj *obj)
{
	evr_timer_stop(&of_obj(obj)->deadline);
	of_obj(obj)->state = EVR_MCAST_DOWN;
}

static void mcast_closed(struct evr_obj *obj)
{
	tell(of_obj(obj), EVRDMA_MCAST_CLOSED, NULL);
}

static void mcast_free(struct evr_obj *obj)
{
	struct evrdma_mcast *group = of_obj(obj);

	TAILQ_REMOVE(&group->dgram->groups, group, link);
	evr_obj_continue(&group->dgram->obj);
	free(group);
}

static const struct evr_obj_class mcast_class = {
	.down = mcast_down,
	.work = mcast_work,
	.end = mcast_end,
	.closed = mcast_closed,
	.free = mcast_free,
};

/* --- the calls ------------------------------------------------------------------------------ */

/* A RoCE datagram goes from a GID of one family to one of the same, or ends its QP. */
static bool is_of_another_family(const struct evrdma_mcast *group, const struct evrdma_dgram *dgram)
{
	return !dgram->is_infiniband && group->addr.ss_family != AF_IB &&
		group->addr.ss_family != rdma_get_local_addr(dgram->cmid.cm)->sa_family;
}

static int check_address(const struct evrdma_mcast *group, const struct evrdma_dgram *dgram)
{
	if (!evr_addr_is_group(&group->addr))
		return -EINVAL;
	if (is_of_another_family(group, dgram))
		return -EAFNOSUPPORT;
	return is_there(group, dgram) ? -EADDRINUSE : 0;
}

static int init(struct evrdma_mcast *group, struct evrdma_dgram *dgram,
	const struct sockaddr *addr, unsigned flags)
{
	int ret;

	if (flags & ~EVRDMA_MCAST_OPT_SENDONLY || !addr)
		return -EINVAL;
	if (dgram->state != EVR_DGRAM_UP)
		return -ENOTCONN;
	ret = evr_addr_copy(&group->addr, addr);
	if (!ret)
		ret = check_address(group, dgram);
	if (ret)
		return ret;
	return evr_obj_init(&group->obj, dgram->obj.base, &mcast_class);
}

struct evrdma_mcast *evrdma_mcast_join(struct evrdma_dgram *dgram, const struct sockaddr *addr,
	unsigned flags, evrdma_mcast_event_cb cb, void *arg)
{
	struct evrdma_mcast *group = calloc(1, sizeof(*group));
	int ret;

	if (!group)
		return NULL;
	ret = init(group, dgram, addr, flags);
	if (ret) {
		free(group);
		errno = -ret;
		return NULL;
	}
	group->dgram = dgram;
	group->dest.owner = &group->obj;
	group->flags = flags;
	group->cb = cb;
	group->arg = arg;
	TAILQ_INSERT_TAIL(&dgram->groups, group, link);
	evr_timer_assign(&group->deadline, dgram->obj.base, on_deadline, group);
	evr_timer_start(&group->deadline, dgram->options.join_timeout_ms);
	evr_obj_work(&group->obj);
	return group;
}

void evrdma_mcast_close(struct evrdma_mcast *group)
{
	if (group)
		evr_obj_close(&group->obj);
}

const struct ibv_ah_attr *evrdma_mcast_get_ah_attr(const struct evrdma_mcast *group)
{
	return group->joined ? &group->ah_attr : NULL;
}

uint32_t evrdma_mcast_get_qp_num(const struct evrdma_mcast *group)
{
	return group->dest.qp_num;
}

uint32_t evrdma_mcast_get_qkey(const struct evrdma_mcast *group)
{
	return group->dest.qkey;
}

const struct sockaddr *evrdma_mcast_get_addr(const struct evrdma_mcast *group)
{
	return (const struct sockaddr *)&group->addr;
}
