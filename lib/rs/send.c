#include "rs/dgram.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/uio.h>

#include "rs/iov.h"
#include "rs/ready.h"
#include "rs/stream.h"

enum {
	/* So much is asked of the stream at once. */
	CHUNK = 1 << 30,
	/* What they ask for would be missed; others change nothing, as with TCP. */
	REFUSED = MSG_OOB | MSG_ZEROCOPY | MSG_FASTOPEN,
};

/* --- bytes ----------------------------------------------------------------------------------- */

/* What is not in one piece and goes inline is put together first. */
static const void *gather(struct evr_rs_iov *from, uint32_t len, uint8_t *bounce)
{
	const void *piece = evr_rs_iov_peek(from, len);

	if (piece)
		evr_rs_iov_skip(from, len);
	else
		evr_rs_iov_get(from, bounce, len);
	return piece ? piece : bounce;
}

static void post(struct evr_rs *rs, const struct evr_stream_work *work, struct evr_rs_iov *from)
{
	uint8_t bounce[EVR_RS_POSTED_INLINE];
	const void *own = NULL;

	if (work->local == EVR_STREAM_RING)
		evr_rs_iov_get(from, rs->transport.tx + work->offset, work->len);
	else
		own = gather(from, work->len, bounce);
	evr_rs_post(rs, work, own, 0);
}

static uint32_t piece_of(const struct evr_rs_send *send)
{
	return send->from.left < CHUNK ? (uint32_t)send->from.left : CHUNK;
}

static int next_work(struct evr_rs *rs, const struct evr_rs_send *send,
	struct evr_stream_want *want, struct evr_stream_work *work)
{
	if (send->direct)
		return evr_stream_direct(&rs->stream, send->offset, want, work);
	return evr_stream_send(&rs->stream, want, work);
}

/* As much as can go now; what could not be posted has not gone. Returns 0 or an error. */
static int send_some(struct evr_rs *rs, struct evr_rs_send *send)
{
	struct evr_stream_want want = { .len = piece_of(send) };
	struct evr_stream_work work;
	int ret;

	evr_rs_pump(rs);
	if (!want.len)
		return evr_stream_check_sending(&rs->stream);
	while (want.len && !rs->held) {
		ret = next_work(rs, send, &want, &work);
		if (ret <= 0)
			return ret;
		post(rs, &work, &send->from);
		if (rs->stream.error)
			return rs->stream.error;
		send->offset += (uint64_t)ret;
		send->done += (size_t)ret;
	}
	return 0;
}

/* What has completed makes room. */
static int send_what_goes(struct evr_rs *rs, struct evr_rs_send *send)
{
	size_t before = send->done;
	int ret;

	do {
		ret = send_some(rs, send);
	} while (!ret && send->from.left && evr_rs_progress(rs));
	return ret && send->done == before ? ret : 0;
}

/* --- waiting for room ------------------------------------------------------------------------ */

int evr_rs_check_connected(struct evr_rs *rs)
{
	evr_rs_count_turn(rs);
	if (evr_rs_is_connecting(rs))
		evr_rs_progress(rs);
	switch (rs->state) {
	case EVR_RS_CONNECTED:
		return 0;
	case EVR_RS_NEW:
	case EVR_RS_LISTENING:
		return -ENOTCONN;
	case EVR_RS_OPEN:
		return -EOPNOTSUPP;
	case EVR_RS_FAILED:
		if (rs->told)
			return -ENOTCONN;
		evr_rs_tell_error(rs);
		return rs->error;
	default:
		return -EAGAIN;
	}
}

/* Why the stream has ended is told once; then it is one that nothing can be sent to. */
static int tell(struct evr_rs *rs, int error)
{
	if (!error || error != rs->stream.error)
		return error;
	if (rs->told)
		return -EPIPE;
	evr_rs_tell_error(rs);
	return error;
}

static ssize_t send_all(struct evr_rs *rs, struct evr_rs_send *send, bool wait)
{
	struct evr_rs_wait until = evr_rs_wait_for(rs->options.send_limit_us);
	int ret;

	for (;;) {
		ret = evr_rs_check_connected(rs);
		if (!ret)
			ret = send_what_goes(rs, send);
		if ((ret && ret != -EAGAIN) || (!ret && !send->from.left))
			break;
		ret = wait ? evr_rs_wait_again(rs, &until) : -EAGAIN;
		if (ret)
			break;
	}
	return send->done ? (ssize_t)send->done : tell(rs, ret);
}

static int check_flags(int flags)
{
	return flags & REFUSED ? -EOPNOTSUPP : 0;
}

static int has_one_peer(const struct evr_rs *rs)
{
	return rs->state == EVR_RS_CONNECTED ? -EISCONN : -ENOTCONN;
}

static ssize_t send_dgram(struct evr_rs *rs, struct evr_rs_send *send, int flags)
{
	if (send->direct)
		return -EOPNOTSUPP;
	return evr_rs_dgram_send(rs, &send->from, flags, send->to, send->to_len);
}

ssize_t evr_rs_send_pieces(int socket, struct evr_rs_send *send, int flags)
{
	struct evr_rs *rs = evr_rs_enter(socket);
	ssize_t ret;

	if (!rs)
		return -1;
	if (send->vectors && !send->from.left)
		return evr_rs_leave(rs, 0);
	if (rs->dgram)
		return evr_rs_leave(rs, send_dgram(rs, send, flags));
	ret = send->one_peer ? has_one_peer(rs) : check_flags(flags);
	if (!ret)
		ret = send_all(rs, send, !rs->nonblock && !(flags & MSG_DONTWAIT));
	return evr_rs_leave(rs, ret);
}

/* --- the calls ------------------------------------------------------------------------------- */

static ssize_t send_iov(int socket, struct evr_rs_send *send, const struct iovec *pieces,
	size_t num, int flags)
{
	int ret = evr_rs_iov_init(&send->from, pieces, num);

	return ret ? evr_rs_result(ret) : evr_rs_send_pieces(socket, send, flags);
}

ssize_t rsend(int socket, const void *buf, size_t len, int flags)
{
	return rsendto(socket, buf, len, flags, NULL, 0);
}

ssize_t rsendto(int socket, const void *buf, size_t len, int flags,
	const struct sockaddr *dest_addr, socklen_t addrlen)
{
	const struct iovec piece = {
		.iov_base = (void *)buf,
		.iov_len = evr_rs_iov_len(len),
	};
	struct evr_rs_send send = {
		.to = dest_addr,
		.to_len = addrlen,
		.one_peer = dest_addr || addrlen,
	};

	return send_iov(socket, &send, &piece, 1, flags);
}

ssize_t rsendmsg(int socket, const struct msghdr *msg, int flags)
{
	struct evr_rs_send send = { .done = 0 };

	if (!msg)
		return evr_rs_result(-EFAULT);
	if (msg->msg_control && msg->msg_controllen)
		return evr_rs_result(-ENOTSUP);
	if (msg->msg_iovlen > EVR_RS_IOV_MAX)
		return evr_rs_result(-EMSGSIZE);
	send.to = msg->msg_name;
	send.to_len = msg->msg_name ? msg->msg_namelen : 0;
	return send_iov(socket, &send, msg->msg_iov, msg->msg_iovlen, flags);
}

ssize_t rwrite(int socket, const void *buf, size_t count)
{
	return count > SSIZE_MAX ? evr_rs_result(-EFAULT) : rsend(socket, buf, count, 0);
}

ssize_t rwritev(int socket, const struct iovec *iov, int iovcnt)
{
	struct evr_rs_send send = { .vectors = true };

	if (iovcnt < 0)
		return evr_rs_result(-EINVAL);
	return send_iov(socket, &send, iov, (size_t)iovcnt, 0);
}
