#include "ev/datagram/dgram.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ev/cm/addr.h"
#include "ev/core/base.h"
#include "ev/core/error.h"
#include "ev/core/stats.h"
#include "util/options.h"

static const struct evrdma_dgram_options default_options = {
	.resolve_timeout_ms = 2000,
	.drain_timeout_ms = 1000,
	.send_depth = 64,
	.port_space = RDMA_PS_UDP,
	.join_timeout_ms = 10000,
};

/* The defaults that a program sees can receive, once it names a pool. */
static const uint32_t default_recv_depth = 64;

void evrdma_dgram_options_init_sized(struct evrdma_dgram_options *options, size_t size)
{
	struct evrdma_dgram_options defaults = default_options;

	defaults.recv_depth = default_recv_depth;
	evr_options_init(options, size, &defaults, sizeof(defaults));
}

/* --- telling -------------------------------------------------------------------------------- */

static void tell(struct evrdma_dgram *dgram, enum evrdma_dgram_event event,
	const struct evrdma_error *error)
{
	if (dgram->event_cb)
		dgram->event_cb(dgram, event, error, dgram->arg);
}

/* Whom it sends to ends at once, so that nothing is heard of them but that. */
static void end_members(struct evrdma_dgram *dgram)
{
	struct evrdma_mcast *group;
	struct evrdma_peer *peer;

	TAILQ_FOREACH (group, &dgram->groups, link)
		evr_mcast_end_with_dgram(group);
	TAILQ_FOREACH (peer, &dgram->peers, link)
		if (!peer->hidden)
			evr_peer_end_with_dgram(peer);
}

static void fail(struct evrdma_dgram *dgram, const struct evrdma_error *error)
{
	if (dgram->state == EVR_DGRAM_DOWN)
		return;
	evr_obj_end(&dgram->obj);
	tell(dgram, EVRDMA_DGRAM_ERROR, error);
	end_members(dgram);
}

static void fail_errno(struct evrdma_dgram *dgram, int err, enum evrdma_step step)
{
	struct evrdma_error error;

	evr_error_set(&error, err, step);
	fail(dgram, &error);
}

/* --- setup ---------------------------------------------------------------------------------- */

static struct sockaddr *given(struct sockaddr_storage *addr)
{
	return addr->ss_family ? (struct sockaddr *)addr : NULL;
}

static void go_on(struct evrdma_dgram *dgram)
{
	dgram->resolved = true;
	evr_obj_work(&dgram->obj);
}

static int resolve(struct evrdma_dgram *dgram)
{
	struct sockaddr *src = given(&dgram->src);
	struct sockaddr *dst = given(&dgram->dst);
	int ret = evr_cmid_create(
		&dgram->cmid, dgram->obj.base, (enum rdma_port_space)dgram->options.port_space);

	if (ret)
		return ret;
	if (src && rdma_bind_addr(dgram->cmid.cm, src))
		return -errno;
	if (dst && rdma_resolve_addr(
			   dgram->cmid.cm, src, dst, dgram->options.resolve_timeout_ms))
		return -errno;
	if (!dst && !dgram->cmid.cm->verbs)
		return -EADDRNOTAVAIL; /* a wildcard leads to no device */
	if (!dst)
		go_on(dgram);
	return 0;
}

static int find_mtu(struct evrdma_dgram *dgram)
{
	struct rdma_cm_id *cm = dgram->cmid.cm;
	struct ibv_port_attr port;
	int ret = ibv_query_port(cm->verbs, cm->port_num, &port);

	if (ret)
		return -abs(ret);
	dgram->mtu = (size_t)128 << port.active_mtu;
	dgram->is_infiniband = port.link_layer == IBV_LINK_LAYER_INFINIBAND;
	return 0;
}

/* The CM has given it to the QP; which one depends on the port space, and on InfiniBand's SA. */
static int find_qkey(struct evrdma_dgram *dgram)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int ret = ibv_query_qp(dgram->qp.qp, &attr, IBV_QP_QKEY, &init);

	if (!ret)
		dgram->qkey = attr.qkey;
	return -abs(ret);
}

static int make_qp(struct evrdma_dgram *dgram)
{
	int ret = evr_qp_prepare(&dgram->qp, &dgram->cmid);

	if (ret == -EAGAIN) {
		go_on(dgram);
		return 0;
	}
	if (!ret)
		ret = find_mtu(dgram);
	if (!ret)
		ret = evr_qp_bind(&dgram->qp, &dgram->cmid);
	if (!ret)
		ret = find_qkey(dgram);
	if (ret)
		return ret;
	dgram->state = EVR_DGRAM_UP;
	tell(dgram, EVRDMA_DGRAM_READY, NULL);
	return 0;
}

static void dgram_work(struct evr_obj *obj)
{
	struct evrdma_dgram *dgram = evr_container_of(obj, struct evrdma_dgram, obj);
	int ret;

	if (dgram->resolved) {
		ret = make_qp(dgram);
		if (ret)
			fail_errno(dgram, -ret, EVRDMA_STEP_DEVICE);
	} else {
		ret = resolve(dgram);
		if (ret)
			fail_errno(dgram, -ret, evr_cmid_first_step(obj->base));
	}
}

/* --- the CM's events ------------------------------------------------------------------------ */

static void on_event(struct evr_cmid *cmid, const struct rdma_cm_event *event)
{
	struct evrdma_dgram *dgram = evr_container_of(cmid, struct evrdma_dgram, cmid);
	struct evrdma_error error;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (dgram->state == EVR_DGRAM_SETUP)
			go_on(dgram);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
		evr_error_from_event(&error, event, EVRDMA_STEP_ADDR);
		fail(dgram, &error);
		break;
	case RDMA_CM_EVENT_MULTICAST_JOIN:
	case RDMA_CM_EVENT_MULTICAST_ERROR:
		evr_mcast_on_event(dgram, event);
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		fail_errno(dgram, ENODEV, EVRDMA_STEP_REMOVAL);
		break;
	case RDMA_CM_EVENT_ADDR_CHANGE:
		evr_ah_cache_retire_all(&dgram->ahs);
		memset(dgram->own_gids, 0, sizeof(dgram->own_gids));
		if (dgram->state == EVR_DGRAM_UP)
			tell(dgram, EVRDMA_DGRAM_ADDR_CHANGED, NULL);
		break;
	default:
		break;
	}
}

static void on_lost(struct evr_cmid *cmid, int err)
{
	fail_errno(evr_container_of(cmid, struct evrdma_dgram, cmid), err, EVRDMA_STEP_CHANNEL);
}

static const struct evr_cmid_ops cmid_ops = { .event = on_event, .lost = on_lost };

/* --- the QP's ------------------------------------------------------------------------------- */

static struct evrdma_dgram *of_qp(struct evr_qp *qp)
{
	return evr_container_of(qp, struct evrdma_dgram, qp);
}

void evr_dgram_look_drained(struct evrdma_dgram *dgram)
{
	if (dgram->obj.draining && evr_qp_has_sent_all(&dgram->qp))
		evr_obj_close(&dgram->obj);
}

static void on_sent(
	struct evr_qp *qp, const struct evr_send *send, const struct evrdma_error *error)
{
	evrdma_dgram_send_cb cb = (evrdma_dgram_send_cb)send->cb;

	evr_ah_unref(send->wr.ud.ah);
	if (send->cookie)
		evr_dest_send_over(send->cookie);
	if (cb)
		cb(of_qp(qp), send->buf, error, send->arg);
	evr_dgram_look_drained(of_qp(qp));
}

static void on_received(struct evr_qp *qp, const struct evrdma_recv *recv)
{
	struct evrdma_dgram *dgram = of_qp(qp);

	if (dgram->recv_cb)
		dgram->recv_cb(dgram, recv, dgram->arg);
}

static void on_failed(struct evr_qp *qp, const struct evrdma_error *error)
{
	fail(of_qp(qp), error);
}

static void on_flushed(struct evr_qp *qp)
{
	fail_errno(of_qp(qp), EIO, EVRDMA_STEP_TRANSFER);
}

static void on_writable(struct evr_qp *qp)
{
	struct evrdma_dgram *dgram = of_qp(qp);

	if (dgram->state == EVR_DGRAM_UP)
		tell(dgram, EVRDMA_DGRAM_WRITABLE, NULL);
}

static void on_drained(struct evr_qp *qp)
{
	evr_obj_continue(&of_qp(qp)->obj);
}

static const struct evr_qp_ops qp_ops = {
	.sent = on_sent,
	.received = on_received,
	.failed = on_failed,
	.flushed = on_flushed,
	.writable = on_writable,
	.drained = on_drained,
	.caught_up = on_drained,
};

/* --- the end -------------------------------------------------------------------------------- */

static int end_start(struct evrdma_dgram *dgram)
{
	evr_qp_set_error(&dgram->qp);
	evr_qp_start_drain(&dgram->qp, dgram->options.drain_timeout_ms);
	dgram->end = EVR_DGRAM_END_DRAIN;
	evr_obj_set_kind(&dgram->obj, EVR_TASK_RELEASE);
	return -EAGAIN;
}

static int end_drain(struct evrdma_dgram *dgram)
{
	if (!evr_qp_is_drained(&dgram->qp))
		return -EINPROGRESS;
	dgram->end = EVR_DGRAM_END_LEAVE;
	return -EAGAIN;
}

/* While there is a QP to detach. */
static int end_leave(struct evrdma_dgram *dgram)
{
	struct evrdma_mcast *group;

	TAILQ_FOREACH (group, &dgram->groups, link)
		evr_mcast_leave(group);
	dgram->end = EVR_DGRAM_END_QP;
	return -EAGAIN;
}

static int end_qp(struct evrdma_dgram *dgram)
{
	int ret = evr_qp_destroy(&dgram->qp, &dgram->cmid);

	if (ret)
		return ret;
	dgram->end = EVR_DGRAM_END_WAIT;
	return -EAGAIN;
}

/* Replies that wait for their receivers end after what was sent before them. */
static int end_wait(struct evrdma_dgram *dgram)
{
	struct evrdma_peer *peer;

	TAILQ_FOREACH (peer, &dgram->peers, link)
		evr_peer_end_with_dgram(peer);
	if (!TAILQ_EMPTY(&dgram->groups) || !TAILQ_EMPTY(&dgram->peers))
		return -EINPROGRESS;
	dgram->end = EVR_DGRAM_END_ID;
	return -EAGAIN;
}

static int end_id(struct evrdma_dgram *dgram)
{
	evr_ah_cache_clear(&dgram->ahs);
	evr_qp_put_device(&dgram->qp);
	evr_cmid_destroy(&dgram->cmid);
	return 0;
}

static int dgram_end(struct evr_obj *obj)
{
	static int (*const steps[])(struct evrdma_dgram *) = {
		[EVR_DGRAM_END_START] = end_start,
		[EVR_DGRAM_END_DRAIN] = end_drain,
		[EVR_DGRAM_END_LEAVE] = end_leave,
		[EVR_DGRAM_END_QP] = end_qp,
		[EVR_DGRAM_END_WAIT] = end_wait,
		[EVR_DGRAM_END_ID] = end_id,
	};
	struct evrdma_dgram *dgram = evr_container_of(obj, struct evrdma_dgram, obj);

	return steps[dgram->end](dgram);
}

static void dgram_down(struct evr_obj *obj)
{
	struct evrdma_dgram *dgram = evr_container_of(obj, struct evrdma_dgram, obj);

	dgram->state = EVR_DGRAM_DOWN;
	if (obj->closing)
		end_members(dgram);
}

static bool dgram_shutdown(struct evr_obj *obj)
{
	struct evrdma_dgram *dgram = evr_container_of(obj, struct evrdma_dgram, obj);

	if (dgram->state == EVR_DGRAM_UP && !evr_qp_has_sent_all(&dgram->qp))
		return true;
	evr_obj_close(obj);
	return false;
}

static void dgram_closed(struct evr_obj *obj)
{
	tell(evr_container_of(obj, struct evrdma_dgram, obj), EVRDMA_DGRAM_CLOSED, NULL);
}

static void dgram_free(struct evr_obj *obj)
{
	struct evrdma_dgram *dgram = evr_container_of(obj, struct evrdma_dgram, obj);

	evr_qp_fini(&dgram->qp);
	obj->base->stats.endpoints--;
	free(dgram);
}

static void dgram_dump(const struct evr_obj *obj, const struct evr_dump *to)
{
	const struct evrdma_dgram *dgram = evr_container_of(obj, struct evrdma_dgram, obj);
	char what[48];

	snprintf(what, sizeof(what), "endpoint %u", (unsigned)evrdma_dgram_get_qp_num(dgram));
	evr_dump_traffic(to, what, &dgram->qp.traffic);
}

void evrdma_dgram_get_stats_sized(
	const struct evrdma_dgram *dgram, struct evrdma_traffic_stats *stats, size_t size)
{
	evr_options_store(stats, size, &dgram->qp.traffic, sizeof(dgram->qp.traffic));
}

static const struct evr_obj_class dgram_class = {
	.down = dgram_down,
	.work = dgram_work,
	.end = dgram_end,
	.shutdown = dgram_shutdown,
	.closed = dgram_closed,
	.free = dgram_free,
	.dump = dgram_dump,
};

/* --- the calls ------------------------------------------------------------------------------ */

static bool has_room(const struct evrdma_pool *pool)
{
	return evrdma_pool_buf_size(pool) >= EVRDMA_DGRAM_HEADER_BYTES;
}

static bool can_receive(const struct evrdma_dgram_options *o)
{
	if (o->srq)
		return !o->recv_pool && has_room(o->srq->pool);
	return o->recv_depth ? o->recv_pool && has_room(o->recv_pool) : !o->recv_pool;
}

static bool options_valid(const struct evrdma_dgram_options *o)
{
	return o->resolve_timeout_ms > 0 && o->drain_timeout_ms > 0 &&
		o->join_timeout_ms > 0 && o->send_depth &&
		o->send_depth <= 65536 && o->send_queue <= 65536 && o->recv_depth <= 65536 &&
		o->low_water <= o->send_depth + o->send_queue &&
		!(o->flags & ~EVRDMA_DGRAM_OPT_NO_LOOPBACK) &&
		can_receive(o) &&
		(o->port_space == RDMA_PS_UDP || o->port_space == RDMA_PS_IPOIB);
}

static int init(struct evrdma_dgram *dgram, struct evrdma_base *base,
	const struct evrdma_dgram_options *options)
{
	struct evrdma_dgram_options *o = &dgram->options;
	struct evr_qp_config config;
	int ret;

	*o = default_options;
	if (evr_options_load(o, sizeof(*o), options) || !options_valid(o))
		return -EINVAL;
	config = (struct evr_qp_config){
		.type = IBV_QPT_UD,
		.send_depth = o->send_depth,
		.send_queue = o->send_queue,
		.recv_depth = o->recv_depth,
		.low_water = o->low_water,
		.create_flags = o->flags & EVRDMA_DGRAM_OPT_NO_LOOPBACK
			? IBV_QP_CREATE_BLOCK_SELF_MCAST_LB
			: 0,
		.header_bytes = EVRDMA_DGRAM_HEADER_BYTES,
		.recv_pool = o->recv_pool,
		.srq = o->srq,
		.domain = o->domain,
	};
	ret = evr_qp_init(&dgram->qp, base, &config, &qp_ops);
	if (ret)
		return ret;
	ret = evr_obj_init(&dgram->obj, base, &dgram_class);
	if (ret)
		evr_qp_fini(&dgram->qp);
	return ret;
}

struct evrdma_dgram *evrdma_dgram_new(
	struct evrdma_base *base, const struct evrdma_dgram_options *options)
{
	struct evrdma_dgram *dgram = calloc(1, sizeof(*dgram));
	int ret;

	if (!dgram)
		return NULL;
	ret = init(dgram, base, options);
	if (ret) {
		free(dgram);
		errno = -ret;
		return NULL;
	}
	dgram->cmid.owner = &dgram->obj;
	dgram->cmid.ops = &cmid_ops;
	evr_ah_cache_init(&dgram->ahs, base);
	base->stats.endpoints++;
	TAILQ_INIT(&dgram->groups);
	TAILQ_INIT(&dgram->peers);
	return dgram;
}

void evrdma_dgram_setcb(struct evrdma_dgram *dgram, evrdma_dgram_recv_cb recv_cb,
	evrdma_dgram_event_cb event_cb, void *arg)
{
	dgram->recv_cb = recv_cb;
	dgram->event_cb = event_cb;
	dgram->arg = arg;
}

int evrdma_dgram_open(
	struct evrdma_dgram *dgram, const struct sockaddr *src, const struct sockaddr *dst)
{
	int ret;

	if (dgram->obj.closing)
		return -EPIPE;
	if (dgram->state != EVR_DGRAM_NEW)
		return -EALREADY;
	if (!src && !dst)
		return -EINVAL;
	ret = evr_addr_copy(&dgram->src, src);
	if (!ret)
		ret = evr_addr_copy(&dgram->dst, dst);
	if (ret)
		return ret;
	dgram->state = EVR_DGRAM_SETUP;
	evr_obj_work(&dgram->obj);
	return 0;
}

size_t evrdma_dgram_get_mtu(const struct evrdma_dgram *dgram)
{
	return dgram->mtu;
}

uint32_t evrdma_dgram_get_qp_num(const struct evrdma_dgram *dgram)
{
	return dgram->qp.qp ? dgram->qp.qp->qp_num : 0;
}

void evrdma_dgram_close(struct evrdma_dgram *dgram)
{
	if (dgram)
		evr_obj_close(&dgram->obj);
}

struct rdma_cm_id *evrdma_dgram_get_cm_id(const struct evrdma_dgram *dgram)
{
	return dgram->cmid.cm;
}
