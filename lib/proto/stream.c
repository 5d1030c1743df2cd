#include "proto/stream.h"

#include "proto/bytes.h"
#include "proto/stream_internal.h"
#include "util/number.h"

#include <errno.h>
#include <sys/socket.h>

/* --- beginning ------------------------------------------------------------------------------- */

enum { ALIGNMENT = 8 };

#define RX_SIZE_MAX (UINT32_C(2) * EVR_SGE_MAX)

static bool is_queue_size(uint16_t size)
{
	return size >= EVR_SENDQ_MIN && size <= EVR_SENDQ_MAX;
}

static bool has_sound_rings(const struct evr_stream_config *config)
{
	return config->rx_size >= 2 && config->rx_size <= RX_SIZE_MAX &&
	       config->tx_size <= EVR_SGE_MAX && config->rx_addr <= UINT64_MAX - config->rx_size;
}

static bool has_sound_tables(const struct evr_stream_config *config)
{
	return config->target && !((uintptr_t)config->target % ALIGNMENT) && config->works &&
	       (!config->iomap_size || config->iomap) &&
	       evr_iomap_unscale(evr_iomap_scale(config->iomap_size)) == config->iomap_size;
}

static struct evr_sge half_at(const struct evr_stream *stream, uint32_t offset)
{
	return stream->halves[offset ? 1 : 0];
}

void evr_stream_set_half(
	struct evr_stream *stream, unsigned int half, uint64_t addr, uint32_t rkey)
{
	stream->halves[half] =
		(struct evr_sge){ .addr = addr, .rkey = rkey, .len = stream->rx.half };
}

struct evr_sge evr_stream_give_half(struct evr_stream *stream)
{
	return half_at(stream, evr_rxring_give(&stream->rx));
}

int evr_stream_init(struct evr_stream *stream, const struct evr_stream_config *config)
{
	if (!is_queue_size(config->sq_size) || !is_queue_size(config->rq_size) ||
		!has_sound_rings(config) || !has_sound_tables(config))
		return -EINVAL;
	if (config->iwarp && config->inline_max < EVR_IMM_MESSAGE_LEN)
		return -ENOTSUP;
	*stream = (struct evr_stream){ .config = *config, .remote_entry = 1 };
	evr_rxring_init(&stream->rx, config->rx_size / 2);
	evr_stream_set_half(stream, 0, config->rx_addr, config->rx_rkey);
	evr_stream_set_half(
		stream, 1, config->rx_addr + config->rx_size / 2, config->rx_rkey);
	evr_txring_init(&stream->tx, config->tx_size);
	evr_target_init(&stream->target, config->target);
	evr_credit_in_init(&stream->credit_in, config->rq_size);
	evr_sendq_init(&stream->sendq, config->works, config->sq_size, config->tx_size,
		config->signal_all);
	return 0;
}

void evr_stream_describe(const struct evr_stream *stream, struct evr_conndata *conn)
{
	*conn = (struct evr_conndata){
		.big_endian = evr_host_is_big_endian(),
		.iomap = true,
		.credits = stream->config.rq_size,
		.iomap_size = stream->config.iomap_size,
		.target_addr = (uintptr_t)stream->config.target,
		.target_rkey = stream->config.target_rkey,
		.data = half_at(stream, 0),
	};
}

/* The table is behind the target entries, in the peer's memory as in ours. */
static volatile struct evr_iomap_entry *table_of(const struct evr_stream_config *config)
{
	return (volatile void *)((uint8_t *)config->target + EVR_TARGET_ENTRIES * EVR_SGE_LEN);
}

int evr_stream_start(struct evr_stream *stream, const struct evr_conndata *peer)
{
	const struct evr_stream_config *config = &stream->config;

	if (stream->started)
		return -EISCONN;
	stream->peer = *peer;
	evr_target_start(&stream->target, &peer->data);
	evr_iomap_in_init(&stream->iomap_in, table_of(config), config->iomap, config->iomap_size);
	evr_credit_out_init(&stream->credit_out, peer->credits);
	stream->started = stream->rx_open = true;
	return 0;
}

void evr_stream_set_mappings(struct evr_stream *stream, struct evr_iomap_slot *slots, uint32_t size)
{
	evr_iomap_out_init(&stream->iomap_out, slots, evr_smaller(size, stream->peer.iomap_size));
}

/* --- reading --------------------------------------------------------------------------------- */

uint32_t evr_stream_readable(const struct evr_stream *stream, struct evr_span spans[2])
{
	return evr_rxring_spans(&stream->rx, spans);
}

void evr_stream_consume(struct evr_stream *stream, uint32_t len)
{
	evr_rxring_consume(&stream->rx, len);
}

void evr_stream_lend(struct evr_stream *stream, uint32_t len)
{
	evr_rxring_lend(&stream->rx, len);
}

void evr_stream_release(struct evr_stream *stream, uint32_t len)
{
	evr_rxring_release(&stream->rx, len);
}

/* --- mappings -------------------------------------------------------------------------------- */

int evr_stream_map(struct evr_stream *stream, const struct evr_iomap_entry *entry)
{
	return evr_iomap_out_map(&stream->iomap_out, entry);
}

int evr_stream_unmap(struct evr_stream *stream, uint32_t index)
{
	return evr_iomap_out_unmap(&stream->iomap_out, index);
}

/* --- ending ---------------------------------------------------------------------------------- */

int evr_stream_shutdown(struct evr_stream *stream, int how)
{
	if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
		return -EINVAL;
	if (how != SHUT_RD)
		stream->tx_ended = true;
	if (how != SHUT_WR) {
		stream->rx_open = false;
		evr_stream_consume(stream, evr_rxring_readable(&stream->rx));
	}
	return 0;
}

void evr_stream_keepalive(struct evr_stream *stream)
{
	stream->keepalive = true;
}

void evr_stream_fail(struct evr_stream *stream, int error)
{
	if (!stream->error)
		stream->error = error;
}

bool evr_stream_is_over(const struct evr_stream *stream)
{
	return stream->peer_gone || (stream->said_shutdown && stream->peer_shutdown);
}

/* --- what is to be seen of it ---------------------------------------------------------------- */

static bool can_write(const struct evr_stream *stream)
{
	return evr_stream_is_tx_open(stream) && !stream->error &&
	       evr_stream_can_post_data(stream) && evr_credit_out_left(&stream->credit_out) &&
	       evr_target_left(&stream->target);
}

static uint32_t writable(const struct evr_stream *stream, uint64_t window)
{
	uint32_t room = evr_txring_free(&stream->tx);

	if (room < evr_stream_low_water(stream))
		return 0;
	return room < window ? room : (uint32_t)window;
}

struct evr_stream_status evr_stream_status(const struct evr_stream *stream)
{
	uint64_t window = can_write(stream) ? evr_target_window(&stream->target) : 0;
	uint32_t readable = evr_rxring_readable(&stream->rx);
	bool rx_ends = !stream->rx_open || stream->peer_shutdown;

	return (struct evr_stream_status){
		.readable = readable,
		.writable = writable(stream, window),
		.window = window,
		.completed = stream->sendq.done_bytes,
		.eof = rx_ends && !readable,
		.hangup = rx_ends && !evr_stream_is_tx_open(stream),
		.finished = stream->error || stream->said_disconnect || evr_stream_is_over(stream),
		.drained = !stream->sendq.count,
		.error = stream->error,
	};
}
