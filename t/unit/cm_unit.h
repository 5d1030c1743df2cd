/* Steps that the tests of the CM share. All of them assert that they work. */
#ifndef UNIT_CM_UNIT_H
#define UNIT_CM_UNIT_H

#include "unit/unit.h"

#include "fake/fake.h"

#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>

enum { CM_PORT = 7471, CM_TIMEOUT_MS = 1000 };

#define ck_assert_ok(expr) ck_assert_msg((expr) == 0, "%s: %s", #expr, strerror(errno))
#define ck_assert_fails(expr, error)                                                               \
	do {                                                                                       \
		errno = 0;                                                                         \
		ck_assert_int_eq((expr), -1);                                                      \
		ck_assert_int_eq(errno, (error));                                                  \
	} while (0)

/* Around each test: a fresh fake kernel; afterwards nothing may live in it. */
void cm_set_up(void);
void cm_tear_down(void);
/*
 * What the library keeps open for the program it closes when it learns of the removal. Where a
 * device is left, all are removed: who goes on adds them again.
 */
void cm_take_back(void);
int cm_main(const char *name, const TTest *const tests[], size_t num);

/* A channel that does not block. */
struct rdma_event_channel *cm_channel(void);
struct rdma_cm_id *cm_id(struct rdma_event_channel *channel, enum rdma_port_space ps);
/* An address, valid until the fourth call after. */
struct sockaddr *cm_addr(const char *ip, uint16_t port);
void cm_destroy(struct rdma_cm_id *id);

/* The next event, which must be of this type; to be acknowledged by the caller. */
struct rdma_cm_event *cm_expect(struct rdma_event_channel *channel, enum rdma_cm_event_type type);
/* The same, acknowledged; returns its id. */
struct rdma_cm_id *cm_await(struct rdma_event_channel *channel, enum rdma_cm_event_type type);
void cm_expect_none(struct rdma_event_channel *channel);

struct ibv_qp_init_attr cm_qp_attr(enum ibv_qp_type type);
void cm_make_qp(struct rdma_cm_id *id);
/* Up to ROUTE_RESOLVED. */
void cm_resolve(struct rdma_cm_id *id, const char *ip);

struct cm_pair {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener;
	struct rdma_cm_id *client;
	struct rdma_cm_id *server;
};

/* A listener on any address, a client with its route, both on one channel, and no server yet. */
void cm_pair_start(struct cm_pair *pair, enum rdma_port_space ps);
/* And the request, of which the server comes. */
void cm_pair_request(struct cm_pair *pair, struct rdma_conn_param *param);
/* All the way to ESTABLISHED, with queue pairs. */
void cm_pair_connect(struct cm_pair *pair);
void cm_pair_end(struct cm_pair *pair);

#endif
