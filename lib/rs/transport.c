#include "rs/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/number.h"

enum {
	RETRY_INLINE = EVR_IMM_MESSAGE_LEN,
	/* 0.64 ms; what the CM leaves there is 0, which means 655 ms. */
	RNR_TIMER = 12,
};

/* A positive errno, on some devices its negative, or -1 with errno from old providers. */
int evr_rs_verbs_result(int ret)
{
	if (ret == -1)
		return errno ? -errno : -EIO;
	return ret < 0 ? ret : -ret;
}

static int verbs_error(void)
{
	return errno ? -errno : -EIO;
}

/* --- memory ---------------------------------------------------------------------------------- */

static uint32_t receives_of(const struct evr_stream_config *config)
{
	return (uint32_t)config->rq_size + EVR_SENDQ_CONTROL;
}

static size_t round_up(size_t size, size_t to)
{
	return (size + to - 1) / to * to;
}

static int allocate(uint8_t **memory, size_t *len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *found;

	*len = round_up(*len, page);
	if (posix_memalign(&found, page, *len))
		return -ENOMEM;
	memset(found, 0, *len);
	*memory = found;
	return 0;
}

static int allocate_tables(struct evr_rs_transport *transport, struct evr_stream_config *config)
{
	transport->works = calloc(config->sq_size, sizeof(*transport->works));
	if (!transport->works)
		return -ENOMEM;
	config->works = transport->works;
	if (!config->iomap_size)
		return 0;
	transport->iomap = calloc(config->iomap_size, sizeof(*transport->iomap));
	config->iomap = transport->iomap;
	return transport->iomap ? 0 : -ENOMEM;
}

static int allocate_rings(struct evr_rs_transport *transport, struct evr_stream_config *config)
{
	size_t ring = round_up(config->rx_size, sizeof(uint64_t));
	int ret;

	transport->rx_len = ring + evr_stream_target_len(config->iomap_size);
	ret = allocate(&transport->rx, &transport->rx_len);
	if (ret)
		return ret;
	config->target = transport->rx + ring;
	config->rx_addr = (uintptr_t)transport->rx;
	ring = round_up(config->tx_size, sizeof(uint64_t));
	transport->tx_len =
		ring + EVR_STREAM_CONTROL_BYTES + (size_t)receives_of(config) * EVR_IMM_MESSAGE_LEN;
	ret = allocate(&transport->tx, &transport->tx_len);
	if (ret)
		return ret;
	transport->control = transport->tx + ring;
	transport->inbox = transport->control + EVR_STREAM_CONTROL_BYTES;
	return 0;
}

/* The peer must reach no more than what it is to write. */
static int register_rings(struct evr_rs_transport *transport, struct evr_stream_config *config)
{
	struct ibv_pd *pd = transport->id->qp->pd;

	errno = 0;
	transport->shown = ibv_reg_mr(pd, transport->rx, transport->rx_len,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!transport->shown)
		return verbs_error();
	config->rx_rkey = config->target_rkey = transport->shown->rkey;
	transport->own = ibv_reg_mr(pd, transport->tx, transport->tx_len, IBV_ACCESS_LOCAL_WRITE);
	return transport->own ? 0 : verbs_error();
}

/* --- queues ---------------------------------------------------------------------------------- */

/* What a queue of completions has beside a place for each of both queues. */
enum { CQ_OTHERS = EVR_SENDQ_CONTROL + 1 };

/* They complete in one queue: the longer of them gives way, but not below a half of it. */
static void share_cq(struct evr_stream_config *config, uint32_t places)
{
	uint32_t half = places / 2, sq = config->sq_size, rq = config->rq_size;

	if (sq + rq <= places)
		return;
	config->sq_size = (uint16_t)(sq <= half ? sq : places - evr_smaller(rq, half));
	config->rq_size = (uint16_t)(places - config->sq_size);
}

/* What the device has of it. */
static int fit_queues(struct rdma_cm_id *id, struct evr_stream_config *config)
{
	struct ibv_device_attr attr;
	int ret = evr_rs_verbs_result(ibv_query_device(id->verbs, &attr));
	uint32_t most = ret ? 0 : (uint32_t)attr.max_qp_wr;

	if (ret)
		return ret;
	if (most < EVR_SENDQ_MIN + EVR_SENDQ_CONTROL ||
		attr.max_cqe < 2 * EVR_SENDQ_MIN + CQ_OTHERS)
		return -ENOTSUP;
	config->sq_size = (uint16_t)evr_smaller(config->sq_size, most);
	config->rq_size = (uint16_t)evr_smaller(config->rq_size, most - EVR_SENDQ_CONTROL);
	share_cq(config, (uint32_t)attr.max_cqe - CQ_OTHERS);
	return 0;
}

static int set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) ? -errno : 0;
}

static int create_cq(
	struct evr_rs_transport *transport, struct rdma_cm_id *id, struct evr_stream_config *config)
{
	int entries = (int)(config->sq_size + receives_of(config));
	int ret;

	errno = 0;
	transport->channel = ibv_create_comp_channel(id->verbs);
	if (!transport->channel)
		return verbs_error();
	ret = set_nonblocking(transport->channel->fd);
	if (ret)
		return ret;
	/* Some devices give one less than a power of two. */
	transport->cq = ibv_create_cq(id->verbs, entries + 1, NULL, transport->channel, 0);
	return transport->cq ? 0 : verbs_error();
}

static int try_qp(struct evr_rs_transport *transport, struct rdma_cm_id *id,
	const struct evr_stream_config *config, uint32_t inline_size, uint32_t *inline_max)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = transport->cq,
		.recv_cq = transport->cq,
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = config->sq_size,
			.max_recv_wr = receives_of(config),
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = inline_size,
		},
	};

	if (rdma_create_qp(id, NULL, &attr))
		return -errno;
	*inline_max = attr.cap.max_inline_data;
	transport->id = id;
	return 0;
}

/* More than the device can post inline is a reason to fail for some. */
static int create_qp(struct evr_rs_transport *transport, struct rdma_cm_id *id,
	struct evr_stream_config *config, uint32_t inline_size)
{
	uint32_t least = transport->iwarp ? RETRY_INLINE : 0, inline_max;
	int ret;

	inline_size = evr_smaller(inline_size, EVR_RS_POSTED_INLINE);
	if (inline_size < least)
		inline_size = least;
	ret = try_qp(transport, id, config, inline_size, &inline_max);
	if (ret && inline_size > least) {
		inline_size = least;
		ret = try_qp(transport, id, config, inline_size, &inline_max);
	}
	if (!ret)
		config->inline_max = evr_smaller(inline_size, inline_max);
	return ret;
}

/* --- receives -------------------------------------------------------------------------------- */

const uint8_t *evr_rs_transport_message(const struct evr_rs_transport *transport, uint64_t wr_id)
{
	return transport->inbox + (size_t)evr_wrid_number(wr_id) * EVR_IMM_MESSAGE_LEN;
}

/* On InfiniBand an immediate takes no memory; some devices read the entry whatever its number. */
void evr_rs_receives_add(
	struct evr_rs_receives *receives, struct evr_rs_transport *transport, uint64_t wr_id)
{
	struct ibv_recv_wr *wr = &receives->wrs[receives->num];
	struct ibv_sge *sge = &receives->sges[receives->num];

	*sge = (struct ibv_sge){ 0 };
	*wr = (struct ibv_recv_wr){ .wr_id = wr_id, .sg_list = sge };
	if (transport->iwarp) {
		sge->addr = (uintptr_t)evr_rs_transport_message(transport, wr_id);
		sge->length = EVR_IMM_MESSAGE_LEN;
		sge->lkey = transport->own->lkey;
		wr->num_sge = 1;
	}
	if (receives->num)
		receives->wrs[receives->num - 1].next = wr;
	receives->num++;
}

int evr_rs_receives_post(struct evr_rs_receives *receives, struct evr_rs_transport *transport)
{
	struct ibv_recv_wr *bad;
	int ret = 0;

	if (receives->num && transport->id)
		ret = evr_rs_verbs_result(ibv_post_recv(transport->id->qp, receives->wrs, &bad));
	receives->num = 0;
	return ret;
}

static int post_receives(struct evr_rs_transport *transport, uint32_t num)
{
	struct evr_rs_receives receives = { .num = 0 };
	uint32_t i;
	int ret = 0;

	for (i = 0; i < num && !ret; i++) {
		evr_rs_receives_add(&receives, transport, evr_wrid_recv(i));
		if (receives.num == EVR_RS_BATCH)
			ret = evr_rs_receives_post(&receives, transport);
	}
	return ret ? ret : evr_rs_receives_post(&receives, transport);
}

/* --- the whole ------------------------------------------------------------------------------- */

static int make(struct evr_rs_transport *transport, struct rdma_cm_id *id,
	const struct evr_rs_options *options, struct evr_stream_config *config)
{
	int ret = fit_queues(id, config);

	if (!ret)
		ret = create_cq(transport, id, config);
	if (!ret)
		ret = create_qp(transport, id, config, options->inline_size);
	if (!ret)
		ret = allocate_rings(transport, config);
	if (!ret)
		ret = allocate_tables(transport, config);
	if (!ret)
		ret = register_rings(transport, config);
	if (!ret)
		ret = post_receives(transport, receives_of(config));
	return ret;
}

int evr_rs_transport_init(struct evr_rs_transport *transport, struct rdma_cm_id *id,
	const struct evr_rs_options *options, struct evr_stream *stream)
{
	struct evr_stream_config config = {
		.sq_size = options->sq_size,
		.rq_size = options->rq_size,
		.rx_size = options->rx_size,
		.tx_size = options->tx_size,
		.iomap_size = options->iomap_size,
	};
	int ret;

	if (!id->verbs)
		return -ENODEV;
	*transport = (struct evr_rs_transport){ 0 };
	transport->iwarp = id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
	config.iwarp = transport->iwarp;
	ret = make(transport, id, options, &config);
	if (!ret)
		ret = evr_stream_init(stream, &config);
	if (ret)
		evr_rs_transport_fini(transport);
	return ret;
}

int evr_rs_transport_map(struct evr_rs_transport *transport, struct evr_stream *stream)
{
	uint32_t size = stream->peer.iomap_size;

	if (!size || transport->slots)
		return 0;
	transport->slots = calloc(size, sizeof(*transport->slots));
	if (!transport->slots)
		return -ENOMEM;
	evr_stream_set_mappings(stream, transport->slots, size);
	return 0;
}

void evr_rs_transport_connected(struct evr_rs_transport *transport)
{
	struct ibv_qp_attr attr = { .min_rnr_timer = RNR_TIMER };

	if (transport->id && !transport->iwarp)
		ibv_modify_qp(transport->id->qp, &attr, IBV_QP_MIN_RNR_TIMER);
}

static void dereg(struct ibv_mr **mr)
{
	if (*mr)
		ibv_dereg_mr(*mr);
	*mr = NULL;
}

void evr_rs_transport_stop(struct evr_rs_transport *transport)
{
	if (transport->id)
		rdma_destroy_qp(transport->id);
	transport->id = NULL;
	dereg(&transport->shown);
	dereg(&transport->own);
	if (transport->cq) {
		ibv_ack_cq_events(transport->cq, transport->unacked);
		ibv_destroy_cq(transport->cq);
	}
	transport->cq = NULL;
	transport->unacked = 0;
	if (transport->channel)
		ibv_destroy_comp_channel(transport->channel);
	transport->channel = NULL;
}

void evr_rs_transport_fini(struct evr_rs_transport *transport)
{
	evr_rs_transport_stop(transport);
	free(transport->rx);
	free(transport->tx);
	free(transport->works);
	free(transport->iomap);
	free(transport->slots);
	*transport = (struct evr_rs_transport){ 0 };
}
