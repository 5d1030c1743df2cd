/* A queue pair that is made without the CM's help, and its completions in a loop. */
#ifndef TOOLS_RPING_QP_H
#define TOOLS_RPING_QP_H

#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

struct event;
struct event_base;
struct rdma_cm_id;

#define RPING_QP_SENDS 16
#define RPING_QP_RECVS 2
#define RPING_QP_REGIONS 4

struct rping_qp;

/* A piece of work is over. After one whose status is not 0 nothing more is told. */
typedef void (*rping_qp_cb)(struct rping_qp *qp, const struct ibv_wc *wc, void *arg);

struct rping_qp {
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *regions[RPING_QP_REGIONS];
	unsigned n_regions;
	struct event *event;
	unsigned unacked;
	int *freed; /* set when it is freed in a callback */
	rping_qp_cb cb;
	void *arg;
};

/* Makes all of it on the device of the id. Returns 0, or -errno with nothing left. */
int rping_qp_init(struct rping_qp *qp, struct event_base *event_base, struct rdma_cm_id *id,
	rping_qp_cb cb, void *arg);
void rping_qp_fini(struct rping_qp *qp);

/* Registers memory that the other side may read and write. Returns NULL and sets errno. */
struct ibv_mr *rping_qp_register(struct rping_qp *qp, void *data, size_t len);

/* Takes it to a state with what the CM says that this needs. */
int rping_qp_modify(struct rping_qp *qp, struct rdma_cm_id *id, enum ibv_qp_state state);

/* Completions are told from now on, from the loop. */
int rping_qp_start(struct rping_qp *qp);

/* One segment of registered memory; the opcode and what goes with it is the caller's. */
int rping_qp_recv(struct rping_qp *qp, struct ibv_sge *sge, uint64_t wr_id);
int rping_qp_send(struct rping_qp *qp, struct ibv_send_wr *wr);

#endif
