/* Endpoints and synchronous ids: their steps, and a thread for the side that the test is not on. */
#ifndef UNIT_EP_UNIT_H
#define UNIT_EP_UNIT_H

#include "unit/cm_unit.h"

#include <pthread.h>
#include <rdma/rdma_verbs.h>

/* What rdma_getaddrinfo() might have said; with RAI_PASSIVE in flags to listen on, else to reach.
 */
struct rdma_addrinfo ep_answer(const char *ip, int flags, enum ibv_qp_type type);
/* An endpoint with queue pairs, listening if it is passive. */
struct rdma_cm_id *ep_make(const char *ip, int flags, enum ibv_qp_type type);

/* A shared receive queue that fits the queue pairs. */
enum { EP_SRQ_DEPTH = 6 };
struct ibv_srq_init_attr ep_srq_attr(void);
void ep_make_srq(struct rdma_cm_id *id);

/* An ordinary client that has asked to be connected, on a channel of its own. */
struct rdma_cm_id *ep_ask(const char *ip, struct rdma_conn_param *param);
/* Destroys it, with its channel. */
void ep_ask_end(struct rdma_cm_id *client);

/* Runs one side of a synchronous connection; meanwhile waiting for the other takes its time. */
pthread_t ep_start(void *(*side)(void *arg), void *arg);
void ep_finish(pthread_t thread);

#endif
