/* How long a peer waits whose message finds no buffer here: "receiver not ready". */
#ifndef EVR_EV_RNR_H
#define EVR_EV_RNR_H

struct evr_qp;

/* The longest wait that there is, in microseconds: that of the kernel's CM. */
enum { EVR_RNR_US_MAX = 655360 };

/*
 * Sets the shortest wait that is at least so long, on a QP that the CM has connected. iWARP has
 * none, and with -1 it stays as the CM has set it.
 */
void evr_rnr_set(struct evr_qp *qp, int us);

#endif
