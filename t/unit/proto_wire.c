#include "unit/proto_wire.h"

#include <errno.h>
#include <string.h>

enum { RX_RKEY = 0x11, TARGET_RKEY = 0x22, MAP_RKEY = 0x33 };

/* --- random numbers -------------------------------------------------------------------------- */

static uint64_t state;

void wire_seed(uint64_t seed)
{
	state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
}

uint32_t wire_random(uint32_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)((state >> 32) % below);
}

uint8_t wire_pattern(const struct wire_side *side, uint64_t at)
{
	return (uint8_t)(at * 7 + (at >> 8) + side->config.target_rkey + side->config.rx_rkey);
}

/* --- connecting ------------------------------------------------------------------------------ */

static void init(struct wire_side *side, const struct evr_stream_config *config, uint32_t number)
{
	memset(side, 0, sizeof(*side));
	side->config = *config;
	side->config.rx_addr = (uintptr_t)side->rx;
	side->config.rx_rkey = RX_RKEY + number;
	side->config.target = &side->target;
	side->config.target_rkey = TARGET_RKEY + 2 * number;
	side->config.iomap = side->copies;
	side->config.works = side->works;
	side->receives = config->rq_size + (uint32_t)EVR_SENDQ_CONTROL * wire_random(2);
	holds(evr_stream_init(&side->stream, &side->config) == 0);
}

/* By way of the wire's bytes. */
static void start(struct wire_side *side, struct wire_side *peer)
{
	struct evr_conndata said, heard;
	uint8_t bytes[EVR_CONNDATA_LEN];

	evr_stream_describe(&peer->stream, &said);
	holds(evr_conndata_encode(&said, 0, bytes, sizeof(bytes)) == sizeof(bytes));
	holds(evr_conndata_decode(&heard, 0, bytes, sizeof(bytes)) == 0);
	side->peer = peer;
	holds(evr_stream_start(&side->stream, &heard) == 0);
	evr_stream_set_mappings(&side->stream, side->slots, WIRE_MAPPINGS);
}

void wire_connect(struct wire_side *a, struct wire_side *b, const struct evr_stream_config *of_a,
	const struct evr_stream_config *of_b)
{
	init(a, of_a, 0);
	init(b, of_b, 1);
	start(a, b);
	start(b, a);
}

/* --- posting --------------------------------------------------------------------------------- */

static const uint8_t *source_of(
	struct wire_side *side, const struct evr_stream_work *work, const uint8_t *bytes)
{
	if (work->local == EVR_STREAM_RING) {
		holds((uint64_t)work->offset + work->len <= side->config.tx_size);
		return memcpy(side->tx + work->offset, bytes, work->len);
	}
	if (work->local == EVR_STREAM_CONTROL && !work->inlined) {
		holds(work->offset + work->len <= EVR_STREAM_CONTROL_BYTES);
		return memcpy(side->control + work->offset, work->control, work->len);
	}
	return work->local == EVR_STREAM_CONTROL ? work->control : bytes;
}

static void push_wr(struct wire_side *side, const struct wire_wr *wr)
{
	struct wire_wr *at = &side->sq[side->sq_tail++ % WIRE_QUEUE_MAX];

	holds(side->sq_used < side->config.sq_size);
	side->sq_used++;
	*at = *wr;
	if (wr->write && wr->work.inlined) {
		holds(wr->work.len <= side->config.inline_max);
		memcpy(at->inlined, wr->from, wr->work.len);
		at->from = at->inlined;
	}
}

void wire_post(struct wire_side *side, const struct evr_stream_work *work, const uint8_t *bytes)
{
	bool pair = work->op == EVR_STREAM_WRITE_SEND;
	struct wire_wr wr = { .work = *work, .wr_id = work->wr_id, .signaled = work->signaled };

	holds(side->config.iwarp
			? work->op != EVR_STREAM_WRITE_IMM
			: work->op == EVR_STREAM_WRITE_IMM || work->op == EVR_STREAM_WRITE);
	wr.from = work->len ? source_of(side, work, bytes) : NULL;
	wr.write = work->len || work->op == EVR_STREAM_WRITE;
	wr.message = work->op != EVR_STREAM_WRITE && !pair;
	if (pair) {
		wr.wr_id = evr_wrid_first(work->wr_id);
		wr.signaled = false;
		push_wr(side, &wr);
		wr.wr_id = work->wr_id;
		wr.signaled = work->signaled;
		wr.message = true;
		wr.write = false;
	}
	push_wr(side, &wr);
}

void wire_pump(struct wire_side *side)
{
	struct evr_stream_work work;

	while (evr_stream_next(&side->stream, &work))
		wire_post(side, &work, NULL);
}

/* --- what the queue pair does ---------------------------------------------------------------- */

static void push_cqe(struct wire_side *side, const struct wire_cqe *cqe)
{
	holds(side->cq_tail - side->cq_head < WIRE_CQES);
	side->cq[side->cq_tail++ % WIRE_CQES] = *cqe;
}

/* The peer writes where it should, and over nothing that somebody reads. */
static void check_ring_write(struct wire_side *to, uint64_t offset, uint32_t len)
{
	uint64_t size = 2 * (uint64_t)(to->config.rx_size / 2);

	holds(offset == to->written % size);
	holds(offset % (size / 2) + len <= size / 2);
	to->written += len;
	if (to->discards)
		to->held = to->written;
	holds(to->written - to->held <= size);
}

static uint8_t *remote(struct wire_side *to, const struct evr_stream_work *work)
{
	uint8_t *addr = (uint8_t *)(uintptr_t)work->addr;

	if (work->kind == EVR_STREAM_DATA) {
		holds(work->rkey == to->config.rx_rkey);
		check_ring_write(to, (uint64_t)(addr - to->rx), work->len);
	} else if (work->kind == EVR_STREAM_DIRECT) {
		holds(work->rkey == MAP_RKEY);
		holds(addr >= to->mapped && addr + work->len <= to->mapped + WIRE_MAP_LEN);
	} else {
		holds(work->rkey == to->config.target_rkey);
		holds(addr >= (uint8_t *)&to->target &&
			addr + work->len <= (uint8_t *)(&to->target + 1));
	}
	return addr;
}

static void deliver(struct wire_side *to, const struct wire_wr *wr)
{
	struct wire_cqe cqe = { .wr_id = evr_wrid_recv(0), .imm = wr->work.imm, .ok = true };

	to->receives--;
	cqe.written = to->config.iwarp ? EVR_WRITTEN_UNKNOWN : wr->work.len;
	push_cqe(to, &cqe);
}

static void finish(struct wire_side *side, const struct wire_wr *wr, bool ok)
{
	side->silent++;
	if (!wr->signaled && ok)
		return;
	push_cqe(side, &(struct wire_cqe){ .wr_id = wr->wr_id, .places = side->silent, .ok = ok });
	side->silent = 0;
}

bool wire_execute(struct wire_side *side)
{
	struct wire_wr *wr = &side->sq[side->sq_head % WIRE_QUEUE_MAX];

	if (side->sq_head == side->sq_tail)
		return false;
	side->failed |= side->broken || side->peer->broken;
	if (!side->failed && wr->message && !side->peer->receives)
		return false;
	side->sq_head++;
	if (!side->failed && wr->write && wr->work.len)
		memcpy(remote(side->peer, &wr->work), wr->from, wr->work.len);
	if (!side->failed && wr->message)
		deliver(side->peer, wr);
	finish(side, wr, !side->failed);
	return true;
}

void wire_break(struct wire_side *side)
{
	side->broken = true;
}

bool wire_poll(struct wire_side *side)
{
	const struct wire_cqe *cqe = &side->cq[side->cq_head % WIRE_CQES];
	int ret;

	if (side->cq_head == side->cq_tail)
		return false;
	side->cq_head++;
	side->sq_used -= cqe->places;
	if (evr_wrid_is_recv(cqe->wr_id)) {
		ret = evr_stream_receive(&side->stream, cqe->imm, cqe->written);
		side->receives++;
	} else {
		ret = evr_stream_complete(&side->stream, cqe->wr_id, cqe->ok);
	}
	MUST(!ret, "stream fails with %d", ret);
	return true;
}
