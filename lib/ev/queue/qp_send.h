/* The send queue of a QP, for the QP alone. */
#ifndef EVR_EV_QP_SEND_H
#define EVR_EV_QP_SEND_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct evr_qp;

int evr_sends_init(struct evr_qp *qp);
void evr_sends_fini(struct evr_qp *qp);
/* Posts what waits. 0 or -errno. */
int evr_sends_post(struct evr_qp *qp);
void evr_sends_complete(struct evr_qp *qp, uint32_t index, const struct ibv_wc *wc);
/* Tells what is over, as far as this turn's budget goes; the rest when the next begins. */
void evr_sends_tell(struct evr_qp *qp);
/*
 * Ends what was submitted, with ECANCELED what is not over. Only without a verbs QP. Returns
 * whether there is more than this turn may tell.
 */
bool evr_sends_cancel(struct evr_qp *qp);

#endif
