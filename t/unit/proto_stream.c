/* One stream, against bytes and lists of work that were written by hand, as librdmacm has them. */
#include "unit/unit.h"

#include "proto/bytes.h"
#include "proto/stream.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

enum {
	QUEUE = 16,
	MAPPINGS = 2,
	RX_HALF = 2048,
	TX_SIZE = 1 << 18,
	TARGET_RKEY = 0xbb,
	RX_ADDR = 0x10000,
	RX_RKEY = 0xaa,
	/* The peer's. */
	PEER_CREDITS = 16,
	PEER_MESSAGES = 12, /* with data, of them */
	PEER_TARGET = 0x5000,
	PEER_TARGET_RKEY = 0x77,
	PEER_DATA = 0x200000,
	PEER_RKEY = 0x88,
	PEER_HALF = 100000,
};

static struct {
	struct evr_sge targets[EVR_TARGET_ENTRIES];
	struct evr_iomap_entry table[MAPPINGS];
} memory;
static struct evr_sendq_work works[QUEUE];
static struct evr_iomap_entry copies[MAPPINGS];
static struct evr_iomap_slot slots[MAPPINGS];
static struct evr_stream stream;
static struct evr_stream_work work;

static struct evr_stream_config config(void)
{
	return (struct evr_stream_config){
		.sq_size = QUEUE,
		.rq_size = QUEUE,
		.inline_max = 64,
		.tx_size = TX_SIZE,
		.rx_size = 2 * RX_HALF,
		.rx_addr = RX_ADDR,
		.rx_rkey = RX_RKEY,
		.target = &memory,
		.target_rkey = TARGET_RKEY,
		.iomap_size = MAPPINGS,
		.iomap = copies,
		.works = works,
	};
}

static struct evr_conndata peer(void)
{
	return (struct evr_conndata){
		.iomap = true,
		.credits = PEER_CREDITS,
		.iomap_size = MAPPINGS,
		.target_addr = PEER_TARGET,
		.target_rkey = PEER_TARGET_RKEY,
		.data = { .addr = PEER_DATA, .rkey = PEER_RKEY, .len = PEER_HALF },
	};
}

static void start_with(const struct evr_stream_config *ours, const struct evr_conndata *theirs)
{
	ck_assert_int_eq(evr_stream_init(&stream, ours), 0);
	ck_assert_int_eq(evr_stream_start(&stream, theirs), 0);
	evr_stream_set_mappings(&stream, slots, MAPPINGS);
}

static void start(void)
{
	struct evr_stream_config ours = config();
	struct evr_conndata theirs = peer();

	start_with(&ours, &theirs);
}

static void start_iwarp(void)
{
	struct evr_stream_config ours = config();
	struct evr_conndata theirs = peer();

	ours.iwarp = true;
	start_with(&ours, &theirs);
}

static void complete(void)
{
	ck_assert_int_eq(evr_stream_complete(&stream, work.wr_id, true), 0);
}

static void assert_work(
	enum evr_stream_kind kind, enum evr_stream_op op, uint64_t addr, uint32_t len, uint32_t imm)
{
	ck_assert_int_eq(work.kind, kind);
	ck_assert_int_eq(work.op, op);
	ck_assert_uint_eq(work.addr, addr);
	ck_assert_uint_eq(work.len, len);
	ck_assert_uint_eq(work.imm, imm);
}

/* The next is this, and completes. */
static void assert_next(
	enum evr_stream_kind kind, enum evr_stream_op op, uint64_t addr, uint32_t len, uint32_t imm)
{
	ck_assert(evr_stream_next(&stream, &work));
	assert_work(kind, op, addr, len, imm);
	ck_assert(work.signaled);
	complete();
}

static void assert_nothing_next(void)
{
	ck_assert(!evr_stream_next(&stream, &work));
}

static void say_first(void)
{
	ck_assert(evr_stream_next(&stream, &work));
	ck_assert_int_eq(work.kind, EVR_STREAM_SGL);
	complete();
}

static int receive(enum evr_imm_op op, uint32_t data, uint32_t written)
{
	return evr_stream_receive(&stream, evr_imm(op, data), written);
}

static int receive_data(uint32_t len)
{
	return receive(EVR_IMM_DATA, len, len);
}

static int receive_word(uint32_t what)
{
	return receive(EVR_IMM_CONTROL, what, 0);
}

/* --- what is told and said first ------------------------------------------------------------- */

START_TEST(a_stream_describes_its_first_half)
{
	struct evr_conndata said;

	start();
	evr_stream_describe(&stream, &said);
	ck_assert_uint_eq(said.credits, QUEUE);
	ck_assert_uint_eq(said.iomap_size, MAPPINGS);
	ck_assert(said.iomap && said.big_endian == evr_host_is_big_endian());
	ck_assert_uint_eq(said.target_addr, (uintptr_t)&memory);
	ck_assert_uint_eq(said.target_rkey, TARGET_RKEY);
	ck_assert_uint_eq(said.data.addr, RX_ADDR);
	ck_assert_uint_eq(said.data.rkey, RX_RKEY);
	ck_assert_uint_eq(said.data.len, RX_HALF);
}
END_TEST

/* The second half goes to entry 1, and with it the limit that the peer has: 16. */
START_TEST(the_second_half_goes_to_entry_1_of_a_little_endian_peer)
{
	static const uint8_t entry[] = { 0, 8, 1, 0, 0, 0, 0, 0, 0xaa, 0, 0, 0, 0, 8, 0, 0 };

	start();
	assert_next(EVR_STREAM_SGL, EVR_STREAM_WRITE_IMM, PEER_TARGET + 16, 16, 0x80000010);
	ck_assert_uint_eq(work.rkey, PEER_TARGET_RKEY);
	ck_assert_int_eq(work.local, EVR_STREAM_CONTROL);
	ck_assert(work.inlined);
	ck_assert_mem_eq(work.control, entry, sizeof(entry));
	assert_nothing_next();
}
END_TEST

START_TEST(the_second_half_goes_to_entry_1_of_a_big_endian_peer)
{
	static const uint8_t entry[] = { 0, 0, 0, 0, 0, 1, 8, 0, 0, 0, 0, 0xaa, 0, 0, 8, 0 };
	struct evr_stream_config ours = config();
	struct evr_conndata theirs = peer();

	theirs.big_endian = true;
	ours.inline_max = 15;
	start_with(&ours, &theirs);
	assert_next(EVR_STREAM_SGL, EVR_STREAM_WRITE_IMM, PEER_TARGET + 16, 16, 0x80000010);
	ck_assert_mem_eq(work.control, entry, sizeof(entry));
	ck_assert(!work.inlined);
	ck_assert_uint_eq(work.offset, 0);
}
END_TEST

START_TEST(on_iwarp_the_entry_is_a_write_and_a_message)
{
	start_iwarp();
	assert_next(EVR_STREAM_SGL, EVR_STREAM_WRITE_SEND, PEER_TARGET + 16, 16, 0x80000010);
	assert_nothing_next();
}
END_TEST

/* --- giving back ----------------------------------------------------------------------------- */

START_TEST(half_of_the_messages_brings_credits)
{
	int i;

	start();
	say_first();
	for (i = 0; i < 7; i++)
		ck_assert_int_eq(receive_data(1), 0);
	assert_nothing_next();
	ck_assert_int_eq(receive_data(1), 0);
	assert_next(EVR_STREAM_CREDIT, EVR_STREAM_WRITE_IMM, 0, 0, 0x80000018);
	ck_assert_int_eq(work.local, EVR_STREAM_NONE);
	assert_nothing_next();
}
END_TEST

START_TEST(on_iwarp_credits_are_one_message)
{
	int i;

	start_iwarp();
	say_first();
	for (i = 0; i < 8; i++)
		ck_assert_int_eq(receive(EVR_IMM_DATA, 1, EVR_WRITTEN_UNKNOWN), 0);
	assert_next(EVR_STREAM_CREDIT, EVR_STREAM_SEND, 0, 0, 0x80000018);
	ck_assert(evr_stream_status(&stream).drained);
}
END_TEST

/* The first half again to entry 0, then the second to entry 1; limits 16 + 2, 16 + 3. */
START_TEST(a_half_that_was_read_goes_to_the_entries_in_turns)
{
	static const uint8_t entry[] = { 0, 0, 1, 0, 0, 0, 0, 0, 0xaa, 0, 0, 0, 0, 8, 0, 0 };

	start();
	say_first();
	ck_assert_int_eq(receive_data(2000), 0);
	ck_assert_int_eq(receive_data(48), 0);
	evr_stream_consume(&stream, 2047);
	assert_nothing_next();
	evr_stream_consume(&stream, 1);
	assert_next(EVR_STREAM_SGL, EVR_STREAM_WRITE_IMM, PEER_TARGET, 16, 0x80000012);
	ck_assert_mem_eq(work.control, entry, sizeof(entry));
	ck_assert_int_eq(receive_data(2048), 0);
	evr_stream_consume(&stream, 2048);
	assert_next(EVR_STREAM_SGL, EVR_STREAM_WRITE_IMM, PEER_TARGET + 16, 16, 0x80000013);
}
END_TEST

START_TEST(control_messages_wait_for_their_four_places)
{
	int i;

	start();
	for (i = 0; i < 4; i++) {
		evr_stream_keepalive(&stream);
		ck_assert(evr_stream_next(&stream, &work));
	}
	ck_assert_int_eq(evr_stream_shutdown(&stream, SHUT_RDWR), 0);
	assert_nothing_next();
	complete();
	assert_next(EVR_STREAM_DISCONNECT, EVR_STREAM_WRITE_IMM, 0, 0, 0xe0000000);
}
END_TEST

START_TEST(a_pair_on_iwarp_waits_for_two_places)
{
	uint64_t oldest;
	int i;

	start_iwarp();
	evr_stream_next(&stream, &work);
	oldest = work.wr_id;
	for (i = 0; i < 2; i++) {
		evr_stream_keepalive(&stream);
		ck_assert(evr_stream_next(&stream, &work));
	}
	receive(EVR_IMM_DATA, RX_HALF, EVR_WRITTEN_UNKNOWN);
	evr_stream_consume(&stream, RX_HALF);
	assert_nothing_next();
	evr_stream_complete(&stream, evr_wrid_first(oldest), true);
	assert_nothing_next();
	evr_stream_complete(&stream, oldest, true);
	assert_next(EVR_STREAM_SGL, EVR_STREAM_WRITE_SEND, PEER_TARGET, 16, 0x80000011);
}
END_TEST

START_TEST(a_keepalive_is_an_empty_write_without_immediate)
{
	start();
	say_first();
	evr_stream_keepalive(&stream);
	evr_stream_keepalive(&stream);
	assert_next(EVR_STREAM_KEEPALIVE, EVR_STREAM_WRITE, 0, 0, 0);
	assert_nothing_next();
}
END_TEST

/* --- sending --------------------------------------------------------------------------------- */

struct piece {
	uint64_t addr;
	uint32_t len, offset;
};

/* Transfers double; none spans two entries, or the end of the ring. */
START_TEST(transfers_grow_and_end_where_an_entry_ends)
{
	static const struct piece pieces[] = {
		{ PEER_DATA, 2048, 0 },
		{ PEER_DATA + 2048, 4096, 2048 },
		{ PEER_DATA + 6144, 8192, 6144 },
		{ PEER_DATA + 14336, 16384, 14336 },
		{ PEER_DATA + 30720, 32768, 30720 },
		{ PEER_DATA + 63488, 36512, 63488 },
		{ PEER_DATA + PEER_HALF, 65536, PEER_HALF },
		{ PEER_DATA + PEER_HALF + 65536, 34464, 165536 },
	};
	struct evr_stream_want want = { .len = 300000 };
	size_t i;

	start();
	memory.targets[1] = (struct evr_sge){
		.addr = PEER_DATA + PEER_HALF, .rkey = PEER_RKEY, .len = PEER_HALF
	};
	ck_assert_int_eq(receive(EVR_IMM_SGL, PEER_CREDITS, EVR_SGE_LEN), 0);
	for (i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		ck_assert_int_eq(evr_stream_send(&stream, &want, &work), (int)pieces[i].len);
		assert_work(EVR_STREAM_DATA, EVR_STREAM_WRITE_IMM, pieces[i].addr, pieces[i].len,
			pieces[i].len);
		ck_assert_uint_eq(work.rkey, PEER_RKEY);
		ck_assert_uint_eq(work.offset, pieces[i].offset);
		ck_assert_int_eq(work.local, EVR_STREAM_RING);
	}
	ck_assert_int_eq(evr_stream_send(&stream, &want, &work), 0);
	ck_assert_uint_eq(want.len, 100000);
	ck_assert_uint_eq(evr_stream_status(&stream).writable, 0);
}
END_TEST

/* Else every piece would be as short as what is left there, and it would be left for ever. */
START_TEST(the_last_bytes_of_the_ring_are_used_up)
{
	struct evr_stream_want want = { .len = 8160 };
	struct evr_stream_config ours = config();
	struct evr_conndata theirs = peer();

	ours.tx_size = 8192;
	start_with(&ours, &theirs);
	say_first();
	while (want.len)
		ck_assert_int_gt(evr_stream_send(&stream, &want, &work), 0);
	ck_assert_int_eq(evr_stream_complete(&stream, work.wr_id, true), 0);
	want = (struct evr_stream_want){ .len = 100 };
	ck_assert_int_eq(evr_stream_send(&stream, &want, &work), 32);
	ck_assert_int_eq(work.local, EVR_STREAM_RING);
	ck_assert_uint_eq(work.offset, 8160);
	ck_assert(!work.inlined);
	ck_assert_int_eq(evr_stream_send(&stream, &want, &work), 68);
	ck_assert_uint_eq(work.offset, 0);
}
END_TEST

START_TEST(small_messages_go_inline_past_the_ring)
{
	struct evr_stream_want want = { .len = 64 };

	start();
	ck_assert_int_eq(evr_stream_send(&stream, &want, &work), 64);
	assert_work(EVR_STREAM_DATA, EVR_STREAM_WRITE_IMM, PEER_DATA, 64, 0x40);
	ck_assert(work.inlined);
	ck_assert_int_eq(work.local, EVR_STREAM_OWN);
	want.len = 65;
	ck_assert_int_eq(evr_stream_send(&stream, &want, &work), 65);
	ck_assert(!work.inlined);
	ck_assert_int_eq(work.local, EVR_STREAM_RING);
	ck_assert_uint_eq(work.offset, 0);
}
END_TEST

START_TEST(own_memory_goes_whole_and_is_signalled_at_its_end)
{
	struct evr_stream_want want = { .len = 90000, .own = true };

	start();
	ck_assert_int_eq(evr_stream_send(&stream, &want, &work), 90000);
	ck_assert(work.signaled && work.local == EVR_STREAM_OWN);
	ck_assert_uint_eq(work.end, 90000);
	want.len = 20000;
	want.more = true;
	ck_assert_int_eq(evr_stream_send(&stream, &want, &work), 10000);
	ck_assert(!work.signaled);
	ck_assert_uint_eq(evr_stream_status(&stream).completed, 0);
	complete();
	ck_assert_uint_eq(evr_stream_status(&stream).completed, 100000);
}
END_TEST

START_TEST(messages_stop_at_the_peers_limit)
{
	struct evr_stream_want want;
	int i;

	start();
	for (i = 0; i < PEER_MESSAGES; i++) {
		want = (struct evr_stream_want){ .len = 1 };
		ck_assert_int_eq(evr_stream_send(&stream, &want, &work), 1);
		complete();
	}
	want.len = 1;
	ck_assert_int_eq(evr_stream_send(&stream, &want, &work), 0);
	ck_assert_uint_eq(evr_stream_status(&stream).window, 0);
	ck_assert_int_eq(receive(EVR_IMM_SGL, 17, 0), 0);
	ck_assert_int_eq(evr_stream_send(&stream, &want, &work), 1);
}
END_TEST

static int messages_until_full(void)
{
	struct evr_stream_want want;
	int n = 0;

	do
		want = (struct evr_stream_want){ .len = 1 };
	while (evr_stream_send(&stream, &want, &work) == 1 && ++n);
	return n;
}

START_TEST(messages_stop_when_the_send_queue_is_full)
{
	start();
	ck_assert_int_eq(messages_until_full(), QUEUE - 4);
	start_iwarp();
	ck_assert_int_eq(messages_until_full(), (QUEUE - 4) / 2);
}
END_TEST

START_TEST(a_full_send_ring_waits_for_its_low_water)
{
	struct evr_stream_config ours = config();
	struct evr_conndata theirs = peer();
	struct evr_stream_want want = { .len = 10000 };

	ours.tx_size = 4096;
	start_with(&ours, &theirs);
	ck_assert_int_eq(evr_stream_send(&stream, &want, &work), 2048);
	ck_assert_int_eq(evr_stream_send(&stream, &want, &work), 2048);
	ck_assert(work.signaled);
	ck_assert_int_eq(evr_stream_send(&stream, &want, &work), 0);
	ck_assert_uint_eq(evr_stream_status(&stream).writable, 0);
	complete();
	ck_assert_uint_eq(evr_stream_status(&stream).writable, 4096);
	ck_assert_int_eq(evr_stream_send(&stream, &want, &work), 4096);
}
END_TEST

/* --- mappings -------------------------------------------------------------------------------- */

START_TEST(a_mapping_is_told_before_data)
{
	static const uint8_t bytes[] = { 0, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 9, 0, 0,
		0, 0, 1, 0, 0 };
	struct evr_iomap_entry entry = { .offset = 0x4000,
		.sge = { .addr = 0x30000, .rkey = 9, .len = 256 } };
	struct evr_stream_want want = { .len = 1 };

	start();
	say_first();
	ck_assert_int_eq(evr_stream_map(&stream, &entry), 0);
	ck_assert_int_eq(evr_stream_map(&stream, &entry), 1);
	ck_assert_int_eq(evr_stream_map(&stream, &entry), -ENOSPC);
	ck_assert_int_eq(evr_stream_send(&stream, &want, &work), 0);
	assert_next(EVR_STREAM_IOMAP, EVR_STREAM_WRITE_IMM, PEER_TARGET + 32, 24, 0xc0000000);
	ck_assert_mem_eq(work.control, bytes, sizeof(bytes));
	ck_assert_uint_eq(work.rkey, PEER_TARGET_RKEY);
	assert_next(EVR_STREAM_IOMAP, EVR_STREAM_WRITE_IMM, PEER_TARGET + 56, 24, 0xc0000001);
	ck_assert_uint_eq(evr_credit_out_left(&stream.credit_out), PEER_MESSAGES - 2);
	ck_assert_int_eq(evr_stream_send(&stream, &want, &work), 1);
}
END_TEST

START_TEST(a_direct_write_goes_to_the_mapping_without_immediate)
{
	struct evr_stream_want want = { .len = 100 };

	start();
	ck_assert_int_eq(evr_stream_direct(&stream, 1000, &want, &work), -ENXIO);
	memory.table[1] = (struct evr_iomap_entry){ .offset = 1000,
		.sge = { .addr = 0x60000, .rkey = 0x66, .len = 80 } };
	ck_assert_int_eq(receive(EVR_IMM_IOMAP, 1, 24), 0);
	ck_assert_int_eq(evr_stream_direct(&stream, 1010, &want, &work), 70);
	assert_work(EVR_STREAM_DIRECT, EVR_STREAM_WRITE, 0x6000a, 70, 0);
	ck_assert_uint_eq(work.rkey, 0x66);
	ck_assert_uint_eq(want.len, 30);
	ck_assert_int_eq(evr_stream_direct(&stream, 1080, &want, &work), -ENXIO);
	ck_assert_uint_eq(evr_credit_out_left(&stream.credit_out), PEER_MESSAGES);
}
END_TEST

/* --- the last words -------------------------------------------------------------------------- */

enum { END = 99, PEER_SHUTDOWN = 10, PEER_DISCONNECT = 11, SAY = 12 };

/* What happens, in its order, and the word that follows; SAY lets one out in between. */
static const struct ending {
	const char *name;
	int steps[5];
	int word; /* an enum evr_stream_kind, or -1 */
	bool eof, hangup, finished;
} endings[] = {
	{ "write side", { SHUT_WR, END }, EVR_STREAM_SHUTDOWN, false, false, false },
	{ "read side", { SHUT_RD, END }, -1, true, false, false },
	{ "both", { SHUT_RDWR, END }, EVR_STREAM_DISCONNECT, true, true, true },
	{ "read, then write", { SHUT_RD, SHUT_WR, END }, EVR_STREAM_DISCONNECT, true, true, true },
	{ "write, then read at once", { SHUT_WR, SHUT_RD, END }, EVR_STREAM_DISCONNECT, true, true,
		true },
	{ "write, its word, then read", { SHUT_WR, SAY, SHUT_RD, END }, EVR_STREAM_DISCONNECT, true,
		true, true },
	{ "write twice", { SHUT_WR, SAY, SHUT_WR, END }, -1, false, false, false },
	{ "both twice", { SHUT_RDWR, SAY, SHUT_RDWR, END }, -1, true, true, true },
	{ "the peer's write side", { PEER_SHUTDOWN, END }, -1, true, false, false },
	{ "after the peer, ours", { PEER_SHUTDOWN, SHUT_WR, END }, EVR_STREAM_DISCONNECT, true,
		true, true },
	{ "ours, after it the peer's", { SHUT_WR, SAY, PEER_SHUTDOWN, END }, -1, true, true, true },
	{ "ours not yet said, the peer's", { SHUT_WR, PEER_SHUTDOWN, END }, EVR_STREAM_DISCONNECT,
		true, true, true },
	{ "the peer disconnects", { PEER_DISCONNECT, END }, -1, true, true, true },
	{ "both at once", { SHUT_RDWR, SAY, PEER_DISCONNECT, END }, -1, true, true, true },
	{ "ours, then the peer disconnects", { SHUT_WR, SAY, PEER_DISCONNECT, END }, -1, true, true,
		true },
	{ "the peer's twice", { PEER_SHUTDOWN, PEER_SHUTDOWN, END }, -1, true, false, false },
};

static void take_step(int step)
{
	if (step == PEER_SHUTDOWN)
		ck_assert_int_eq(receive_word(EVR_IMM_SHUTDOWN), 0);
	else if (step == PEER_DISCONNECT)
		ck_assert_int_eq(receive_word(EVR_IMM_DISCONNECT), 0);
	else if (step == SAY)
		ck_assert(evr_stream_next(&stream, &work));
	else
		ck_assert_int_eq(evr_stream_shutdown(&stream, step), 0);
}

static void assert_ending(const struct ending *ending)
{
	struct evr_stream_status status;
	const int *step;

	start();
	say_first();
	for (step = ending->steps; *step != END; step++)
		take_step(*step);
	if (ending->word >= 0) {
		ck_assert_msg(evr_stream_next(&stream, &work), "%s", ending->name);
		ck_assert_msg((int)work.kind == ending->word, "%s", ending->name);
	}
	ck_assert_msg(!evr_stream_next(&stream, &work), "%s", ending->name);
	status = evr_stream_status(&stream);
	ck_assert_msg(status.eof == ending->eof && status.hangup == ending->hangup &&
			      status.finished == ending->finished && !status.error,
		"%s", ending->name);
}

START_TEST(each_order_of_shutting_down_has_its_words)
{
	size_t i;

	for (i = 0; i < sizeof(endings) / sizeof(endings[0]); i++)
		assert_ending(&endings[i]);
}
END_TEST

START_TEST(the_words_are_these_immediates)
{
	start();
	say_first();
	evr_stream_shutdown(&stream, SHUT_WR);
	assert_next(EVR_STREAM_SHUTDOWN, EVR_STREAM_WRITE_IMM, 0, 0, 0xe0000002);
	evr_stream_shutdown(&stream, SHUT_RD);
	assert_next(EVR_STREAM_DISCONNECT, EVR_STREAM_WRITE_IMM, 0, 0, 0xe0000000);
	start_iwarp();
	say_first();
	evr_stream_shutdown(&stream, SHUT_WR);
	assert_next(EVR_STREAM_SHUTDOWN, EVR_STREAM_SEND, 0, 0, 0xe0000002);
	ck_assert_int_eq(evr_stream_shutdown(&stream, 3), -EINVAL);
}
END_TEST

START_TEST(sending_says_why_it_cannot)
{
	struct evr_stream_want want = { .len = 1 };

	start();
	evr_stream_shutdown(&stream, SHUT_WR);
	ck_assert_int_eq(evr_stream_send(&stream, &want, &work), -EPIPE);
	receive_word(EVR_IMM_DISCONNECT);
	ck_assert_int_eq(evr_stream_send(&stream, &want, &work), -EPIPE);
	ck_assert_int_eq(evr_stream_direct(&stream, 0, &want, &work), -EPIPE);
	evr_stream_fail(&stream, -ETIMEDOUT);
	evr_stream_fail(&stream, -EIO);
	ck_assert_int_eq(evr_stream_send(&stream, &want, &work), -ETIMEDOUT);
	ck_assert_int_eq(evr_stream_status(&stream).error, -ETIMEDOUT);
}
END_TEST

START_TEST(sending_says_that_the_peer_has_gone)
{
	struct evr_stream_want want = { .len = 1 };

	start();
	receive_word(EVR_IMM_DISCONNECT);
	ck_assert_int_eq(evr_stream_send(&stream, &want, &work), -ECONNRESET);
	ck_assert_int_eq(evr_stream_direct(&stream, 0, &want, &work), -ECONNRESET);
	evr_stream_shutdown(&stream, SHUT_WR);
	ck_assert_int_eq(evr_stream_send(&stream, &want, &work), -EPIPE);
}
END_TEST

START_TEST(what_came_before_the_end_is_read)
{
	start();
	receive_data(100);
	receive_word(EVR_IMM_DISCONNECT);
	ck_assert(!evr_stream_status(&stream).eof);
	ck_assert_uint_eq(evr_stream_status(&stream).readable, 100);
	evr_stream_consume(&stream, 100);
	ck_assert(evr_stream_status(&stream).eof);
}
END_TEST

/* Else a peer that has much to say would wait for ever. */
START_TEST(what_comes_after_the_read_side_is_shut_is_thrown_away)
{
	start();
	say_first();
	receive_data(1000);
	evr_stream_shutdown(&stream, SHUT_RD);
	ck_assert_int_eq(receive_data(1048), 0);
	ck_assert_uint_eq(evr_stream_status(&stream).readable, 0);
	assert_next(EVR_STREAM_SGL, EVR_STREAM_WRITE_IMM, PEER_TARGET, 16, 0x80000012);
}
END_TEST

START_TEST(a_failed_completion_is_an_error_unless_both_are_done)
{
	start();
	evr_stream_next(&stream, &work);
	ck_assert_int_eq(evr_stream_complete(&stream, work.wr_id, false), -EIO);
	ck_assert(evr_stream_status(&stream).finished && evr_stream_status(&stream).drained);
	start();
	evr_stream_next(&stream, &work);
	receive_word(EVR_IMM_DISCONNECT);
	ck_assert_int_eq(evr_stream_complete(&stream, work.wr_id, false), 0);
}
END_TEST

/* --- what is refused ------------------------------------------------------------------------- */

static void before_nothing(void)
{
}

static void before_shutdown(void)
{
	receive_word(EVR_IMM_SHUTDOWN);
}

static void before_disconnect(void)
{
	receive_word(EVR_IMM_DISCONNECT);
}

static void before_half(void)
{
	ck_assert_int_eq(receive_data(RX_HALF - 10), 0);
}

static void before_whole(void)
{
	say_first();
	ck_assert_int_eq(receive_data(RX_HALF), 0);
	ck_assert_int_eq(receive_data(RX_HALF), 0);
}

static void before_queue(void)
{
	int i;

	for (i = 0; i < QUEUE; i++)
		ck_assert_int_eq(receive_data(1), 0);
}

static void before_idle(void)
{
	int i;

	for (i = 0; i < EVR_STREAM_IDLE_MAX; i++)
		ck_assert_int_eq(receive(EVR_IMM_SGL, PEER_CREDITS, 0), 0);
}

static void before_idle_end(void)
{
	int i;

	for (i = 0; i <= EVR_STREAM_IDLE_MAX; i++)
		ck_assert_int_eq(receive_word(EVR_IMM_DISCONNECT), 0);
}

static void before_entry(void)
{
	memory.targets[1] = (struct evr_sge){ .addr = PEER_DATA, .rkey = PEER_RKEY, .len = 1 };
}

static void before_long_entry(void)
{
	memory.targets[1] = (struct evr_sge){ .addr = 1, .rkey = 1, .len = UINT32_C(1) << 31 };
}

static void before_high_entry(void)
{
	memory.targets[1] = (struct evr_sge){ .addr = UINT64_MAX - 1, .rkey = 1, .len = 2 };
}

static void before_two_entries(void)
{
	before_entry();
	ck_assert_int_eq(receive(EVR_IMM_SGL, PEER_CREDITS, EVR_SGE_LEN), 0);
	memory.targets[0] = memory.targets[1] = (struct evr_sge){ .addr = 1, .rkey = 1, .len = 1 };
}

static void before_mapping(void)
{
	memory.table[1] =
		(struct evr_iomap_entry){ .offset = UINT64_MAX, .sge = { .addr = 1, .len = 2 } };
}

static const struct refusal {
	const char *name;
	void (*before)(void);
	uint32_t imm, written;
	int error;
} refusals[] = {
	{ "operation 1", before_nothing, 0x20000001, 1, -EPROTO },
	{ "operation 2, a write", before_nothing, 0x40000001, 1, -EPROTO },
	{ "operation 3", before_nothing, 0x60000001, 1, -EPROTO },
	{ "operation 5", before_nothing, 0xa0000001, 1, -EPROTO },
	{ "control message 3", before_nothing, 0xe0000003, 0, -EPROTO },
	{ "the largest control message", before_nothing, 0xffffffff, 0, -EPROTO },
	{ "data of no length", before_nothing, 0, 0, -EMSGSIZE },
	{ "data over the half", before_nothing, RX_HALF + 1, RX_HALF + 1, -EMSGSIZE },
	{ "the largest data", before_nothing, EVR_IMM_DATA_MAX, EVR_IMM_DATA_MAX, -EMSGSIZE },
	{ "data from one half into the next", before_half, 11, 11, -EMSGSIZE },
	{ "data of more than was written", before_nothing, 11, 10, -EMSGSIZE },
	{ "data into a half not given", before_whole, 1, 1, -EMSGSIZE },
	{ "data without credit", before_queue, 1, 1, -ENOBUFS },
	{ "a mapping without credit", before_queue, 0xc0000000, 24, -ENOBUFS },
	{ "data after shutdown", before_shutdown, 1, 1, -EPROTO },
	{ "data after disconnect", before_disconnect, 1, 1, -EPROTO },
	{ "a mapping after shutdown", before_shutdown, 0xc0000000, 24, -EPROTO },
	{ "a limit that goes back", before_nothing, 0x8000000f, 0, -ERANGE },
	{ "a limit beyond the queue", before_nothing, 0x80000011, 0, -ERANGE },
	{ "credits for nothing, for ever", before_idle, 0x80000010, 0, -EOVERFLOW },
	{ "keepalives after them", before_idle, 0xe0000001, 0, -EOVERFLOW },
	{ "disconnects for ever", before_idle_end, 0xe0000000, 0, -EOVERFLOW },
	{ "credits for ever after disconnect", before_idle_end, 0x80000011, 0, -EOVERFLOW },
	{ "an empty entry", before_nothing, 0x80000010, 16, -EBADMSG },
	{ "half an entry", before_entry, 0x80000010, 8, -EBADMSG },
	{ "an entry of 2 GiB", before_long_entry, 0x80000010, 16, -EBADMSG },
	{ "an entry over the end of all addresses", before_high_entry, 0x80000010, 16, -EBADMSG },
	{ "an entry over one in use", before_two_entries, 0x80000010, 16, -EBADMSG },
	{ "a mapping outside the table", before_nothing, 0xc0000002, 24, -ENXIO },
	{ "the largest index of a mapping", before_nothing, 0xdfffffff, 24, -ENXIO },
	{ "a mapping over the end of all offsets", before_mapping, 0xc0000001, 24, -EBADMSG },
	{ "half a mapping", before_nothing, 0xc0000001, 12, -EBADMSG },
};

/* Nothing else changes: what there was to read, what may be sent to. */
static void assert_refused(const struct refusal *r)
{
	struct evr_stream_want want = { .len = 1 };
	struct evr_stream_status before, after;
	struct evr_target target;

	start();
	r->before();
	before = evr_stream_status(&stream);
	target = stream.target;
	ck_assert_int_eq(before.error, 0);
	ck_assert_msg(evr_stream_receive(&stream, r->imm, r->written) == r->error, "%s", r->name);
	after = evr_stream_status(&stream);
	ck_assert_msg(after.error == r->error && after.finished, "%s", r->name);
	ck_assert_uint_eq(after.readable, before.readable);
	ck_assert_mem_eq(target.entry, stream.target.entry, sizeof(target.entry));
	ck_assert_int_eq(evr_stream_receive(&stream, 1, 1), r->error);
	ck_assert_uint_eq(evr_stream_status(&stream).readable, before.readable);
	ck_assert_int_eq(evr_stream_send(&stream, &want, &work), r->error);
	assert_nothing_next();
}

START_TEST(each_fault_of_a_peer_ends_the_stream_with_its_error)
{
	size_t i;

	for (i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
		assert_refused(&refusals[i]);
}
END_TEST

/* librdmacm posts credits when it has already said that it disconnects. */
START_TEST(credits_after_disconnect_do_no_harm)
{
	start();
	receive_word(EVR_IMM_DISCONNECT);
	memory.targets[1] = (struct evr_sge){ .addr = 1, .rkey = 1, .len = 1 };
	ck_assert_int_eq(receive(EVR_IMM_SGL, 3, EVR_SGE_LEN), 0);
	ck_assert_int_eq(evr_stream_status(&stream).error, 0);
}
END_TEST

START_TEST(news_forgives_idle_messages)
{
	struct evr_stream_want want = { .len = 1 };

	start();
	before_idle();
	evr_stream_send(&stream, &want, &work);
	ck_assert_int_eq(receive(EVR_IMM_SGL, PEER_CREDITS + 1, 0), 0);
	ck_assert_int_eq(receive(EVR_IMM_SGL, PEER_CREDITS + 1, 0), 0);
}
END_TEST

/* --- before the start ------------------------------------------------------------------------ */

START_TEST(nothing_happens_before_the_start)
{
	struct evr_stream_config ours = config();
	struct evr_stream_want want = { .len = 1 };
	struct evr_conndata theirs = peer();

	ck_assert_int_eq(evr_stream_init(&stream, &ours), 0);
	assert_nothing_next();
	ck_assert_int_eq(receive_data(1), -ENOTCONN);
	ck_assert_int_eq(evr_stream_send(&stream, &want, &work), -ENOTCONN);
	ck_assert_int_eq(evr_stream_status(&stream).error, 0);
	/* The peer knows of our memory, and may be faster than the answer that tells of it. */
	memory.targets[1] = (struct evr_sge){ .addr = PEER_DATA, .rkey = PEER_RKEY, .len = 1 };
	ck_assert_int_eq(evr_stream_start(&stream, &theirs), 0);
	ck_assert_int_eq(receive(EVR_IMM_SGL, PEER_CREDITS, EVR_SGE_LEN), 0);
	ck_assert_int_eq(evr_stream_start(&stream, &theirs), -EISCONN);
}
END_TEST

static int init_with(size_t field, uint64_t value, size_t size)
{
	struct evr_stream_config ours = config();

	memcpy((uint8_t *)&ours + field, &value, size);
	return evr_stream_init(&stream, &ours);
}

#define INIT(field, value)                                                                         \
	init_with(offsetof(struct evr_stream_config, field), value,                                \
		sizeof(((struct evr_stream_config *)0)->field))

/* Values are of few bytes, which stand first on a little-endian host only. */
START_TEST(sizes_out_of_bounds_are_refused)
{
	if (evr_host_is_big_endian())
		return;
	ck_assert_int_eq(INIT(sq_size, 15), -EINVAL);
	ck_assert_int_eq(INIT(sq_size, 0xffff), -EINVAL);
	ck_assert_int_eq(INIT(rq_size, 15), -EINVAL);
	ck_assert_int_eq(INIT(rq_size, 0xffff), -EINVAL);
	ck_assert_int_eq(INIT(rx_size, 1), -EINVAL);
	ck_assert_int_eq(INIT(rx_size, 0xffffffff), -EINVAL);
	ck_assert_int_eq(INIT(rx_addr, UINT64_MAX), -EINVAL);
	ck_assert_int_eq(INIT(tx_size, 0x80000000), -EINVAL);
	ck_assert_int_eq(INIT(target, 0), -EINVAL);
	ck_assert_int_eq(INIT(target, (uintptr_t)&memory + 4), -EINVAL);
	ck_assert_int_eq(INIT(works, 0), -EINVAL);
	ck_assert_int_eq(INIT(iomap, 0), -EINVAL);
	ck_assert_int_eq(INIT(iomap_size, 129), -EINVAL);
	ck_assert_int_eq(INIT(rx_size, 2), 0);
	ck_assert_int_eq(INIT(tx_size, 0), 0);
	ck_assert_int_eq(INIT(inline_max, 0), 0);
}
END_TEST

START_TEST(iwarp_needs_four_bytes_inline)
{
	struct evr_stream_config ours = config();

	ours.iwarp = true;
	ours.inline_max = 3;
	ck_assert_int_eq(evr_stream_init(&stream, &ours), -ENOTSUP);
	ours.inline_max = 4;
	ck_assert_int_eq(evr_stream_init(&stream, &ours), 0);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		a_stream_describes_its_first_half,
		the_second_half_goes_to_entry_1_of_a_little_endian_peer,
		the_second_half_goes_to_entry_1_of_a_big_endian_peer,
		on_iwarp_the_entry_is_a_write_and_a_message,
		half_of_the_messages_brings_credits,
		on_iwarp_credits_are_one_message,
		a_half_that_was_read_goes_to_the_entries_in_turns,
		control_messages_wait_for_their_four_places,
		a_pair_on_iwarp_waits_for_two_places,
		a_keepalive_is_an_empty_write_without_immediate,
		transfers_grow_and_end_where_an_entry_ends,
		the_last_bytes_of_the_ring_are_used_up,
		small_messages_go_inline_past_the_ring,
		own_memory_goes_whole_and_is_signalled_at_its_end,
		messages_stop_at_the_peers_limit,
		messages_stop_when_the_send_queue_is_full,
		a_full_send_ring_waits_for_its_low_water,
		a_mapping_is_told_before_data,
		a_direct_write_goes_to_the_mapping_without_immediate,
		each_order_of_shutting_down_has_its_words,
		the_words_are_these_immediates,
		sending_says_why_it_cannot,
		sending_says_that_the_peer_has_gone,
		what_came_before_the_end_is_read,
		what_comes_after_the_read_side_is_shut_is_thrown_away,
		a_failed_completion_is_an_error_unless_both_are_done,
		each_fault_of_a_peer_ends_the_stream_with_its_error,
		credits_after_disconnect_do_no_harm,
		news_forgives_idle_messages,
		nothing_happens_before_the_start,
		sizes_out_of_bounds_are_refused,
		iwarp_needs_four_bytes_inline,
	};

	return unit_main("proto_stream", tests, sizeof(tests) / sizeof(tests[0]), NULL, NULL);
}
