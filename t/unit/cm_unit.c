#include "unit/cm_unit.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { MOST_MS = 5000, US_PER_MS = 1000 };

void cm_set_up(void)
{
	fake_install();
}

void cm_take_back(void)
{
	int kind;

	if (!fake_live(FAKE_CONTEXT))
		return;
	for (kind = 0; kind < FAKE_KINDS; kind++)
		fake_device_remove((enum fake_kind)kind);
	rdma_free_devices(rdma_get_devices(NULL));
}

/* rclose() leaves to threads what the kernel may keep, and they the device. */
static const char *left_in_the_end(void)
{
	const char *left;
	int ms = 0;

	do {
		cm_take_back();
		left = fake_expect_clean();
		if (left)
			usleep(US_PER_MS);
	} while (left && ++ms < MOST_MS);
	return left;
}

void cm_tear_down(void)
{
	ck_assert_pstr_eq(left_in_the_end(), NULL);
	fake_reset();
}

int cm_main(const char *name, const TTest *const tests[], size_t num)
{
	return unit_main(name, tests, num, cm_set_up, cm_tear_down);
}

struct rdma_event_channel *cm_channel(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();

	ck_assert_ptr_nonnull(channel);
	ck_assert_int_eq(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
	return channel;
}

struct rdma_cm_id *cm_id(struct rdma_event_channel *channel, enum rdma_port_space ps)
{
	struct rdma_cm_id *id = NULL;

	ck_assert_ok(rdma_create_id(channel, &id, NULL, ps));
	ck_assert_ptr_nonnull(id);
	return id;
}

struct sockaddr *cm_addr(const char *ip, uint16_t port)
{
	static _Thread_local struct sockaddr_in6 ring[4];
	static _Thread_local unsigned turn;
	struct sockaddr_in6 *in6 = &ring[turn++ % 4];
	struct sockaddr_in *in = (struct sockaddr_in *)in6;

	memset(in6, 0, sizeof(*in6));
	if (inet_pton(AF_INET, ip, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
	} else {
		ck_assert_int_eq(inet_pton(AF_INET6, ip, &in6->sin6_addr), 1);
		in6->sin6_family = AF_INET6;
	}
	in6->sin6_port = htons(port);
	return (struct sockaddr *)in6;
}

void cm_destroy(struct rdma_cm_id *id)
{
	if (!id)
		return;
	rdma_destroy_qp(id);
	ck_assert_ok(rdma_destroy_id(id));
}

struct rdma_cm_event *cm_expect(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event = NULL;

	ck_assert_ok(rdma_get_cm_event(channel, &event));
	ck_assert_str_eq(rdma_event_str(event->event), rdma_event_str(type));
	return event;
}

struct rdma_cm_id *cm_await(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event = cm_expect(channel, type);
	struct rdma_cm_id *id = event->id;

	ck_assert_ok(rdma_ack_cm_event(event));
	return id;
}

void cm_expect_none(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event;

	ck_assert_fails(rdma_get_cm_event(channel, &event), EAGAIN);
}

struct ibv_qp_init_attr cm_qp_attr(enum ibv_qp_type type)
{
	return (struct ibv_qp_init_attr){
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = type,
	};
}

void cm_make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = cm_qp_attr(id->qp_type);

	ck_assert_ok(rdma_create_qp(id, NULL, &attr));
}

void cm_resolve(struct rdma_cm_id *id, const char *ip)
{
	ck_assert_ok(rdma_resolve_addr(id, NULL, cm_addr(ip, CM_PORT), CM_TIMEOUT_MS));
	cm_await(id->channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	ck_assert_ok(rdma_resolve_route(id, CM_TIMEOUT_MS));
	cm_await(id->channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

void cm_pair_start(struct cm_pair *pair, enum rdma_port_space ps)
{
	*pair = (struct cm_pair){ .channel = cm_channel() };
	pair->listener = cm_id(pair->channel, ps);
	pair->client = cm_id(pair->channel, ps);
	ck_assert_ok(rdma_bind_addr(pair->listener, cm_addr("0.0.0.0", CM_PORT)));
	ck_assert_ok(rdma_listen(pair->listener, 0));
	cm_resolve(pair->client, FAKE_ROCE_IP);
}

void cm_pair_request(struct cm_pair *pair, struct rdma_conn_param *param)
{
	if (!pair->client->qp)
		cm_make_qp(pair->client);
	ck_assert_ok(rdma_connect(pair->client, param));
	pair->server = cm_await(pair->channel, RDMA_CM_EVENT_CONNECT_REQUEST);
}

void cm_pair_connect(struct cm_pair *pair)
{
	cm_pair_start(pair, RDMA_PS_TCP);
	cm_pair_request(pair, NULL);
	cm_make_qp(pair->server);
	ck_assert_ok(rdma_accept(pair->server, NULL));
	cm_await(pair->channel, RDMA_CM_EVENT_ESTABLISHED);
	cm_await(pair->channel, RDMA_CM_EVENT_ESTABLISHED);
}

void cm_pair_end(struct cm_pair *pair)
{
	cm_destroy(pair->client);
	cm_destroy(pair->server);
	cm_destroy(pair->listener);
	rdma_destroy_event_channel(pair->channel);
}
