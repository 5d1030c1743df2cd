#include "ev/datagram/peer.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "ev/cm/addr.h"
#include "ev/core/base.h"
#include "ev/core/error.h"
#include "ev/datagram/dgram.h"
#include "ev/datagram/reply.h"
#include "util/options.h"

/* The kernel asks for a neighbour's address three times, one second apart. */
enum { SENDER_TIMEOUT_MS = 4000 };

static const struct evrdma_peer_options default_options = {
	.timeout_ms = 5000,
};

void evrdma_peer_options_init_sized(struct evrdma_peer_options *options, size_t size)
{
	evr_options_init(options, size, &default_options, sizeof(default_options));
}

static struct evrdma_peer *of_obj(struct evr_obj *obj)
{
	return evr_container_of(obj, struct evrdma_peer, obj);
}

static void tell(
	struct evrdma_peer *peer, enum evrdma_peer_event event, const struct evrdma_error *error)
{
	if (peer->cb)
		peer->cb(peer, event, error, peer->arg);
}

static void fail(struct evrdma_peer *peer, const struct evrdma_error *error)
{
	if (peer->state == EVR_PEER_DOWN)
		return;
	evr_obj_end(&peer->obj);
	peer->err = error->err;
	if (peer->is_sender)
		evr_ah_note_in_vain(&peer->dgram->ahs, &peer->attr, error->err);
	tell(peer, EVRDMA_PEER_ERROR, error);
	if (peer->hidden)
		evr_obj_close(&peer->obj);
}

static void fail_errno(struct evrdma_peer *peer, int err, enum evrdma_step step)
{
	struct evrdma_error error;

	evr_error_set(&error, err, step);
	fail(peer, &error);
}

/* --- setup ---------------------------------------------------------------------------------- */

static void go_on(struct evrdma_peer *peer, enum evr_peer_next next)
{
	peer->next = next;
	evr_obj_work(&peer->obj);
}

static void set_scope(struct sockaddr_storage *addr, const struct sockaddr_storage *src)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)addr;

	if (addr->ss_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr))
		in6->sin6_scope_id = ((const struct sockaddr_in6 *)src)->sin6_scope_id;
}

/* From the endpoint's own address, so that it is the endpoint's device. */
static int resolve(struct evrdma_peer *peer)
{
	struct sockaddr_storage src;
	int ret = evr_dgram_source(peer->dgram, &src);

	if (!ret && peer->is_sender)
		set_scope(&peer->addr, &src);

	peer->step = evr_cmid_first_step(peer->obj.base);
	if (!ret)
		ret = evr_cmid_create(&peer->cmid, peer->obj.base, RDMA_PS_UDP);
	if (ret)
		return ret;
	if (rdma_resolve_addr(peer->cmid.cm, (struct sockaddr *)&src,
		    (struct sockaddr *)&peer->addr, peer->timeout_ms))
		return -errno;
	return 0;
}

static int resolve_route(struct evrdma_peer *peer)
{
	const struct rdma_cm_id *ours = peer->dgram->cmid.cm, *cm = peer->cmid.cm;

	if (!ours || cm->verbs != ours->verbs || cm->port_num != ours->port_num)
		return -EXDEV;
	peer->step = EVRDMA_STEP_ROUTE;
	return rdma_resolve_route(peer->cmid.cm, peer->timeout_ms) ? -errno : 0;
}

static int ask(struct evrdma_peer *peer)
{
	struct rdma_conn_param param = {
		.private_data = peer->private_data_len ? peer->private_data : NULL,
		.private_data_len = peer->private_data_len,
		.qp_num = evrdma_dgram_get_qp_num(peer->dgram),
	};

	peer->step = EVRDMA_STEP_CONNECT;
	return rdma_connect(peer->cmid.cm, &param) ? -errno : 0;
}

/* It has answered: nothing more is heard through the id. */
static int drop_id(struct evrdma_peer *peer)
{
	evr_cmid_destroy(&peer->cmid);
	return 0;
}

static int become_ready(struct evrdma_peer *peer)
{
	peer->state = EVR_PEER_READY;
	evr_timer_stop(&peer->deadline);
	go_on(peer, EVR_PEER_DROP_ID);
	tell(peer, EVRDMA_PEER_READY, NULL);
	return 0;
}

static void peer_work(struct evr_obj *obj)
{
	static int (*const steps[])(struct evrdma_peer *) = {
		[EVR_PEER_RESOLVE] = resolve,
		[EVR_PEER_FOUND] = become_ready,
		[EVR_PEER_CONNECT] = ask,
		[EVR_PEER_DROP_ID] = drop_id,
	};
	struct evrdma_peer *peer = of_obj(obj);
	int ret = steps[peer->next](peer);

	if (ret)
		fail_errno(peer, -ret, peer->step);
}

/* --- the CM's events ------------------------------------------------------------------------ */

static void keep_data(struct evrdma_peer *peer, const struct rdma_ud_param *param)
{
	if (!param->private_data || !param->private_data_len)
		return;
	memcpy(peer->peer_data, param->private_data, param->private_data_len);
	peer->peer_data_len = param->private_data_len;
}

static void on_established(struct evrdma_peer *peer, const struct rdma_ud_param *param)
{
	int ret = evr_dgram_get_ah(peer->dgram, &param->ah_attr, &peer->dest.ah);

	if (ret) {
		fail_errno(peer, -ret, EVRDMA_STEP_DEVICE);
		return;
	}
	keep_data(peer, param);
	peer->dest.qp_num = param->qp_num;
	peer->dest.qkey = param->qkey;
	become_ready(peer);
}

static void on_refused(struct evrdma_peer *peer, const struct rdma_cm_event *event)
{
	struct evrdma_error error;

	if (event->event == RDMA_CM_EVENT_REJECTED || event->event == RDMA_CM_EVENT_UNREACHABLE)
		keep_data(peer, &event->param.ud);
	evr_error_from_event(&error, event, peer->step);
	fail(peer, &error);
}

/* The kernel has his hardware address, and is not slow any more. */
static int on_sender(struct evrdma_peer *peer)
{
	int ret = -ENETDOWN;

	if (peer->dgram->state == EVR_DGRAM_UP)
		ret = evr_dgram_get_ah(peer->dgram, &peer->attr, &peer->dest.ah);
	if (ret)
		return ret;
	become_ready(peer);
	if (peer->hidden) {
		evr_replies_submit(peer);
		evr_obj_close(&peer->obj);
	}
	return 0;
}

static void on_address(struct evrdma_peer *peer)
{
	int ret = peer->is_sender ? on_sender(peer) : resolve_route(peer);

	if (ret)
		fail_errno(peer, -ret, peer->step);
}

static void on_setup_event(struct evrdma_peer *peer, const struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		on_address(peer);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		go_on(peer, EVR_PEER_CONNECT);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		on_established(peer, &event->param.ud);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
		on_refused(peer, event);
		break;
	default:
		break;
	}
}

static void on_event(struct evr_cmid *cmid, const struct rdma_cm_event *event)
{
	struct evrdma_peer *peer = evr_container_of(cmid, struct evrdma_peer, cmid);

	if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		fail_errno(peer, ENODEV, EVRDMA_STEP_REMOVAL);
	else if (peer->state == EVR_PEER_SETUP)
		on_setup_event(peer, event);
}

static void on_lost(struct evr_cmid *cmid, int err)
{
	struct evrdma_peer *peer = evr_container_of(cmid, struct evrdma_peer, cmid);

	fail_errno(peer, err, EVRDMA_STEP_CHANNEL);
}

static const struct evr_cmid_ops cmid_ops = { .event = on_event, .lost = on_lost };

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct evrdma_peer *peer = arg;

	fail_errno(peer, ETIMEDOUT, peer->step);
}

/* --- the end -------------------------------------------------------------------------------- */

bool evr_peer_is_ready(const struct evrdma_peer *peer)
{
	return peer->state == EVR_PEER_READY;
}

void evr_peer_end_with_dgram(struct evrdma_peer *peer)
{
	if (!peer->hidden && !peer->dgram->obj.closing)
		fail_errno(peer, ENETDOWN, EVRDMA_STEP_CONNECT);
	evr_obj_close(&peer->obj);
}

static int peer_end(struct evr_obj *obj)
{
	struct evrdma_peer *peer = of_obj(obj);

	evr_timer_stop(&peer->deadline);
	if (evr_replies_fail_one(peer))
		return -EAGAIN;
	evr_cmid_destroy(&peer->cmid);
	return evr_dest_end(&peer->dest);
}

static void peer_down(struct evr_obj *obj)
{
	of_obj(obj)->state = EVR_PEER_DOWN;
}

static void peer_closed(struct evr_obj *obj)
{
	tell(of_obj(obj), EVRDMA_PEER_CLOSED, NULL);
}

static void peer_free(struct evr_obj *obj)
{
	struct evrdma_peer *peer = of_obj(obj);

	TAILQ_REMOVE(&peer->dgram->peers, peer, link);
	evr_obj_continue(&peer->dgram->obj);
	free(peer);
}

static const struct evr_obj_class peer_class = {
	.down = peer_down,
	.work = peer_work,
	.end = peer_end,
	.closed = peer_closed,
	.free = peer_free,
};

/* --- the calls ------------------------------------------------------------------------------ */

static int load_options(struct evrdma_peer *peer, const struct evrdma_peer_options *given)
{
	struct evrdma_peer_options o = default_options;

	if (evr_options_load(&o, sizeof(o), given) || o.timeout_ms <= 0 ||
		o.private_data_len > EVR_PEER_DATA_MAX || (!o.private_data && o.private_data_len))
		return -EINVAL;
	peer->timeout_ms = o.timeout_ms;
	peer->private_data_len = (uint8_t)o.private_data_len;
	if (o.private_data_len)
		memcpy(peer->private_data, o.private_data, o.private_data_len);
	return 0;
}

static int init(struct evrdma_peer *peer, struct evrdma_dgram *dgram)
{
	int ret;

	if (dgram->state != EVR_DGRAM_UP)
		return -ENOTCONN;
	ret = evr_obj_init(&peer->obj, dgram->obj.base, &peer_class);
	if (ret)
		return ret;
	TAILQ_INIT(&peer->replies);
	peer->dgram = dgram;
	peer->dest.owner = &peer->obj;
	peer->cmid.owner = &peer->obj;
	peer->cmid.ops = &cmid_ops;
	evr_timer_assign(&peer->deadline, dgram->obj.base, on_deadline, peer);
	TAILQ_INSERT_TAIL(&dgram->peers, peer, link);
	return 0;
}

static int init_service(struct evrdma_peer *peer, struct evrdma_dgram *dgram,
	const struct sockaddr *addr, const struct evrdma_peer_options *options)
{
	int ret = load_options(peer, options);

	if (!ret && dgram->options.port_space != RDMA_PS_UDP)
		ret = -EOPNOTSUPP;
	if (!ret)
		ret = addr ? evr_addr_copy(&peer->addr, addr) : -EINVAL;
	return ret ? ret : init(peer, dgram);
}

struct evrdma_peer *evrdma_peer_new(struct evrdma_dgram *dgram, const struct sockaddr *addr,
	const struct evrdma_peer_options *options, evrdma_peer_event_cb cb, void *arg)
{
	struct evrdma_peer *peer = calloc(1, sizeof(*peer));
	int ret;

	if (!peer)
		return NULL;
	ret = init_service(peer, dgram, addr, options);
	if (ret) {
		free(peer);
		errno = -ret;
		return NULL;
	}
	peer->cb = cb;
	peer->arg = arg;
	evr_timer_start(&peer->deadline, peer->timeout_ms);
	go_on(peer, EVR_PEER_RESOLVE);
	return peer;
}

/* By IP, as the kernel looks for neighbours. */
static int keep_sender(struct evrdma_peer *peer, const struct evrdma_recv *recv)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&peer->addr;
	struct sockaddr_in in = { .sin_family = AF_INET };

	peer->is_sender = true;
	peer->timeout_ms = SENDER_TIMEOUT_MS;
	peer->dest.qp_num = recv->src_qp;
	peer->dest.qkey = peer->dgram->qkey;
	if (evrdma_dgram_get_sender(peer->dgram, recv, &peer->addr))
		return peer->dgram->is_infiniband ? 0 : -EINVAL;
	if (in6->sin6_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr))
		return 0;
	memcpy(&in.sin_addr, in6->sin6_addr.s6_addr + 12, sizeof(in.sin_addr));
	return evr_addr_copy(&peer->addr, (struct sockaddr *)&in);
}

static int init_sender(struct evrdma_peer *peer, struct evrdma_dgram *dgram,
	const struct evrdma_recv *recv, const struct ibv_ah_attr *attr)
{
	int ret;

	peer->dgram = dgram;
	peer->attr = *attr;
	ret = keep_sender(peer, recv);
	if (!ret)
		ret = evr_dgram_find_ah(dgram, attr, &peer->dest.ah);
	if (ret && ret != -ENOENT)
		return ret;
	ret = init(peer, dgram);
	if (ret) {
		evr_ah_unref(peer->dest.ah);
		return ret;
	}
	evr_timer_start(&peer->deadline, peer->timeout_ms);
	go_on(peer, peer->dest.ah ? EVR_PEER_FOUND : EVR_PEER_RESOLVE);
	return 0;
}

static int new_sender(struct evrdma_dgram *dgram, const struct evrdma_recv *recv,
	const struct ibv_ah_attr *attr, struct evrdma_peer **made)
{
	struct evrdma_peer *peer = calloc(1, sizeof(*peer));
	int ret = peer ? init_sender(peer, dgram, recv, attr) : -ENOMEM;

	if (ret)
		free(peer);
	else
		*made = peer;
	return ret;
}

int evr_peer_ask(struct evrdma_dgram *dgram, const struct evrdma_recv *recv,
	const struct ibv_ah_attr *attr, struct evrdma_peer **peer)
{
	int ret = new_sender(dgram, recv, attr, peer);

	if (!ret)
		(*peer)->hidden = true;
	return ret;
}

struct evrdma_peer *evrdma_peer_new_sender(struct evrdma_dgram *dgram,
	const struct evrdma_recv *recv, evrdma_peer_event_cb cb, void *arg)
{
	struct evrdma_peer *peer;
	struct ibv_ah_attr attr;
	int ret = evr_dgram_sender_attr(dgram, recv, &attr);

	if (!ret)
		ret = new_sender(dgram, recv, &attr, &peer);
	if (ret) {
		errno = -ret;
		return NULL;
	}
	peer->cb = cb;
	peer->arg = arg;
	return peer;
}

void evrdma_peer_close(struct evrdma_peer *peer)
{
	if (peer)
		evr_obj_close(&peer->obj);
}

uint32_t evrdma_peer_get_qp_num(const struct evrdma_peer *peer)
{
	return peer->dest.qp_num;
}

uint32_t evrdma_peer_get_qkey(const struct evrdma_peer *peer)
{
	return peer->dest.qkey;
}

const void *evrdma_peer_get_private_data(const struct evrdma_peer *peer, size_t *len)
{
	if (len)
		*len = peer->peer_data_len;
	return peer->peer_data_len ? peer->peer_data : NULL;
}
