/* A work of the stream becomes work requests. */
#include "rs/transport.h"

#include <errno.h>
#include <string.h>

/* What one work takes: on iWARP two work requests. */
struct request {
	struct ibv_send_wr wrs[2];
	struct ibv_sge sges[2];
	uint8_t message[EVR_IMM_MESSAGE_LEN];
};

/* Where the bytes are; those in the work go to memory that the device can read, if it must. */
static struct ibv_sge place_of(struct evr_rs_transport *transport,
	const struct evr_stream_work *work, const void *own, uint32_t lkey)
{
	struct ibv_sge sge = { .length = work->len, .lkey = transport->own->lkey };

	switch (work->local) {
	case EVR_STREAM_RING:
		sge.addr = (uintptr_t)(transport->tx + work->offset);
		break;
	case EVR_STREAM_CONTROL:
		if (!work->inlined)
			memcpy(transport->control + work->offset, work->control, work->len);
		sge.addr = (uintptr_t)(work->inlined ? work->control
						     : transport->control + work->offset);
		break;
	case EVR_STREAM_OWN:
		sge.addr = (uintptr_t)own;
		sge.lkey = lkey;
		break;
	case EVR_STREAM_NONE:
		sge = (struct ibv_sge){ 0 };
		break;
	}
	return sge;
}

static void fill_write(
	struct ibv_send_wr *wr, struct ibv_sge *sge, const struct evr_stream_work *work)
{
	*wr = (struct ibv_send_wr){
		.wr_id = work->wr_id,
		.opcode = IBV_WR_RDMA_WRITE,
		.sg_list = sge,
		.num_sge = work->len ? 1 : 0,
		.send_flags = (work->inlined && work->len ? IBV_SEND_INLINE : 0u) |
			      (work->signaled ? IBV_SEND_SIGNALED : 0u),
		.wr.rdma = { .remote_addr = work->addr, .rkey = work->rkey },
	};
}

/* iWARP: the immediate as a message of its own. */
static void fill_message(struct request *request, int at, const struct evr_stream_work *work)
{
	evr_imm_to_message(work->imm, request->message);
	request->sges[at] = (struct ibv_sge){
		.addr = (uintptr_t)request->message,
		.length = EVR_IMM_MESSAGE_LEN,
	};
	request->wrs[at] = (struct ibv_send_wr){
		.wr_id = work->wr_id,
		.opcode = IBV_WR_SEND,
		.sg_list = &request->sges[at],
		.num_sge = 1,
		.send_flags = IBV_SEND_INLINE | (work->signaled ? IBV_SEND_SIGNALED : 0u),
	};
}

static void fill(struct request *request, const struct evr_stream_work *work)
{
	struct ibv_send_wr *wr = &request->wrs[0];

	if (work->op == EVR_STREAM_SEND) {
		fill_message(request, 0, work);
		return;
	}
	fill_write(wr, &request->sges[0], work);
	if (work->op == EVR_STREAM_WRITE_IMM) {
		wr->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
		wr->imm_data = evr_imm_to_ib(work->imm);
	}
	if (work->op == EVR_STREAM_WRITE_SEND) {
		wr->wr_id = evr_wrid_first(work->wr_id);
		wr->send_flags &= ~(unsigned int)IBV_SEND_SIGNALED;
		wr->next = &request->wrs[1];
		fill_message(request, 1, work);
	}
}

int evr_rs_transport_post(struct evr_rs_transport *transport, const struct evr_stream_work *work,
	const void *own, uint32_t lkey)
{
	struct request request;
	struct ibv_send_wr *bad;
	int ret;

	if (!transport->id)
		return -ENODEV;
	request.sges[0] = place_of(transport, work, own, lkey);
	fill(&request, work);
	ret = ibv_post_send(transport->id->qp, request.wrs, &bad);
	if (ret)
		transport->broken = true;
	return evr_rs_verbs_result(ret);
}
