/*
 * Prints what a program can see of an id and of an event without a call, after each event of a
 * connection, of a datagram service and of a multicast membership. The output on one library is to
 * be compared with that on another: so it has no addresses of memory and no numbers of queue pairs.
 * Arguments: the address of the device, rc or ud.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/ib.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SERVER_PORT = 7801, CLIENT_PORT = 7802, WAIT_MS = 2000 };

static struct rdma_event_channel *channel;
static struct rdma_cm_id *listener, *client, *server, *joiner;

static void die(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

static void must(int ret, const char *what)
{
	if (ret)
		die(what);
}

static void show_bytes(const char *name, const void *data, size_t len)
{
	const unsigned char *bytes = data;
	size_t i;

	printf("  %s", name);
	for (i = 0; i < len; i++)
		printf("%s%02x", i % 4 ? "" : " ", bytes[i]);
	printf("\n");
}

static void show_path(const struct ibv_sa_path_rec *p)
{
	show_bytes("path dgid", &p->dgid, sizeof(p->dgid));
	show_bytes("path sgid", &p->sgid, sizeof(p->sgid));
	printf("  path lids %u %u raw %d flow %u hop %u class %u reversible %d numb %u\n", p->dlid,
		p->slid, p->raw_traffic, p->flow_label, p->hop_limit, p->traffic_class,
		p->reversible, p->numb_path);
	printf("  path pkey %x sl %u mtu %u/%u rate %u/%u life %u/%u preference %u\n", p->pkey,
		p->sl, p->mtu_selector, p->mtu, p->rate_selector, p->rate,
		p->packet_life_time_selector, p->packet_life_time, p->preference);
}

static void show_id(const char *name, struct rdma_cm_id *id)
{
	const struct rdma_addr *addr = &id->route.addr;
	int i;

	printf(" %s: ps %x type %d port %u verbs %d pd %d qp %d event %d\n", name, id->ps,
		id->qp_type, id->port_num, id->verbs != NULL, id->pd != NULL, id->qp != NULL,
		id->event != NULL);
	printf("  channel %d context %d cqs %d %d channels %d %d srq %d pd of qp %d\n",
		id->channel == channel, (int)(intptr_t)id->context, id->send_cq != NULL,
		id->recv_cq != NULL, id->send_cq_channel != NULL, id->recv_cq_channel != NULL,
		id->srq != NULL, id->qp && id->qp->pd == id->pd);
	show_bytes("src", &addr->src_storage, sizeof(struct sockaddr_in6));
	show_bytes("dst", &addr->dst_storage, sizeof(struct sockaddr_in6));
	show_bytes("sgid", &addr->addr.ibaddr.sgid, 16);
	show_bytes("dgid", &addr->addr.ibaddr.dgid, 16);
	printf("  pkey %x ports %u %u paths %d %d\n", addr->addr.ibaddr.pkey,
		ntohs(rdma_get_src_port(id)), ntohs(rdma_get_dst_port(id)), id->route.num_paths,
		id->route.path_rec != NULL);
	for (i = 0; i < id->route.num_paths; i++)
		show_path(&id->route.path_rec[i]);
	if (id->qp)
		printf("  qp state %d type %d\n", id->qp->state, id->qp->qp_type);
}

static void show_ids(void)
{
	if (listener)
		show_id("listener", listener);
	if (client)
		show_id("client", client);
	if (server)
		show_id("server", server);
	if (joiner)
		show_id("joiner", joiner);
}

static void show_conn(const struct rdma_conn_param *p)
{
	printf(" conn: len %u resources %u depth %u flow %u retry %u rnr %u srq %u\n",
		p->private_data_len, p->responder_resources, p->initiator_depth, p->flow_control,
		p->retry_count, p->rnr_retry_count, p->srq);
	if (p->private_data)
		show_bytes("data", p->private_data, p->private_data_len);
}

static void show_ud(const struct rdma_ud_param *p, int is_group)
{
	const struct ibv_ah_attr *ah = &p->ah_attr;

	printf(" ud: len %u qkey %x is_global %u dlid %u sl %u port %u\n", p->private_data_len,
		p->qkey, ah->is_global, ah->dlid, ah->sl, ah->port_num);
	printf("  rate %u bits %u index %u hop %u class %u flow %u\n", ah->static_rate,
		ah->src_path_bits, ah->grh.sgid_index, ah->grh.hop_limit, ah->grh.traffic_class,
		ah->grh.flow_label);
	show_bytes("dgid", &ah->grh.dgid, 16);
	if (is_group)
		printf("  context %d qpn %x\n", (int)(intptr_t)p->private_data, p->qp_num);
	else if (p->private_data)
		show_bytes("data", p->private_data, p->private_data_len);
}

static void show_event(const struct rdma_cm_event *event)
{
	int is_group = event->event == RDMA_CM_EVENT_MULTICAST_JOIN ||
		       event->event == RDMA_CM_EVENT_MULTICAST_ERROR;

	printf("%s status %d listen_id %d\n", rdma_event_str(event->event), event->status,
		event->listen_id != NULL);
	if (event->id->qp_type == IBV_QPT_UD)
		show_ud(&event->param.ud, is_group);
	else
		show_conn(&event->param.conn);
}

static void await(enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	must(rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		server = event->id;
	show_event(event);
	if (event->event != type)
		exit(1);
	must(rdma_ack_cm_event(event), "rdma_ack_cm_event");
	show_ids();
}

static struct rdma_cm_event *take(enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	must(rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
	if (event->event == type)
		return event;
	show_event(event);
	exit(1);
}

/* Events of both sides, which come in either order: the client's is shown first. */
static void show_both(struct rdma_cm_event *first, struct rdma_cm_event *second)
{
	int in_order = first->id == client;

	show_event(in_order ? first : second);
	show_event(in_order ? second : first);
	must(rdma_ack_cm_event(first), "rdma_ack_cm_event");
	must(rdma_ack_cm_event(second), "rdma_ack_cm_event");
	show_ids();
}

static void establish(void)
{
	struct rdma_cm_event *first = take(RDMA_CM_EVENT_ESTABLISHED);

	show_both(first, take(RDMA_CM_EVENT_ESTABLISHED));
}

static void disconnect(void)
{
	struct rdma_cm_event *first;

	must(rdma_disconnect(client), "rdma_disconnect");
	first = take(RDMA_CM_EVENT_DISCONNECTED);
	rdma_disconnect(server);
	show_both(first, take(RDMA_CM_EVENT_DISCONNECTED));
}

static void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = id->qp_type,
	};

	must(rdma_create_qp(id, NULL, &attr), "rdma_create_qp");
	printf("rdma_create_qp %d %d\n", attr.send_cq == id->send_cq, attr.recv_cq == id->recv_cq);
	show_ids();
}

static void set_up(const char *ip, enum rdma_port_space ps)
{
	struct sockaddr_in local = { .sin_family = AF_INET, .sin_port = htons(CLIENT_PORT) };
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(SERVER_PORT) };
	struct sockaddr_in remote = any;

	inet_pton(AF_INET, ip, &local.sin_addr);
	inet_pton(AF_INET, ip, &remote.sin_addr);
	must(rdma_create_id(channel, &listener, (void *)1, ps), "rdma_create_id");
	must(rdma_create_id(channel, &client, (void *)2, ps), "rdma_create_id");
	show_ids();
	must(rdma_bind_addr(listener, (struct sockaddr *)&any), "rdma_bind_addr");
	must(rdma_listen(listener, 0), "rdma_listen");
	must(rdma_bind_addr(client, (struct sockaddr *)&local), "rdma_bind_addr");
	show_ids();
	must(rdma_resolve_addr(client, NULL, (struct sockaddr *)&remote, WAIT_MS), "resolve_addr");
	await(RDMA_CM_EVENT_ADDR_RESOLVED);
	must(rdma_resolve_route(client, WAIT_MS), "rdma_resolve_route");
	await(RDMA_CM_EVENT_ROUTE_RESOLVED);
	make_qp(client);
}

static void run_rc(const char *ip)
{
	struct rdma_conn_param param = {
		.private_data = "ping",
		.private_data_len = 4,
		.responder_resources = 3,
		.initiator_depth = 2,
		.retry_count = 5,
		.rnr_retry_count = 6,
	};

	set_up(ip, RDMA_PS_TCP);
	must(rdma_connect(client, &param), "rdma_connect");
	await(RDMA_CM_EVENT_CONNECT_REQUEST);
	make_qp(server);
	param.private_data = "pong!";
	param.private_data_len = 5;
	must(rdma_accept(server, &param), "rdma_accept");
	establish();
	disconnect();
}

static void join_and_leave(enum rdma_cm_mc_join_flags flags)
{
	struct sockaddr_in group = { .sin_family = AF_INET };
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = flags,
		.addr = (struct sockaddr *)&group,
	};

	inet_pton(AF_INET, "239.1.2.3", &group.sin_addr);
	must(rdma_join_multicast_ex(joiner, &attr, (void *)7), "rdma_join_multicast_ex");
	await(RDMA_CM_EVENT_MULTICAST_JOIN);
	must(rdma_leave_multicast(joiner, attr.addr), "rdma_leave_multicast");
	show_ids();
}

static void run_group(const char *ip)
{
	struct sockaddr_in local = { .sin_family = AF_INET };

	inet_pton(AF_INET, ip, &local.sin_addr);
	must(rdma_create_id(channel, &joiner, (void *)3, RDMA_PS_UDP), "rdma_create_id");
	local.sin_port = htons(CLIENT_PORT + 1);
	must(rdma_bind_addr(joiner, (struct sockaddr *)&local), "rdma_bind_addr");
	make_qp(joiner);
	join_and_leave(RDMA_MC_JOIN_FLAG_FULLMEMBER);
	join_and_leave(RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER);
	rdma_destroy_qp(joiner);
	must(rdma_destroy_id(joiner), "rdma_destroy_id");
	joiner = NULL;
}

static void run_ud(const char *ip)
{
	struct rdma_conn_param param = { .private_data = "ping", .private_data_len = 4 };

	set_up(ip, RDMA_PS_UDP);
	must(rdma_connect(client, &param), "rdma_connect");
	await(RDMA_CM_EVENT_CONNECT_REQUEST);
	make_qp(server);
	must(rdma_accept(server, &param), "rdma_accept");
	await(RDMA_CM_EVENT_ESTABLISHED);
	run_group(ip);
}

static void tear_down(void)
{
	rdma_destroy_qp(client);
	show_ids();
	must(rdma_destroy_id(client), "rdma_destroy_id");
	rdma_destroy_qp(server);
	must(rdma_destroy_id(server), "rdma_destroy_id");
	must(rdma_destroy_id(listener), "rdma_destroy_id");
	rdma_destroy_event_channel(channel);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	alarm(30);
	channel = rdma_create_event_channel();
	if (!channel)
		die("rdma_create_event_channel");
	if (!strcmp(argv[2], "rc"))
		run_rc(argv[1]);
	else
		run_ud(argv[1]);
	tear_down();
	return 0;
}
