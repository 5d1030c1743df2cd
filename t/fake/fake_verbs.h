/* The fake libibverbs, inside: each object wraps the public struct. */
#ifndef FAKE_VERBS_H
#define FAKE_VERBS_H

#include "fake/fake_core.h"

/* What every object begins with. */
struct fake_node {
	TAILQ_ENTRY(fake_node) link;
	enum fake_object kind;
	uint32_t handle;
	struct fake_context *context;
	bool lost; /* its device went without waiting: it is memory, and nothing else */
	void (*fini)(struct fake_node *node);
};

struct fake_async {
	TAILQ_ENTRY(fake_async) link;
	struct ibv_async_event event;
};

struct fake_context {
	struct fake_node node;
	struct fake_device *device;
	bool gone; /* disassociated */
	struct fake_bell async_bell;
	TAILQ_HEAD(, fake_async) async;
	unsigned objects[FAKE_OBJECTS]; /* of each kind */
	struct verbs_context v; /* ends with the ibv_context */
};

struct fake_pd {
	struct fake_node node;
	struct ibv_pd pd;
	unsigned users;
};

struct fake_mr {
	struct fake_node node;
	struct ibv_mr mr;
	uint64_t iova;
	int access;
};

struct fake_ah {
	struct fake_node node;
	struct ibv_ah ah;
	struct ibv_ah_attr attr;
};

struct fake_comp_event {
	TAILQ_ENTRY(fake_comp_event) link;
	struct fake_cq *cq;
};

struct fake_channel {
	struct fake_node node;
	struct ibv_comp_channel channel;
	struct fake_bell bell;
	TAILQ_HEAD(, fake_comp_event) events;
	unsigned cqs;
};

struct fake_cqe {
	struct ibv_wc wc;
	unsigned sq_slots; /* the send queue's entries that polling this gives back */
	struct fake_recv *recv; /* whose buffers are filled only when this is polled, or NULL */
};

enum fake_arm { FAKE_DISARMED, FAKE_ARMED_SOLICITED, FAKE_ARMED };

struct fake_cq {
	struct fake_node node;
	struct ibv_cq cq;
	struct fake_cqe *ring;
	unsigned first;
	unsigned count;
	enum fake_arm arm;
	unsigned users;
	unsigned unacked;
	unsigned async_unacked;
	bool dead;   /* no poll gives anything any more */
	bool failed; /* a poll did */
	bool polled; /* just now: what is added raises no event */
};

struct fake_recv {
	TAILQ_ENTRY(fake_recv) link;
	uint64_t wr_id;
	struct fake_srq *xrc; /* once taken: the SRQ of XRC that it was in */
	uint8_t *late;	      /* to come into its buffers, whose addresses are the sge's */
	size_t late_len;
	int sges;
	struct ibv_sge sge[];
};
TAILQ_HEAD(fake_recvs, fake_recv);

struct fake_xrcd {
	struct fake_node node;
	struct ibv_xrcd xrcd;
	unsigned users;
};

struct fake_srq {
	struct fake_node node;
	struct ibv_srq srq;
	uint32_t number;
	struct ibv_xrcd *xrcd; /* of XRC, with the queue its receives complete in */
	struct ibv_cq *cq;
	struct ibv_srq_attr attr;
	struct fake_recvs recvs;
	unsigned count;
	unsigned users;
	unsigned async_unacked;
};

struct fake_send {
	TAILQ_ENTRY(fake_send) link;
	struct ibv_send_wr wr;
	uint8_t *inlined;
	size_t inlined_len;
	bool not_ready; /* the peer was not, when it was first tried */
	int sges;
	struct ibv_sge sge[];
};

struct fake_attachment {
	TAILQ_ENTRY(fake_attachment) link;
	union ibv_gid gid;
	uint16_t lid;
};

struct fake_qp {
	struct fake_node node;
	struct ibv_qp qp;
	struct ibv_qp_init_attr init;
	struct ibv_xrcd *xrcd; /* of the receiving half of XRC */
	struct ibv_qp_attr attr;
	bool block_self;
	bool waiting; /* its first send waits for the peer */
	bool waits_for_receive;
	bool active;
	TAILQ_ENTRY(fake_qp) active_link;
	TAILQ_HEAD(, fake_send) sends;
	struct fake_recvs recvs;
	unsigned recv_count;
	unsigned sq_used;
	unsigned sq_silent; /* done without a completion since the last one */
	uint64_t *silent;   /* which they are */
	bool to_flush;	    /* once its CQ is polled */
	bool to_tell_last;  /* the same for LAST_WQE_REACHED */
	bool has_flushed;
	TAILQ_HEAD(, fake_attachment) attachments;
	struct ibv_ece ece;
	unsigned async_unacked;
};

static inline const struct fake_profile *fake_profile_at(const struct fake_node *node)
{
	return node->context->device->profile;
}

#define fake_of(pointer, type, member) evr_container_of(pointer, struct type, member)

static inline struct fake_context *fake_context_of(struct ibv_context *context)
{
	return fake_of(context, fake_context, v.context);
}

static inline struct fake_qp *fake_qp_of(struct ibv_qp *qp)
{
	return fake_of(qp, fake_qp, qp);
}

static inline struct fake_cq *fake_cq_of(struct ibv_cq *cq)
{
	return fake_of(cq, fake_cq, cq);
}

static inline struct fake_pd *fake_pd_of(struct ibv_pd *pd)
{
	return fake_of(pd, fake_pd, pd);
}

static inline struct fake_srq *fake_srq_of(struct ibv_srq *srq)
{
	return fake_of(srq, fake_srq, srq);
}

static inline struct fake_xrcd *fake_xrcd_of(struct ibv_xrcd *xrcd)
{
	return fake_of(xrcd, fake_xrcd, xrcd);
}

static inline bool fake_is_xrc(const struct fake_qp *qp)
{
	return qp->qp.qp_type == IBV_QPT_XRC_SEND || qp->qp.qp_type == IBV_QPT_XRC_RECV;
}

/* --- objects in general --- */
/* A zeroed object, counted and listed. Contexts have no context. */
void *fake_node_new(size_t size, enum fake_object kind, struct fake_context *context);
void fake_node_free(struct fake_node *node);
unsigned fake_node_count(enum fake_object kind, const struct fake_context *context);
/* Fills in up to max handles; returns how many there are of them. */
uint32_t fake_node_handles(
	enum fake_object kind, const struct fake_context *context, uint32_t *handles, uint32_t max);
struct fake_node *fake_node_next(enum fake_object kind, struct fake_node *after);

/* All that are on a context, with itself; of every one if it is NULL. */
void fake_nodes_free(const struct fake_context *context);
/* From now on they do not count as alive. */
void fake_nodes_lose(const struct fake_context *context);

/* As fake_fault() and fake_fault_release(), of what asks the kernel: EIO when it is gone. */
int fake_verb_fault(const struct fake_context *context, const char *name);
int fake_verb_fault_release(const struct fake_context *context, const char *name);

/* For calls that return an errno, and for those that return NULL with errno. */
#define FAKE_VERB(context, name)                                                                   \
	do {                                                                                       \
		int fake_err = fake_verb_fault(context, name);                                     \
		if (fake_err)                                                                      \
			return fake_err;                                                           \
	} while (0)
#define FAKE_VERB_NULL(context, name)                                                              \
	do {                                                                                       \
		errno = fake_verb_fault(context, name);                                            \
		if (errno)                                                                         \
			return NULL;                                                               \
	} while (0)
#define FAKE_RELEASE(context, name)                                                                \
	do {                                                                                       \
		int fake_err = fake_verb_fault_release(context, name);                             \
		if (fake_err)                                                                      \
			return fake_err;                                                           \
	} while (0)

/* --- the inline verbs' operations --- */
int fake_poll_cq(struct ibv_cq *cq, int entries, struct ibv_wc *wc);
int fake_req_notify_cq(struct ibv_cq *cq, int solicited_only);
int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int fake_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int fake_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
struct ibv_srq *fake_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *init);
int fake_get_srq_num(struct ibv_srq *srq, uint32_t *number);
struct ibv_xrcd *fake_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *init);
int fake_close_xrcd(struct ibv_xrcd *xrcd);
struct ibv_qp *fake_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *init);

/* --- completions and asynchronous events --- */
void fake_cq_push(struct fake_cq *cq, const struct fake_cqe *cqe, bool solicited);
/* An event without a completion, if one is waited for. */
void fake_cq_wake(struct fake_cq *cq);
/* Removes what a queue pair that was reset or destroyed has left there. */
void fake_cq_purge(struct fake_cq *cq, uint32_t qp_num);
void fake_async_raise(struct fake_context *context, const struct ibv_async_event *event);
/* The object goes: its events go unread. */
void fake_async_purge(struct fake_context *context, const void *element);

/* --- memory --- */
void fake_mem_reset(void);
struct fake_mr *fake_mr_find(const struct ibv_pd *pd, uint32_t key);
/* Where addr lies in memory, or NULL when the MR does not cover it with this access. */
void *fake_mr_at(struct fake_mr *mr, uint64_t addr, uint64_t len, int access);

/* From now on they are readable and give EIO. */
void fake_channels_end(const struct fake_context *context);

/* --- queue pairs --- */
/* Takes them out of all groups. */
void fake_qps_detach(const struct fake_context *context);
void fake_qp_reset(void);
struct fake_qp *fake_qp_find(uint32_t qp_num);
void fake_qp_to_error(struct fake_qp *qp);
void fake_qp_flush(struct fake_qp *qp);
/* Called by the poll of a CQ that has nothing. */
void fake_flush_late(struct fake_cq *cq);
void fake_attachments_free(struct fake_qp *qp);
/* The error for more than a device has. */
enum { FAKE_NO_ERRNO = -1 };
int fake_too_big(const struct fake_profile *profile);
void fake_qp_empty(struct fake_qp *qp);
struct fake_recv *fake_recv_new(const struct ibv_recv_wr *wr);
/* xrc: where the sender wants it from, when that is not for the receiver to say. */
struct fake_recv *fake_recv_take(struct fake_qp *qp, struct fake_srq *xrc);
void fake_recvs_free(struct fake_recvs *recvs);
void fake_recv_free(struct fake_recv *recv);
/* An errno as the device's library returns it from what posts. */
int fake_signed(const struct fake_node *node, int err);
void fake_send_free(struct fake_send *send);
/* Whether the state change is one the verbs allow with this mask. */
bool fake_qp_change_ok(const struct fake_qp *qp, enum ibv_qp_state next, int mask);

/* --- shared receive queues --- */
void fake_srq_reset(void);
/* The SRQ of XRC by its number, if a queue pair of the domain may take from it. */
struct fake_srq *fake_srq_find(const struct ibv_xrcd *xrcd, uint32_t number);
struct fake_recv *fake_srq_take(struct fake_srq *srq);

/* --- work --- */
void fake_work_add(struct fake_qp *qp, struct fake_send *send);
void fake_work_remove(struct fake_qp *qp, struct fake_send *send);
void fake_work_not_ready(struct fake_send *send);
/* Runs what can run, unless work goes by hand. */
void fake_work_run(void);
void fake_work_arming(void);
bool fake_tells_last_receive(void);
void fake_work_reset(void);
void fake_data_reset(void);
/* Ends the first send. */
void fake_send_complete(
	struct fake_qp *qp, struct fake_send *send, enum ibv_wc_status status, uint32_t byte_len);
void fake_recv_complete(
	struct fake_qp *qp, struct fake_recv *recv, const struct ibv_wc *result, bool solicited);
/* Copies the local buffers of a send together, or gives the status it ends with. */
enum ibv_wc_status fake_gather(
	struct fake_qp *qp, struct fake_send *send, uint8_t **data, size_t *len);
/* access: what the regions must allow. */
enum ibv_wc_status fake_scatter(const struct ibv_pd *pd, const struct ibv_sge *sge, int sges,
	const uint8_t *data, size_t len, int access);
/* Now, or when the completion is polled, as the device does. */
enum ibv_wc_status fake_receive(const struct fake_profile *profile, const struct ibv_pd *pd,
	struct fake_recv *recv, const uint8_t *data, size_t len);
void fake_receive_late(struct fake_recv *recv);
size_t fake_sge_len(const struct ibv_sge *sge, int sges);
bool fake_run_rc(struct fake_qp *qp, struct fake_send *send);
bool fake_run_ud(struct fake_qp *qp, struct fake_send *send);
/* Of an IPv4 header; 0 when the one in it is right. */
uint16_t fake_ip_checksum(const uint8_t *header);

#endif
