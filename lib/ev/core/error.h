/* Makes the error values of the callbacks. */
#ifndef EVR_EV_ERROR_H
#define EVR_EV_ERROR_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <evrdma/error.h>

/* The kernel's own number for "not supported", which no header of the C library has. */
#define EVR_KERNEL_ENOTSUPP 524

void evr_error_set(struct evrdma_error *error, int err, enum evrdma_step step);
void evr_error_from_event(
	struct evrdma_error *error, const struct rdma_cm_event *event, enum evrdma_step step);
void evr_error_from_wc(struct evrdma_error *error, enum ibv_wc_status status);

/*
 * What a verb that gave NULL failed with, as -errno. errno is to be cleared before the verb. EAGAIN
 * is ENOMEM: it is what we say of a queue that is full, with a promise to call back.
 */
int evr_verbs_error(void);

/* Our -errno for one from the CM or verbs. */
int evr_errno(int ret);

#endif
