/* What goes out. */
#include "proto/stream.h"
#include "proto/stream_internal.h"
#include "util/number.h"

#include <errno.h>

enum { MAPPING_OFFSET = EVR_STREAM_CONTROL_LEN * EVR_SENDQ_CONTROL };

/* On iWARP, a write and what announces it are two. */
static uint8_t places_of(const struct evr_stream *stream, enum evr_stream_op op)
{
	return op == EVR_STREAM_WRITE_SEND ? 2 : 1;
}

static enum evr_stream_op write_op(const struct evr_stream *stream)
{
	return stream->config.iwarp ? EVR_STREAM_WRITE_SEND : EVR_STREAM_WRITE_IMM;
}

/* A message without payload. */
static enum evr_stream_op message_op(const struct evr_stream *stream)
{
	return stream->config.iwarp ? EVR_STREAM_SEND : EVR_STREAM_WRITE_IMM;
}

bool evr_stream_can_post_data(const struct evr_stream *stream)
{
	return evr_sendq_has(&stream->sendq, false, places_of(stream, write_op(stream)));
}

uint32_t evr_stream_low_water(const struct evr_stream *stream)
{
	uint32_t half = stream->config.tx_size / 2;

	return half ? evr_smaller(EVR_STREAM_LOW_WATER, half) : 1;
}

static void hand_out(
	struct evr_stream *stream, struct evr_stream_work *work, const struct evr_sendq_work *as)
{
	uint32_t number = evr_sendq_push(&stream->sendq, as, &work->signaled);

	work->wr_id = evr_wrid_send(number);
	work->end = stream->sendq.handed_bytes;
}

/* --- the user's bytes ------------------------------------------------------------------------ */

int evr_stream_check_sending(const struct evr_stream *stream)
{
	if (!stream->started)
		return -ENOTCONN;
	if (stream->error)
		return stream->error;
	if (stream->tx_ended)
		return -EPIPE;
	return stream->peer_gone ? -ECONNRESET : 0;
}

static uint32_t transfer_of(struct evr_stream_want *want)
{
	uint32_t transfer = want->transfer ? want->transfer : EVR_STREAM_FIRST_TRANSFER;

	if (transfer < want->len && transfer < EVR_STREAM_LAST_TRANSFER)
		want->transfer = transfer * 2;
	return transfer;
}

/*
 * What of it can be in the next message, for all that our own side has to say of it, and whether it
 * goes by the ring. What does stays so when there is little up to the ring's end, or it would never
 * get there.
 */
static uint32_t piece_of(const struct evr_stream *stream, struct evr_stream_want *want,
	uint32_t left, enum evr_stream_local *local)
{
	uint32_t len = evr_smaller(want->len, evr_smaller(left, EVR_IMM_DATA_MAX));
	uint32_t room = evr_txring_free(&stream->tx);

	*local = EVR_STREAM_OWN;
	if (want->own || len <= stream->config.inline_max)
		return len;
	*local = EVR_STREAM_RING;
	if (room < evr_stream_low_water(stream) && room < len)
		return 0;
	len = evr_smaller(len, evr_txring_contiguous(&stream->tx));
	return len ? evr_smaller(len, transfer_of(want)) : 0;
}

/* The bytes of a work whose remote place is filled in. */
static int hand_out_bytes(
	struct evr_stream *stream, struct evr_stream_want *want, struct evr_stream_work *work)
{
	struct evr_sendq_work as = { .bytes = work->len, .places = places_of(stream, work->op) };

	if (work->local == EVR_STREAM_OWN) {
		work->inlined = work->len <= stream->config.inline_max;
	} else {
		work->offset = evr_txring_take(&stream->tx, work->len);
		as.ring = work->len;
	}
	want->len -= work->len;
	work->signaled = want->own && !want->more && !want->len;
	hand_out(stream, work, &as);
	return (int)work->len;
}

static struct evr_stream_work write_of(
	enum evr_stream_kind kind, enum evr_stream_op op, struct evr_sge place)
{
	return (struct evr_stream_work){
		.kind = kind,
		.op = op,
		.addr = place.addr,
		.rkey = place.rkey,
		.len = place.len,
	};
}

int evr_stream_send(
	struct evr_stream *stream, struct evr_stream_want *want, struct evr_stream_work *work)
{
	int ret = evr_stream_check_sending(stream);
	enum evr_stream_local local;
	uint32_t len;

	if (ret)
		return ret;
	if (stream->iomap_out.waiting || !evr_credit_out_left(&stream->credit_out) ||
		!evr_stream_can_post_data(stream))
		return 0;
	len = piece_of(stream, want, evr_target_left(&stream->target), &local);
	if (!len)
		return 0;
	*work = write_of(EVR_STREAM_DATA, write_op(stream), evr_target_take(&stream->target, len));
	work->local = local;
	work->imm = evr_imm(EVR_IMM_DATA, len);
	evr_credit_out_take(&stream->credit_out);
	return hand_out_bytes(stream, want, work);
}

int evr_stream_direct(struct evr_stream *stream, uint64_t offset, struct evr_stream_want *want,
	struct evr_stream_work *work)
{
	enum evr_stream_local local;
	struct evr_sge place;
	int ret = evr_stream_check_sending(stream);

	if (!ret)
		ret = evr_iomap_in_find(&stream->iomap_in, offset, want->len, &place);
	if (ret)
		return ret;
	if (stream->iomap_out.waiting || !evr_sendq_has(&stream->sendq, false, 1))
		return 0;
	place.len = piece_of(stream, want, place.len, &local);
	if (!place.len)
		return 0;
	*work = write_of(EVR_STREAM_DIRECT, EVR_STREAM_WRITE, place);
	work->local = local;
	return hand_out_bytes(stream, want, work);
}

/* --- what goes by itself --------------------------------------------------------------------- */

static void hand_out_control(struct evr_stream *stream, struct evr_stream_work *work)
{
	struct evr_sendq_work as = { .places = places_of(stream, work->op), .control = true };

	hand_out(stream, work, &as);
}

static bool has_control(const struct evr_stream *stream, enum evr_stream_op op)
{
	return evr_sendq_has(&stream->sendq, true, places_of(stream, op));
}

static bool hand_out_message(struct evr_stream *stream, struct evr_stream_work *work,
	enum evr_stream_kind kind, uint32_t imm)
{
	*work = (struct evr_stream_work){ .kind = kind, .op = message_op(stream), .imm = imm };
	hand_out_control(stream, work);
	return true;
}

static struct evr_sge remote_entry(const struct evr_stream *stream)
{
	return (struct evr_sge){
		.addr = stream->peer.target_addr + stream->remote_entry * EVR_SGE_LEN,
		.rkey = stream->peer.target_rkey,
		.len = EVR_SGE_LEN,
	};
}

static bool hand_out_entry(struct evr_stream *stream, struct evr_stream_work *work)
{
	struct evr_sge half = evr_stream_give_half(stream);

	*work = write_of(EVR_STREAM_SGL, write_op(stream), remote_entry(stream));
	work->local = EVR_STREAM_CONTROL;
	work->inlined = work->len <= stream->config.inline_max;
	work->offset = EVR_STREAM_CONTROL_LEN * (stream->sendq.control_count % EVR_SENDQ_CONTROL);
	work->imm = evr_imm(EVR_IMM_SGL, evr_credit_in_give(&stream->credit_in));
	evr_sge_put(&half, work->control, stream->peer.big_endian);
	stream->remote_entry ^= 1;
	hand_out_control(stream, work);
	return true;
}

static bool next_credits(struct evr_stream *stream, struct evr_stream_work *work)
{
	if (stream->peer_shutdown)
		return false;
	if (evr_rxring_is_due(&stream->rx) && has_control(stream, write_op(stream)))
		return hand_out_entry(stream, work);
	if (!evr_credit_in_is_due(&stream->credit_in) || !has_control(stream, message_op(stream)))
		return false;
	return hand_out_message(stream, work, EVR_STREAM_CREDIT,
		evr_imm(EVR_IMM_SGL, evr_credit_in_give(&stream->credit_in)));
}

static struct evr_sge remote_mapping(const struct evr_stream *stream, int index)
{
	return (struct evr_sge){
		.addr = stream->peer.target_addr + EVR_TARGET_ENTRIES * EVR_SGE_LEN +
			(uint64_t)index * EVR_IOMAP_ENTRY_LEN,
		.rkey = stream->peer.target_rkey,
		.len = EVR_IOMAP_ENTRY_LEN,
	};
}

static void hand_out_mapping(struct evr_stream *stream, struct evr_stream_work *work)
{
	struct evr_sendq_work as = { .places = places_of(stream, write_op(stream)),
		.mapping = true };
	struct evr_iomap_entry entry = { 0 };
	int index = evr_iomap_out_next(&stream->iomap_out, &entry);

	*work = write_of(EVR_STREAM_IOMAP, write_op(stream), remote_mapping(stream, index));
	work->local = EVR_STREAM_CONTROL;
	work->inlined = work->len <= stream->config.inline_max;
	work->offset = MAPPING_OFFSET;
	work->imm = evr_imm(EVR_IMM_IOMAP, (uint32_t)index);
	evr_iomap_put(&entry, work->control, stream->peer.big_endian);
	evr_credit_out_take(&stream->credit_out);
	hand_out(stream, work, &as);
}

static bool next_mapping(struct evr_stream *stream, struct evr_stream_work *work)
{
	if (!stream->iomap_out.waiting || !evr_stream_is_tx_open(stream) || stream->sendq.mapping ||
		!evr_credit_out_left(&stream->credit_out) || !evr_stream_can_post_data(stream))
		return false;
	hand_out_mapping(stream, work);
	return true;
}

static bool hand_out_keepalive(struct evr_stream *stream, struct evr_stream_work *work)
{
	if (!has_control(stream, EVR_STREAM_WRITE))
		return false;
	*work = (struct evr_stream_work){ .kind = EVR_STREAM_KEEPALIVE, .op = EVR_STREAM_WRITE };
	hand_out_control(stream, work);
	return true;
}

static bool next_keepalive(struct evr_stream *stream, struct evr_stream_work *work)
{
	if (!stream->keepalive || !hand_out_keepalive(stream, work))
		return false;
	stream->keepalive = false;
	return true;
}

static bool next_shutdown(struct evr_stream *stream, struct evr_stream_work *work)
{
	if (stream->said_shutdown)
		return false;
	stream->said_shutdown = true;
	return hand_out_message(
		stream, work, EVR_STREAM_SHUTDOWN, evr_imm(EVR_IMM_CONTROL, EVR_IMM_SHUTDOWN));
}

static bool next_disconnect(struct evr_stream *stream, struct evr_stream_work *work)
{
	stream->said_disconnect = true;
	return hand_out_message(
		stream, work, EVR_STREAM_DISCONNECT, evr_imm(EVR_IMM_CONTROL, EVR_IMM_DISCONNECT));
}

/* To shut down the second direction is to disconnect. */
static bool next_word(struct evr_stream *stream, struct evr_stream_work *work)
{
	if (evr_stream_is_tx_open(stream) || !has_control(stream, message_op(stream)))
		return false;
	if (stream->rx_open && !stream->peer_shutdown)
		return next_shutdown(stream, work);
	return next_disconnect(stream, work);
}

/* The peer had the last word, and what went before it without a signal shall be known to be done.
 */
static bool next_signal(struct evr_stream *stream, struct evr_stream_work *work)
{
	return stream->sendq.silent && hand_out_keepalive(stream, work);
}

bool evr_stream_next(struct evr_stream *stream, struct evr_stream_work *work)
{
	if (!stream->started || stream->error || stream->said_disconnect)
		return false;
	if (evr_stream_is_over(stream))
		return next_signal(stream, work);
	return next_mapping(stream, work) || next_credits(stream, work) ||
	       next_keepalive(stream, work) || next_word(stream, work);
}
