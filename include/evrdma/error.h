/* What went wrong, and where: the one error value of evrdma's callbacks. */
#ifndef EVRDMA_ERROR_H
#define EVRDMA_ERROR_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What was being done when it failed. */
enum evrdma_step {
	EVRDMA_STEP_NONE,
	EVRDMA_STEP_NAME,       /* looking up a host name */
	EVRDMA_STEP_ADDR,       /* finding the local device that leads to an address */
	EVRDMA_STEP_ROUTE,      /* finding the route */
	EVRDMA_STEP_DEVICE,     /* creating a PD, CQ, QP or registering memory */
	EVRDMA_STEP_CONNECT,    /* connecting, until the connection is established */
	EVRDMA_STEP_ACCEPT,     /* accepting, until the connection is established */
	EVRDMA_STEP_LISTEN,     /* listening */
	EVRDMA_STEP_JOIN,       /* joining a multicast group, or being a member of it */
	EVRDMA_STEP_TRANSFER,   /* sending or receiving on an established connection */
	EVRDMA_STEP_DISCONNECT, /* disconnecting */
	EVRDMA_STEP_REMOVAL,    /* the device was removed */
	EVRDMA_STEP_DELIVER,    /* waiting for the last sends, before the disconnect */
	EVRDMA_STEP_CHANNEL     /* reading the event channel of the base */
};

/*
 * An error as far as it is known. A program decides on err and shows the rest; a field that
 * says nothing has the value given here.
 */
struct evrdma_error {
	int err;                /* a positive errno, never 0 */
	enum evrdma_step step;  /* EVRDMA_STEP_NONE: not known */
	int cm_event;           /* enum rdma_cm_event_type, or -1 */
	int cm_status;          /* the status of that event as the CM gave it: a negative errno,
	                           a positive IB reject reason, or 0 */
	int wc_status;          /* enum ibv_wc_status of the completion, or 0 */
	int eai;                /* EVUTIL_EAI_* of a failed name lookup, or 0 */
};

/* The longest text that evrdma_error_text() writes, with its terminating NUL. */
#define EVRDMA_ERROR_TEXT_MAX 192

/*
 * Writes one line about the error, without a newline, into buf of size bytes, and returns buf. It
 * names the limit or the permission of this process that is the likely cause, when there is one: of
 * locked memory, of open files, on the devices; or what can be done about it. The text is cut to
 * fit. NULL is "no error". Any thread. Since 0.1.
 */
const char *evrdma_error_text(const struct evrdma_error *error, char *buf, size_t size);

/* The name of a step as it stands in the text ("resolving the address"). Any thread. Since 0.1. */
const char *evrdma_step_text(enum evrdma_step step);

#ifdef __cplusplus
}
#endif

#endif
