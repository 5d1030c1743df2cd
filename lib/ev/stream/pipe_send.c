/* What a pipe sends: work of the stream's as work of the connection, and the user's bytes. */
#include "ev/stream/pipe.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* --- work ----------------------------------------------------------------------------------- */

static struct evr_pipe *of_conn(struct evrdma_conn *conn)
{
	return conn->arg;
}

void evr_pipe_fail(struct evr_pipe *pipe, int ret)
{
	if (!ret)
		return;
	evr_stream_fail(&pipe->stream, ret);
	pipe->ops->failed(pipe);
}

static void on_sent(struct evrdma_conn *conn, const struct evrdma_error *error, void *arg)
{
	struct evr_pipe *pipe = of_conn(conn);

	evr_stream_complete(&pipe->stream, (uintptr_t)arg, !error);
	if (error || pipe->down)
		return;
	evr_pipe_pump(pipe);
	if (!evr_pipe_judge(pipe))
		pipe->ops->changed(pipe);
}

static int submit(struct evr_pipe *pipe, const struct evrdma_work *work, bool last, uint64_t wr_id)
{
	return evrdma_conn_submit(
		pipe->conn, work, last ? on_sent : NULL, (void *)(uintptr_t)wr_id);
}

/* iWARP: the immediate as a message of its own. */
static int submit_message(struct evr_pipe *pipe, const struct evr_stream_work *work)
{
	uint8_t message[EVR_IMM_MESSAGE_LEN];
	const struct evrdma_work send = {
		.op = EVRDMA_OP_SEND,
		.inline_data = message,
		.inline_len = sizeof(message),
	};

	evr_imm_to_message(work->imm, message);
	return submit(pipe, &send, true, work->wr_id);
}

static int submit_write(struct evr_pipe *pipe, const struct evr_stream_work *work,
	const struct evrdma_seg *seg, const void *inline_data)
{
	bool with_message = work->op == EVR_STREAM_WRITE_SEND;
	struct evrdma_work write = {
		.op = EVRDMA_OP_WRITE,
		.flags = work->op == EVR_STREAM_WRITE_IMM ? EVRDMA_WORK_OPT_IMM : 0,
		.imm = work->imm,
		.remote = { .addr = work->addr, .key = work->rkey },
	};
	int ret;

	if (work->inlined && work->len) {
		write.inline_data = inline_data;
		write.inline_len = work->len;
	} else if (work->len) {
		write.segs = seg;
		write.seg_count = 1;
	}
	ret = submit(pipe, &write, !with_message, work->wr_id);
	return ret || !with_message ? ret : submit_message(pipe, work);
}

/* bytes: those that go inline. */
static void post(struct evr_pipe *pipe, const struct evr_stream_work *work, const void *bytes)
{
	struct evrdma_seg seg = { .buf = pipe->own, .offset = work->offset, .len = work->len };
	int ret;

	if (work->local == EVR_STREAM_CONTROL) {
		bytes = work->control;
		seg.offset += pipe->send_bytes;
		if (!work->inlined)
			memcpy((uint8_t *)evrdma_buf_data(pipe->own) + seg.offset, work->control,
				work->len);
	}
	if (work->op == EVR_STREAM_SEND)
		ret = submit_message(pipe, work);
	else
		ret = submit_write(pipe, work, &seg, bytes);
	evr_pipe_fail(pipe, ret);
}

void evr_pipe_pump(struct evr_pipe *pipe)
{
	struct evr_stream_work work;

	while (!pipe->down && evr_stream_next(&pipe->stream, &work))
		post(pipe, &work, NULL);
}

void evr_pipe_shutdown(struct evr_pipe *pipe, int how)
{
	if (how != SHUT_WR)
		evr_pipe_throw_away(pipe);
	evr_stream_shutdown(&pipe->stream, how);
	evr_pipe_pump(pipe);
}

/* --- sending -------------------------------------------------------------------------------- */

/* Where in the vectors the next byte is. */
struct place {
	const struct evbuffer_iovec *vec;
	size_t offset;
};

static void gather(struct place *from, uint8_t *to, size_t len)
{
	while (len) {
		size_t n = from->vec->iov_len - from->offset;

		if (n > len)
			n = len;
		memcpy(to, (const uint8_t *)from->vec->iov_base + from->offset, n);
		to += n;
		len -= n;
		from->offset += n;
		if (from->offset == from->vec->iov_len)
			*from = (struct place){ from->vec + 1, 0 };
	}
}

static void post_bytes(struct evr_pipe *pipe, const struct evr_stream_work *work,
	struct place *from)
{
	uint8_t inlined[EVR_PIPE_INLINE_MOST];
	uint8_t *ring = evrdma_buf_data(pipe->own);
	uint8_t *to = work->local == EVR_STREAM_RING ? ring + work->offset : inlined;

	gather(from, to, work->len);
	post(pipe, work, inlined);
}

static uint32_t total(const struct evbuffer_iovec *vecs, int n, size_t most)
{
	size_t len = 0;

	while (n--)
		len += vecs++->iov_len;
	if (len > most)
		len = most;
	return len < INT32_MAX ? (uint32_t)len : INT32_MAX;
}

ssize_t evr_pipe_send(struct evr_pipe *pipe, const struct evbuffer_iovec *vecs, int n, size_t len)
{
	struct evr_stream_want want = { .len = total(vecs, n, len) };
	struct place from = { vecs, 0 };
	struct evr_stream_work work;
	ssize_t sent = 0;
	int ret = 0;

	if (pipe->down)
		return -ECONNRESET;
	while (want.len && (ret = evr_stream_send(&pipe->stream, &want, &work)) > 0) {
		post_bytes(pipe, &work, &from);
		sent += ret;
	}
	return sent || ret > 0 ? sent : ret;
}

int evr_pipe_check(const struct evr_pipe *pipe)
{
	const struct evr_stream *stream = &pipe->stream;

	if (stream->error)
		return stream->error;
	if (pipe->down || stream->peer_gone)
		return -ECONNRESET;
	return evr_stream_is_tx_open(stream) ? 0 : -EPIPE;
}

bool evr_pipe_is_writable(const struct evr_pipe *pipe)
{
	return evr_stream_status(&pipe->stream).writable;
}
