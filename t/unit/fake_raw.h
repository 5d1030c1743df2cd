/* The fake driven by hand: one function per command of the kernel's own ABI, and plain verbs. */
#ifndef FAKE_RAW_H
#define FAKE_RAW_H

#include "unit/fake_main.h"

#include <rdma/rdma_user_cm.h>
#include <sys/socket.h>

/* Beside the numbers of the events, which the kernel's header does not have. */
enum raw_event {
	RAW_ADDR_RESOLVED,
	RAW_ADDR_ERROR,
	RAW_ROUTE_RESOLVED,
	RAW_ROUTE_ERROR,
	RAW_CONNECT_REQUEST,
	RAW_CONNECT_RESPONSE,
	RAW_CONNECT_ERROR,
	RAW_UNREACHABLE,
	RAW_REJECTED,
	RAW_ESTABLISHED,
	RAW_DISCONNECTED,
	RAW_DEVICE_REMOVAL,
	RAW_MULTICAST_JOIN,
	RAW_MULTICAST_ERROR,
};

enum { RAW_PORT = 7471 };

int raw_open(void);
int raw_close(int fd);
/* Writes any command; 0 or -errno. */
int raw_command(int fd, uint32_t cmd, const void *in, size_t in_len, size_t out_len);

uint32_t raw_create(int fd, uint64_t uid, uint16_t ps);
/* The number of events that were read for it, or -errno. */
int raw_destroy(int fd, uint32_t id);
int raw_bind(int fd, uint32_t id, const char *ip, uint16_t port);
int raw_resolve(int fd, uint32_t id, const char *ip, uint16_t port);
int raw_route(int fd, uint32_t id);
int raw_connect(int fd, uint32_t id, uint32_t qp_num, const void *data, uint8_t len);
int raw_listen(int fd, uint32_t id, uint32_t backlog);
int raw_accept(int fd, uint32_t id, uint64_t uid, uint32_t qp_num, const void *data, uint8_t len);
/* Accept without parameters: the connecting side's confirmation. */
int raw_confirm(int fd, uint32_t id);
int raw_reject(int fd, uint32_t id, const void *data, uint8_t len);
int raw_disconnect(int fd, uint32_t id);
/* 0 or -errno (-EAGAIN when there is none). */
int raw_event(int fd, struct rdma_ucm_event_resp *event);
/* Reads an event that must be there and of this kind. */
struct rdma_ucm_event_resp raw_expect(int fd, enum raw_event type);
bool raw_readable(int fd);

/* An id of the port space that has listened on the port; and one with its route resolved. */
uint32_t raw_listener(int fd, uint16_t ps, const char *ip);
uint32_t raw_resolved(int fd, uint64_t uid, uint16_t ps, const char *ip);

struct raw_pair {
	uint32_t listener;
	uint32_t client;
	uint32_t server;
};

/* A connection of two ids over fd, events read up to ESTABLISHED on both sides. */
struct raw_pair raw_connected(int fd, const char *ip, uint32_t client_qp, uint32_t server_qp);
void raw_pair_destroy(int fd, const struct raw_pair *pair);

/* --- verbs --- */

enum { RAW_BUF = 4096, RAW_DEPTH = 16 };

/* A device, opened, with what one queue pair needs and a registered buffer. */
struct raw_verbs {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t buf[RAW_BUF];
};

void raw_verbs_open(struct raw_verbs *v, enum fake_kind kind);
void raw_verbs_close(struct raw_verbs *v);
struct ibv_qp *raw_qp(struct raw_verbs *v, enum ibv_qp_type type);
/* Both RC queue pairs to RTS, towards each other. */
void raw_join(struct ibv_qp *a, struct ibv_qp *b, uint8_t rnr_retry);
void raw_ud_ready(struct ibv_qp *qp, uint32_t qkey);
int raw_post_recv(struct raw_verbs *v, struct ibv_qp *qp, uint64_t wr_id, size_t at, uint32_t len);
/* A send of buf[at, at + len), changed by the caller before it goes through raw_post. */
struct ibv_send_wr raw_send_wr(
	struct raw_verbs *v, struct ibv_sge *sge, uint64_t wr_id, size_t at, uint32_t len);
int raw_post(struct ibv_qp *qp, struct ibv_send_wr *wr);
int raw_post_send(struct raw_verbs *v, struct ibv_qp *qp, uint64_t wr_id, size_t at, uint32_t len);
/* The next completion, which must be there. */
struct ibv_wc raw_wc(struct raw_verbs *v);
bool raw_no_wc(struct raw_verbs *v);

#endif
