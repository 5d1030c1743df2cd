/* The thin layer's id: an evr_cmid whose every operation has a callback of its own. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <evrdma/id.h>

#include "ev/cm/addr.h"
#include "ev/cm/channel.h"
#include "ev/core/base.h"
#include "ev/core/error.h"

enum slot {
	SLOT_MAIN, /* resolve_addr, resolve_route, connect, accept: one at a time */
	SLOT_JOIN,
	SLOT_DISCONNECT,
	SLOT_COUNT
};

struct operation {
	evrdma_id_done_cb cb;
	void *arg;
	enum evrdma_step step;
	bool under_way;
};

struct membership {
	TAILQ_ENTRY(membership) link;
	struct sockaddr_storage addr;
};

TAILQ_HEAD(membership_list, membership);

struct evrdma_id {
	struct evr_obj obj;
	struct evr_cmid cmid;
	evrdma_id_event_cb event_cb;
	void *arg;
	struct operation operations[SLOT_COUNT];
	struct evr_timer deadline; /* of the main operation */
	bool accepted_now;     /* the accept of a datagram id, which no event answers */
	struct membership_list groups; /* that were joined, or asked to, and not left */
	struct sockaddr_storage joining;
	bool left_now; /* the group that is being joined */
	bool early; /* the disconnect: there was no connection yet */
};

static struct evrdma_id *of_cmid(struct evr_cmid *cmid)
{
	return evr_container_of(cmid, struct evrdma_id, cmid);
}

static struct evrdma_id *of_obj(struct evr_obj *obj)
{
	return evr_container_of(obj, struct evrdma_id, obj);
}

/* --- operations ----------------------------------------------------------------------------- */

/* All but resolving an address needs one. The kernel says so; the stock CM crashes instead. */
static bool has_device(const struct evrdma_id *id)
{
	return id->cmid.cm->verbs != NULL;
}

static int usable(const struct evrdma_id *id)
{
	return id->obj.closing || !id->cmid.cm ? -EPIPE : 0;
}

/* The same for what events answer. */
static int hears(const struct evrdma_id *id)
{
	int ret = usable(id);

	return ret ? ret : evr_cmid_check(&id->cmid);
}

static int begin(struct evrdma_id *id, enum slot slot, enum evrdma_step step,
	evrdma_id_done_cb cb, void *arg)
{
	struct operation *op = &id->operations[slot];
	int ret = usable(id);

	if (!ret)
		ret = op->under_way ? -EBUSY : evr_cmid_check(&id->cmid);
	if (ret)
		return ret;
	if (step != EVRDMA_STEP_ADDR && !has_device(id))
		return -EINVAL;
	*op = (struct operation){ .cb = cb, .arg = arg, .step = step };
	return 0;
}

/* ret is what the CM's call returned: 0, or -1 and errno. */
static int begun(struct evrdma_id *id, enum slot slot, int ret, int timeout_ms)
{
	if (ret)
		return evr_errno(-errno);
	id->operations[slot].under_way = true;
	if (timeout_ms)
		evr_timer_start(&id->deadline, timeout_ms);
	return 0;
}

static void end_operation(struct evrdma_id *id, enum slot slot, const struct evrdma_error *error,
	const struct rdma_cm_event *event)
{
	struct operation op = id->operations[slot];

	if (!op.under_way)
		return;
	id->operations[slot].under_way = false;
	if (slot == SLOT_MAIN)
		evr_timer_stop(&id->deadline);
	if (op.cb)
		op.cb(id, error, event, op.arg);
}

static void fail_at(struct evrdma_id *id, enum slot slot, int err, enum evrdma_step step)
{
	struct evrdma_error error;

	evr_error_set(&error, err, step);
	end_operation(id, slot, &error, NULL);
}

static void fail_operation(struct evrdma_id *id, enum slot slot, int err)
{
	fail_at(id, slot, err, id->operations[slot].step);
}

static void fail_all(struct evrdma_id *id, int err)
{
	int slot;

	for (slot = 0; slot < SLOT_COUNT; slot++)
		fail_operation(id, (enum slot)slot, err);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	fail_operation(arg, SLOT_MAIN, ETIMEDOUT);
}

/* --- events --------------------------------------------------------------------------------- */

static void tell(struct evrdma_id *id, const struct rdma_cm_event *event)
{
	if (id->event_cb)
		id->event_cb(id, event, id->arg);
	else if (event && event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		rdma_destroy_id(event->id);
}

/* The operation that an event answers, or SLOT_COUNT. */
static enum slot answered_slot(const struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_ESTABLISHED:
		return SLOT_MAIN;
	case RDMA_CM_EVENT_MULTICAST_JOIN:
	case RDMA_CM_EVENT_MULTICAST_ERROR:
		return SLOT_JOIN;
	case RDMA_CM_EVENT_DISCONNECTED:
		return SLOT_DISCONNECT;
	default:
		return SLOT_COUNT;
	}
}

static bool is_success(const struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
	case RDMA_CM_EVENT_ESTABLISHED:
	case RDMA_CM_EVENT_MULTICAST_JOIN:
	case RDMA_CM_EVENT_DISCONNECTED:
		return true;
	default:
		return false;
	}
}

static void answer(struct evrdma_id *id, enum slot slot, const struct rdma_cm_event *event)
{
	struct evrdma_error error;

	if (is_success(event)) {
		end_operation(id, slot, NULL, event);
		return;
	}
	evr_error_from_event(&error, event, id->operations[slot].step);
	end_operation(id, slot, &error, event);
}

/*
 * Asked to disconnect while it shakes hands, the kernel does nothing, and says so to nobody: it is
 * asked again when there is a connection. Without one there is nothing to end.
 */
static void go_on_disconnecting(struct evrdma_id *id, const struct rdma_cm_event *event)
{
	bool early = id->early && id->operations[SLOT_DISCONNECT].under_way && !id->obj.closing;

	if (!early || answered_slot(event) != SLOT_MAIN)
		return;
	if (!is_success(event))
		answer(id, SLOT_DISCONNECT, event);
	else if (event->event == RDMA_CM_EVENT_ESTABLISHED)
		rdma_disconnect(id->cmid.cm);
}

static void on_event(struct evr_cmid *cmid, const struct rdma_cm_event *event)
{
	struct evrdma_id *id = of_cmid(cmid);
	enum slot slot = answered_slot(event);

	if (id->obj.closing) {
		if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
			rdma_destroy_id(event->id);
		return;
	}
	if (slot != SLOT_COUNT && id->operations[slot].under_way)
		answer(id, slot, event);
	else
		tell(id, event);
	go_on_disconnecting(id, event);
}

static void on_lost(struct evr_cmid *cmid, int err)
{
	int slot;

	for (slot = 0; slot < SLOT_COUNT; slot++)
		fail_at(of_cmid(cmid), (enum slot)slot, err, EVRDMA_STEP_CHANNEL);
}

static const struct evr_cmid_ops cmid_ops = { .event = on_event, .lost = on_lost };

/* --- life ----------------------------------------------------------------------------------- */

static void id_work(struct evr_obj *obj)
{
	struct evrdma_id *id = of_obj(obj);

	if (id->accepted_now)
		end_operation(id, SLOT_MAIN, NULL, NULL);
	id->accepted_now = false;
	if (id->left_now)
		fail_operation(id, SLOT_JOIN, ECANCELED);
	id->left_now = false;
}

static int id_end(struct evr_obj *obj)
{
	struct evrdma_id *id = of_obj(obj);

	fail_all(id, ECANCELED);
	if (!id->cmid.cm)
		return 0;
	if (id->cmid.unanswered)
		return -EINPROGRESS;
	if (id->cmid.cm->qp) {
		rdma_destroy_qp(id->cmid.cm);
		return -EAGAIN;
	}
	evr_cmid_destroy(&id->cmid);
	return 0;
}

static void id_closed(struct evr_obj *obj)
{
	tell(of_obj(obj), NULL);
}

static void forget_group(struct evrdma_id *id, struct membership *group)
{
	TAILQ_REMOVE(&id->groups, group, link);
	free(group);
}

static void id_free(struct evr_obj *obj)
{
	struct evrdma_id *id = of_obj(obj);

	while (!TAILQ_EMPTY(&id->groups))
		forget_group(id, TAILQ_FIRST(&id->groups));
	free(id);
}

static const struct evr_obj_class id_class = {
	.work = id_work,
	.end = id_end,
	.closed = id_closed,
	.free = id_free,
};

static struct evrdma_id *make(
	struct evrdma_base *base, evrdma_id_event_cb cb, void *arg)
{
	struct evrdma_id *id = calloc(1, sizeof(*id));
	int ret;

	if (!id)
		return NULL;
	id->cmid.owner = &id->obj;
	id->cmid.ops = &cmid_ops;
	id->event_cb = cb;
	id->arg = arg;
	TAILQ_INIT(&id->groups);
	evr_timer_assign(&id->deadline, base, on_deadline, id);
	ret = evr_obj_init(&id->obj, base, &id_class);
	if (ret) {
		free(id);
		errno = -ret;
		return NULL;
	}
	return id;
}

static void unmake(struct evrdma_id *id, int ret)
{
	evr_obj_leave(&id->obj);
	free(id);
	errno = -ret;
}

struct evrdma_id *evrdma_id_new(
	struct evrdma_base *base, int port_space, evrdma_id_event_cb cb, void *arg)
{
	struct evrdma_id *id = make(base, cb, arg);
	int ret;

	if (!id)
		return NULL;
	ret = evr_cmid_create(&id->cmid, base, (enum rdma_port_space)port_space);
	if (ret) {
		unmake(id, ret);
		return NULL;
	}
	return id;
}

static int adopt(struct evrdma_id *id, struct evrdma_base *base, struct rdma_cm_id *cm_id)
{
	int ret = evr_cmid_take(&id->cmid, base, cm_id);

	if (ret)
		return ret;
	if (cm_id->channel == base->channel)
		return 0;
	if (rdma_migrate_id(cm_id, base->channel)) {
		ret = evr_errno(-errno);
		evr_cmid_release(&id->cmid);
		return ret;
	}
	evr_channel_poll(base);
	return 0;
}

struct evrdma_id *evrdma_id_adopt(
	struct evrdma_base *base, struct rdma_cm_id *cm_id, evrdma_id_event_cb cb, void *arg)
{
	struct evrdma_id *id = make(base, cb, arg);
	int ret;

	if (!id)
		return NULL;
	ret = adopt(id, base, cm_id);
	if (ret) {
		unmake(id, ret);
		return NULL;
	}
	return id;
}

void evrdma_id_close(struct evrdma_id *id)
{
	if (id)
		evr_obj_close(&id->obj);
}

struct rdma_cm_id *evrdma_id_get_cm_id(const struct evrdma_id *id)
{
	return id->obj.closing ? NULL : id->cmid.cm;
}

/* --- calls that answer at once -------------------------------------------------------------- */

static int result(int ret)
{
	return ret ? evr_errno(-errno) : 0;
}

int evrdma_id_bind(struct evrdma_id *id, const struct sockaddr *addr)
{
	struct sockaddr_storage copy;
	int ret = usable(id);

	if (ret)
		return ret;
	ret = addr ? evr_addr_copy(&copy, addr) : -EINVAL;
	return ret ? ret : result(rdma_bind_addr(id->cmid.cm, (struct sockaddr *)&copy));
}

int evrdma_id_listen(struct evrdma_id *id, int backlog)
{
	int ret = hears(id);

	return ret ? ret : result(rdma_listen(id->cmid.cm, backlog));
}

/*
 * Not what was asked of the peer itself: Linux's cm_send_rej_locked() would forget its own message
 * without calling it back, and hold whoever destroys the id until it was sent for the last time.
 * Nor is that accepted, since rdma_accept() rejects what it cannot accept.
 */
int evrdma_id_reject(struct evrdma_id *id, const void *data, size_t len)
{
	int ret = usable(id);

	if (!ret && (len > UINT8_MAX || (len && !data) || !has_device(id) || id->cmid.asked))
		ret = -EINVAL;
	return ret ? ret : result(rdma_reject(id->cmid.cm, data, (uint8_t)len));
}

static bool is_joining(const struct evrdma_id *id, const struct sockaddr_storage *addr)
{
	return id->operations[SLOT_JOIN].under_way && !memcmp(&id->joining, addr, sizeof(*addr));
}

static struct membership *find_group(
	const struct evrdma_id *id, const struct sockaddr_storage *addr)
{
	struct membership *group;

	TAILQ_FOREACH (group, &id->groups, link)
		if (!memcmp(&group->addr, addr, sizeof(*addr)))
			break;
	return group;
}

int evrdma_id_leave(struct evrdma_id *id, const struct sockaddr *addr)
{
	struct membership *group;
	struct sockaddr_storage copy;
	int ret = usable(id);

	if (ret)
		return ret;
	ret = addr ? evr_addr_copy(&copy, addr) : -EINVAL;
	if (!ret)
		ret = result(rdma_leave_multicast(id->cmid.cm, (struct sockaddr *)&copy));
	if (ret)
		return ret;
	group = find_group(id, &copy);
	if (group)
		forget_group(id, group);
	if (!is_joining(id, &copy))
		return 0;
	id->left_now = true;
	evr_obj_work(&id->obj);
	return 0;
}

int evrdma_id_migrate(struct evrdma_id *id, struct evrdma_base *base)
{
	int ret = usable(id);

	if (ret)
		return ret;
	if (base->event_base != id->obj.base->event_base)
		return -EXDEV;
	return evr_base_closing(base) ? -EPIPE : evr_cmid_migrate(&id->cmid, base);
}

/* --- calls that end in a callback ----------------------------------------------------------- */

int evrdma_id_resolve_addr(struct evrdma_id *id, const struct sockaddr *src,
	const struct sockaddr *dst, int timeout_ms, evrdma_id_done_cb cb, void *arg)
{
	struct sockaddr_storage from, to;
	int ret = timeout_ms > 0 && dst ? begin(id, SLOT_MAIN, EVRDMA_STEP_ADDR, cb, arg) : -EINVAL;

	if (!ret)
		ret = evr_addr_copy(&from, src);
	if (!ret)
		ret = evr_addr_copy(&to, dst);
	if (ret)
		return ret;
	ret = rdma_resolve_addr(id->cmid.cm, src ? (struct sockaddr *)&from : NULL,
		(struct sockaddr *)&to, timeout_ms);
	return begun(id, SLOT_MAIN, ret, 0);
}

int evrdma_id_resolve_route(struct evrdma_id *id, int timeout_ms, evrdma_id_done_cb cb, void *arg)
{
	int ret = timeout_ms > 0 ? begin(id, SLOT_MAIN, EVRDMA_STEP_ROUTE, cb, arg) : -EINVAL;

	return ret ? ret
		   : begun(id, SLOT_MAIN, rdma_resolve_route(id->cmid.cm, timeout_ms), 0);
}

int evrdma_id_connect(struct evrdma_id *id, const struct rdma_conn_param *param, int timeout_ms,
	evrdma_id_done_cb cb, void *arg)
{
	struct rdma_conn_param copy;
	int ret = timeout_ms > 0 ? begin(id, SLOT_MAIN, EVRDMA_STEP_CONNECT, cb, arg) : -EINVAL;

	if (ret)
		return ret;
	if (param)
		copy = *param;
	ret = rdma_connect(id->cmid.cm, param ? &copy : NULL);
	if (!ret)
		evr_cmid_asked(&id->cmid);
	return begun(id, SLOT_MAIN, ret, timeout_ms);
}

int evrdma_id_accept(struct evrdma_id *id, const struct rdma_conn_param *param, int timeout_ms,
	evrdma_id_done_cb cb, void *arg)
{
	struct rdma_conn_param copy;
	int ret = timeout_ms > 0 ? begin(id, SLOT_MAIN, EVRDMA_STEP_ACCEPT, cb, arg) : -EINVAL;

	if (!ret && id->cmid.asked)
		ret = -EINVAL;
	if (ret)
		return ret;
	if (param)
		copy = *param;
	ret = rdma_accept(id->cmid.cm, param ? &copy : NULL);
	if (!ret)
		evr_cmid_asked(&id->cmid);
	ret = begun(id, SLOT_MAIN, ret, timeout_ms);
	if (!ret && (id->cmid.cm->ps == RDMA_PS_UDP || id->cmid.cm->ps == RDMA_PS_IPOIB)) {
		id->accepted_now = true;
		evr_obj_work(&id->obj);
	}
	return ret;
}

/* Of two memberships with one address the kernel ends the wrong one: see mcast.c. */
static int add_group(struct evrdma_id *id, const struct sockaddr_storage *addr)
{
	struct membership *group;

	if (find_group(id, addr))
		return -EADDRINUSE;
	group = calloc(1, sizeof(*group));
	if (!group)
		return -ENOMEM;
	group->addr = *addr;
	TAILQ_INSERT_HEAD(&id->groups, group, link);
	return 0;
}

static int ask_to_join(struct evrdma_id *id, uint32_t join_flags)
{
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = join_flags,
		.addr = (struct sockaddr *)&id->joining,
	};
	int ret = add_group(id, &id->joining);

	if (ret)
		return ret;
	ret = begun(id, SLOT_JOIN, rdma_join_multicast_ex(id->cmid.cm, &attr, NULL), 0);
	if (ret)
		forget_group(id, TAILQ_FIRST(&id->groups));
	return ret;
}

int evrdma_id_join(struct evrdma_id *id, const struct sockaddr *addr, uint32_t join_flags,
	evrdma_id_done_cb cb, void *arg)
{
	int ret = addr ? begin(id, SLOT_JOIN, EVRDMA_STEP_JOIN, cb, arg) : -EINVAL;

	if (!ret)
		ret = evr_addr_copy(&id->joining, addr);
	return ret ? ret : ask_to_join(id, join_flags);
}

int evrdma_id_disconnect(struct evrdma_id *id, evrdma_id_done_cb cb, void *arg)
{
	int ret = begin(id, SLOT_DISCONNECT, EVRDMA_STEP_DISCONNECT, cb, arg);

	if (!ret && id->cmid.unanswered)
		ret = -EBUSY;
	if (ret)
		return ret;
	id->early = id->cmid.asked;
	return begun(id, SLOT_DISCONNECT, rdma_disconnect(id->cmid.cm), 0);
}
