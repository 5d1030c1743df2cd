/*
 * One end of a multicast group, on the public API alone: an id, a queue pair that is the id's or
 * the user's own, and the datagrams that went through it, each told apart and checked byte by byte.
 */
#ifndef INTEROP_END_H
#define INTEROP_END_H

#include <check.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { END_DATAGRAMS = 16, END_FENCE = END_DATAGRAMS, END_NUMBERS, END_BYTES = 256 };

#define ck_assert_ok(expr) ck_assert_msg((expr) == 0, "%s: %s", #expr, strerror(errno))
#define ck_assert_fails(expr, error)                                                               \
	do {                                                                                       \
		errno = 0;                                                                         \
		ck_assert_int_eq((expr), -1);                                                      \
		ck_assert_int_eq(errno, (error));                                                  \
	} while (0)

struct end {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_comp_channel *comp;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct ibv_ah *ah;
	struct rdma_ud_param group; /* as MULTICAST_JOIN told it */
	unsigned sent;
	unsigned got[END_NUMBERS]; /* how often each number came */
	uint8_t *memory;
};

/* An id that is bound to the address; without one, it is bound to nothing. */
void end_open(struct end *end, const char *ip);
void end_close(struct end *end);

/* The queue pair with its receives: by the library on the id, or by hand and none of the id's. */
void end_make_qp(struct end *end);
void end_make_own_qp(struct end *end);

/* An IPv4 group, valid until the fourth call after. */
struct sockaddr *end_addr(const char *ip, uint16_t port);
/* A well-formed join of the group. */
struct rdma_cm_join_mc_attr_ex end_attr(const char *group, uint32_t flags);

/* Joins and waits for MULTICAST_JOIN, which must come with the context given. */
void end_join(struct end *end, const char *group, uint32_t flags);
void end_leave(struct end *end, const char *group);
/* The group as the last join told it. */
void end_attach(struct end *end);
void end_detach(struct end *end);

/* Sends the numbers 0 to END_DATAGRAMS - 1 to the group, and waits until they are gone. */
void end_send(struct end *end);
/*
 * One more datagram, to that end alone, waited for there. A queue pair completes its receives in
 * order: what was on the way to it has been counted then.
 */
void end_send_fence(struct end *from, struct end *to);
/* Waits until every number has come. */
void end_await_all(struct end *end);
/* How many datagrams have come, without the fences. */
unsigned end_received(const struct end *end);

#endif
