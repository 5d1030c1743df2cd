/* The UD queue pair of one address of this machine. */
#include "rs/dgram.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/grh.h"
#include "util/clock.h"
#include "util/number.h"

enum {
	RECV_PLACE = EVR_GRH_LEN + EVR_DGRAM_MAX,
	LARGEST_MTU = 4096,
	EXCESS = LARGEST_MTU - EVR_DGRAM_MAX,
	RECV_SGES = 2,
	BATCH = 16,
	ACK_BATCH = 256,
	LEAST_MTU = 128, /* shifted by what verbs have for it */
};

static int verbs_error(void)
{
	return errno ? -errno : -EIO;
}

/* --- memory ---------------------------------------------------------------------------------- */

static uint8_t *recv_place(const struct evr_rs_ud *ud, uint32_t index)
{
	return ud->memory + (size_t)index * RECV_PLACE;
}

static uint8_t *send_place(const struct evr_rs_ud *ud, uint32_t index)
{
	return recv_place(ud, ud->rq_size) + (size_t)index * EVR_DGRAM_MAX;
}

/*
 * The end of whatever is longer than any message of ours: one for all, as nobody reads it. Without
 * it a device would end the queue pair, for everybody, since a stranger sent a long one.
 */
static uint8_t *excess_place(const struct evr_rs_ud *ud)
{
	return send_place(ud, ud->sq_size);
}

static int allocate_tables(struct evr_rs_ud *ud)
{
	ud->packets = calloc(ud->rq_size, sizeof(*ud->packets));
	ud->sent = calloc(ud->sq_size, sizeof(struct evr_rs_ah *));
	ud->places = calloc(ud->sq_size, sizeof(*ud->places));
	if (!ud->packets || !ud->sent || !ud->places)
		return -ENOMEM;
	for (ud->free = 0; ud->free < ud->sq_size; ud->free++)
		ud->places[ud->free] = ud->free;
	return 0;
}

static int allocate(struct evr_rs_ud *ud)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t len = (size_t)ud->rq_size * RECV_PLACE + (size_t)ud->sq_size * EVR_DGRAM_MAX +
		     EXCESS;
	void *memory;

	len = (len + page - 1) / page * page;
	if (posix_memalign(&memory, page, len))
		return -ENOMEM;
	ud->memory = memory;
	memset(memory, 0, len);
	errno = 0;
	ud->mr = ibv_reg_mr(ud->id->qp->pd, memory, len, IBV_ACCESS_LOCAL_WRITE);
	return ud->mr ? allocate_tables(ud) : verbs_error();
}

/* --- its beginning --------------------------------------------------------------------------- */

static int open_channel(struct evr_rs *rs)
{
	int ret;

	if (rs->channel)
		return 0;
	ret = evr_rs_open_channel(&rs->channel);
	return ret ? ret : evr_rs_dgram_watch(rs, rs->channel->fd, rs);
}

/* What iWARP has none of. */
static int open_id(struct evr_rs_ud *ud)
{
	union evr_rs_addr addr = ud->addr;
	int ret = open_channel(ud->rs);

	if (ret)
		return ret;
	if (rdma_create_id(ud->rs->channel, &ud->id, ud, RDMA_PS_UDP)) {
		ud->id = NULL;
		return -errno;
	}
	if (rdma_bind_addr(ud->id, &addr.sa))
		return -errno;
	if (!ud->id->verbs || ud->id->verbs->device->transport_type != IBV_TRANSPORT_IB)
		return -ENODEV;
	return 0;
}

static int fit(struct evr_rs_ud *ud)
{
	const struct evr_rs_options *options = &ud->rs->options;
	struct ibv_device_attr device;
	struct ibv_port_attr port;
	int ret = evr_rs_verbs_result(ibv_query_device(ud->id->verbs, &device));
	uint32_t most;

	if (!ret)
		ret = evr_rs_verbs_result(ibv_query_port(ud->id->verbs, ud->id->port_num, &port));
	if (ret)
		return ret;
	most = evr_smaller((uint32_t)device.max_qp_wr, (uint32_t)device.max_cqe - 1);
	ud->rq_size = evr_smaller(options->rq_size, options->rx_size / EVR_DGRAM_MAX);
	ud->sq_size = evr_smaller(options->sq_size, options->tx_size / EVR_DGRAM_MAX);
	ud->rq_size = evr_smaller(ud->rq_size ? ud->rq_size : 1, most);
	ud->sq_size = evr_smaller(ud->sq_size ? ud->sq_size : 1, most);
	ud->mtu = evr_smaller((uint32_t)LEAST_MTU << port.active_mtu, EVR_DGRAM_MAX);
	ud->is_roce = port.link_layer == IBV_LINK_LAYER_ETHERNET;
	return 0;
}

static int create_channel(struct evr_rs_ud *ud)
{
	int flags;

	errno = 0;
	ud->channel = ibv_create_comp_channel(ud->id->verbs);
	if (!ud->channel)
		return verbs_error();
	flags = fcntl(ud->channel->fd, F_GETFL);
	if (flags < 0 || fcntl(ud->channel->fd, F_SETFL, flags | O_NONBLOCK))
		return -errno;
	return evr_rs_dgram_watch(ud->rs, ud->channel->fd, ud);
}

/* Two, so that nobody who waits for a message is woken by one that has left. */
static int create_cqs(struct evr_rs_ud *ud)
{
	struct ibv_context *verbs = ud->id->verbs;

	errno = 0;
	ud->recv_cq = ibv_create_cq(verbs, (int)ud->rq_size + 1, NULL, ud->channel, 0);
	if (ud->recv_cq)
		ud->send_cq = ibv_create_cq(verbs, (int)ud->sq_size + 1, NULL, ud->channel, 0);
	return ud->send_cq ? 0 : verbs_error();
}

static int try_qp(struct evr_rs_ud *ud, uint32_t inline_size)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = ud->send_cq,
		.recv_cq = ud->recv_cq,
		.qp_type = IBV_QPT_UD,
		.sq_sig_all = 1,
		.cap = {
			.max_send_wr = ud->sq_size,
			.max_recv_wr = ud->rq_size,
			.max_send_sge = 1,
			.max_recv_sge = RECV_SGES,
			.max_inline_data = inline_size,
		},
	};

	if (rdma_create_qp(ud->id, NULL, &attr))
		return -errno;
	ud->inline_max = evr_smaller(inline_size, attr.cap.max_inline_data);
	return 0;
}

static int create_qp(struct evr_rs_ud *ud)
{
	int ret = try_qp(ud, ud->rs->options.inline_size);

	return ret && ud->rs->options.inline_size ? try_qp(ud, 0) : ret;
}

int evr_rs_ud_post(struct evr_rs_ud *ud, struct evr_rs_packet *packet)
{
	uint32_t index = (uint32_t)(packet - ud->packets);
	struct ibv_sge sges[RECV_SGES] = {
		{ (uintptr_t)recv_place(ud, index), RECV_PLACE, ud->mr->lkey },
		{ (uintptr_t)excess_place(ud), EXCESS, ud->mr->lkey },
	};
	struct ibv_recv_wr wr = { .wr_id = index, .sg_list = sges, .num_sge = RECV_SGES }, *bad;

	packet->ud = ud;
	return evr_rs_verbs_result(ibv_post_recv(ud->id->qp, &wr, &bad));
}

static int post_all(struct evr_rs_ud *ud)
{
	uint32_t i;
	int ret = 0;

	for (i = 0; i < ud->rq_size && !ret; i++)
		ret = evr_rs_ud_post(ud, &ud->packets[i]);
	return ret;
}

static int start(struct evr_rs_ud *ud)
{
	int ret = open_id(ud);

	if (!ret)
		ret = fit(ud);
	if (!ret)
		ret = create_channel(ud);
	if (!ret)
		ret = create_cqs(ud);
	if (!ret)
		ret = create_qp(ud);
	if (!ret)
		ret = allocate(ud);
	return ret ? ret : post_all(ud);
}

/* --- its end --------------------------------------------------------------------------------- */

static void drop_packets(struct evr_rs_ud *ud)
{
	struct evr_rs_dgram *dgram = ud->rs->dgram;
	struct evr_rs_packet *packet, *next;

	TAILQ_FOREACH_SAFE (packet, &dgram->received, link, next)
		if (packet->ud == ud)
			TAILQ_REMOVE(&dgram->received, packet, link);
}

static void destroy_cq(struct ibv_cq **cq, unsigned int *unacked)
{
	if (*cq) {
		ibv_ack_cq_events(*cq, *unacked);
		ibv_destroy_cq(*cq);
	}
	*cq = NULL;
	*unacked = 0;
}

static void destroy_queues(struct evr_rs_ud *ud)
{
	if (ud->id && ud->id->qp)
		rdma_destroy_qp(ud->id);
	destroy_cq(&ud->recv_cq, &ud->recv_unacked);
	destroy_cq(&ud->send_cq, &ud->send_unacked);
	if (ud->channel)
		ibv_destroy_comp_channel(ud->channel);
	ud->channel = NULL;
	ud->recv_armed = ud->send_armed = ud->broken = false;
}

static void free_memory(struct evr_rs_ud *ud)
{
	uint32_t i;

	for (i = 0; ud->sent && i < ud->sq_size; i++)
		evr_rs_ah_put(ud->sent[i]);
	if (ud->mr)
		ibv_dereg_mr(ud->mr);
	ud->mr = NULL;
	free(ud->memory);
	free(ud->packets);
	free(ud->sent);
	free(ud->places);
	ud->memory = NULL;
	ud->packets = NULL;
	ud->sent = NULL;
	ud->places = NULL;
	ud->free = ud->sq_size = ud->rq_size = 0;
}

/* What waits to be taken is lost with it, as on its way: the others are sent to by UDP. */
void evr_rs_ud_stop(struct evr_rs_ud *ud)
{
	drop_packets(ud);
	evr_rs_dests_leave(ud->rs, ud);
	destroy_queues(ud);
	free_memory(ud);
	if (ud->id)
		rdma_destroy_id(ud->id);
	ud->id = NULL;
	ud->again_us = evr_clock_now_us() + EVR_RS_AGAIN_US;
}

void evr_rs_ud_free(struct evr_rs_ud *ud)
{
	evr_rs_ud_stop(ud);
	TAILQ_REMOVE(&ud->rs->dgram->uds, ud, link);
	free(ud);
}

/* --- finding --------------------------------------------------------------------------------- */

static struct evr_rs_ud *find(struct evr_rs *rs, const union evr_rs_addr *addr)
{
	struct evr_rs_ud *ud;

	TAILQ_FOREACH (ud, &rs->dgram->uds, link)
		if (evr_rs_addr_equal(&ud->addr, addr))
			return ud;
	return NULL;
}

static struct evr_rs_ud *make(struct evr_rs *rs, const union evr_rs_addr *addr)
{
	struct evr_rs_ud *ud = calloc(1, sizeof(*ud));

	if (!ud)
		return NULL;
	ud->rs = rs;
	ud->addr = *addr;
	TAILQ_INSERT_TAIL(&rs->dgram->uds, ud, link);
	return ud;
}

struct evr_rs_ud *evr_rs_ud_get(struct evr_rs *rs, const union evr_rs_addr *addr)
{
	struct evr_rs_ud *ud = find(rs, addr);

	if (!ud)
		ud = make(rs, addr);
	if (ud && !ud->id && evr_clock_now_us() >= ud->again_us && start(ud))
		evr_rs_ud_stop(ud);
	return ud;
}

/* --- sending --------------------------------------------------------------------------------- */

bool evr_rs_ud_poll_send(struct evr_rs_ud *ud)
{
	struct ibv_wc wcs[BATCH];
	bool any = false;
	int num = BATCH, i;

	while (ud->send_cq && num == BATCH) {
		num = ibv_poll_cq(ud->send_cq, BATCH, wcs);
		for (i = 0; i < num; i++) {
			evr_rs_ah_put(ud->sent[wcs[i].wr_id]);
			ud->sent[wcs[i].wr_id] = NULL;
			ud->places[ud->free++] = (uint32_t)wcs[i].wr_id;
			ud->broken |= wcs[i].status != IBV_WC_SUCCESS;
		}
		ud->broken |= num < 0;
		any |= num > 0;
	}
	return any;
}

uint8_t *evr_rs_ud_place(struct evr_rs_ud *ud)
{
	if (ud->free <= ud->sq_size / 2)
		evr_rs_ud_poll_send(ud);
	return ud->free && !ud->broken ? send_place(ud, ud->places[ud->free - 1]) : NULL;
}

int evr_rs_ud_send(struct evr_rs_ud *ud, size_t len, struct evr_rs_ah *ah, uint32_t qpn)
{
	uint32_t index = ud->places[ud->free - 1];
	struct ibv_sge sge = {
		.addr = (uintptr_t)send_place(ud, index),
		.length = (uint32_t)len,
		.lkey = ud->mr->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = index,
		.opcode = IBV_WR_SEND,
		.sg_list = &sge,
		.num_sge = 1,
		.send_flags = len <= ud->inline_max ? IBV_SEND_INLINE : 0,
		.wr.ud = { .ah = ah->ah, .remote_qpn = qpn, .remote_qkey = RDMA_UDP_QKEY },
	}, *bad;
	int ret = evr_rs_verbs_result(ibv_post_send(ud->id->qp, &wr, &bad));

	if (ret) {
		ud->broken = true;
		return ret;
	}
	ud->free--;
	ud->sent[index] = ah;
	ah->refs++;
	return 0;
}

/* --- receiving ------------------------------------------------------------------------------- */

static void note_sender(struct evr_rs *rs, const union evr_rs_addr *from, uint32_t qpn)
{
	struct evr_rs_dest *dest = evr_rs_dest_find(rs, from);

	if (dest && dest->qpn == qpn)
		evr_rs_dest_heard(rs, dest);
}

/* Whether there is a message more; what is none is as if it had not come. */
static bool take(struct evr_rs_ud *ud, const struct ibv_wc *wc)
{
	struct evr_rs_packet *packet = &ud->packets[wc->wr_id];
	const uint8_t *bytes = recv_place(ud, (uint32_t)wc->wr_id);

	if (wc->status != IBV_WC_SUCCESS) {
		ud->broken = true;
		return false;
	}
	if (evr_rs_packet_read(ud, packet, bytes, wc)) {
		note_sender(ud->rs, &packet->from, wc->src_qp);
		TAILQ_INSERT_TAIL(&ud->rs->dgram->received, packet, link);
		return true;
	}
	if (evr_rs_ud_post(ud, packet))
		ud->broken = true;
	return false;
}

/* Not for ever, if they come as fast as they are dropped: then there may be more. */
bool evr_rs_ud_poll_recv(struct evr_rs_ud *ud)
{
	struct ibv_wc wcs[BATCH];
	uint32_t turns = ud->rq_size / BATCH + 1;
	bool any = false;
	int num = BATCH, i;

	if (!ud->recv_cq)
		return false;
	while (num == BATCH && turns--) {
		num = ibv_poll_cq(ud->recv_cq, BATCH, wcs);
		for (i = 0; i < num; i++)
			any |= take(ud, &wcs[i]);
		ud->broken |= num < 0;
	}
	return any || num == BATCH;
}

/* --- events ---------------------------------------------------------------------------------- */

static void arm(struct evr_rs_ud *ud, struct ibv_cq *cq, bool *armed)
{
	if (*armed)
		return;
	ud->broken |= ibv_req_notify_cq(cq, 0) != 0;
	*armed = true;
}

bool evr_rs_ud_waits_for_sends(const struct evr_rs_ud *ud)
{
	return !ud->free || ud->rs->fd < 0;
}

void evr_rs_ud_arm(struct evr_rs_ud *ud)
{
	if (!ud->id)
		return;
	arm(ud, ud->recv_cq, &ud->recv_armed);
	if (evr_rs_ud_waits_for_sends(ud))
		arm(ud, ud->send_cq, &ud->send_armed);
}

static void acknowledge(struct ibv_cq *cq, unsigned int *unacked)
{
	if (++*unacked < ACK_BATCH)
		return;
	ibv_ack_cq_events(cq, *unacked);
	*unacked = 0;
}

bool evr_rs_ud_take_event(struct evr_rs_ud *ud)
{
	struct ibv_cq *cq;
	void *context;

	if (!ud->channel || ibv_get_cq_event(ud->channel, &cq, &context))
		return false;
	if (cq == ud->recv_cq) {
		ud->recv_armed = false;
		acknowledge(cq, &ud->recv_unacked);
	} else {
		ud->send_armed = false;
		acknowledge(cq, &ud->send_unacked);
	}
	return true;
}
