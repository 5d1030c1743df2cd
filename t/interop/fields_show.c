/* How an id and an event are shown. */
#include "interop/fields.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

static void show_bytes(const char *name, const void *data, size_t len)
{
	const unsigned char *bytes = data;
	size_t i;

	printf("  %s", name);
	for (i = 0; i < len; i++)
		printf("%s%02x", i % 4 ? "" : " ", bytes[i]);
	printf("\n");
}

/* A port that nobody named is different every time. */
static void show_addr(const char *name, const struct sockaddr_storage *addr)
{
	struct sockaddr_in6 copy; /* with its port where an IPv4 address has it */
	unsigned n;

	memcpy(&copy, addr, sizeof(copy));
	n = fields_port(copy.sin6_port);
	if (copy.sin6_port)
		copy.sin6_port = n ? htons((in_port_t)n) : 0xffff;
	show_bytes(name, &copy, sizeof(copy));
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

	printf(" %s: ps %x type %d port %u verbs %d pd %d qp %d event %s\n", name, id->ps,
		id->qp_type, id->port_num, id->verbs != NULL, id->pd != NULL, id->qp != NULL,
		id->event ? rdma_event_str(id->event->event) : "none");
	printf("  channel %d context %d cqs %d %d channels %d %d srq %d pd of qp %d\n",
		id->channel == cast.channel, (int)(intptr_t)id->context, id->send_cq != NULL,
		id->recv_cq != NULL, id->send_cq_channel != NULL, id->recv_cq_channel != NULL,
		id->srq != NULL, id->qp && id->qp->pd == id->pd);
	show_addr("src", &addr->src_storage);
	show_addr("dst", &addr->dst_storage);
	show_bytes("sgid", &addr->addr.ibaddr.sgid, 16);
	show_bytes("dgid", &addr->addr.ibaddr.dgid, 16);
	printf("  pkey %x ports %d %u paths %d %d\n", addr->addr.ibaddr.pkey,
		rdma_get_src_port(id) != 0, fields_port(rdma_get_dst_port(id)), id->route.num_paths,
		id->route.path_rec != NULL);
	for (i = 0; i < id->route.num_paths; i++)
		show_path(&id->route.path_rec[i]);
	if (id->qp)
		printf("  qp state %d type %d\n", id->qp->state, id->qp->qp_type);
}

void fields_show_ids(void)
{
	if (cast.listener)
		show_id("listener", cast.listener);
	if (cast.client)
		show_id("client", cast.client);
	if (cast.server)
		show_id("server", cast.server);
	if (cast.joiner)
		show_id("joiner", cast.joiner);
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

void fields_show_event(const struct rdma_cm_event *event)
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
