/*
 * The contract of errors: for each function of the CM, each bad input and the errno that it gives.
 * One table serves the fake kernel (t/unit/cm_errors.c) and real devices (t/interop/errors.c).
 */
#ifndef ERRORS_ERRORS_H
#define ERRORS_ERRORS_H

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>
#include <stddef.h>

/* What has been done when the call is made. The id is the one that the call is about. */
enum errors_scenario {
	NOTHING,
	CHANNEL,
	FRESH,	  /* an id, RDMA_PS_TCP where nothing else is said */
	ANYWHERE, /* bound to a wildcard address, without a device */
	BOUND,
	RESOLVED,
	ROUTED,
	READY,	    /* routed, and a queue pair */
	CONNECTING, /* asked, not answered; the peer is the request's id */
	REQUESTED,  /* the request's id; the peer is the one that asks */
	ANSWERING,  /* the same, with a queue pair */
	REJECTED,
	CONNECTED,
	ACCEPTED, /* the other end of it */
	DISCONNECTED,
	LISTENING,
	UD_FRESH,
	UD_BOUND,
	UD_ROUTED,
	UD_READY,
	UD_REQUESTED,
	UD_ANSWERING,
	MEMBER,
	SYNC, /* an id without a channel of its caller's */
	SYNC_BOUND,
	SYNC_LISTENING,
	NUM_SCENES
};

/* Room for what a call may be given beside the ids. */
struct errors_fixture {
	struct rdma_event_channel *channel; /* does not block */
	struct rdma_cm_id *id;
	struct rdma_cm_id *peer;
	struct rdma_cm_id *listener;
	struct rdma_cm_id *other;
	struct rdma_event_channel bad_channel;
	struct rdma_conn_param param;
	struct ibv_qp_init_attr attr;
	struct ibv_qp_init_attr_ex attr_ex;
	struct ibv_qp_attr qp_attr;
	struct ibv_ece ece;
	struct rdma_cm_join_mc_attr_ex join;
	struct rdma_cm_event *event;
	struct rdma_addrinfo hints;
	struct rdma_addrinfo *res;
	struct ibv_srq_init_attr srq;
	struct ibv_srq_init_attr_ex srq_ex;
	struct ibv_pd pd;
	struct ibv_cq cq;
	struct ibv_wc wc;
	struct ibv_sge sge[64];
	struct ibv_path_data path;
	int mask;
	int number;
	char data[256];
	const char *trouble; /* the step that went wrong, or NULL */
};

enum { ROCE = 1, IWARP = 2, ALL = ROCE | IWARP };

struct errors_case {
	const char *function;
	const char *input;
	enum errors_scenario scenario;
	unsigned where;
	int answer; /* 0, an errno, or, negative, what the function itself returns */
	int (*call)(struct errors_fixture *f);
};

/* The part of the table that needs no power over the kernel. */
extern const struct errors_case errors_table[];
extern const size_t errors_table_len;

/* Where the table runs: an address of the device. */
extern const char *errors_ip;

/* False, with the trouble, when the fixture could not be set or cleared. */
bool errors_set(struct errors_fixture *f, enum errors_scenario scenario);
bool errors_clear(struct errors_fixture *f);
/* What the call answered, written as in the table. */
int errors_ask(const struct errors_case *c, struct errors_fixture *f);
/* "EINVAL", "0", "returned -2"; valid until the next call. */
const char *errors_name(int answer);

/* Props of the calls. */
struct sockaddr *errors_addr(const char *ip, uint16_t port);
struct sockaddr *errors_family(sa_family_t family);
struct rdma_conn_param *errors_data(struct errors_fixture *f, const void *data, uint8_t len);
struct rdma_conn_param *errors_depths(struct errors_fixture *f, uint8_t resources, uint8_t depth);
struct ibv_qp_init_attr *errors_attr(struct errors_fixture *f, enum ibv_qp_type type);
struct ibv_qp_init_attr_ex *errors_attr_ex(struct errors_fixture *f, uint32_t comp_mask);
struct rdma_cm_join_mc_attr_ex *errors_join(
	struct errors_fixture *f, uint32_t comp_mask, uint32_t flags, struct sockaddr *addr);
struct ibv_ece *errors_ece(struct errors_fixture *f, uint32_t vendor_id, uint32_t comp_mask);
struct rdma_addrinfo *errors_hints(struct errors_fixture *f, int flags, int family);
/* An answer of rdma_getaddrinfo(): to listen on the address with RAI_PASSIVE, else to connect to
 * it. */
struct rdma_addrinfo *errors_ep(struct errors_fixture *f, int flags, const char *ip);
struct ibv_srq_init_attr *errors_srq(struct errors_fixture *f);
struct ibv_srq_init_attr_ex *errors_srq_ex(struct errors_fixture *f, enum ibv_srq_type type);
struct ibv_qp_attr *errors_state(struct errors_fixture *f, enum ibv_qp_state state);
/* 0, or -1 when there is none. */
int errors_made(const void *ptr);

/* The name of the call of a row, for CASE(). */
#define ERRORS_PASTE(a, b) a##b
#define ERRORS_NAME(prefix, line) ERRORS_PASTE(prefix, line)

#endif
