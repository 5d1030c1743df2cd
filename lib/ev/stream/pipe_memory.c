/* The memory of pipes, and what those of a base share. */
#include "ev/stream/pipe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ev/core/base.h"
#include "ev/core/part.h"
#include "ev/device/pd.h"
#include "ev/memory/pool.h"

enum {
	HALVES = 4,	 /* of a receive ring, with those that references hold */
	MESSAGE_BYTES = 8, /* a message is of 4 */
	PAGE = EVR_PIPE_PAGE,
};

/* --- what pipes of a base share ------------------------------------------------------------- */

struct pipes {
	struct evr_part part;
	struct evrdma_pool *messages; /* NULL before there is a pipe */
};

static void stop_pipes(struct evr_part *part)
{
	evrdma_pool_free(evr_container_of(part, struct pipes, part)->messages);
}

static const struct evr_part_class pipes_class = { .stop = stop_pipes };

int evr_pipes_start(struct evrdma_base *base)
{
	struct pipes *pipes = calloc(1, sizeof(*pipes));

	if (!pipes)
		return -ENOMEM;
	evr_part_add(&pipes->part, base, &pipes_class);
	return 0;
}

struct evrdma_pool *evr_pipe_messages(struct evrdma_base *base)
{
	struct evr_part *part = evr_part_find(base, &pipes_class);
	struct pipes *pipes = evr_container_of(part, struct pipes, part);
	struct evrdma_pool_options options;

	if (pipes->messages)
		return pipes->messages;
	evrdma_pool_options_init(&options);
	options.alignment = MESSAGE_BYTES;
	options.slab_bytes = PAGE;
	pipes->messages = evrdma_pool_new_with_options(base, MESSAGE_BYTES, &options);
	return pipes->messages;
}

/* --- memory --------------------------------------------------------------------------------- */

static void free_memory(void *data, size_t size, void *arg)
{
	free(data);
}

/* Zeroed memory of its own pages, which is freed with the buffer. */
static struct evrdma_buf *new_buf(size_t size, unsigned flags)
{
	struct evrdma_buf *buf;
	void *memory;

	if (posix_memalign(&memory, PAGE, size))
		return NULL;
	memset(memory, 0, size);
	buf = evrdma_buf_new_reference(memory, size, flags, free_memory, NULL);
	if (!buf)
		free(memory);
	return buf;
}

static struct evrdma_pool *new_pool(struct evrdma_base *base, uint32_t half_bytes)
{
	struct evrdma_pool_options options;

	evrdma_pool_options_init(&options);
	options.max_bufs = HALVES;
	options.slab_bytes = half_bytes;
	options.buf_flags = EVRDMA_BUF_OPT_REMOTE_WRITE;
	return evrdma_pool_new_with_options(base, half_bytes, &options);
}

/* What a peer has the keys of. */
static int allocate_shown(struct evr_pipe *pipe, struct evrdma_base *base)
{
	int i;

	pipe->pool = new_pool(base, pipe->half_bytes);
	for (i = 0; i < 2 && pipe->pool; i++)
		pipe->halves[i] = evr_pool_get(pipe->pool);
	pipe->target = new_buf(evr_stream_target_len(0), EVRDMA_BUF_OPT_REMOTE_WRITE);
	return pipe->halves[0] && pipe->halves[1] && pipe->target ? 0 : -ENOMEM;
}

static void free_shown(struct evr_pipe *pipe)
{
	evrdma_buf_unref(pipe->halves[0]);
	evrdma_buf_unref(pipe->halves[1]);
	evrdma_buf_unref(pipe->target);
	evrdma_pool_free(pipe->pool);
	pipe->halves[0] = pipe->halves[1] = pipe->target = NULL;
	pipe->pool = NULL;
}

int evr_pipe_allocate(struct evr_pipe *pipe, struct evrdma_base *base, uint32_t send_depth)
{
	int ret = allocate_shown(pipe, base);

	pipe->works = calloc(send_depth, sizeof(*pipe->works));
	pipe->own = new_buf(pipe->send_bytes + EVR_STREAM_CONTROL_BYTES, 0);
	return pipe->works && pipe->own ? ret : -ENOMEM;
}

int evr_pipe_renew(struct evr_pipe *pipe)
{
	free_shown(pipe);
	return allocate_shown(pipe, pipe->conn->obj.base);
}

void evr_pipe_free_all(struct evr_pipe *pipe)
{
	free_shown(pipe);
	evrdma_buf_unref(pipe->spare);
	evrdma_buf_unref(pipe->own);
	free(pipe->works);
}

int evr_pipe_rkey(const struct evr_pipe *pipe, struct evrdma_buf *buf, uint32_t *rkey)
{
	return evr_buf_rkey(buf, pipe->conn->qp.pd, rkey);
}

uint8_t *evr_pipe_half_data(const struct evr_pipe *pipe, unsigned half)
{
	return evrdma_buf_data(pipe->halves[half]);
}

int evr_pipe_show_half(struct evr_pipe *pipe, unsigned half)
{
	uint32_t rkey;
	int ret = evr_pipe_rkey(pipe, pipe->halves[half], &rkey);

	if (!ret)
		evr_stream_set_half(
			&pipe->stream, half, (uintptr_t)evr_pipe_half_data(pipe, half), rkey);
	return ret;
}
