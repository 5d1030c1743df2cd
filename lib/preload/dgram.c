/*
 * Datagrams, where a rule names them: an rsocket from the making of the socket. Its peers have one,
 * too, for what they are sent has a header.
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <rdma/rsocket.h>

#include "preload/preload.h"

static bool goes_on(struct evr_pre *pre, short events, int flags)
{
	return errno == EAGAIN && evr_pre_waits(pre, flags) && !evr_pre_wait(pre, events);
}

/* There is no ancillary data, and asking for it is no error. */
ssize_t evr_pre_dgram_recv(struct evr_pre *pre, struct msghdr *msg, int flags)
{
	struct msghdr plain = *msg;
	ssize_t ret;

	plain.msg_control = NULL;
	plain.msg_controllen = 0;
	do {
		ret = rrecvmsg(pre->rs, &plain, flags);
	} while (ret < 0 && goes_on(pre, POLLIN, flags));
	if (ret < 0)
		return -1;
	msg->msg_namelen = plain.msg_namelen;
	msg->msg_flags = plain.msg_flags;
	msg->msg_controllen = 0;
	return ret;
}

ssize_t evr_pre_dgram_send(struct evr_pre *pre, const struct msghdr *msg, int flags)
{
	ssize_t ret;

	do {
		ret = rsendmsg(pre->rs, msg, flags);
	} while (ret < 0 && goes_on(pre, POLLOUT, flags));
	return ret;
}
