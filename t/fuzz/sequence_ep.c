/* The steps of programs that call the library: endpoints, shared receive queues, services. */
#include "fuzz/sequence.h"

#include "cm/cm.h"

#include <errno.h>
#include <rdma/rdma_verbs.h>

enum { PASSIVE = 1, WITH_QP = 2, WITH_DATA = 4 };

static struct rdma_addrinfo answer(const struct seq_step *step)
{
	static const int types[] = { IBV_QPT_RC, IBV_QPT_UD, IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV,
		0 };
	static const int spaces[] = { RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_IB, RDMA_PS_IB,
		RDMA_PS_TCP };
	static char data[40];
	struct sockaddr *addr = seq_addr(step->arg[0], 0);
	socklen_t len = addr ? sizeof(struct sockaddr_storage) : 0;
	struct rdma_addrinfo res = {
		.ai_flags = step->arg[1] & PASSIVE ? RAI_PASSIVE : 0,
		.ai_qp_type = types[step->arg[2] % 5],
		.ai_port_space = spaces[step->arg[2] % 5],
		.ai_connect_len = step->arg[1] & WITH_DATA ? sizeof(data) : 0,
		.ai_connect = data,
	};

	if (step->arg[1] & PASSIVE) {
		res.ai_src_addr = addr;
		res.ai_src_len = len;
	} else {
		res.ai_dst_addr = addr;
		res.ai_dst_len = len;
	}
	return res;
}

static int run_create_ep(struct seq_fixture *f, const struct seq_step *step)
{
	struct rdma_addrinfo res = answer(step);
	struct ibv_qp_init_attr attr = fuzz_qp_attr(res.ai_qp_type);

	if (step->slot->id)
		return 0;
	return rdma_create_ep(&step->slot->id, &res, NULL, step->arg[1] & WITH_QP ? &attr : NULL);
}

/* Should the kernel refuse, the id remains. */
static int run_destroy_ep(struct seq_fixture *f, const struct seq_step *step)
{
	uint64_t uid = evr_cm_uid(step->slot->id);

	seq_settle(f, step->slot->id);
	rdma_destroy_ep(step->slot->id);
	if (!evr_cm_map_find_id(uid))
		step->slot->id = NULL;
	return seq_destroy(f, step->slot);
}

static int run_get_request(struct seq_fixture *f, const struct seq_step *step)
{
	struct rdma_cm_id *child;

	if (rdma_get_request(step->slot->id, &child))
		return -1;
	fuzz_check(child && child->event && child->event->event == RDMA_CM_EVENT_CONNECT_REQUEST);
	seq_keep_child(f, child);
	return 0;
}

static int run_create_srq(struct seq_fixture *f, const struct seq_step *step)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq_init_attr_ex ex = {
		.attr = attr.attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE,
		.srq_type = step->arg[0] == 1 ? IBV_SRQT_BASIC : IBV_SRQT_XRC,
	};

	return step->arg[0] ? rdma_create_srq_ex(step->slot->id, &ex)
			    : rdma_create_srq(step->slot->id, NULL, &attr);
}

static int run_destroy_srq(struct seq_fixture *f, const struct seq_step *step)
{
	if (step->slot->id)
		rdma_destroy_srq(step->slot->id);
	return 0;
}

/* No name server is asked. */
static int run_resolve_service(struct seq_fixture *f, const struct seq_step *step)
{
	const struct rdma_addrinfo by_sa = { .ai_flags = RAI_SA };
	const struct rdma_addrinfo numeric = { .ai_flags = RAI_DNS | RAI_NUMERICHOST };

	if (step->arg[0])
		return rdma_resolve_addrinfo(step->slot->id, NULL, SEQ_SERVICE, &by_sa);
	return rdma_resolve_addrinfo(step->slot->id, "192.0.2.1", "7471", &numeric);
}

static int run_query_service(struct seq_fixture *f, const struct seq_step *step)
{
	struct rdma_addrinfo *res;

	if (rdma_query_addrinfo(step->slot->id, &res))
		return -1;
	rdma_freeaddrinfo(res);
	return 0;
}

static int run_write_event(struct seq_fixture *f, const struct seq_step *step)
{
	const enum rdma_cm_event_type type =
		step->arg[0] ? (enum rdma_cm_event_type)step->arg[0] : RDMA_CM_EVENT_USER;

	return rdma_write_cm_event(step->slot->id, type, (int)step->arg[1], step->arg[2]);
}

static const struct seq_op ops[] = {
	['C'] = { "create_srq", run_create_srq },
	['D'] = { "destroy_srq", run_destroy_srq },
	['Q'] = { "query_addrinfo", run_query_service },
	['S'] = { "resolve_addrinfo", run_resolve_service },
	['V'] = { "write_event", run_write_event },
	['X'] = { "destroy_ep", run_destroy_ep },
	['f'] = { "create_ep", run_create_ep },
	['h'] = { "get_request", run_get_request },
};

const struct seq_op *seq_ep_op_of(char letter)
{
	const size_t i = (unsigned char)letter;

	return i < sizeof(ops) / sizeof(ops[0]) && ops[i].run ? &ops[i] : NULL;
}
