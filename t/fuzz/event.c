/*
 * The decoder of events, and what lib/cm makes of an event that no good kernel sends.
 *
 * The first byte of an input says whom the event is for; then comes the event as the kernel writes
 * it, cut short or not. What is left falsifies the answers that the library fetches to serve the
 * event: which ones, from where on, and the bytes.
 */
#include "fuzz/fuzz.h"

#include "cm/cm.h"
#include "fake/fake.h"
#include "kern/sys.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PORT = 7471, MANY_MS = 1000 };

enum subject {
	AS_WRITTEN,
	CONNECTING, /* an id with a queue pair, whose request is on its way */
	MEMBER,	    /* an id with datagrams */
	GROUP,	    /* its membership */
	LISTENER,   /* with the handle of a request that the kernel has */
	CHILD,	    /* an id that was not accepted */
	DEAD_ID,
	DEAD_GROUP,
	SUBJECTS
};

static struct {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener, *client, *member, *child;
	struct evr_cm_mc *group;
	uint64_t dead_id, dead_group;
	uint32_t request;
} fixture;

static struct {
	struct evr_ucma_resp_event event;
	uint8_t answers; /* bits: of QUERY_ADDR, QUERY_PATH, QUERY_GID; above them, INIT_QP_ATTR */
	uint8_t offset;
	const uint8_t *rest;
	size_t rest_len;
	bool given;
} forged;

static const struct evr_sys *fake_sys;

/* --- a kernel that lies ---------------------------------------------------------------------- */

enum { ANSWER_QP_ATTR = 3, OFFSET_UNIT = 4 };

static bool is_falsified(const struct evr_ucma_cmd_query *cmd)
{
	if (cmd->hdr.op == EVR_UCMA_INIT_QP_ATTR)
		return forged.answers & 1u << ANSWER_QP_ATTR;
	return cmd->hdr.op == EVR_UCMA_QUERY && forged.answers & 1u << cmd->option;
}

static void falsify(uint64_t response, size_t len)
{
	size_t offset = (size_t)forged.offset * OFFSET_UNIT;

	if (offset < len)
		memcpy((uint8_t *)(uintptr_t)response + offset, forged.rest,
			forged.rest_len < len - offset ? forged.rest_len : len - offset);
}

static ssize_t forging_write(int fd, const void *buf, size_t len)
{
	const struct evr_ucma_hdr *hdr = buf;
	/* The response is at one place in all of them. */
	const struct evr_ucma_cmd_query *cmd = buf;
	ssize_t n;

	if (hdr->op == EVR_UCMA_GET_EVENT && !forged.given) {
		memcpy((void *)(uintptr_t)cmd->response, &forged.event, sizeof(forged.event));
		forged.given = true;
		return (ssize_t)len;
	}
	n = fake_sys->write(fd, buf, len);
	if (n >= 0 && is_falsified(cmd))
		falsify(cmd->response, hdr->out_bytes);
	return n;
}

/* --- the fixture it lies about --------------------------------------------------------------- */

static struct sockaddr *address(const char *ip)
{
	static struct sockaddr_in in;

	in = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(PORT) };
	fuzz_check(inet_pton(AF_INET, ip, &in.sin_addr) == 1);
	return (struct sockaddr *)&in;
}

static struct rdma_cm_id *new_id(enum rdma_port_space ps)
{
	struct rdma_cm_id *id = NULL;

	fuzz_check(rdma_create_id(fixture.channel, &id, NULL, ps) == 0);
	return id;
}

static void give_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = fuzz_qp_attr(id->qp_type);

	fuzz_check(rdma_create_qp(id, NULL, &attr) == 0);
}

static struct rdma_cm_id *await(enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	fuzz_check(rdma_get_cm_event(fixture.channel, &event) == 0);
	fuzz_check(event->event == type);
	id = event->id;
	rdma_ack_cm_event(event);
	return id;
}

static void make_member(void)
{
	struct sockaddr *group;

	fixture.member = new_id(RDMA_PS_UDP);
	fuzz_check(rdma_bind_addr(fixture.member, address(FAKE_ROCE_IP)) == 0);
	give_qp(fixture.member);
	group = address("239.1.2.4");
	fuzz_check(rdma_join_multicast(fixture.member, group, NULL) == 0);
	fixture.dead_group = evr_cm_uid(TAILQ_FIRST(&evr_cm_id(fixture.member)->groups));
	await(RDMA_CM_EVENT_MULTICAST_JOIN);
	fuzz_check(rdma_leave_multicast(fixture.member, group) == 0);
	fuzz_check(rdma_join_multicast(fixture.member, address("239.1.2.3"), NULL) == 0);
	fixture.group = TAILQ_FIRST(&evr_cm_id(fixture.member)->groups);
}

static void make_listener(void)
{
	fixture.listener = new_id(RDMA_PS_TCP);
	fuzz_check(rdma_bind_addr(fixture.listener, address("0.0.0.0")) == 0);
	fuzz_check(rdma_listen(fixture.listener, 0) == 0);
}

static void make_client(void)
{
	fixture.client = new_id(RDMA_PS_TCP);
	fuzz_check(rdma_resolve_addr(fixture.client, NULL, address(FAKE_ROCE_IP), MANY_MS) == 0);
	await(RDMA_CM_EVENT_ADDR_RESOLVED);
	fuzz_check(rdma_resolve_route(fixture.client, MANY_MS) == 0);
	await(RDMA_CM_EVENT_ROUTE_RESOLVED);
	give_qp(fixture.client);
	fuzz_check(rdma_connect(fixture.client, NULL) == 0);
}

/* The request is taken by the library, or past it when the forged event shall bring it. */
static void take_request(bool by_library)
{
	struct evr_ucma_event event;

	if (by_library) {
		fixture.child = await(RDMA_CM_EVENT_CONNECT_REQUEST);
		return;
	}
	fuzz_check(evr_ucma_event_read(fixture.channel->fd, &event) == 0);
	fuzz_check(event.type == RDMA_CM_EVENT_CONNECT_REQUEST);
	fixture.request = event.handle;
}

static void build(enum subject who)
{
	struct rdma_cm_id *dead;

	memset(&fixture, 0, sizeof(fixture));
	fixture.channel = fuzz_channel();
	dead = new_id(RDMA_PS_TCP);
	fixture.dead_id = evr_cm_uid(dead);
	make_member();
	await(RDMA_CM_EVENT_MULTICAST_JOIN);
	make_listener();
	make_client();
	take_request(who != LISTENER);
	fuzz_check(rdma_destroy_id(dead) == 0);
}

static void destroy(struct rdma_cm_id *id)
{
	if (!id)
		return;
	rdma_destroy_qp(id);
	fuzz_check(rdma_destroy_id(id) == 0);
}

static void tear_down(void)
{
	destroy(fixture.child);
	destroy(fixture.client);
	destroy(fixture.member);
	destroy(fixture.listener);
	rdma_destroy_event_channel(fixture.channel);
}

/* --- the event ------------------------------------------------------------------------------- */

static void address_to(enum subject who)
{
	struct evr_ucma_resp_event *event = &forged.event;

	switch (who) {
	case CONNECTING:
		event->uid = evr_cm_uid(fixture.client);
		break;
	case MEMBER:
		event->uid = evr_cm_uid(fixture.member);
		break;
	case GROUP:
		event->uid = evr_cm_uid(fixture.group);
		break;
	case LISTENER:
		event->uid = evr_cm_uid(fixture.listener);
		event->handle = fixture.request;
		break;
	case CHILD:
		event->uid = 0;
		event->handle = evr_cm_id(fixture.child)->handle;
		break;
	case DEAD_ID:
		event->uid = fixture.dead_id;
		break;
	case DEAD_GROUP:
		event->uid = fixture.dead_group;
		break;
	default:
		break;
	}
}

static bool is_taken(uint32_t handle)
{
	struct rdma_cm_id *ids[] = { fixture.client, fixture.member, fixture.listener,
		fixture.child };
	size_t i;

	for (i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		if (ids[i] && evr_cm_id(ids[i])->handle == handle)
			return true;
	return false;
}

/* However odd, no kernel gives a request the handle of another id. */
static void keep_handles_apart(void)
{
	struct evr_ucma_resp_event *event = &forged.event;

	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST && is_taken(event->handle))
		event->handle |= UINT32_C(1) << 31;
}

static struct evr_cm_id *expected_subject(void)
{
	const struct evr_ucma_resp_event *event = &forged.event;
	struct rdma_cm_id *ids[] = { fixture.client, fixture.member, fixture.listener,
		fixture.child };
	bool is_group = event->event == RDMA_CM_EVENT_MULTICAST_JOIN ||
			event->event == RDMA_CM_EVENT_MULTICAST_ERROR;
	size_t i;

	if (event->uid == evr_cm_uid(fixture.group))
		return is_group ? evr_cm_id(fixture.member) : NULL;
	for (i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		if (ids[i] && event->uid == evr_cm_uid(ids[i]))
			return evr_cm_id(ids[i]);
	if (!event->uid && fixture.child && event->handle == evr_cm_id(fixture.child)->handle)
		return evr_cm_id(fixture.child);
	return NULL;
}

/* All of the data lies in the event, which the heap puts between fences. */
static void check_data(struct evr_ucma_event_data data, const void *event, size_t size)
{
	const uint8_t *begin = event;

	fuzz_check(data.len ? data.bytes != NULL : data.bytes == NULL);
	if (data.len)
		fuzz_check(data.bytes >= begin && data.bytes + data.len <= begin + size);
}

static void check_decoder(void)
{
	struct evr_ucma_event *event = malloc(sizeof(*event));

	fuzz_check(event);
	evr_ucma_event_decode(&forged.event, event);
	fuzz_check(event->uid == forged.event.uid && event->handle == forged.event.handle);
	fuzz_check(event->type == forged.event.event);
	check_data(evr_ucma_event_conn_data(event), event, sizeof(*event));
	check_data(evr_ucma_event_ud_data(event), event, sizeof(*event));
	free(event);
}

static void check_delivered(const struct rdma_cm_event *event, const struct evr_cm_id *subject)
{
	const struct rdma_conn_param *conn = &event->param.conn;
	const uint8_t *raw = forged.event.param.conn.private_data;

	fuzz_check(subject);
	/* A request that cannot be served is refused, which is the next event of who asked. */
	if (((const struct evr_cm_event *)event)->counted != subject) {
		fuzz_check(event->id == fixture.client && event->event == RDMA_CM_EVENT_REJECTED);
		return;
	}
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		fuzz_check(event->listen_id == &subject->id && event->id != event->listen_id);
	else
		fuzz_check(event->id == &subject->id);
	if (event->event == RDMA_CM_EVENT_REJECTED || event->event == RDMA_CM_EVENT_DISCONNECTED) {
		fuzz_check(!conn->private_data_len == !conn->private_data);
		fuzz_check(!memcmp(conn->private_data_len ? conn->private_data : raw, raw,
			conn->private_data_len));
	}
}

/* Told or dropped, it is accounted for with the one it was for, exactly once. */
static void serve(void)
{
	struct evr_cm_id *subject = expected_subject();
	uint32_t before = subject ? subject->events_done : 0;
	struct rdma_cm_event *event = NULL;
	int ret;

	errno = 0;
	ret = rdma_get_cm_event(fixture.channel, &event);
	fuzz_check(forged.given);
	fuzz_trace("event %u for %p: %d %s", forged.event.event, (void *)subject, ret,
		ret ? strerror(errno) : rdma_event_str(event->event));
	if (ret) {
		fuzz_check(errno == EAGAIN);
	} else {
		check_delivered(event, subject);
		if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
			destroy(event->id);
		fuzz_check(rdma_ack_cm_event(event) == 0);
	}
	fuzz_check(!subject || subject->events_done == before + 1);
}

static enum subject parse(const uint8_t *data, size_t size)
{
	size_t len = size - 1 < sizeof(forged.event) ? size - 1 : sizeof(forged.event);

	memset(&forged, 0, sizeof(forged));
	memcpy(&forged.event, data + 1, len);
	if (size > 1 + len + 2) {
		forged.answers = data[1 + len];
		forged.offset = data[1 + len + 1];
		forged.rest = data + 1 + len + 2;
		forged.rest_len = size - 1 - len - 2;
	}
	return (enum subject)(data[0] % SUBJECTS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct evr_sys forging;
	enum subject who;

	if (!size)
		return 0;
	who = parse(data, size);
	check_decoder();
	fuzz_begin();
	build(who);
	address_to(who);
	keep_handles_apart();
	fake_sys = evr_sys;
	forging = *fake_sys;
	forging.write = forging_write;
	evr_sys = &forging;
	serve();
	evr_sys = fake_sys;
	tear_down();
	fuzz_end();
	return 0;
}
