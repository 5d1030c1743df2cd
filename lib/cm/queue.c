/* The completion queues and channels that stand on an id. */
#include "cm/cm.h"

struct evr_cm_queue evr_cm_send_queue(struct rdma_cm_id *id)
{
	return (struct evr_cm_queue){ &id->send_cq_channel, &id->send_cq };
}

struct evr_cm_queue evr_cm_recv_queue(struct rdma_cm_id *id)
{
	return (struct evr_cm_queue){ &id->recv_cq_channel, &id->recv_cq };
}

void evr_cm_queue_destroy(struct evr_cm_queue queue)
{
	if (*queue.cq)
		ibv_destroy_cq(*queue.cq);
	if (*queue.channel)
		ibv_destroy_comp_channel(*queue.channel);
	*queue.cq = NULL;
	*queue.channel = NULL;
}

static struct ibv_cq *make(struct rdma_cm_id *id, struct evr_cm_queue queue, int entries)
{
	return ibv_create_cq(id->verbs, entries, id, *queue.channel, 0);
}

/* Some devices give one less than a power of two, even where that was asked for. */
static void enlarge(struct rdma_cm_id *id, struct evr_cm_queue queue, int entries)
{
	struct ibv_cq *larger = make(id, queue, entries + 1);

	if (!larger)
		return;
	ibv_destroy_cq(*queue.cq);
	*queue.cq = larger;
}

static int create(struct rdma_cm_id *id, struct evr_cm_queue queue, uint32_t num_wr)
{
	int entries = num_wr ? (int)num_wr : 1;
	int ret;

	errno = 0;
	*queue.channel = ibv_create_comp_channel(id->verbs);
	if (!*queue.channel)
		return evr_cm_verbs_error();
	*queue.cq = make(id, queue, entries);
	if (!*queue.cq) {
		ret = evr_cm_verbs_error();
		evr_cm_queue_destroy(queue);
		return ret;
	}
	if ((*queue.cq)->cqe < entries)
		enlarge(id, queue, entries);
	return 0;
}

int evr_cm_queue_choose(struct rdma_cm_id *id, struct evr_cm_queue queue, struct ibv_cq **named,
	uint32_t num_wr, bool *created)
{
	int ret = 0;

	*created = !*named && !*queue.cq;
	if (*created)
		ret = create(id, queue, num_wr);
	if (!*named)
		*named = *queue.cq;
	*created &= !ret;
	return ret;
}
