#include "ev/stream/pipe.h"

#include <errno.h>

#include "ev/connection/request.h"
#include "ev/core/error.h"
#include "util/number.h"
#include "util/options.h"

enum {
	INLINE_BYTES = 64, /* where the user says nothing */
	DEPTH_LEAST = EVR_SENDQ_MIN + EVR_SENDQ_CONTROL,
	DEPTH_MOST = 65530,
	SPARE_SENDS = 4, /* for what is not the stream's: keepalives */
	RING_LEAST = 8192,
	RING_MOST = 1 << 30,
};

/* --- the end -------------------------------------------------------------------------------- */

static void set_down(struct evr_pipe *pipe, const struct evrdma_error *error)
{
	if (pipe->down)
		return;
	pipe->down = true;
	pipe->ops->down(pipe, error);
}

/*
 * Of a process that is killed the kernel takes the memory first, so that its device refuses what
 * still comes: nothing that anybody may or may not do.
 */
static bool is_refused_by_peer(const struct evrdma_error *error)
{
	switch (error->wc_status) {
	case IBV_WC_REM_ACCESS_ERR:
	case IBV_WC_REM_INV_REQ_ERR:
	case IBV_WC_REM_OP_ERR:
	case IBV_WC_REM_ABORT_ERR:
		return true;
	default:
		return false;
	}
}

static void on_error(struct evr_pipe *pipe, const struct evrdma_error *error)
{
	struct evrdma_error told = *error;

	if (is_refused_by_peer(error))
		told.err = ECONNRESET;
	set_down(pipe, &told);
}

static void set_down_for(struct evr_pipe *pipe, int err)
{
	struct evrdma_error error;

	evr_error_set(&error, err, EVRDMA_STEP_TRANSFER);
	set_down(pipe, &error);
}

/* Of a stream that has failed by itself the connection is of no use any more. */
bool evr_pipe_judge(struct evr_pipe *pipe)
{
	int error = evr_stream_status(&pipe->stream).error;

	if (error && !pipe->down) {
		set_down_for(pipe, -error);
		evrdma_conn_close(pipe->conn);
	}
	return error;
}

/* --- the connection's events ---------------------------------------------------------------- */

static bool is_iwarp(const struct evr_pipe *pipe)
{
	return evr_qp_is_iwarp(&pipe->conn->qp);
}

static int prepare_stream(struct evr_pipe *pipe)
{
	const struct evrdma_conn *conn = pipe->conn;
	struct evr_stream_config config = {
		.iwarp = is_iwarp(pipe),
		.signal_all = true,
		.sq_size = (uint16_t)conn->options.send_depth,
		.rq_size = (uint16_t)(conn->options.recv_depth - EVR_SENDQ_CONTROL),
		.inline_max = conn->qp.inline_max,
		.tx_size = pipe->send_bytes,
		.rx_size = 2 * pipe->half_bytes,
		.rx_addr = (uintptr_t)evr_pipe_half_data(pipe, 0),
		.target = evrdma_buf_data(pipe->target),
		.works = pipe->works,
	};
	int ret = evr_pipe_rkey(pipe, pipe->halves[0], &config.rx_rkey);

	if (!ret)
		ret = evr_pipe_rkey(pipe, pipe->target, &config.target_rkey);
	if (!ret)
		ret = evr_stream_init(&pipe->stream, &config);
	return ret ? ret : evr_pipe_show_half(pipe, 1);
}

static size_t prefix_of(const struct rdma_cm_id *id)
{
	return rdma_get_local_addr((struct rdma_cm_id *)id)->sa_family == AF_IB
		       ? EVR_CONNDATA_IB_PREFIX
		       : 0;
}

/* There is a queue pair: what the peer is told is known. For each address that is tried. */
static int on_ready(struct evrdma_conn *conn, void *arg)
{
	struct evr_pipe *pipe = arg;
	struct evr_conndata data;
	int ret = pipe->shown ? evr_pipe_renew(pipe) : 0, len;

	pipe->shown = true;
	if (!ret)
		ret = prepare_stream(pipe);
	if (ret)
		return ret;
	evr_stream_describe(&pipe->stream, &data);
	len = evr_conndata_encode(&data, pipe->passive ? 0 : prefix_of(conn->cmid.cm),
		conn->private_data, sizeof(conn->private_data));
	conn->options.private_data_len = (size_t)len;
	return pipe->passive ? evr_stream_start(&pipe->stream, &pipe->peer) : 0;
}

static int start(struct evr_pipe *pipe)
{
	size_t len;
	const void *data = evrdma_conn_get_private_data(pipe->conn, &len);

	if (pipe->passive)
		return 0;
	if (evr_conndata_decode(&pipe->peer, 0, data, len))
		return -EPROTO;
	return evr_stream_start(&pipe->stream, &pipe->peer);
}

static void on_connected(struct evr_pipe *pipe)
{
	int ret = start(pipe);

	evr_pipe_fail(pipe, ret);
	if (evr_pipe_judge(pipe))
		return;
	pipe->ops->connected(pipe);
	evr_pipe_pump(pipe);
	evrdma_conn_enable(pipe->conn);
}

/*
 * A peer that leaves without the stream's last word has not closed it. That the stream has failed,
 * as by work that came back undone, is no such word.
 */
static void on_disconnected(struct evr_pipe *pipe)
{
	const struct evr_stream *stream = &pipe->stream;

	if (stream->peer_shutdown || stream->said_disconnect)
		set_down(pipe, NULL);
	else
		set_down_for(pipe, ECONNRESET);
}

static void on_event(struct evrdma_conn *conn, enum evrdma_conn_event event,
	const struct evrdma_error *error, void *arg)
{
	struct evr_pipe *pipe = arg;

	switch (event) {
	case EVRDMA_CONN_CONNECTED:
		on_connected(pipe);
		break;
	case EVRDMA_CONN_DISCONNECTED:
		on_disconnected(pipe);
		break;
	case EVRDMA_CONN_ERROR:
		on_error(pipe, error);
		break;
	case EVRDMA_CONN_CLOSED:
		set_down_for(pipe, ECANCELED);
		pipe->conn = NULL;
		pipe->ops->closed(pipe);
		break;
	default:
		break;
	}
}

static void take(struct evr_pipe *pipe, const struct evrdma_recv *recv)
{
	if (is_iwarp(pipe) && recv->len == EVR_IMM_MESSAGE_LEN)
		evr_stream_receive(
			&pipe->stream, evr_imm_from_message(recv->data), EVR_WRITTEN_UNKNOWN);
	else if (!is_iwarp(pipe) && recv->has_imm && !recv->len)
		evr_stream_receive(&pipe->stream, recv->imm, (uint32_t)recv->written);
	else
		evr_pipe_fail(pipe, -EPROTO);
	/* There are no tables here; told so it would be that the device went. */
	if (pipe->stream.error == -ENXIO)
		pipe->stream.error = -EPROTO;
}

static void on_recv(struct evrdma_conn *conn, const struct evrdma_recv *recv, void *arg)
{
	struct evr_pipe *pipe = arg;

	if (recv->err || pipe->down)
		return;
	take(pipe, recv);
	evr_pipe_leave_half(pipe);
	evr_pipe_pump(pipe);
	if (!evr_pipe_judge(pipe))
		pipe->ops->changed(pipe);
}

/* --- life ----------------------------------------------------------------------------------- */

static size_t round_up(size_t size, size_t to)
{
	return (size + to - 1) / to * to;
}

static bool has_sound_depth(uint32_t depth)
{
	return depth >= DEPTH_LEAST && depth <= DEPTH_MOST;
}

static bool has_sound_ring(uint32_t bytes)
{
	return bytes >= RING_LEAST && bytes <= RING_MOST;
}

static int load_conn(
	struct evrdma_conn_options *conn, const struct evrdma_conn_options *users)
{
	size_t size;

	evrdma_conn_options_init(conn);
	size = conn->size;
	if (evr_options_load(conn, sizeof(*conn), users))
		return -EINVAL;
	conn->size = size;
	if (!has_sound_depth(conn->send_depth) || !has_sound_depth(conn->recv_depth) ||
		conn->recv_pool || conn->srq || conn->private_data || conn->private_data_len)
		return -EINVAL;
	if (!conn->inline_bytes)
		conn->inline_bytes = INLINE_BYTES;
	conn->inline_bytes = evr_smaller(conn->inline_bytes, EVR_PIPE_INLINE_MOST);
	if (conn->send_queue < SPARE_SENDS)
		conn->send_queue = SPARE_SENDS;
	return 0;
}

int evr_pipe_load(
	struct evr_pipe_options *options, const struct evrdma_bev_options *users)
{
	*options = (struct evr_pipe_options){
		.recv_bytes = users->recv_bytes,
		.send_bytes = users->send_bytes,
		.copies = users->flags & EVRDMA_BUFFEREVENT_OPT_COPY,
	};
	if (!has_sound_ring(users->recv_bytes) || !has_sound_ring(users->send_bytes))
		return -EINVAL;
	return load_conn(&options->conn, users->conn);
}

static int new_conn(struct evr_pipe *pipe, struct evrdma_base *base,
	const struct evrdma_conn_options *users)
{
	struct evrdma_conn_options options = *users;
	int ret;

	options.recv_pool = evr_pipe_messages(base);
	if (!options.recv_pool)
		return -errno;
	pipe->conn = evrdma_conn_new(base, &options);
	if (!pipe->conn)
		return -errno;
	/* On iWARP what the peer says may be here before what its answer says of it. */
	ret = evrdma_conn_disable(pipe->conn);
	if (ret) {
		evrdma_conn_close(pipe->conn);
		return ret;
	}
	evrdma_conn_setcb(pipe->conn, on_recv, on_event, pipe);
	pipe->conn->ready = on_ready;
	pipe->conn->owned = true;
	pipe->conn->qp.config.inline_spare = true;
	return 0;
}

int evr_pipe_init(struct evr_pipe *pipe, struct evrdma_base *base,
	const struct evr_pipe_options *options, const struct evr_pipe_ops *ops)
{
	int ret;

	pipe->ops = ops;
	pipe->copies = options->copies;
	pipe->half_bytes = (uint32_t)round_up(options->recv_bytes / 2, EVR_PIPE_PAGE);
	pipe->send_bytes = (uint32_t)round_up(options->send_bytes, sizeof(uint64_t));
	ret = evr_pipe_allocate(pipe, base, options->conn.send_depth);
	if (!ret)
		ret = new_conn(pipe, base, &options->conn);
	if (ret)
		evr_pipe_free_all(pipe);
	return ret;
}

void evr_pipe_close(struct evr_pipe *pipe)
{
	evrdma_conn_close(pipe->conn);
}

void evr_pipe_fini(struct evr_pipe *pipe)
{
	evr_pipe_free_all(pipe);
}

int evr_pipe_accept(struct evr_pipe *pipe, struct evrdma_request *request)
{
	const struct rdma_cm_id *id = evrdma_request_get_cm_id(request);

	pipe->passive = true;
	if (id && evr_conndata_decode(&pipe->peer, prefix_of(id), request->private_data,
			  request->private_data_len))
		return -EPROTO;
	return evrdma_conn_accept(pipe->conn, request);
}
