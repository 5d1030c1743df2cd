/* Bases, with their pools, and the buffers that the user keeps. */
#include "schedule/schedule.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>

enum { CLOSE_LIMIT_US = 3000000 };

/* --- buffers --------------------------------------------------------------------------------- */

static void on_cleanup(void *data, size_t size, void *arg)
{
	struct schedule *s = arg;

	s->references--;
	free(data);
}

struct evrdma_buf *schedule_reference(struct schedule *s, size_t size, unsigned flags, void **data)
{
	struct evrdma_buf *buf;

	*data = calloc(1, size);
	INSIDE(s, buf = evrdma_buf_new_reference(*data, size, flags, on_cleanup, s));
	MUST(buf && evrdma_buf_size(buf) == size, "no buffer of the user's memory: %d", errno);
	s->references++;
	return buf;
}

struct evrdma_buf *schedule_buf(struct schedule *s, unsigned number)
{
	struct owner *owner = s->owners[number];
	struct evrdma_buf *buf;
	void *data;

	if (owner->object.state != BASE_OPEN || owner->given_up || random_once_in(&s->random, 8))
		return schedule_reference(s, BUF_SIZE, 0, &data);
	INSIDE(s, buf = evrdma_pool_get(owner->store->pool));
	MUST(buf || errno == ENOBUFS || schedule_excuses(s, -errno), "no buffer: %d", errno);
	MUST(!buf || !evrdma_buf_get_user(buf), "a new buffer is somebody's already");
	return buf;
}

static bool may_share(const struct connection *connection)
{
	const struct schedule *s = connection->object.schedule;

	return s->shared && connection->shared == s->shared_number;
}

static struct evrdma_buf *shared_reference(
	struct schedule *s, size_t size, unsigned flags, void **data)
{
	struct evrdma_buf *buf;

	*data = calloc(1, size);
	INSIDE(s, buf = evrdma_buf_new_shared(s->shared, *data, size, flags, on_cleanup, s));
	MUST(buf, "no shared buffer of the user's memory: %d", errno);
	s->references++;
	return buf;
}

struct evrdma_buf *connection_reference(
	struct connection *connection, size_t size, unsigned flags, void **data)
{
	return (may_share(connection) ? shared_reference : schedule_reference)(
		connection->object.schedule, size, flags, data);
}

struct evrdma_buf *connection_buf(struct connection *connection)
{
	struct schedule *s = connection->object.schedule;
	void *data;

	if (may_share(connection) && random_once_in(&s->random, 3))
		return shared_reference(s, BUF_SIZE, 0, &data);
	return schedule_buf(s, connection->object.owner);
}

void schedule_hold(struct schedule *s, struct evrdma_buf *buf)
{
	if (s->held_count < MAX_HELD)
		s->held[s->held_count++] = evrdma_buf_ref(buf);
}

void schedule_release_one(struct schedule *s)
{
	unsigned at;

	if (!s->held_count)
		return;
	at = random_below(&s->random, s->held_count);
	INSIDE(s, evrdma_buf_unref(s->held[at]));
	s->held[at] = s->held[--s->held_count];
}

/* --- life ------------------------------------------------------------------------------------ */

static int choose_priority(struct schedule *s)
{
	return (int)random_below(&s->random, (unsigned)s->priorities + 1) - 1;
}

static void choose_options(struct owner *owner, struct evrdma_base_options *options)
{
	static const unsigned idle_ms[] = { 0, 1, 1000 }, cq_budgets[] = { 1, 3, 256 },
			      cq_entries[] = { 1, 24, 4096 }, spin_us[] = { 0, 0, 100, 1000 };
	struct random *r = &owner->object.schedule->random;

	evrdma_base_options_init(options);
	options->cq_budget = RANDOM_OF(r, cq_budgets);
	options->cq_entries = RANDOM_OF(r, cq_entries);
	options->device_idle_ms = RANDOM_OF(r, idle_ms);
	options->data_priority = choose_priority(owner->object.schedule);
	options->cm_priority = choose_priority(owner->object.schedule);
	options->comp_vector = (int)random_below(r, 4) - 1;
	/* A loop that spins never sleeps while no time passes. */
	if (owner->object.schedule->time_passes)
		options->spin_us = RANDOM_OF(r, spin_us);
	if (random_once_in(r, 8))
		options->device_poll_ms = 500;
	if (random_once_in(r, 12)) {
		options->max_pinned_bytes = 4096u * (1 + random_below(r, 12));
		owner->object.schedule->troubled = true;
	}
	if (owner->object.schedule->hands_in)
		options->flags |= EVRDMA_BASE_OPT_NO_ASYNC_EVENTS;
}

static struct evrdma_base *new_base(struct owner *owner)
{
	struct schedule *s = owner->object.schedule;
	struct evrdma_base_options options;

	choose_options(owner, &options);
	if (!s->profile.ids || random_once_in(&s->random, 3))
		return evrdma_base_new(s->loop, &options);
	owner->channel = rdma_create_event_channel();
	MUST(owner->channel, "no event channel: %d", errno);
	return evrdma_base_new_with_channel(s->loop, owner->channel, &options);
}

/* A device goes once each time that it is pulled, and the ports have news when they are asked. */
static void on_device(struct evrdma_base *base, enum evrdma_device_event event, const char *device,
	int port_num, void *arg)
{
	struct owner *owner = arg;
	struct schedule *s = owner->object.schedule;
	bool whole = event == EVRDMA_DEVICE_ARRIVED || event == EVRDMA_DEVICE_REMOVED ||
		     event == EVRDMA_DEVICE_FATAL;

	object_event(&owner->object, BASE_DEVICE_EVENT);
	trace(s, "  %s: event %d, port %d", device, event, port_num);
	MUST(base == owner->base && *device && !port_num == whole,
		"base %u is told of port %d of device %s", owner->object.number, port_num, device);
	owner->removals += event == EVRDMA_DEVICE_REMOVED;
	MUST(owner->removals <= s->pulls, "base %u: %u devices were removed, %u are told",
		owner->object.number, s->pulls, owner->removals);
	MUST(whole || s->profile.async || !machine.exact, "base %u: there are no news of a port",
		owner->object.number);
	schedule_act(s);
}

struct evrdma_domain *owner_choose_domain(struct owner *owner)
{
	struct schedule *s = owner->object.schedule;

	if (random_once_in(&s->random, 4))
		return s->shared;
	return random_once_in(&s->random, 3) ? owner->domain : NULL;
}

void schedule_share(struct schedule *s)
{
	INSIDE(s, s->shared = evrdma_domain_new_shared());
	MUST(s->shared, "no shared domain: %d", errno);
	s->shared_number++;
}

/* Whoever names it keeps it. */
void schedule_share_no_more(struct schedule *s)
{
	INSIDE(s, evrdma_domain_free(s->shared));
	s->shared = NULL;
}

struct owner *owner_new(struct schedule *s)
{
	struct owner *owner = object_new(s, BASE, s->owner_count, sizeof(*owner));

	INSIDE(s, owner->base = new_base(owner));
	MUST(owner->base, "no base: %d", errno);
	INSIDE(s, evrdma_base_set_device_cb(owner->base, on_device, owner));
	if (owner->channel)
		INSIDE(s, evrdma_base_set_event_cb(owner->base, foreign_on_event, owner));
	owner->store = store_new(owner);
	if (random_once_in(&s->random, 2))
		owner->shared = shared_new(owner);
	if (random_once_in(&s->random, 3))
		INSIDE(s, owner->domain = evrdma_domain_new(owner->base));
	trace(s, "base %u:%s%s%s", owner->object.number, owner->channel ? " channel" : "",
		owner->shared ? " SRQ" : "", owner->domain ? " domain" : "");
	return owner;
}

/* It was the base's to use, and is as it was before. */
void owner_free_channel(struct owner *owner)
{
	if (!owner->channel)
		return;
	MUST(!(fcntl(owner->channel->fd, F_GETFL) & O_NONBLOCK), "base %u left its channel changed",
		owner->object.number);
	rdma_destroy_event_channel(owner->channel);
}

struct owner *schedule_owner(struct schedule *s)
{
	return object_pick(s, BASE, IN(BASE_OPEN));
}

/* Nothing may be made on a base whose pool is gone, but by those who need none. */
bool owner_has_room(struct owner *owner, enum kind kind)
{
	struct schedule *s;

	if (!owner || owner->given_up)
		return false;
	s = owner->object.schedule;
	return !s->ending && s->object_count < ENOUGH_OBJECTS && object_live(s, kind) < MAX_LIVE;
}

void owner_refused(struct owner *owner, int err)
{
	bool closing = owner->object.state != BASE_OPEN && err == EPIPE;

	MUST(closing || schedule_excuses(owner->object.schedule, -err),
		"base %u refuses an object: %d", owner->object.number, err);
}

static void give_up(struct owner *owner)
{
	if (owner->given_up)
		return;
	owner->given_up = true;
	shared_give_up(owner);
	INSIDE(owner->object.schedule, evrdma_domain_free(owner->domain));
	owner->domain = NULL;
}

/* Pools and SRQs go with the base; what is the user's stays. */
static void outlived(struct owner *owner, struct object *object)
{
	if (object->kind == POOL || object->kind == SRQ)
		object_gone(object);
	else
		MUST(object->kind == BASE || object->kind == REQUEST || object->kind == FOREIGN,
			"base %u is closed, %s %u on it is not", owner->object.number,
			cover_kind_name(object->kind), object->number);
}

static void on_closed(struct evrdma_base *base, void *arg)
{
	struct owner *owner = arg;
	struct schedule *s = owner->object.schedule;
	struct object *object;
	unsigned i;

	object_event(&owner->object, BASE_CLOSED);
	MUST(!owner->calls_pending, "base %u: calls were not made before it was closed",
		owner->object.number);
	FOR_EACH_OBJECT(s, object, i)
	if (object->owner == owner->object.owner && !object->gone)
		outlived(owner, object);
	object_gone(&owner->object);
}

static void mark_closing(struct object *object)
{
	switch (object->kind) {
	case CONN:
		connection_closing((struct connection *)object);
		break;
	case DGRAM:
		endpoint_closing((struct endpoint *)object);
		break;
	case LISTENER:
		object->state = LISTENER_CLOSING;
		break;
	case ID:
		object->state = ID_CLOSING;
		break;
	case GROUP:
		object->state = GROUP_CLOSING;
		break;
	case PEER:
		object->state = PEER_CLOSING;
		break;
	case REQUEST:
		cover(REQUEST, object->state, REQUEST_BASE_CLOSED);
		ask_forget((struct ask *)object);
		break;
	default:
		break;
	}
}

/* What was moved to the base goes with it, as long as there is an id there. */
static bool was_moved_to(const struct object *object, unsigned owner)
{
	const struct connection *connection = (const struct connection *)object;

	if (object->kind == ID)
		return ((const struct plain *)object)->events_owner == owner;
	return object->kind == CONN && connection->events_owner == owner &&
	       evrdma_conn_get_cm_id(connection->conn);
}

static bool is_on(const struct object *object, unsigned owner)
{
	return object->owner == owner || was_moved_to(object, owner);
}

static void now_closing(struct owner *owner)
{
	struct schedule *s = owner->object.schedule;
	struct object *object;
	unsigned i;

	owner->object.state = BASE_CLOSING;
	owner->since_us = clock_now_us();
	FOR_EACH_OBJECT(s, object, i)
	if (!object->gone && is_on(object, owner->object.owner))
		mark_closing(object);
}

void owner_close(struct owner *owner)
{
	if (owner->object.gone)
		return;
	object_call(&owner->object, BASE_CLOSE);
	evrdma_base_close(owner->base, on_closed, owner);
	object_returned(&owner->object, BASE_CLOSE, 0);
	if (owner->object.state != BASE_CLOSING)
		now_closing(owner);
}

void owner_check_idle(struct owner *owner, bool for_ever)
{
	uint64_t us = clock_now_us() - owner->since_us;

	MUST(!owner->calls_pending, "base %u: a call into the loop is not made",
		owner->object.number);
	if (owner->object.state == BASE_LEAVING)
		MUST(!for_ever && us < (uint64_t)owner->shutdown_ms * US_PER_MS + SLACK_US,
			"base %u: it is shut down, and nobody closes it", owner->object.number);
	if (owner->object.state != BASE_CLOSING)
		return;
	MUST(!for_ever && clock_now_us() - owner->since_us < CLOSE_LIMIT_US,
		"base %u: nobody goes on closing it", owner->object.number);
}

static bool is_pending(const struct object *object, const struct owner *owner)
{
	return object->kind == REQUEST && !object->gone && object->state != REQUEST_MOVING &&
	       object->owner == owner->object.owner &&
	       evrdma_request_get_cm_id(((const struct ask *)object)->request);
}

/* Those that have arrived and not ended, and that nobody has answered. */
static unsigned count_requests(const struct owner *owner)
{
	struct schedule *s = owner->object.schedule;
	struct object *object;
	unsigned i, n = 0;

	FOR_EACH_OBJECT(s, object, i)
	n += is_pending(object, owner);
	return n;
}

/* With nobody left on it. */
static void check_counts(struct owner *owner)
{
	unsigned requests = count_requests(owner);
	struct evrdma_base_stats stats;

	INSIDE(owner->object.schedule, evrdma_base_get_stats(owner->base, &stats));
	MUST(!stats.connections && !stats.endpoints && !stats.address_handles,
		"base %u: %llu connections, %llu endpoints, %llu address handles are left",
		owner->object.number, (unsigned long long)stats.connections,
		(unsigned long long)stats.endpoints, (unsigned long long)stats.address_handles);
	MUST(stats.requests_pending == requests, "base %u counts %llu requests, there are %u",
		owner->object.number, (unsigned long long)stats.requests_pending, requests);
}

/* The same: all buffers of the pool are there to be taken. */
void owner_check_balance(struct owner *owner)
{
	struct evrdma_buf *bufs[64];
	unsigned n = 0;

	if (owner->object.state != BASE_OPEN)
		return;
	check_counts(owner);
	give_up(owner);
	while (n < 64 && (bufs[n] = evrdma_pool_get(owner->store->pool)))
		n++;
	MUST(n == owner->store->bufs, "base %u: of %u buffers %u are left", owner->object.number,
		owner->store->bufs, n);
	while (n)
		INSIDE(owner->object.schedule, evrdma_buf_unref(bufs[--n]));
	if (random_once_in(&owner->object.schedule->random, 2))
		store_give_up(owner);
}

/* --- the orderly end ------------------------------------------------------------------------- */

static void on_ran(struct evrdma_base *base, void *arg)
{
	struct owner *owner = arg;

	object_event(&owner->object, BASE_RAN_IN_LOOP);
	MUST(owner->calls_pending, "base %u: more calls were made than asked for",
		owner->object.number);
	owner->calls_pending--;
	schedule_act(owner->object.schedule);
}

static void on_witness(struct evrdma_id *id, const struct rdma_cm_event *event, void *arg)
{
	struct owner *owner = arg;

	if (!event)
		owner->witness = NULL;
}

static bool has_witness(const struct owner *owner)
{
	return owner->witness && evrdma_id_get_cm_id(owner->witness);
}

/* What the calls say of what is closed, and of nothing else: they change nothing. */
static bool says_closing(struct object *object)
{
	struct sockaddr_in sin;
	int ret = 0;

	schedule_address(&sin, object->schedule->ip, 9);
	object->schedule->in_call = true;
	if (object->kind == CONN)
		ret = evrdma_conn_connect(
			((struct connection *)object)->conn, NULL, (struct sockaddr *)&sin);
	else if (object->kind == DGRAM)
		ret = evrdma_dgram_open(
			((struct endpoint *)object)->dgram, (struct sockaddr *)&sin, NULL);
	else if (!evrdma_id_get_cm_id(((struct plain *)object)->id))
		ret = -EPIPE;
	object->schedule->in_call = false;
	return ret == -EPIPE;
}

static bool is_of_shutdown(const struct object *object)
{
	struct owner *const *owners = object->schedule->owners;
	unsigned events_owner = object->owner;

	if (object->kind == CONN)
		events_owner = ((const struct connection *)object)->events_owner;
	else if (object->kind == ID)
		events_owner = ((const struct plain *)object)->events_owner;
	else if (object->kind != DGRAM)
		return false;
	return owners[object->owner]->was_shut_down || owners[events_owner]->was_shut_down;
}

static void sync_object(struct object *object)
{
	bool fresh = (object->kind == CONN && object->state == CONN_NEW) ||
		     (object->kind == DGRAM && object->state == DGRAM_NEW);

	if (!object->gone && !fresh && is_of_shutdown(object) && says_closing(object))
		mark_closing(object);
}

void schedule_sync(struct schedule *s)
{
	bool any = false;
	struct object *object;
	unsigned i;

	for (i = 0; i < s->owner_count; i++) {
		any |= s->owners[i]->was_shut_down;
		if (s->owners[i]->object.state == BASE_LEAVING && !has_witness(s->owners[i]))
			now_closing(s->owners[i]);
	}
	FOR_EACH_OBJECT(s, object, i)
	if (any)
		sync_object(object);
}

/* Those who talk come to an end, and the others are closed. */
static void leave(struct object *object)
{
	switch (object->kind) {
	case CONN:
		if (object->state == CONN_UP) {
			object->state = CONN_LEAVING;
			((struct connection *)object)->since_us = clock_now_us();
		} else if (object->state < CONN_UP) {
			mark_closing(object);
		}
		break;
	case DGRAM:
		if (object->state < DGRAM_READY)
			mark_closing(object);
		break;
	case LISTENER:
	case REQUEST:
		mark_closing(object);
		break;
	default:
		break;
	}
}

static void now_leaving(struct owner *owner)
{
	struct object *object;
	unsigned i;

	owner->object.state = BASE_LEAVING;
	owner->was_shut_down = true;
	owner->since_us = clock_now_us();
	FOR_EACH_OBJECT(owner->object.schedule, object, i)
	if (!object->gone && is_on(object, owner->object.owner))
		leave(object);
	schedule_sync(owner->object.schedule);
}

static void shut_down(struct schedule *s)
{
	static const int timeouts_ms[] = { -1, 0, 1, 20, 1000 };
	struct owner *owner = object_pick(s, BASE, ANY_STATE);
	int timeout_ms = RANDOM_OF(&s->random, timeouts_ms), want = 0, ret;

	if (!owner || !s->profile.closes_bases)
		return;
	if (owner->object.state != BASE_OPEN)
		want = -EALREADY;
	if (timeout_ms < 0)
		want = -EINVAL;
	if (!want)
		INSIDE(s, owner->witness =
				  evrdma_id_new(owner->base, RDMA_PS_TCP, on_witness, owner));
	if (!want && !owner->witness)
		return;
	object_call(&owner->object, BASE_SHUTDOWN);
	ret = evrdma_base_shutdown(owner->base, timeout_ms, on_closed, owner);
	object_returned(&owner->object, BASE_SHUTDOWN, ret);
	MUST(ret == want, "base %u: shutdown gives %d in place of %d", owner->object.number, ret,
		want);
	if (ret)
		return;
	owner->shutdown_ms = timeout_ms;
	now_leaving(owner);
}

/* --- actions --------------------------------------------------------------------------------- */

static void run_in_loop(struct schedule *s)
{
	struct owner *owner = object_pick(s, BASE, ANY_STATE);
	int ret;

	if (!owner)
		return;
	object_call(&owner->object, BASE_RUN_IN_LOOP);
	ret = evrdma_base_run_in_loop(owner->base, on_ran, owner);
	object_returned(&owner->object, BASE_RUN_IN_LOOP, ret);
	MUST(ret == (owner->object.state == BASE_CLOSING ? -EPIPE : 0),
		"base %u: a call into the loop gives %d", owner->object.number, ret);
	owner->calls_pending += !ret;
}

static void on_line(const char *text, void *arg)
{
	MUST(*text && !strchr(text, '\n'), "base %u tells no line: %s",
		((struct owner *)arg)->object.number, text);
}

static void get_base(struct schedule *s)
{
	struct owner *owner = object_pick(s, BASE, ANY_STATE);
	struct rdma_event_channel *channel;
	struct evrdma_traffic_stats stats;

	if (!owner)
		return;
	object_call(&owner->object, BASE_GET);
	channel = evrdma_base_get_channel(owner->base);
	MUST(channel && (!owner->channel || channel == owner->channel) &&
			evrdma_base_get_event_base(owner->base) == s->loop,
		"base %u is on another loop or channel", owner->object.number);
	evrdma_base_get_traffic_stats(owner->base, &stats);
	MUST(stats.work_done + stats.work_failed + stats.work_cancelled <=
			stats.sends + stats.writes + stats.reads + stats.atomics,
		"base %u: more work is over than was taken", owner->object.number);
	evrdma_base_dump(owner->base, on_line, owner);
	object_returned(&owner->object, BASE_GET, 0);
}

/* As if the device had said so to the user, who reads what it says. */
static void hand_in(struct schedule *s)
{
	static const enum ibv_event_type types[] = { IBV_EVENT_PORT_ERR, IBV_EVENT_PORT_ACTIVE,
		IBV_EVENT_GID_CHANGE, IBV_EVENT_DEVICE_FATAL, IBV_EVENT_QP_FATAL };
	struct connection *connection = object_pick(s, CONN, ANY_STATE);
	struct rdma_cm_id *cm = connection ? evrdma_conn_get_cm_id(connection->conn) : NULL;
	struct ibv_async_event event = { .event_type = RANDOM_OF(&s->random, types) };
	struct owner *owner = connection ? s->owners[connection->object.owner] : NULL;
	int ret;

	if (!s->hands_in || s->pulled || !cm || !cm->verbs)
		return;
	if (event.event_type == IBV_EVENT_QP_FATAL)
		event.element.qp = cm->qp;
	else
		event.element.port_num = 1;
	s->broken |= event.event_type == IBV_EVENT_DEVICE_FATAL;
	s->troubled |= s->broken || event.event_type == IBV_EVENT_QP_FATAL;
	object_call(&owner->object, BASE_HAND_IN);
	ret = evrdma_async_event(cm->verbs, &event);
	object_returned(&owner->object, BASE_HAND_IN, ret);
	MUST(!ret || (ret == -ENODEV && connection->object.state != CONN_UP),
		"conn %u is up, and its device is used by nobody: %d", connection->object.number,
		ret);
}

static void close_base(struct schedule *s)
{
	struct owner *owner = object_pick(s, BASE, ANY_STATE);

	if (owner && s->profile.closes_bases)
		owner_close(owner);
}

/* A base that is closing takes nothing new. */
static void new_object(struct schedule *s)
{
	struct owner *owner = object_pick(s, BASE, ANY_STATE);
	struct evrdma_conn *conn;
	int err;

	if (!owner || (owner->object.state == BASE_OPEN && s->object_count >= ENOUGH_OBJECTS))
		return;
	if (owner->object.state == BASE_OPEN) {
		object_call(&owner->object, BASE_NEW_OBJECT);
		object_returned(&owner->object, BASE_NEW_OBJECT, 0);
		connection_new(s, owner->object.owner);
		return;
	}
	object_call(&owner->object, BASE_NEW_OBJECT);
	conn = evrdma_conn_new(owner->base, NULL);
	err = errno;
	object_returned(&owner->object, BASE_NEW_OBJECT, -err);
	MUST(!conn && err == EPIPE, "base %u takes an object while it is closing",
		owner->object.number);
}

static void release(struct schedule *s)
{
	schedule_release_one(s);
}

static void replace_shared(struct schedule *s)
{
	if (s->ending)
		return;
	trace(s, "another shared domain");
	schedule_share_no_more(s);
	if (!random_once_in(&s->random, 3))
		schedule_share(s);
}

const struct action base_actions[] = {
	{ "run in loop", 2, run_in_loop },
	{ "get base", 2, get_base },
	{ "hand in", 4, hand_in },
	{ "shut down", 1, shut_down },
	{ "replace shared domain", 1, replace_shared },
	{ "close base", 1, close_base },
	{ "new object", 2, new_object },
	{ "release", 6, release },
	{ 0 },
};
