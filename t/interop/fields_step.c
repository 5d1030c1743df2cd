/* The steps of which the scenarios are made. */
#include "interop/fields.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fields_cast cast;

static struct sockaddr_storage device;
static unsigned first_port;

void fields_must(int ret, const char *what)
{
	if (!ret)
		return;
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

static void parse(const char *ip)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&device;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&device;

	memset(&device, 0, sizeof(device));
	device.ss_family = strchr(ip, ':') ? AF_INET6 : AF_INET;
	if (device.ss_family == AF_INET6)
		fields_must(inet_pton(AF_INET6, ip, &in6->sin6_addr) != 1, ip);
	else
		fields_must(inet_pton(AF_INET, ip, &in->sin_addr) != 1, ip);
}

struct sockaddr *fields_addr(int any, int n)
{
	static struct sockaddr_storage addrs[4];
	static unsigned next;
	struct sockaddr_storage *addr = &addrs[next++ % 4];
	in_port_t port = n ? htons((in_port_t)(first_port + (unsigned)n)) : 0;

	*addr = device;
	if (any) {
		memset(addr, 0, sizeof(*addr));
		addr->ss_family = device.ss_family;
	}
	if (addr->ss_family == AF_INET6)
		((struct sockaddr_in6 *)addr)->sin6_port = port;
	else
		((struct sockaddr_in *)addr)->sin_port = port;
	return (struct sockaddr *)addr;
}

unsigned fields_port(in_port_t port)
{
	unsigned n = ntohs(port) - first_port;

	return n < FIELDS_PORTS ? n : 0;
}

void fields_open(const char *ip, unsigned port)
{
	first_port = port;
	parse(ip);
	cast = (struct fields_cast){ .channel = rdma_create_event_channel() };
	fields_must(!cast.channel, "rdma_create_event_channel");
}

static void end(struct rdma_cm_id **id)
{
	if (!*id)
		return;
	if ((*id)->qp)
		rdma_destroy_qp(*id);
	fields_show_ids();
	fields_must(rdma_destroy_id(*id), "rdma_destroy_id");
	*id = NULL;
}

void fields_close(void)
{
	end(&cast.joiner);
	end(&cast.client);
	end(&cast.server);
	if (cast.listener)
		fields_must(rdma_destroy_id(cast.listener), "rdma_destroy_id");
	rdma_destroy_event_channel(cast.channel);
}

static struct rdma_cm_event *take(enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	fields_must(rdma_get_cm_event(cast.channel, &event), "rdma_get_cm_event");
	if (event->event == type)
		return event;
	fields_show_event(event);
	exit(1);
}

void fields_await(enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event = take(type);

	if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
		cast.server = event->id;
	fields_show_event(event);
	fields_must(rdma_ack_cm_event(event), "rdma_ack_cm_event");
	fields_show_ids();
}

/* The client's is shown first. */
static void show_both(struct rdma_cm_event *first, struct rdma_cm_event *second)
{
	int in_order = first->id == cast.client;

	fields_show_event(in_order ? first : second);
	fields_show_event(in_order ? second : first);
	fields_must(rdma_ack_cm_event(first), "rdma_ack_cm_event");
	fields_must(rdma_ack_cm_event(second), "rdma_ack_cm_event");
	fields_show_ids();
}

void fields_await_both(enum rdma_cm_event_type type)
{
	struct rdma_cm_event *first = take(type);

	show_both(first, take(type));
}

void fields_disconnect(void)
{
	struct rdma_cm_event *first;

	fields_must(rdma_disconnect(cast.client), "rdma_disconnect");
	first = take(RDMA_CM_EVENT_DISCONNECTED);
	rdma_disconnect(cast.server);
	show_both(first, take(RDMA_CM_EVENT_DISCONNECTED));
}

void fields_make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = id->qp_type,
	};

	fields_must(rdma_create_qp(id, NULL, &attr), "rdma_create_qp");
	printf("rdma_create_qp %d %d\n", attr.send_cq == id->send_cq, attr.recv_cq == id->recv_cq);
	fields_show_ids();
}

struct rdma_cm_id *fields_bound(enum rdma_port_space ps, struct sockaddr *addr, int context)
{
	struct rdma_cm_id *id;

	fields_must(rdma_create_id(cast.channel, &id, (void *)(intptr_t)context, ps), "create");
	if (addr)
		fields_must(rdma_bind_addr(id, addr), "rdma_bind_addr");
	return id;
}

void fields_listen(enum rdma_port_space ps, int any)
{
	cast.listener = fields_bound(ps, fields_addr(any, 1), 1);
	fields_show_ids();
	fields_must(rdma_listen(cast.listener, 0), "rdma_listen");
	fields_show_ids();
}

void fields_resolve(enum rdma_port_space ps)
{
	cast.client = fields_bound(ps, fields_addr(0, 2), 2);
	fields_show_ids();
	fields_must(rdma_resolve_addr(cast.client, NULL, fields_addr(0, 1), FIELDS_WAIT_MS),
		"rdma_resolve_addr");
	fields_await(RDMA_CM_EVENT_ADDR_RESOLVED);
	fields_must(rdma_resolve_route(cast.client, FIELDS_WAIT_MS), "rdma_resolve_route");
	fields_await(RDMA_CM_EVENT_ROUTE_RESOLVED);
}
