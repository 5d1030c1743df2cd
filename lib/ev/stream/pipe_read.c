/* What a pipe has received, and how it comes into an evbuffer. */
#include "ev/stream/pipe.h"

#include "ev/memory/pool.h"
#include "util/number.h"

enum { LEND_BYTES = 1024 }; /* less is copied */

uint32_t evr_pipe_readable(const struct evr_pipe *pipe)
{
	struct evr_span spans[2];

	return evr_stream_readable(&pipe->stream, spans);
}

/* What of it is next, and in one half: which, and from where on. */
static uint32_t next_of(const struct evr_pipe *pipe, unsigned *half, uint32_t *offset)
{
	struct evr_span spans[2];
	uint32_t len = evr_stream_readable(&pipe->stream, spans);

	*half = spans[0].offset / pipe->half_bytes;
	*offset = spans[0].offset % pipe->half_bytes;
	return evr_smaller(len, pipe->half_bytes - *offset);
}

/* One that cannot be registered is none. */
static bool has_spare(struct evr_pipe *pipe)
{
	struct evrdma_buf *buf;
	uint32_t rkey;

	if (pipe->spare || pipe->copies || pipe->down)
		return pipe->spare;
	buf = evr_pool_get(pipe->pool);
	if (buf && evr_pipe_rkey(pipe, buf, &rkey)) {
		evrdma_buf_unref(buf);
		return false;
	}
	pipe->spare = buf;
	return buf;
}

/* One that was read to its end, and is not the peer's. */
static void replace(struct evr_pipe *pipe, unsigned half)
{
	if (pipe->halves[half]->refs > 1) {
		evrdma_buf_unref(pipe->halves[half]);
		pipe->halves[half] = pipe->spare;
		pipe->spare = NULL;
		if (!pipe->down)
			evr_pipe_fail(pipe, evr_pipe_show_half(pipe, half));
	}
	evr_stream_release(&pipe->stream, pipe->lent);
	pipe->lent = 0;
}

static void has_read(struct evr_pipe *pipe, unsigned half, uint32_t end)
{
	if (end == pipe->half_bytes && pipe->lent)
		replace(pipe, half);
}

unsigned char evr_pipe_read_byte(struct evr_pipe *pipe)
{
	unsigned half;
	uint32_t offset;
	unsigned char byte;

	next_of(pipe, &half, &offset);
	byte = evr_pipe_half_data(pipe, half)[offset];
	evr_stream_consume(&pipe->stream, 1);
	has_read(pipe, half, offset + 1);
	return byte;
}

static void unref(const void *data, size_t len, void *arg)
{
	evrdma_buf_unref(arg);
}

static bool lend(struct evr_pipe *pipe, unsigned half, const uint8_t *data, uint32_t len,
	struct evbuffer *to)
{
	struct evrdma_buf *buf = pipe->halves[half];

	if (len < LEND_BYTES || !has_spare(pipe))
		return false;
	if (evbuffer_add_reference(to, data, len, unref, evrdma_buf_ref(buf))) {
		evrdma_buf_unref(buf);
		return false;
	}
	evr_stream_lend(&pipe->stream, len);
	pipe->lent += len;
	pipe->lent_half = half;
	return true;
}

static bool copy(struct evr_pipe *pipe, const uint8_t *data, uint32_t len, struct evbuffer *to)
{
	if (evbuffer_add(to, data, len))
		return false;
	evr_stream_consume(&pipe->stream, len);
	return true;
}

void evr_pipe_throw_away(struct evr_pipe *pipe)
{
	unsigned half;
	uint32_t offset, n;

	while ((n = next_of(pipe, &half, &offset))) {
		evr_stream_consume(&pipe->stream, n);
		has_read(pipe, half, offset + n);
	}
}

/* Asked after each message, none of which goes beyond its half: so no half is passed unseen. */
void evr_pipe_leave_half(struct evr_pipe *pipe)
{
	unsigned half;
	uint32_t offset;

	next_of(pipe, &half, &offset);
	if (pipe->lent && half != pipe->lent_half)
		replace(pipe, pipe->lent_half);
}

size_t evr_pipe_feed(struct evr_pipe *pipe, struct evbuffer *to, size_t len)
{
	size_t fed = 0;
	unsigned half;
	uint32_t offset, n;

	while (fed < len && (n = next_of(pipe, &half, &offset))) {
		const uint8_t *data = evr_pipe_half_data(pipe, half) + offset;

		if (n > len - fed)
			n = (uint32_t)(len - fed);
		if (!lend(pipe, half, data, n, to) && !copy(pipe, data, n, to))
			break;
		has_read(pipe, half, offset + n);
		fed += n;
	}
	return fed;
}
