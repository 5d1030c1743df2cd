/*
 * A stream (lib/proto) whose peer is hostile: connection data, immediates, entries and mappings,
 * completions in any order, between the calls of a user. The input is text: see README.
 */
#include "fuzz/fuzz.h"

#include "proto/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { ARGS = 5, QUEUE = 16, MAPPINGS = 4, RX_SIZE = 4096, TX_SIZE = 8192, GRANTS = 256 };

#define RX_ADDR UINT64_C(0x7f0000000000)

struct grant {
	struct evr_sge sge;
	bool table;
};

static struct {
	struct evr_stream_config config;
	struct evr_stream stream;
	struct evr_conndata peer;
	struct evr_iomap_slot *slots;
	bool started;
	/* What the peer has ever shown: the only memory of its that may be written. */
	struct grant grants[GRANTS];
	unsigned int granted;
	uint16_t messages, limit;
	uint32_t first; /* the number of the oldest work that is not known to be done */
} fixture;

struct step {
	char letter;
	unsigned int num;
	uint64_t arg[ARGS];
};

/* --- the fixture ----------------------------------------------------------------------------- */

static void *blank(size_t size)
{
	void *memory = calloc(1, size);

	fuzz_check(memory);
	return memory;
}

/* Each in memory of its own, for the address sanitizer to see what is touched. */
static void build(void)
{
	struct evr_stream_config *config = &fixture.config;

	memset(&fixture, 0, sizeof(fixture));
	*config = (struct evr_stream_config){ .sq_size = QUEUE,
		.rq_size = QUEUE,
		.inline_max = 16,
		.tx_size = TX_SIZE,
		.rx_size = RX_SIZE,
		.rx_addr = RX_ADDR,
		.iomap_size = MAPPINGS };
	config->target = blank(evr_stream_target_len(MAPPINGS));
	config->iomap = blank(MAPPINGS * sizeof(*config->iomap));
	config->works = blank(QUEUE * sizeof(*config->works));
	fixture.slots = blank(MAPPINGS * sizeof(*fixture.slots));
	fixture.peer = (struct evr_conndata){ .iomap = true,
		.credits = QUEUE,
		.iomap_size = MAPPINGS,
		.target_addr = 0x1000,
		.target_rkey = 1,
		.data = { .addr = 0x100000, .rkey = 2, .len = 5000 } };
}

static void tear_down(void)
{
	free(fixture.config.target);
	free(fixture.config.iomap);
	free(fixture.config.works);
	free(fixture.slots);
}

static void grant(struct evr_sge sge, bool table)
{
	fixture.grants[fixture.granted++ % GRANTS] = (struct grant){ .sge = sge, .table = table };
}

static void start(void)
{
	if (fixture.started)
		return;
	fixture.started = true;
	fuzz_check(evr_stream_init(&fixture.stream, &fixture.config) == 0);
	fuzz_check(evr_stream_start(&fixture.stream, &fixture.peer) == 0);
	evr_stream_set_mappings(&fixture.stream, fixture.slots, MAPPINGS);
	grant(fixture.peer.data, false);
	fixture.limit = fixture.peer.credits;
}

/* --- what is handed out ---------------------------------------------------------------------- */

static bool lies_in(const struct evr_stream_work *work, uint64_t addr, uint64_t len, uint32_t rkey)
{
	return work->rkey == rkey && work->addr >= addr && work->addr - addr <= len &&
	       len - (work->addr - addr) >= work->len;
}

static bool was_granted(const struct evr_stream_work *work, bool table)
{
	unsigned int i;

	for (i = 0; i < GRANTS; i++) {
		const struct grant *shown = &fixture.grants[i];

		if (shown->table == table &&
			lies_in(work, shown->sge.addr, shown->sge.len, shown->sge.rkey))
			return true;
	}
	return false;
}

static void check_place(const struct evr_stream_work *work)
{
	switch (work->kind) {
	case EVR_STREAM_DATA:
		fuzz_check(work->len && was_granted(work, false));
		break;
	case EVR_STREAM_DIRECT:
		fuzz_check(work->len && was_granted(work, true));
		break;
	case EVR_STREAM_SGL:
	case EVR_STREAM_IOMAP:
		fuzz_check(lies_in(work, fixture.peer.target_addr,
			evr_stream_target_len(fixture.peer.iomap_size), fixture.peer.target_rkey));
		break;
	default:
		fuzz_check(!work->len);
		break;
	}
}

static void check_local(const struct evr_stream_work *work)
{
	if (work->local == EVR_STREAM_RING)
		fuzz_check(work->offset <= TX_SIZE && work->len <= TX_SIZE - work->offset);
	if (work->local == EVR_STREAM_CONTROL)
		fuzz_check(work->len <= EVR_STREAM_CONTROL_LEN &&
			   work->offset <= EVR_STREAM_CONTROL_BYTES - EVR_STREAM_CONTROL_LEN);
	if (work->inlined)
		fuzz_check(work->len <= fixture.config.inline_max);
}

/* The peer has a receive for it. */
static void check_credit(const struct evr_stream_work *work)
{
	if (work->kind != EVR_STREAM_DATA && work->kind != EVR_STREAM_IOMAP)
		return;
	fuzz_check(fixture.messages != fixture.limit);
	fixture.messages++;
}

static void check_work(const struct evr_stream_work *work)
{
	fuzz_trace("  work %d: %u bytes to %llx", work->kind, work->len,
		(unsigned long long)work->addr);
	fuzz_check(!evr_stream_status(&fixture.stream).error);
	fuzz_check(!evr_wrid_is_recv(work->wr_id) && !evr_wrid_is_first(work->wr_id));
	check_place(work);
	check_local(work);
	check_credit(work);
}

/* --- what holds after each step -------------------------------------------------------------- */

static void check_ring(const struct evr_stream *stream)
{
	const struct evr_rxring *rx = &stream->rx;
	struct evr_span spans[2];
	uint32_t readable = evr_stream_readable(stream, spans);

	fuzz_check(rx->released <= rx->taken && rx->taken <= rx->written);
	fuzz_check(rx->written <= rx->given && rx->given - rx->released <= RX_SIZE);
	fuzz_check(readable == spans[0].len + spans[1].len && readable <= RX_SIZE);
	fuzz_check(spans[0].offset <= RX_SIZE && spans[0].len <= RX_SIZE - spans[0].offset);
	fuzz_check(!spans[1].offset && spans[1].len <= spans[0].offset);
}

static void check_queue(const struct evr_sendq *queue)
{
	fuzz_check(queue->data_free <= QUEUE - EVR_SENDQ_CONTROL);
	fuzz_check(queue->control_free <= EVR_SENDQ_CONTROL && queue->count <= QUEUE);
	fuzz_check(queue->done_bytes <= queue->handed_bytes);
	fuzz_check(queue->count || (queue->data_free == QUEUE - EVR_SENDQ_CONTROL &&
					   queue->done_bytes == queue->handed_bytes));
}

static bool is_known(int error)
{
	static const int known[] = { 0, -EPROTO, -EMSGSIZE, -ENOBUFS, -ERANGE, -EBADMSG, -ENXIO,
		-EOVERFLOW, -EIO, -ETIMEDOUT };
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (error == known[i])
			return true;
	return false;
}

static void check(void)
{
	const struct evr_stream *stream = &fixture.stream;
	struct evr_stream_status status = evr_stream_status(stream);

	check_ring(stream);
	check_queue(&stream->sendq);
	fuzz_check(stream->tx.used <= TX_SIZE && stream->tx.next < TX_SIZE);
	fuzz_check(is_known(status.error));
	fuzz_check(!status.error || (status.finished && !status.window));
	fuzz_check(status.writable <= TX_SIZE && status.writable <= status.window);
	fuzz_check(status.drained == !stream->sendq.count);
}

/* --- steps ----------------------------------------------------------------------------------- */

static int receive(const struct step *step)
{
	uint32_t imm = (uint32_t)step->arg[0];
	uint32_t written = step->num > 1 ? (uint32_t)step->arg[1] : EVR_WRITTEN_UNKNOWN;
	int before = evr_stream_status(&fixture.stream).error;
	int ret = evr_stream_receive(&fixture.stream, imm, written);

	fuzz_check(!before || ret == before);
	if (!ret && evr_imm_op(imm) == EVR_IMM_SGL && !fixture.stream.peer_gone)
		fixture.limit = (uint16_t)imm;
	return ret;
}

static struct evr_sge sge_of(const uint64_t *arg)
{
	return (struct evr_sge){
		.addr = arg[0], .rkey = (uint32_t)arg[1], .len = (uint32_t)arg[2]
	};
}

static int write_entry(const struct step *step)
{
	struct evr_sge *entries = fixture.config.target;

	entries[step->arg[0] % EVR_TARGET_ENTRIES] = sge_of(&step->arg[1]);
	grant(sge_of(&step->arg[1]), false);
	return 0;
}

static int write_mapping(const struct step *step)
{
	struct evr_iomap_entry entry = { .offset = step->arg[1], .sge = sge_of(&step->arg[2]) };
	uint8_t *table = (uint8_t *)fixture.config.target + EVR_TARGET_ENTRIES * EVR_SGE_LEN;

	memcpy(table + step->arg[0] % MAPPINGS * sizeof(entry), &entry, sizeof(entry));
	grant(entry.sge, true);
	return 0;
}

static int send_bytes(const struct step *step)
{
	struct evr_stream_want want = {
		.len = (uint32_t)step->arg[0], .own = step->arg[1] & 1, .more = step->arg[1] & 2
	};
	struct evr_stream_work work;
	int ret = 0, pieces = 0;

	while (want.len && (ret = evr_stream_send(&fixture.stream, &want, &work)) > 0) {
		fuzz_check(++pieces <= QUEUE);
		check_work(&work);
	}
	return ret;
}

static int write_direct(const struct step *step)
{
	struct evr_stream_want want = { .len = (uint32_t)step->arg[1], .own = step->arg[2] & 1 };
	struct evr_stream_work work;
	int ret = evr_stream_direct(&fixture.stream, step->arg[0], &want, &work);

	if (ret > 0)
		check_work(&work);
	return ret;
}

static int post_due(const struct step *step)
{
	struct evr_stream_work work;
	int n = 0;

	while (evr_stream_next(&fixture.stream, &work)) {
		fuzz_check(++n <= QUEUE);
		check_work(&work);
	}
	return n;
}

/* The number counts from the oldest on; odd ones are possible. */
static int complete(const struct step *step)
{
	const struct evr_sendq *queue = &fixture.stream.sendq;
	uint64_t wr_id = evr_wrid_send(queue->next - queue->count + (uint32_t)step->arg[0]);

	if (step->arg[2] & 1)
		wr_id = evr_wrid_first(wr_id);
	if (step->arg[2] & 2)
		wr_id = evr_wrid_recv((uint32_t)wr_id);
	return evr_stream_complete(&fixture.stream, wr_id, !step->arg[1]);
}

static int consume(const struct step *step)
{
	evr_stream_consume(&fixture.stream, (uint32_t)step->arg[0]);
	return 0;
}

static int lend(const struct step *step)
{
	evr_stream_lend(&fixture.stream, (uint32_t)step->arg[0]);
	return 0;
}

static int release(const struct step *step)
{
	evr_stream_release(&fixture.stream, (uint32_t)step->arg[0]);
	return 0;
}

static int shut_down(const struct step *step)
{
	return evr_stream_shutdown(&fixture.stream, (int)step->arg[0]);
}

static int keep_alive(const struct step *step)
{
	evr_stream_keepalive(&fixture.stream);
	return 0;
}

static int map(const struct step *step)
{
	struct evr_iomap_entry entry = { .offset = step->arg[0], .sge = sge_of(&step->arg[1]) };

	return evr_stream_map(&fixture.stream, &entry);
}

static int unmap(const struct step *step)
{
	return evr_stream_unmap(&fixture.stream, (uint32_t)step->arg[0]);
}

static int fail(const struct step *step)
{
	evr_stream_fail(&fixture.stream, -ETIMEDOUT);
	return 0;
}

static const struct {
	char letter;
	int (*run)(const struct step *step);
} table[] = {
	{ 'a', keep_alive },
	{ 'b', release },
	{ 'c', consume },
	{ 'd', write_direct },
	{ 'e', write_entry },
	{ 'f', fail },
	{ 'i', receive },
	{ 'k', complete },
	{ 'l', lend },
	{ 'm', write_mapping },
	{ 'n', post_due },
	{ 's', send_bytes },
	{ 'u', unmap },
	{ 'x', shut_down },
	{ 'M', map },
};

static void run_op(const struct step *step, int (*op)(const struct step *step))
{
	int ret;

	start();
	ret = op(step);
	fuzz_trace("%c %llx %llx: %d", step->letter, (unsigned long long)step->arg[0],
		(unsigned long long)step->arg[1], ret);
	check();
}

static void run(const struct step *step)
{
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].letter == step->letter)
			run_op(step, table[i].run);
}

/* --- before the stream ----------------------------------------------------------------------- */

static int digit(char c)
{
	const char *digits = "0123456789abcdef", *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* A peer's data that is taken is sound, and comes back as it was when it is sent. */
static void check_conndata(const struct evr_conndata *conn, size_t prefix)
{
	struct evr_conndata again;
	uint8_t bytes[EVR_CONNDATA_IB_PREFIX + EVR_CONNDATA_LEN];

	fuzz_check(conn->credits && !evr_sge_check(&conn->data));
	fuzz_check(conn->iomap_size <= EVR_IOMAP_SIZE_MAX);
	fuzz_check(evr_conndata_encode(conn, prefix, bytes, sizeof(bytes)) > 0);
	fuzz_check(!evr_conndata_decode(&again, prefix, bytes, prefix + EVR_CONNDATA_LEN));
	fuzz_check(again.data.addr == conn->data.addr && again.credits == conn->credits);
	fuzz_check(again.iomap_size == conn->iomap_size && again.iomap == conn->iomap);
}

/* Hexadecimal, up to what is none; C has the prefix of AF_IB. */
static void hear(const char *line, size_t len, size_t prefix)
{
	struct evr_conndata conn;
	uint8_t *bytes = blank(len + 1);
	size_t n = 0;
	int ret;

	for (; len >= 2 && digit(line[0]) >= 0 && digit(line[1]) >= 0; line += 2, len -= 2)
		bytes[n++] = (uint8_t)(digit(line[0]) << 4 | digit(line[1]));
	bytes = realloc(bytes, n ? n : 1);
	fuzz_check(bytes);
	ret = evr_conndata_decode(&conn, prefix, bytes, n);
	fuzz_trace("connection data of %zu: %d", n, ret);
	if (!ret) {
		check_conndata(&conn, prefix);
		fixture.peer = conn;
	}
	free(bytes);
}

/* --- the input ------------------------------------------------------------------------------- */

static uint64_t number_at(const char **at, const char *end)
{
	uint64_t number = 0;

	while (*at < end && digit(**at) >= 0)
		number = number << 4 | (unsigned int)digit(*(*at)++);
	return number;
}

static struct step parse(const char *line, const char *end)
{
	struct step step = { .letter = *line++ };

	while (step.num < ARGS) {
		while (line < end && *line == ' ')
			line++;
		if (line == end || digit(*line) < 0)
			break;
		step.arg[step.num++] = number_at(&line, end);
	}
	return step;
}

static void run_line(const char *line, const char *end)
{
	struct step step;

	if (line == end)
		return;
	step = parse(line, end);
	if (!fixture.started && step.letter == 'p')
		hear(line + 1, (size_t)(end - line - 1), 0);
	else if (!fixture.started && step.letter == 'P')
		hear(line + 1, (size_t)(end - line - 1), EVR_CONNDATA_IB_PREFIX);
	else if (!fixture.started && step.letter == 'w')
		fixture.config.iwarp = true;
	else
		run(&step);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *line = (const char *)data, *end = line + size;

	build();
	while (line < end) {
		const char *eol = memchr(line, '\n', (size_t)(end - line));

		if (!eol)
			eol = end;
		run_line(line, eol);
		line = eol + (eol < end);
	}
	tear_down();
	return 0;
}
