#include "ev/core/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <event2/util.h>

#include "ev/core/cause.h"

int evr_errno(int ret)
{
	/* What the kernel says of an id that it closed because the device went. */
	if (ret == -ENXIO)
		return -ENODEV;
	return ret == -EVR_KERNEL_ENOTSUPP ? -EOPNOTSUPP : ret;
}

int evr_verbs_error(void)
{
	if (!errno)
		return -EIO;
	return errno == EAGAIN ? -ENOMEM : -errno;
}

void evr_error_set(struct evrdma_error *error, int err, enum evrdma_step step)
{
	*error = (struct evrdma_error){
		.err = -evr_errno(-err),
		.step = step,
		.cm_event = -1,
	};
}

/* Statuses are negative errnos, but for the reasons of InfiniBand's rejects. */
static int event_err(const struct rdma_cm_event *event, enum evrdma_step step)
{
	switch (event->event) {
	case RDMA_CM_EVENT_REJECTED:
		/* Of what is being accepted: its peer gave up. */
		if (step == EVRDMA_STEP_ACCEPT)
			return ECONNRESET;
		if (event->status < 0 && event->status != -ECONNRESET)
			return -event->status;
		return ECONNREFUSED;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return ENODEV;
	case RDMA_CM_EVENT_UNREACHABLE:
		/* A positive one is the status of a SIDR answer: the service said no. */
		if (event->status > 0)
			return ECONNREFUSED;
		break;
	case RDMA_CM_EVENT_CONNECT_ERROR:
		/*
		 * The reply was good, but the peer has ended it since: of a connection in that
		 * state the kernel neither gives the attributes of the QP nor takes the last
		 * message of the handshake.
		 */
		if (event->status == -EINVAL)
			return ECONNRESET;
		break;
	default:
		break;
	}
	if (event->status < 0)
		return -event->status;
	if (event->status > 0)
		return event->status;
	return event->event == RDMA_CM_EVENT_UNREACHABLE ? EHOSTUNREACH : EIO;
}

void evr_error_from_event(
	struct evrdma_error *error, const struct rdma_cm_event *event, enum evrdma_step step)
{
	evr_error_set(error, event_err(event, step), step);
	if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		error->step = EVRDMA_STEP_REMOVAL;
	error->cm_event = (int)event->event;
	error->cm_status = event->status;
}

static int wc_err(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_WR_FLUSH_ERR:
		return ECANCELED;
	case IBV_WC_RETRY_EXC_ERR:
		return ETIMEDOUT;
	case IBV_WC_RNR_RETRY_EXC_ERR:
		return ENOBUFS;
	case IBV_WC_LOC_LEN_ERR:
	case IBV_WC_REM_INV_REQ_ERR:
		return EMSGSIZE;
	case IBV_WC_LOC_PROT_ERR:
	case IBV_WC_REM_ACCESS_ERR:
		return EACCES;
	default:
		return EIO;
	}
}

void evr_error_from_wc(struct evrdma_error *error, enum ibv_wc_status status)
{
	evr_error_set(error, wc_err(status), EVRDMA_STEP_TRANSFER);
	error->wc_status = (int)status;
}

const char *evrdma_step_text(enum evrdma_step step)
{
	switch (step) {
	case EVRDMA_STEP_NONE:
		break;
	case EVRDMA_STEP_NAME:
		return "looking up the name";
	case EVRDMA_STEP_ADDR:
		return "resolving the address";
	case EVRDMA_STEP_ROUTE:
		return "resolving the route";
	case EVRDMA_STEP_DEVICE:
		return "setting up the device";
	case EVRDMA_STEP_CONNECT:
		return "connecting";
	case EVRDMA_STEP_ACCEPT:
		return "accepting";
	case EVRDMA_STEP_LISTEN:
		return "listening";
	case EVRDMA_STEP_JOIN:
		return "joining the group";
	case EVRDMA_STEP_TRANSFER:
		return "transferring data";
	case EVRDMA_STEP_DISCONNECT:
		return "disconnecting";
	case EVRDMA_STEP_REMOVAL:
		return "the device was removed";
	case EVRDMA_STEP_DELIVER:
		return "delivering the last sends";
	case EVRDMA_STEP_CHANNEL:
		return "reading the event channel";
	}
	return "working";
}

static const char *reason(const struct evrdma_error *error)
{
	if (error->eai)
		return evutil_gai_strerror(error->eai);
	/* Nothing else gives it, and "disk" would mislead. */
	if (error->err == EDQUOT)
		return "The base's max_pinned_bytes is reached";
	return strerror(error->err);
}

/* rxe says of a message that does not fit only that an operation failed, to both sides. */
static const char *wc_text(enum ibv_wc_status status, char *buf, size_t size)
{
	const char *text = ibv_wc_status_str(status);

	if (status != IBV_WC_LOC_QP_OP_ERR && status != IBV_WC_REM_OP_ERR)
		return text;
	snprintf(buf, size, "%s; rxe: or a message larger than its buffer", text);
	return buf;
}

static const char *detail(const struct evrdma_error *error, char *buf, size_t size)
{
	if (error->wc_status)
		return wc_text((enum ibv_wc_status)error->wc_status, buf, size);
	if (error->cm_event < 0)
		return evr_cause_text(error->err, error->step, buf, size);
	snprintf(buf, size, "%s, status %d",
		rdma_event_str((enum rdma_cm_event_type)error->cm_event), error->cm_status);
	return buf;
}

const char *evrdma_error_text(const struct evrdma_error *error, char *buf, size_t size)
{
	char more[96];
	const char *why;

	if (!error) {
		snprintf(buf, size, "no error");
		return buf;
	}
	why = detail(error, more, sizeof(more));
	snprintf(buf, size, "%s: %s%s%s%s", evrdma_step_text(error->step), reason(error),
		why ? " (" : "", why ? why : "", why ? ")" : "");
	return buf;
}
