/* What the calls of either direction come to. */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <rdma/rsocket.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "preload/preload.h"

/* --- what is left of a message --------------------------------------------------------------- */

struct rest {
	struct msghdr msg;
	struct iovec *pieces; /* an own copy, once something is done */
	size_t left;
	size_t done;
};

static bool begin(struct rest *rest, const struct msghdr *msg)
{
	size_t i;

	*rest = (struct rest){ .msg = *msg };
	if (msg->msg_iovlen > IOV_MAX || (msg->msg_iovlen && !msg->msg_iov)) {
		errno = msg->msg_iovlen > IOV_MAX ? EMSGSIZE : EFAULT;
		return false;
	}
	for (i = 0; i < msg->msg_iovlen; i++)
		rest->left += msg->msg_iov[i].iov_len;
	return true;
}

static bool copy_pieces(struct rest *rest)
{
	size_t size = rest->msg.msg_iovlen * sizeof(struct iovec);

	if (rest->pieces)
		return true;
	rest->pieces = malloc(size);
	if (!rest->pieces)
		return false;
	memcpy(rest->pieces, rest->msg.msg_iov, size);
	rest->msg.msg_iov = rest->pieces;
	return true;
}

/* Whether there is anything left that can go on. */
static bool advance(struct rest *rest, size_t len)
{
	rest->done += len;
	rest->left -= len;
	if (!rest->left || !copy_pieces(rest))
		return false;
	while (len >= rest->msg.msg_iov->iov_len) {
		len -= rest->msg.msg_iov->iov_len;
		rest->msg.msg_iov++;
		rest->msg.msg_iovlen--;
	}
	rest->msg.msg_iov->iov_base = (char *)rest->msg.msg_iov->iov_base + len;
	rest->msg.msg_iov->iov_len -= len;
	return true;
}

static ssize_t result(struct rest *rest, ssize_t ret)
{
	free(rest->pieces);
	return rest->done ? (ssize_t)rest->done : ret;
}

/* --- receiving ------------------------------------------------------------------------------- */

/* Once some bytes are there an error is the next call's. */
static bool has_failed(const struct evr_pre *pre)
{
	char byte;

	return rrecv(pre->rs, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno != EAGAIN;
}

static bool is_enough(int flags)
{
	return !(flags & MSG_WAITALL) || flags & MSG_PEEK;
}

static void tell_nothing_else(struct msghdr *msg)
{
	msg->msg_controllen = 0;
	msg->msg_namelen = 0;
	msg->msg_flags = 0;
}

/* Whether to go on: with what is missing, or because nothing is there yet. */
static bool receive_more(struct evr_pre *pre, struct rest *rest, ssize_t *ret, int flags)
{
	*ret = -1;
	if (rest->done && has_failed(pre))
		return false;
	*ret = rrecvmsg(pre->rs, &rest->msg, flags);
	if (*ret > 0 && is_enough(flags)) {
		rest->done = (size_t)*ret;
		return false;
	}
	if (*ret > 0)
		return advance(rest, (size_t)*ret);
	return *ret < 0 && errno == EAGAIN;
}

/* A stream has no ancillary data, and asking for it is no error. */
ssize_t evr_pre_recv(struct evr_pre *pre, struct msghdr *msg, int flags)
{
	struct rest rest;
	ssize_t ret;

	if (pre->state == EVR_PRE_DGRAM)
		return evr_pre_dgram_recv(pre, msg, flags);
	if (!evr_pre_moves_bytes(pre))
		return -1;
	if (!begin(&rest, msg))
		return -1;
	rest.msg.msg_control = NULL;
	rest.msg.msg_controllen = 0;
	while (receive_more(pre, &rest, &ret, flags)) {
		if (ret > 0)
			continue;
		if (!evr_pre_waits(pre, flags) || evr_pre_wait(pre, POLLIN))
			break;
	}
	ret = result(&rest, ret);
	if (ret >= 0)
		tell_nothing_else(msg);
	return ret;
}

/* --- sending --------------------------------------------------------------------------------- */

static void raise_sigpipe(int flags)
{
	if (errno != EPIPE || flags & MSG_NOSIGNAL)
		return;
	pthread_kill(pthread_self(), SIGPIPE);
	errno = EPIPE;
}

static bool send_more(struct evr_pre *pre, struct rest *rest, ssize_t *ret, int flags)
{
	*ret = rsendmsg(pre->rs, &rest->msg, flags);
	if (*ret >= 0)
		return advance(rest, (size_t)*ret);
	return errno == EAGAIN;
}

/* One that waits sends all of it. */
ssize_t evr_pre_send(struct evr_pre *pre, const struct msghdr *msg, int flags)
{
	struct rest rest;
	ssize_t ret;

	if (pre->state == EVR_PRE_DGRAM)
		return evr_pre_dgram_send(pre, msg, flags);
	if (!evr_pre_moves_bytes(pre))
		return -1;
	if (!begin(&rest, msg))
		return -1;
	while (send_more(pre, &rest, &ret, flags))
		if (ret < 0 && (!evr_pre_waits(pre, flags) || evr_pre_wait(pre, POLLOUT)))
			break;
	ret = result(&rest, ret);
	if (ret < 0)
		raise_sigpipe(flags);
	return ret;
}
