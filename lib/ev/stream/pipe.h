/*
 * A pipe: one connection that carries one stream of the rsocket protocol. It has the memory, turns
 * the stream's work into work of the connection, and what that brings into the stream's input.
 *
 *   made --evrdma_conn_connect(), accept()--> connected --> down, with or without an error
 *        --evr_pipe_close()--> closed, the last
 *
 * Memory. The peer writes to two halves of a receive ring, buffers of a pool that is the pipe's
 * alone: no other connection's peer has ever had their keys. What is fed to an evbuffer by
 * reference holds its half; when such a half was read to its end another buffer takes its place,
 * and the old one returns to the pool with its last reference, be the pipe still there or not.
 * Without another one what arrives is copied: so the stream goes on, whatever the program holds.
 * Bytes that are sent are copied into the send ring, once.
 *
 * The entries of the peer's target are in memory of their own. Messages are received into buffers
 * that all pipes of a base share: nobody has their keys.
 */
#ifndef EVR_EV_PIPE_H
#define EVR_EV_PIPE_H

#include <event2/buffer.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ev/connection/conn.h"
#include "proto/stream.h"

#include <evrdma/bufferevent.h>
#include <evrdma/conn.h>

struct evr_pipe;

enum { EVR_PIPE_PAGE = 4096, EVR_PIPE_INLINE_MOST = 512 };

/* From the loop. */
struct evr_pipe_ops {
	void (*connected)(struct evr_pipe *pipe);
	/* Something arrived, or left: look at what there is. */
	void (*changed)(struct evr_pipe *pipe);
	/* The connection has ended. NULL: the peer has closed it. Once; changed() comes no more. */
	void (*down)(struct evr_pipe *pipe, const struct evrdma_error *error);
	/*
	 * It has failed, maybe within a call: evr_pipe_judge() is to follow from the loop. May come
	 * more than once.
	 */
	void (*failed)(struct evr_pipe *pipe);
	/* The last. There is no connection any more. */
	void (*closed)(struct evr_pipe *pipe);
};

/* Checked, and the library's own. */
struct evr_pipe_options {
	struct evrdma_conn_options conn;
	uint32_t recv_bytes, send_bytes;
	bool copies; /* nothing is fed by reference */
};

struct evr_pipe {
	const struct evr_pipe_ops *ops;
	struct evrdma_conn *conn;
	struct evr_stream stream;
	struct evr_conndata peer;
	bool passive;
	bool shown; /* to a peer */
	bool down;
	bool copies;
	uint32_t half_bytes, send_bytes;
	struct evr_sendq_work *works;
	struct evrdma_pool *pool;
	struct evrdma_buf *halves[2];
	struct evrdma_buf *spare; /* for the half that is being read, when some of it is lent */
	uint32_t lent;		  /* of that half, */
	unsigned lent_half;	  /* which is this one */
	struct evrdma_buf *own;	  /* the send ring, and behind it that of control messages */
	struct evrdma_buf *target;
};

/* What pipes of a base share. 0 or -errno. */
int evr_pipes_start(struct evrdma_base *base);

/* Makes options of the user's. 0 or -EINVAL. */
int evr_pipe_load(
	struct evr_pipe_options *options, const struct evrdma_bev_options *users);
/* 0 or -errno; then nothing is left of it. */
int evr_pipe_init(struct evr_pipe *pipe, struct evrdma_base *base,
	const struct evr_pipe_options *options, const struct evr_pipe_ops *ops);
/* Closes the connection: closed() follows. */
void evr_pipe_close(struct evr_pipe *pipe);
/* There is no connection any more. What was fed stays. */
void evr_pipe_fini(struct evr_pipe *pipe);

/* Accepts. 0, -EPROTO, or as evrdma_conn_accept(). */
int evr_pipe_accept(struct evr_pipe *pipe, struct evrdma_request *request);

/*
 * Sends what goes now, at most len bytes of the vectors, from begin on. How many; -errno when no
 * more will go.
 */
ssize_t evr_pipe_send(struct evr_pipe *pipe, const struct evbuffer_iovec *vecs, int n, size_t len);
/* 0, or -errno: no more will go. */
int evr_pipe_check(const struct evr_pipe *pipe);
/* Whether it has failed: the first time that it is seen down() comes at once. */
bool evr_pipe_judge(struct evr_pipe *pipe);
/* Something would go. */
bool evr_pipe_is_writable(const struct evr_pipe *pipe);
/* What has arrived and was not read. */
uint32_t evr_pipe_readable(const struct evr_pipe *pipe);
/* Reads one byte of that. */
unsigned char evr_pipe_read_byte(struct evr_pipe *pipe);
/* Adds what there is, at most len bytes, to the buffer. How many. */
size_t evr_pipe_feed(struct evr_pipe *pipe, struct evbuffer *to, size_t len);
/* Reads all that there is, for nobody. */
void evr_pipe_throw_away(struct evr_pipe *pipe);
/* Of what the stream throws away itself: what was lent of a half is not waited for behind it. */
void evr_pipe_leave_half(struct evr_pipe *pipe);
/* Sends what is due after reading. */
void evr_pipe_pump(struct evr_pipe *pipe);
/* As evr_stream_shutdown(). */
void evr_pipe_shutdown(struct evr_pipe *pipe, int how);

/* --- pipe_memory.c -------------------------------------------------------------------------- */

/* 0 or -ENOMEM; to be freed in either case. */
int evr_pipe_allocate(struct evr_pipe *pipe, struct evrdma_base *base, uint32_t send_depth);
/* Other memory, for another peer than it was shown to. 0 or -ENOMEM; then there is none. */
int evr_pipe_renew(struct evr_pipe *pipe);
void evr_pipe_free_all(struct evr_pipe *pipe);
/* What the messages of a base's pipes are received into. NULL with errno. */
struct evrdma_pool *evr_pipe_messages(struct evrdma_base *base);
/* 0 or -errno. */
int evr_pipe_rkey(const struct evr_pipe *pipe, struct evrdma_buf *buf, uint32_t *rkey);
uint8_t *evr_pipe_half_data(const struct evr_pipe *pipe, unsigned half);
/* The stream is to tell the peer of a half. 0 or -errno. */
int evr_pipe_show_half(struct evr_pipe *pipe, unsigned half);

/* --- pipe_send.c ---------------------------------------------------------------------------- */

/* Nothing for 0. */
void evr_pipe_fail(struct evr_pipe *pipe, int ret);

#endif
