/* The send queue of a QP, for the QP alone. */
#ifndef EVR_EV_QP_SEND_H
#define EVR_EV_QP_SEND_H

#include <infiniband/verbs.h>
#include <stdint.h>

struct evr_qp;

int evr_sends_init(struct evr_qp *qp);
void evr_sends_fini(struct evr_qp *qp);
/* Posts what waits. 0 or -errno. */
int evr_sends_post(struct evr_qp *qp);
void evr_sends_complete(struct evr_qp *qp, uint32_t index, const struct ibv_wc *wc);
/* Ends all that was submitted with ECANCELED. Only without a verbs QP. */
void evr_sends_cancel(struct evr_qp *qp);

#endif
