/* Steps of the scenarios. Like them they assert nothing: 0, or -1 and errno. */
#ifndef UNIT_CM_STEP_H
#define UNIT_CM_STEP_H

#include "kern/ucma_abi.h"
#include "unit/cm_scenario.h"

enum { CM_STEP_PORT = 7471, CM_STEP_TIMEOUT_MS = 1000 };

/* Addresses, valid until the fourth (the second, of GIDs) call after. */
struct sockaddr *cm_step_at(const char *ip, uint16_t port);
struct sockaddr *cm_step_at_gid(const char *gid);

/* A channel that does not block. */
int cm_step_open_channel(struct rdma_event_channel **channel);
/*
 * The event that has to come, acknowledged; of another one errno says why it came, or f->refused
 * that the other side did not want us. A request brings f->server.
 */
int cm_step_take_from(
	struct cm_fixture *f, struct rdma_event_channel *channel, enum rdma_cm_event_type type);
int cm_step_take(struct cm_fixture *f, enum rdma_cm_event_type type);

struct ibv_qp_init_attr cm_step_qp_attr(enum ibv_qp_type type);
int cm_step_make_qp(struct rdma_cm_id *id);

/* f->listener on a channel, or none; f->client up to its route; both of it on f->channel. */
int cm_step_start_listening(
	struct cm_fixture *f, struct rdma_event_channel *channel, enum rdma_port_space ps);
int cm_step_resolve(struct cm_fixture *f, struct sockaddr *dst);
int cm_step_listen_and_resolve(struct cm_fixture *f, enum rdma_port_space ps, const char *ip);
/* The request up to f->server; its answer; and the end, from f->client's side. */
int cm_step_ask(struct cm_fixture *f, struct rdma_conn_param *param);
int cm_step_answer(struct cm_fixture *f);
int cm_step_hang_up(struct cm_fixture *f);

/*
 * Right after the next such command the other side acts, within the call that waits for it. When
 * that fails, its id goes (the listener while there is none), so that whoever waits is told.
 */
void cm_step_when(enum evr_ucma_op op, struct cm_fixture *f, struct rdma_cm_id **id,
	int (*act)(struct cm_fixture *f));
void cm_step_leave_peer_out(void);

bool cm_step_drop_id(struct rdma_cm_id **id);

#endif
