/* What arrives: all of it is checked. */
#include "proto/stream.h"
#include "proto/stream_internal.h"

#include <errno.h>

/* The peer may say something twice, but not for ever. */
static int take_nothing(struct evr_stream *stream)
{
	if (stream->idle == EVR_STREAM_IDLE_MAX)
		return -EOVERFLOW;
	stream->idle++;
	return 0;
}

static bool was_written(uint32_t written, uint32_t len)
{
	return written == EVR_WRITTEN_UNKNOWN || written == len;
}

static int take_data(struct evr_stream *stream, uint32_t len, uint32_t written)
{
	int ret;

	if (stream->peer_shutdown)
		return -EPROTO;
	if (!was_written(written, len))
		return -EMSGSIZE;
	ret = evr_credit_in_take(&stream->credit_in);
	if (ret)
		return ret;
	ret = evr_rxring_write(&stream->rx, len);
	if (!ret && !stream->rx_open)
		evr_stream_consume(stream, len);
	return ret;
}

/* librdmacm may still give credits when it has disconnected. */
static int take_credits(struct evr_stream *stream, uint32_t limit, uint32_t written)
{
	int raised, entry;

	if (stream->peer_gone)
		return take_nothing(stream);
	raised = evr_credit_out_limit(&stream->credit_out, limit);
	if (raised < 0)
		return raised;
	entry = evr_target_announce(&stream->target, written);
	if (entry < 0)
		return entry;
	if (!raised && !entry)
		return take_nothing(stream);
	stream->idle = 0;
	return 0;
}

static int take_mapping(struct evr_stream *stream, uint32_t index, uint32_t written)
{
	int ret;

	if (stream->peer_shutdown)
		return -EPROTO;
	if (!was_written(written, EVR_IOMAP_ENTRY_LEN))
		return -EBADMSG;
	ret = evr_credit_in_take(&stream->credit_in);
	return ret ? ret : evr_iomap_in_take(&stream->iomap_in, index);
}

/* Saying it again brings nothing: librdmacm does, when it is shut down twice. */
static int take_shutdown(struct evr_stream *stream)
{
	if (stream->peer_shutdown)
		return take_nothing(stream);
	stream->peer_shutdown = true;
	return 0;
}

static int take_disconnect(struct evr_stream *stream)
{
	if (stream->peer_gone)
		return take_nothing(stream);
	stream->peer_shutdown = stream->peer_gone = true;
	return 0;
}

static int take_control(struct evr_stream *stream, uint32_t what)
{
	switch (what) {
	case EVR_IMM_DISCONNECT:
		return take_disconnect(stream);
	case EVR_IMM_KEEPALIVE:
		return take_nothing(stream);
	case EVR_IMM_SHUTDOWN:
		return take_shutdown(stream);
	default:
		return -EPROTO;
	}
}

static int take(struct evr_stream *stream, uint32_t imm, uint32_t written)
{
	uint32_t data = evr_imm_data(imm);

	switch (evr_imm_op(imm)) {
	case EVR_IMM_DATA:
		return take_data(stream, data, written);
	case EVR_IMM_SGL:
		return take_credits(stream, data, written);
	case EVR_IMM_IOMAP:
		return take_mapping(stream, data, written);
	case EVR_IMM_CONTROL:
		return take_control(stream, data);
	default:
		return -EPROTO;
	}
}

int evr_stream_receive(struct evr_stream *stream, uint32_t imm, uint32_t written)
{
	if (!stream->started)
		return -ENOTCONN;
	if (!stream->error)
		evr_stream_fail(stream, take(stream, imm, written));
	return stream->error;
}

int evr_stream_complete(struct evr_stream *stream, uint64_t wr_id, bool ok)
{
	if (!evr_wrid_is_recv(wr_id) && !(ok && evr_wrid_is_first(wr_id))) {
		evr_sendq_complete(&stream->sendq, evr_wrid_number(wr_id));
		evr_txring_release(&stream->tx, evr_sendq_reap_ring(&stream->sendq));
	}
	/* What is given back when all is said has nobody to tell. */
	if (!ok && !evr_stream_status(stream).finished)
		evr_stream_fail(stream, -EIO);
	return stream->error;
}
