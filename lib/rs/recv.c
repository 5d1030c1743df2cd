#include <errno.h>
#include <limits.h>
#include <sys/uio.h>

#include "rs/dgram.h"
#include "rs/helper.h"
#include "rs/ready.h"
#include "rs/stream.h"

/* What they ask for would be missed; others change nothing, as with TCP. */
enum { REFUSED = MSG_ERRQUEUE | MSG_TRUNC };

struct evr_rs_recv {
	struct evr_rs_iov all; /* that there is to fill, */
	struct evr_rs_iov to;  /* and what of it is left */
	size_t done;
	int flags;
	bool reads; /* of a file nothing is read without asking what it is */
	bool wait;
};

/* --- bytes ----------------------------------------------------------------------------------- */

static uint32_t copy_span(struct evr_rs *rs, struct evr_rs_recv *recv, struct evr_span span)
{
	uint32_t len = span.len < recv->to.left ? span.len : (uint32_t)recv->to.left;

	evr_rs_iov_put(&recv->to, rs->transport.rx + span.offset, len);
	return len;
}

static uint32_t copy_what_is_there(struct evr_rs *rs, struct evr_rs_recv *recv)
{
	struct evr_span spans[2];
	uint32_t len = 0;

	if (evr_stream_readable(&rs->stream, spans))
		len = copy_span(rs, recv, spans[0]);
	if (len && spans[1].len)
		len += copy_span(rs, recv, spans[1]);
	return len;
}

/* Who only looks begins at the first byte each time. */
static void look_at_what_is_there(struct evr_rs *rs, struct evr_rs_recv *recv)
{
	recv->to = recv->all;
	recv->done = copy_what_is_there(rs, recv);
}

static void take_what_is_there(struct evr_rs *rs, struct evr_rs_recv *recv)
{
	uint32_t len = copy_what_is_there(rs, recv);

	if (!len)
		return;
	recv->done += len;
	evr_stream_consume(&rs->stream, len);
	evr_rs_pump(rs);
}

/*
 * Why there will be nothing: the end (1), or an error, which is told once. Not yet with bytes, nor
 * to who only looks.
 */
static int why_nothing(struct evr_rs *rs, const struct evr_rs_recv *recv)
{
	struct evr_stream_status status = evr_stream_status(&rs->stream);

	if (status.eof && !status.error)
		return 1;
	if (!status.error)
		return 0;
	if (rs->told)
		return 1;
	if (!recv->done && !(recv->flags & MSG_PEEK))
		evr_rs_tell_error(rs);
	return status.error;
}

/* Nothing more comes, or not before something is taken. */
static bool is_all(const struct evr_rs *rs)
{
	const struct evr_stream *stream = &rs->stream;

	if (stream->error || stream->peer_shutdown || !stream->rx_open)
		return true;
	return !evr_rxring_room(&stream->rx) && !evr_rxring_is_due(&stream->rx);
}

static bool is_enough(const struct evr_rs *rs, const struct evr_rs_recv *recv)
{
	if (!recv->to.left || !recv->done)
		return !recv->to.left;
	return !(recv->flags & MSG_WAITALL) || (recv->flags & MSG_PEEK && is_all(rs));
}

/* --- waiting for them ------------------------------------------------------------------------ */

/* 0: there is enough, or the end; -EAGAIN: there is not. */
static int receive_some(struct evr_rs *rs, struct evr_rs_recv *recv)
{
	int ret;

	do {
		if (recv->flags & MSG_PEEK)
			look_at_what_is_there(rs, recv);
		else
			take_what_is_there(rs, recv);
		if (is_enough(rs, recv))
			return 0;
	} while (recv->wait ? evr_rs_take_arrivals(rs) : evr_rs_progress(rs));
	ret = why_nothing(rs, recv);
	if (!ret)
		return -EAGAIN;
	return ret < 0 ? ret : 0;
}

/* Only what is wrong is told. */
static int receive_nothing(struct evr_rs *rs, const struct evr_rs_recv *recv)
{
	int ret = evr_rs_check_connected(rs);

	if (!ret && !evr_stream_status(&rs->stream).readable)
		ret = why_nothing(rs, recv);
	return ret < 0 && ret != -EAGAIN ? ret : 0;
}

static ssize_t receive(struct evr_rs *rs, struct evr_rs_recv *recv)
{
	struct evr_rs_wait until = evr_rs_wait_for(rs->options.recv_limit_us);
	int ret = recv->to.left ? 0 : receive_nothing(rs, recv);

	while (recv->to.left) {
		ret = evr_rs_check_connected(rs);
		if (!ret)
			ret = receive_some(rs, recv);
		if (ret != -EAGAIN)
			break;
		ret = recv->wait ? evr_rs_wait_again(rs, &until) : -EAGAIN;
		if (ret)
			break;
	}
	return recv->done ? (ssize_t)recv->done : ret;
}

static ssize_t receive_stream(struct evr_rs *rs, struct evr_rs_recv *recv)
{
	evr_rs_stay_in_rpoll(rs);
	recv->wait = !rs->nonblock && !(recv->flags & MSG_DONTWAIT);
	return receive(rs, recv);
}

/* There is never anything urgent, which is what TCP says of it then. */
static int check_flags(int flags)
{
	if (flags & MSG_OOB)
		return -EINVAL;
	return flags & REFUSED ? -EOPNOTSUPP : 0;
}

static ssize_t receive_from(
	struct evr_rs *rs, struct evr_rs_recv *recv, struct evr_rs_sender *sender)
{
	recv->to = recv->all;
	if (recv->reads && !recv->to.left)
		return 0;
	return rs->dgram ? evr_rs_dgram_recv(rs, &recv->to, recv->flags, sender)
			 : receive_stream(rs, recv);
}

static ssize_t receive_iov(int socket, struct evr_rs_recv *recv, const struct iovec *pieces,
	size_t num, struct evr_rs_sender *sender)
{
	struct evr_rs *rs = evr_rs_enter(socket);
	ssize_t ret;

	if (!rs)
		return -1;
	ret = rs->dgram ? 0 : check_flags(recv->flags);
	if (!ret)
		ret = evr_rs_iov_init(&recv->all, pieces, num);
	if (!ret)
		ret = receive_from(rs, recv, sender);
	return evr_rs_leave(rs, ret);
}

/* --- the calls ------------------------------------------------------------------------------- */

ssize_t rrecv(int socket, void *buf, size_t len, int flags)
{
	return rrecvfrom(socket, buf, len, flags, NULL, NULL);
}

/* A stream does not say who it is from, as with TCP. */
ssize_t rrecvfrom(
	int socket, void *buf, size_t len, int flags, struct sockaddr *src_addr, socklen_t *addrlen)
{
	const struct iovec piece = { .iov_base = buf, .iov_len = evr_rs_iov_len(len) };
	struct evr_rs_sender sender = { .addr = src_addr, .room = addrlen ? *addrlen : 0 };
	struct evr_rs_recv recv = { .flags = flags };
	ssize_t ret = receive_iov(socket, &recv, &piece, 1, &sender);

	if (ret >= 0 && src_addr && addrlen)
		*addrlen = sender.len;
	return ret;
}

ssize_t rrecvmsg(int socket, struct msghdr *msg, int flags)
{
	struct evr_rs_recv recv = { .flags = flags };
	struct evr_rs_sender sender = { 0 };
	ssize_t ret;

	if (!msg)
		return evr_rs_result(-EFAULT);
	if (msg->msg_control && msg->msg_controllen)
		return evr_rs_result(-ENOTSUP);
	if (msg->msg_iovlen > EVR_RS_IOV_MAX)
		return evr_rs_result(-EMSGSIZE);
	sender.addr = msg->msg_name;
	sender.room = msg->msg_namelen;
	ret = receive_iov(socket, &recv, msg->msg_iov, msg->msg_iovlen, &sender);
	if (ret >= 0) {
		msg->msg_namelen = sender.len;
		msg->msg_flags = sender.flags;
	}
	return ret;
}

ssize_t rread(int socket, void *buf, size_t count)
{
	const struct iovec piece = { .iov_base = buf, .iov_len = count };

	return count > SSIZE_MAX ? evr_rs_result(-EFAULT) : rreadv(socket, &piece, 1);
}

ssize_t rreadv(int socket, const struct iovec *iov, int iovcnt)
{
	struct evr_rs_recv recv = { .reads = true };
	struct evr_rs_sender sender = { 0 };

	if (iovcnt < 0)
		return evr_rs_result(-EINVAL);
	return receive_iov(socket, &recv, iov, (size_t)iovcnt, &sender);
}
