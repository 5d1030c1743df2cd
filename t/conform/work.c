/* What a connection carries beside plain messages: remote memory, atomics, vectors, inline data. */
#include "conform/suite.h"
#include "conform/fixture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MEMORY = 8192, SEGS = 3, INLINE = 32, DEPTH = 4, QUEUE = 12 };

/* Memory that the server exposes, the client's own, and what came of the client's work. */
struct far {
	unsigned char *memory;
	struct evrdma_buf *exposed;
	struct evrdma_remote remote;
	struct evrdma_buf *local;
	unsigned done, failed, cleaned;
	int error;
	struct evrdma_recv got;
	unsigned char message[256];
	unsigned received;
};

static void count_done(struct evrdma_conn *conn, const struct evrdma_error *error, void *arg)
{
	struct far *far = arg;

	far->done++;
	if (error) {
		far->failed++;
		far->error = error->err;
	}
}

static void count_cleaned(void *data, size_t size, void *arg)
{
	struct far *far = arg;

	ck_assert_ptr_eq(data, far->memory);
	ck_assert_uint_eq(size, MEMORY);
	far->cleaned++;
}

static void keep_message(struct endpoint *endpoint, const struct evrdma_recv *recv)
{
	struct far *far = endpoint->fixture->tag;

	if (endpoint->is_client || recv->err)
		return;
	far->got = *recv;
	far->received++;
	if (recv->len && recv->len <= sizeof(far->message))
		memcpy(far->message, recv->data, recv->len);
}

static void fill(unsigned char *to, size_t len, unsigned char first)
{
	size_t i;

	for (i = 0; i < len; i++)
		to[i] = (unsigned char)(first + i * 7 + (i >> 8));
}

static struct fixture *far_start_in(struct fixture *f, struct far *far)
{
	const unsigned all = EVRDMA_BUF_OPT_REMOTE_READ | EVRDMA_BUF_OPT_REMOTE_WRITE |
			     EVRDMA_BUF_OPT_REMOTE_ATOMIC;

	*far = (struct far){ 0 };
	f->tag = far;
	f->on_recv = keep_message;
	f->options.send_segs = SEGS;
	f->options.inline_bytes = INLINE;
	fixture_connect_pair(f);
	ck_assert_int_eq(posix_memalign((void **)&far->memory, 4096, MEMORY), 0);
	memset(far->memory, 0, MEMORY);
	far->exposed = evrdma_buf_new_reference(far->memory, MEMORY, all, count_cleaned, far);
	ck_assert_ptr_nonnull(far->exposed);
	ck_assert_int_eq(evrdma_conn_expose(f->server->conn, far->exposed, &far->remote), 0);
	far->local = evrdma_pool_get(f->pool);
	return f;
}

static struct fixture *far_start(struct far *far)
{
	return far_start_in(fixture_new(), far);
}

static void far_end(struct fixture *f, struct far *far)
{
	evrdma_buf_unref(far->local);
	evrdma_buf_unref(far->exposed);
	fixture_free(f);
	ck_assert_uint_eq(far->cleaned, 1);
	free(far->memory);
}

static struct evrdma_remote far_at(const struct far *far, size_t offset)
{
	return (struct evrdma_remote){ far->remote.addr + offset, far->remote.key };
}

static int submit(struct fixture *f, const struct evrdma_work *work)
{
	return evrdma_conn_submit(f->client->conn, work, count_done, f->tag);
}

static unsigned wanted;

static bool enough_done(struct fixture *f)
{
	return ((struct far *)f->tag)->done >= wanted;
}

static bool enough_received(struct fixture *f)
{
	return ((struct far *)f->tag)->received >= wanted;
}

static void wait_done(struct fixture *f, unsigned n)
{
	wanted = n;
	fixture_run_until(f, enough_done, 10000);
}

static void wait_received(struct fixture *f, unsigned n)
{
	wanted = n;
	fixture_run_until(f, enough_received, 10000);
}

/* --- remote memory -------------------------------------------------------------------------- */

START_TEST(a_vector_is_written_to_the_peer_and_read_back)
{
	struct far far;
	struct fixture *f = far_start(&far);
	struct evrdma_buf *back = evrdma_pool_get(f->pool);
	unsigned char *local = evrdma_buf_data(far.local);
	const struct evrdma_seg out[SEGS] = { { far.local, 0, 100 }, { far.local, 500, 1 },
		{ far.local, 1000, 900 } };
	const struct evrdma_seg in[] = { { back, 10, 1001 } };
	struct evrdma_work work = {
		.op = EVRDMA_OP_WRITE, .segs = out, .seg_count = SEGS, .remote = far_at(&far, 64)
	};

	fill(local, 2000, 3);
	ck_assert_int_eq(submit(f, &work), 0);
	wait_done(f, 1);
	work = (struct evrdma_work){
		.op = EVRDMA_OP_READ, .segs = in, .seg_count = 1, .remote = far_at(&far, 64)
	};
	ck_assert_int_eq(submit(f, &work), 0);
	wait_done(f, 2);
	ck_assert_uint_eq(far.failed, 0);
	ck_assert_mem_eq(far.memory + 64, local, 100);
	ck_assert_mem_eq(far.memory + 164, local + 500, 1);
	ck_assert_mem_eq(far.memory + 165, local + 1000, 900);
	ck_assert_mem_eq((unsigned char *)evrdma_buf_data(back) + 10, far.memory + 64, 1001);
	ck_assert_uint_eq(far.memory[63] | far.memory[1065], 0);
	evrdma_buf_unref(back);
	far_end(f, &far);
}
END_TEST

START_TEST(a_write_with_immediate_data_tells_the_peer_how_much_was_written)
{
	struct far far;
	struct fixture *f = far_start(&far);
	const struct evrdma_seg seg = { far.local, 0, 4000 };
	const struct evrdma_work work = { .op = EVRDMA_OP_WRITE,
		.flags = EVRDMA_WORK_OPT_IMM,
		.segs = &seg,
		.seg_count = 1,
		.imm = 0x01020304,
		.remote = far_at(&far, 0) };

	if (!testbed_has(TESTBED_IMMEDIATES)) {
		ck_assert_int_eq(submit(f, &work), -EOPNOTSUPP);
	} else {
		fill(evrdma_buf_data(far.local), 4000, 9);
		ck_assert_int_eq(submit(f, &work), 0);
		wait_received(f, 1);
		ck_assert(far.got.has_imm && far.got.imm == 0x01020304);
		ck_assert_uint_eq(far.got.written, 4000);
		ck_assert_uint_eq(far.got.len, 0);
		ck_assert_mem_eq(far.memory, evrdma_buf_data(far.local), 4000);
	}
	far_end(f, &far);
}
END_TEST

static uint64_t counter_of(const struct far *far)
{
	uint64_t value;

	memcpy(&value, far->memory + 8, sizeof(value));
	return value;
}

START_TEST(atomics_change_the_peer_and_give_what_was_there)
{
	struct far far;
	struct fixture *f = far_start(&far);
	uint64_t *local = evrdma_buf_data(far.local);
	const struct evrdma_seg segs[] = { { far.local, 0, 8 }, { far.local, 8, 8 },
		{ far.local, 16, 8 } };
	struct evrdma_work work = { .op = EVRDMA_OP_FETCH_ADD,
		.segs = &segs[0],
		.seg_count = 1,
		.remote = far_at(&far, 8),
		.compare_add = 5 };

	if (!testbed_has(TESTBED_ATOMICS)) {
		ck_assert_int_eq(submit(f, &work), -EOPNOTSUPP);
		far_end(f, &far);
		return;
	}
	ck_assert_int_eq(submit(f, &work), 0);
	work.op = EVRDMA_OP_COMPARE_SWAP;
	work.swap = 70;
	work.segs = &segs[1];
	ck_assert_int_eq(submit(f, &work), 0);
	work.swap = 90;
	work.segs = &segs[2];
	ck_assert_int_eq(submit(f, &work), 0);
	wait_done(f, 3);
	ck_assert_uint_eq(far.failed, 0);
	ck_assert_uint_eq(local[0], 0);
	ck_assert_uint_eq(local[1], 5);
	ck_assert_uint_eq(local[2], 70);
	ck_assert_uint_eq(counter_of(&far), 70);
	far_end(f, &far);
}
END_TEST

START_TEST(what_follows_a_fence_sees_what_was_read)
{
	struct far far;
	struct fixture *f = far_start(&far);
	const struct evrdma_seg seg = { far.local, 0, 200 };
	struct evrdma_work work = {
		.op = EVRDMA_OP_READ, .segs = &seg, .seg_count = 1, .remote = far_at(&far, 0)
	};

	fill(far.memory, 200, 40);
	ck_assert_int_eq(submit(f, &work), 0);
	work.op = EVRDMA_OP_SEND;
	work.flags = EVRDMA_WORK_OPT_FENCE;
	ck_assert_int_eq(submit(f, &work), 0);
	wait_received(f, 1);
	ck_assert_uint_eq(far.got.len, 200);
	ck_assert_mem_eq(far.message, far.memory, 200);
	wait_done(f, 2);
	far_end(f, &far);
}
END_TEST

/* --- reads with sends behind them ----------------------------------------------------------- */

enum { READS = 10000, READS_TRACED = 300, READ_LEN = MEMORY / 32, READS_MOST = 32 };

/* Each slot reads its own part of the memory, which the test changes for the next time. */
struct slot {
	struct reading *reading;
	struct evrdma_buf *buf;
	unsigned char *from;
	unsigned number;
};

struct reading {
	struct far far;
	struct fixture *f;
	unsigned wanted, started, checked, messages;
	struct slot slots[READS_MOST];
};

static void take_message(struct endpoint *endpoint, const struct evrdma_recv *recv)
{
	struct reading *reading = endpoint->fixture->tag;

	reading->messages += !recv->err;
}

static void start_read(struct slot *slot);

/* Only now may the data be looked at, and it must be there. */
static void check_read(struct evrdma_conn *conn, const struct evrdma_error *error, void *arg)
{
	struct slot *slot = arg;

	ck_assert_msg(!error, "read %u failed: %d", slot->number, error ? error->err : 0);
	if (memcmp(evrdma_buf_data(slot->buf), slot->from, READ_LEN) != 0)
		ck_abort_msg("read %u is done without its data", slot->number);
	slot->reading->checked++;
	start_read(slot);
}

static void start_read(struct slot *slot)
{
	struct reading *reading = slot->reading;
	const struct evrdma_seg seg = { slot->buf, 0, READ_LEN };
	const struct evrdma_work read = { .op = EVRDMA_OP_READ,
		.segs = &seg,
		.seg_count = 1,
		.remote = far_at(&reading->far, (size_t)(slot->from - reading->far.memory)) };
	const struct evrdma_work message = {
		.op = EVRDMA_OP_SEND, .inline_data = "behind", .inline_len = 7
	};
	struct evrdma_conn *conn = reading->f->client->conn;

	if (reading->started == reading->wanted)
		return;
	slot->number = reading->started++;
	fill(slot->from, READ_LEN, (unsigned char)(slot->number * 31 + 1));
	memset(evrdma_buf_data(slot->buf), 0, READ_LEN);
	ck_assert_int_eq(evrdma_conn_submit(conn, &read, check_read, slot), 0);
	ck_assert_int_eq(evrdma_conn_submit(conn, &message, NULL, NULL), 0);
}

static bool all_read(struct fixture *f)
{
	struct reading *reading = f->tag;

	return reading->checked == reading->wanted && reading->messages == reading->wanted;
}

static void start_reading(struct reading *reading, unsigned depth)
{
	unsigned i;

	for (i = 0; i < depth; i++) {
		struct slot *slot = &reading->slots[i];

		slot->reading = reading;
		slot->buf = evrdma_pool_get(reading->f->pool);
		slot->from = reading->far.memory + (size_t)i * READ_LEN;
		start_read(slot);
	}
}

static uint8_t as_deep(unsigned depth)
{
	return (uint8_t)(depth < testbed.most_reads ? depth : testbed.most_reads);
}

static void read_with_sends_behind(unsigned depth)
{
	/* A trace has no room for all calls of so many. */
	struct reading reading = { .wanted = getenv("EVR_TRACING") ? READS_TRACED : READS };
	struct fixture *f = fixture_new();
	unsigned i;

	f->options.initiator_depth = f->options.responder_resources = (uint8_t)depth;
	f->options.send_depth = f->options.recv_depth = 4 * (depth > 8 ? depth : 8);
	reading.f = far_start_in(f, &reading.far);
	f->tag = &reading;
	f->on_recv = take_message;
	start_reading(&reading, depth);
	fixture_run_until(f, all_read, 60000);
	for (i = 0; i < depth; i++)
		evrdma_buf_unref(reading.slots[i].buf);
	far_end(f, &reading.far);
}

START_TEST(a_read_is_done_when_its_data_is_there)
{
	static const unsigned depths[] = { 1, 8, READS_MOST };

	read_with_sends_behind(as_deep(depths[_i]));
}
END_TEST

/* --- reads that were not agreed on ---------------------------------------------------------- */

static void accept_without_resources(struct fixture *f, struct evrdma_request *request)
{
	f->options.responder_resources = 0;
	endpoint_accept(fixture_endpoint_new(f, false), request);
	f->options.responder_resources = 1;
}

static void accept_without_depth(struct fixture *f, struct evrdma_request *request)
{
	f->options.initiator_depth = 0;
	endpoint_accept(fixture_endpoint_new(f, false), request);
	f->options.initiator_depth = 1;
}

static void accept_with_all(struct fixture *f, struct evrdma_request *request)
{
	f->options.initiator_depth = f->options.responder_resources = 1;
	endpoint_accept(fixture_endpoint_new(f, false), request);
}

/* Each case takes one of the four halves away that two readers need. */
static const struct {
	uint8_t client_depth, client_resources;
	void (*accept)(struct fixture *f, struct evrdma_request *request);
	bool client_reads; /* of the server, or the other way round */
	bool by_peer;	   /* lowered on the way: not all iWARP devices do that */
} halves[] = {
	{ 0, 1, accept_with_all, true, false },
	{ 1, 1, accept_without_resources, true, true },
	{ 1, 0, accept_with_all, false, false },
	{ 1, 1, accept_without_depth, false, false },
};

static int submit_op(struct endpoint *endpoint, enum evrdma_op op, struct far *far)
{
	const struct evrdma_seg seg = { far->local, 0, 8 };
	const struct evrdma_work work = {
		.op = op, .segs = &seg, .seg_count = 1, .remote = far_at(far, 0)
	};

	return evrdma_conn_submit(endpoint->conn, &work, count_done, far);
}

/* It is refused, or it is done: none is taken that would never end. */
START_TEST(a_read_that_was_not_agreed_on_is_refused)
{
	struct fixture *f = fixture_new();
	struct far far;
	struct endpoint *reader;

	f->options.initiator_depth = halves[_i].client_depth;
	f->options.responder_resources = halves[_i].client_resources;
	f->on_request = halves[_i].accept;
	far_start_in(f, &far);
	reader = halves[_i].client_reads ? f->client : f->server;
	if (halves[_i].by_peer && evrdma_conn_get_initiator_depth(reader->conn)) {
		ck_assert(testbed.is_iwarp);
		ck_assert_int_eq(submit_op(reader, EVRDMA_OP_READ, &far), 0);
	} else {
		ck_assert_uint_eq(evrdma_conn_get_initiator_depth(reader->conn), 0);
		ck_assert_int_eq(submit_op(reader, EVRDMA_OP_READ, &far), -EOPNOTSUPP);
		ck_assert_int_eq(submit_op(reader, EVRDMA_OP_FETCH_ADD, &far), -EOPNOTSUPP);
		ck_assert_int_eq(submit_op(reader, EVRDMA_OP_COMPARE_SWAP, &far), -EOPNOTSUPP);
		ck_assert_int_eq(submit_op(reader, EVRDMA_OP_SEND, &far), 0);
	}
	wait_done(f, 1);
	ck_assert_uint_eq(far.failed, 0);
	far_end(f, &far);
}
END_TEST

static void accept_two(struct fixture *f, struct evrdma_request *request)
{
	f->options.initiator_depth = f->options.responder_resources = as_deep(2);
	endpoint_accept(fixture_endpoint_new(f, false), request);
}

START_TEST(the_depth_that_was_agreed_on_is_known)
{
	struct fixture *f = fixture_new();
	struct endpoint *fresh = fixture_endpoint_new(f, true);

	ck_assert_uint_eq(evrdma_conn_get_initiator_depth(fresh->conn), 0);
	f->options.initiator_depth = f->options.responder_resources = as_deep(4);
	f->on_request = accept_two;
	fixture_connect_pair(f);
	if (!testbed.is_iwarp)
		ck_assert_uint_eq(evrdma_conn_get_initiator_depth(f->client->conn), as_deep(2));
	ck_assert_uint_eq(evrdma_conn_get_initiator_depth(f->server->conn), as_deep(2));
	fixture_free(f);
}
END_TEST

START_TEST(a_key_opens_no_more_than_its_memory)
{
	struct far far;
	struct fixture *f = far_start(&far);
	const struct evrdma_seg seg = { far.local, 0, 100 };
	const struct evrdma_work work = { .op = EVRDMA_OP_WRITE,
		.segs = &seg,
		.seg_count = 1,
		.remote = far_at(&far, MEMORY - 50) };

	ck_assert_int_eq(submit(f, &work), 0);
	fixture_run_until(f, fixture_none_live, 20000);
	ck_assert_uint_eq(far.memory[MEMORY - 50], 0);
	far_end(f, &far);
}
END_TEST

/* On iWARP what is read into has to be open for writing; not to those who may read it. */
START_TEST(what_was_read_into_is_open_to_nobody_for_writing)
{
	struct far far;
	struct fixture *f = far_start(&far);
	static unsigned char own[64];
	struct evrdma_buf *buf =
		evrdma_buf_new_reference(own, sizeof(own), EVRDMA_BUF_OPT_REMOTE_READ, NULL, NULL);
	const struct evrdma_seg in = { buf, 0, 32 };
	struct evrdma_work work = {
		.op = EVRDMA_OP_READ, .segs = &in, .seg_count = 1, .remote = far_at(&far, 0)
	};

	memset(own, 0, sizeof(own));
	fill(far.memory, 32, 7);
	ck_assert_int_eq(submit(f, &work), 0);
	wait_done(f, 1);
	ck_assert_uint_eq(far.failed, 0);
	ck_assert_mem_eq(own, far.memory, 32);
	work = (struct evrdma_work){ .op = EVRDMA_OP_WRITE, .inline_data = "in", .inline_len = 2 };
	ck_assert_int_eq(evrdma_conn_expose(f->client->conn, buf, &work.remote), 0);
	ck_assert_int_eq(evrdma_conn_submit(f->server->conn, &work, count_done, &far), 0);
	fixture_run_until(f, fixture_none_live, 20000);
	ck_assert_mem_eq(own, far.memory, 32);
	evrdma_buf_unref(buf);
	far_end(f, &far);
}
END_TEST

START_TEST(only_what_was_made_for_peers_is_exposed)
{
	struct far far;
	struct fixture *f = far_start(&far);
	struct evrdma_remote remote;
	struct evrdma_conn *fresh = fixture_endpoint_new(f, true)->conn;
	unsigned char own[64];
	struct evrdma_buf *buf = evrdma_buf_new_reference(own, sizeof(own), 0, NULL, NULL);

	ck_assert_int_eq(evrdma_conn_expose(f->server->conn, far.local, &remote), -EACCES);
	ck_assert_int_eq(evrdma_conn_expose(f->server->conn, buf, &remote), -EACCES);
	ck_assert_int_eq(evrdma_conn_expose(fresh, far.exposed, &remote), -ENOTCONN);
	ck_assert_int_eq(evrdma_conn_expose(f->server->conn, NULL, &remote), -EINVAL);
	ck_assert_int_eq(evrdma_conn_expose(f->server->conn, far.exposed, NULL), -EINVAL);
	ck_assert(!evrdma_buf_new_reference(NULL, 1, 0, NULL, NULL) && errno == EINVAL);
	ck_assert(!evrdma_buf_new_reference(own, 0, 0, NULL, NULL) && errno == EINVAL);
	ck_assert(!evrdma_buf_new_reference(own, 1, 0x8000, NULL, NULL) && errno == EINVAL);
	errno = 0;
	ck_assert(!evrdma_buf_new_reference(own, 1, EVRDMA_BUF_OPT_REMOTE_ATOMIC, NULL, NULL));
	ck_assert_int_eq(errno, EINVAL);
	evrdma_buf_unref(buf);
	far_end(f, &far);
}
END_TEST

static struct evrdma_pool *pool_for_peers(struct fixture *f, unsigned buf_flags)
{
	struct evrdma_pool_options options;

	evrdma_pool_options_init(&options);
	options.buf_flags = buf_flags;
	return evrdma_pool_new_with_options(f->base, 256, &options);
}

/* Through what is sent for it, packed, and at an offset. */
static int write_into(struct fixture *f, struct evrdma_buf *buf)
{
	unsigned char packed[EVRDMA_REMOTE_PACKED_BYTES];
	struct far *far = f->tag;
	const unsigned before = far->done;
	struct evrdma_remote remote;
	struct evrdma_work work = {
		.op = EVRDMA_OP_WRITE, .inline_data = "pooled", .inline_len = 6
	};

	ck_assert_int_eq(evrdma_conn_expose(f->server->conn, buf, &remote), 0);
	evrdma_remote_pack(&remote, packed);
	evrdma_remote_unpack(&work.remote, packed);
	work.remote = evrdma_remote_at(&work.remote, 250);
	ck_assert_int_eq(submit(f, &work), 0);
	wait_done(f, before + 1);
	return far->error;
}

static const char *place;

static bool is_written(struct fixture *f)
{
	return !memcmp(place, "pooled", 6);
}

/* On iWARP a write is done when TCP has it, and then it is placed, or ends the connection. */
START_TEST(a_pool_whose_buffers_may_be_exposed_says_what_for)
{
	struct far far;
	struct fixture *f = far_start(&far);
	struct evrdma_pool *written = pool_for_peers(f, EVRDMA_BUF_OPT_REMOTE_WRITE);
	struct evrdma_pool *only_read = pool_for_peers(f, EVRDMA_BUF_OPT_REMOTE_READ);
	struct evrdma_buf *buf = evrdma_pool_get(written), *other = evrdma_pool_get(only_read);

	ck_assert(!pool_for_peers(f, 8) && errno == EINVAL);
	errno = 0;
	ck_assert(!pool_for_peers(f, EVRDMA_BUF_OPT_REMOTE_READ | EVRDMA_BUF_OPT_REMOTE_ATOMIC));
	ck_assert_int_eq(errno, EINVAL);
	memset(evrdma_buf_data(buf), 0, 256);
	memset(evrdma_buf_data(other), 0, 256);
	ck_assert_int_eq(write_into(f, buf), 0);
	place = (char *)evrdma_buf_data(buf) + 250;
	fixture_run_until(f, is_written, 20000);
	write_into(f, other);
	fixture_run_until(f, fixture_none_live, 20000);
	ck_assert_int_eq(((char *)evrdma_buf_data(other))[250], 0);
	evrdma_buf_unref(buf);
	evrdma_buf_unref(other);
	far_end(f, &far);
}
END_TEST

START_TEST(the_users_memory_is_his_again_after_the_last_completion)
{
	struct far far;
	struct fixture *f = far_start(&far);
	const struct evrdma_seg seg = { far.exposed, 100, 150 };
	const struct evrdma_work work = { .op = EVRDMA_OP_SEND, .segs = &seg, .seg_count = 1 };

	fill(far.memory, MEMORY, 1);
	ck_assert_int_eq(submit(f, &work), 0);
	evrdma_buf_unref(far.exposed);
	far.exposed = NULL;
	ck_assert_uint_eq(far.cleaned, 0);
	wait_done(f, 1);
	ck_assert_uint_eq(far.cleaned, 1);
	wait_received(f, 1);
	ck_assert_mem_eq(far.message, far.memory + 100, 150);
	far_end(f, &far);
}
END_TEST

/* --- messages ------------------------------------------------------------------------------- */

START_TEST(a_vector_arrives_as_one_message_with_its_immediate_data)
{
	struct far far;
	struct fixture *f = far_start(&far);
	unsigned char *local = evrdma_buf_data(far.local);
	const struct evrdma_seg segs[SEGS] = { { far.local, 50, 5 }, { far.local, 0, 50 },
		{ far.local, 200, 20 } };
	const struct evrdma_work work = { .op = EVRDMA_OP_SEND,
		.flags = testbed_has(TESTBED_IMMEDIATES) ? EVRDMA_WORK_OPT_IMM : 0,
		.segs = segs,
		.seg_count = SEGS,
		.imm = 77 };

	fill(local, 300, 5);
	ck_assert_int_eq(submit(f, &work), 0);
	wait_received(f, 1);
	ck_assert_uint_eq(far.got.len, 75);
	ck_assert_int_eq(far.got.has_imm, testbed_has(TESTBED_IMMEDIATES));
	ck_assert_uint_eq(far.got.imm, testbed_has(TESTBED_IMMEDIATES) ? 77 : 0);
	ck_assert_mem_eq(far.message, local + 50, 5);
	ck_assert_mem_eq(far.message + 5, local, 50);
	ck_assert_mem_eq(far.message + 55, local + 200, 20);
	wait_done(f, 1);
	far_end(f, &far);
}
END_TEST

START_TEST(work_without_any_bytes_is_done)
{
	struct far far;
	struct fixture *f = far_start(&far);
	const struct evrdma_seg nothing = { far.local, 0, 0 };
	static const enum evrdma_op ops[] = { EVRDMA_OP_SEND, EVRDMA_OP_WRITE, EVRDMA_OP_READ };
	struct evrdma_work work = { .segs = &nothing, .remote = far_at(&far, 0) };
	unsigned i;

	ck_assert_int_eq(evrdma_conn_send(f->client->conn, far.local, 0, NULL, NULL), 0);
	for (i = 0; i < 2 * sizeof(ops) / sizeof(ops[0]); i++) {
		work.op = ops[i / 2];
		work.seg_count = i % 2;
		ck_assert_int_eq(submit(f, &work), 0);
		wait_done(f, i + 1);
	}
	wait_received(f, 3);
	ck_assert_uint_eq(far.failed, 0);
	ck_assert_uint_eq(far.got.len, 0);
	far_end(f, &far);
}
END_TEST

START_TEST(inline_data_is_copied_at_once)
{
	struct far far;
	struct fixture *f = far_start(&far);
	char text[] = "in line with the request";
	struct evrdma_work work = {
		.op = EVRDMA_OP_SEND, .inline_data = text, .inline_len = sizeof(text)
	};

	ck_assert_int_eq(submit(f, &work), 0);
	memset(text, 'x', sizeof(text));
	wait_received(f, 1);
	ck_assert_str_eq((char *)far.message, "in line with the request");
	work.inline_len = INLINE + 1;
	ck_assert_int_eq(submit(f, &work), -EMSGSIZE);
	wait_done(f, 1);
	far_end(f, &far);
}
END_TEST

START_TEST(work_that_makes_no_sense_is_refused)
{
	struct far far;
	struct fixture *f = far_start(&far);
	const struct evrdma_seg seg = { far.local, 0, 8 };
	const struct evrdma_seg beyond = { far.local, 4090, 8 };
	const struct evrdma_seg nothing = { NULL, 0, 8 };
	const struct evrdma_seg many[SEGS + 1] = { seg, seg, seg, seg };
	const struct evrdma_seg word = { far.local, 0, 4 };
	const struct evrdma_work refused[] = {
		{ .op = (enum evrdma_op)99, .segs = &seg, .seg_count = 1 },
		{ .op = EVRDMA_OP_SEND, .flags = 0x100, .segs = &seg, .seg_count = 1 },
		{ .op = EVRDMA_OP_SEND, .segs = &beyond, .seg_count = 1 },
		{ .op = EVRDMA_OP_SEND, .segs = &nothing, .seg_count = 1 },
		{ .op = EVRDMA_OP_SEND, .segs = NULL, .seg_count = 1 },
		{ .op = EVRDMA_OP_SEND, .segs = many, .seg_count = SEGS + 1 },
		{ .op = EVRDMA_OP_SEND,
			.segs = &seg,
			.seg_count = 1,
			.inline_data = "a",
			.inline_len = 1 },
		{ .op = EVRDMA_OP_SEND, .inline_len = 1 },
		{ .op = EVRDMA_OP_WRITE, .segs = &seg, .seg_count = 1, .inline_len = 1 },
		{ .op = EVRDMA_OP_READ, .inline_data = "a", .inline_len = 1 },
		{ .op = EVRDMA_OP_READ,
			.flags = EVRDMA_WORK_OPT_IMM,
			.segs = &seg,
			.seg_count = 1 },
		{ .op = EVRDMA_OP_FETCH_ADD, .segs = many, .seg_count = 2 },
		{ .op = EVRDMA_OP_FETCH_ADD, .segs = &word, .seg_count = 1 },
		{ .op = EVRDMA_OP_COMPARE_SWAP,
			.segs = &seg,
			.seg_count = 1,
			.remote = { .addr = 4 } },
	};
	size_t i;

	for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		ck_assert_msg(submit(f, &refused[i]) == -EINVAL, "work %zu was taken", i);
	ck_assert_uint_eq(far.done, 0);
	far_end(f, &far);
}
END_TEST

/* --- the queue ------------------------------------------------------------------------------ */

static void check_order(struct endpoint *endpoint, const struct evrdma_recv *recv)
{
	struct far *far = endpoint->fixture->tag;

	if (recv->err)
		return;
	ck_assert_uint_eq(recv->len, sizeof(far->received));
	ck_assert_mem_eq(recv->data, &far->received, sizeof(far->received));
	far->received++;
}

static void count_writable(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	struct far *far = endpoint->fixture->tag;

	far->cleaned += event == EVRDMA_CONN_WRITABLE;
	endpoint_close_if_down(endpoint, event);
}

START_TEST(sends_wait_in_order_up_to_the_limit)
{
	struct far far = { 0 };
	struct fixture *f = fixture_new();
	unsigned i;

	f->tag = &far;
	f->on_recv = check_order;
	f->on_event = count_writable;
	f->options.send_depth = DEPTH;
	f->options.send_queue = QUEUE;
	f->options.inline_bytes = INLINE;
	fixture_connect_pair(f);
	for (i = 0; i <= DEPTH + QUEUE; i++) {
		const struct evrdma_work work = {
			.op = EVRDMA_OP_SEND, .inline_data = &i, .inline_len = sizeof(i)
		};

		ck_assert_uint_eq(
			evrdma_conn_send_space(f->client->conn), (unsigned)(DEPTH + QUEUE) - i);
		ck_assert_int_eq(submit(f, &work), i < DEPTH + QUEUE ? 0 : -EAGAIN);
	}
	wait_done(f, DEPTH + QUEUE);
	wait_received(f, DEPTH + QUEUE);
	ck_assert_uint_eq(far.failed, 0);
	ck_assert_uint_eq(far.cleaned, 1);
	ck_assert_uint_eq(evrdma_conn_send_space(f->client->conn), DEPTH + QUEUE);
	fixture_free(f);
}
END_TEST

/* Of one send; the last reference to one of the first's makes the second. */
struct part {
	struct fixture *f;
	char bytes[8];
	unsigned cleaned;
};

static struct part first[SEGS], second[SEGS];

static int submit_parts(struct fixture *f, struct part *parts, evrdma_conn_work_cb cb);

static void part_cleaned(void *data, size_t size, void *arg)
{
	struct part *part = arg;

	ck_assert_ptr_eq(data, part->bytes);
	part->cleaned++;
	if (part == &first[1])
		ck_assert_int_eq(submit_parts(part->f, second, count_done), 0);
}

static int submit_parts(struct fixture *f, struct part *parts, evrdma_conn_work_cb cb)
{
	struct evrdma_seg segs[SEGS] = { 0 };
	const struct evrdma_work work = { .op = EVRDMA_OP_SEND, .segs = segs, .seg_count = SEGS };
	int i, ret;

	for (i = 0; i < SEGS; i++) {
		parts[i].f = f;
		segs[i].len = sizeof(parts[i].bytes);
		segs[i].buf = evrdma_buf_new_reference(
			parts[i].bytes, sizeof(parts[i].bytes), 0, part_cleaned, &parts[i]);
	}
	ret = evrdma_conn_submit(f->client->conn, &work, cb, f->tag);
	for (i = 0; i < SEGS; i++)
		evrdma_buf_unref(segs[i].buf);
	return ret;
}

static void expect_cleaned(const struct part *parts, unsigned n)
{
	int i;

	for (i = 0; i < SEGS; i++)
		ck_assert_uint_eq(parts[i].cleaned, n);
}

/* The first buffer is let go of behind this. */
static void first_done(struct evrdma_conn *conn, const struct evrdma_error *error, void *arg)
{
	ck_assert_uint_eq(first[1].cleaned, 1);
	ck_assert_uint_eq(first[2].cleaned, 1);
	expect_cleaned(second, 0);
	count_done(conn, error, arg);
}

START_TEST(the_last_of_a_buffer_may_be_followed_by_a_send_into_its_place)
{
	struct far far = { 0 };
	struct fixture *f = fixture_new();
	struct evrdma_work work = { .op = EVRDMA_OP_SEND, .inline_data = "a", .inline_len = 1 };

	memset(first, 0, sizeof(first));
	memset(second, 0, sizeof(second));
	f->tag = &far;
	f->on_recv = keep_message;
	f->options.send_depth = DEPTH;
	f->options.send_queue = QUEUE;
	f->options.send_segs = SEGS;
	f->options.inline_bytes = INLINE;
	fixture_connect_pair(f);
	ck_assert_int_eq(submit_parts(f, first, first_done), 0);
	while (evrdma_conn_send_space(f->client->conn))
		ck_assert_int_eq(submit(f, &work), 0);
	wait_done(f, DEPTH + QUEUE + 1);
	wait_received(f, DEPTH + QUEUE + 1);
	ck_assert_uint_eq(far.failed, 0);
	fixture_free(f);
	expect_cleaned(first, 1);
	expect_cleaned(second, 1);
}
END_TEST

START_TEST(what_waits_is_cancelled_with_the_connection)
{
	struct far far = { 0 };
	struct fixture *f = fixture_new();
	unsigned i;

	f->tag = &far;
	f->options.send_depth = 1;
	f->options.send_queue = QUEUE;
	fixture_connect_pair(f);
	far.local = evrdma_pool_get(f->pool);
	for (i = 0; i < QUEUE; i++) {
		const struct evrdma_seg seg = { far.local, 0, 64 };
		const struct evrdma_work work = {
			.op = EVRDMA_OP_SEND, .segs = &seg, .seg_count = 1
		};

		ck_assert_int_eq(submit(f, &work), 0);
	}
	evrdma_buf_unref(far.local);
	evrdma_conn_close(f->client->conn);
	fixture_run_until(f, fixture_none_live, 20000);
	ck_assert_uint_eq(far.done, QUEUE);
	ck_assert(!far.failed || far.error == ECANCELED);
	fixture_free(f);
}
END_TEST

/* --- where it is, as bytes -------------------------------------------------------------------- */

START_TEST(a_remote_address_has_the_same_bytes_everywhere)
{
	static const struct {
		struct evrdma_remote remote;
		unsigned char packed[EVRDMA_REMOTE_PACKED_BYTES];
	} table[] = {
		{ { 0, 0 }, { 0 } },
		{ { 1, 2 }, { 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2 } },
		{ { 0x0102030405060708, 0x090a0b0c }, { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 } },
		{ { 0x8000000000000000, 0x80000000 }, { 128, 0, 0, 0, 0, 0, 0, 0, 128 } },
		{ { UINT64_MAX, UINT32_MAX },
			{ 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255 } },
	};
	unsigned char unaligned[EVRDMA_REMOTE_PACKED_BYTES + 2];
	struct evrdma_remote back;
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		memset(unaligned, 0x5a, sizeof(unaligned));
		evrdma_remote_pack(&table[i].remote, unaligned + 1);
		ck_assert_mem_eq(unaligned + 1, table[i].packed, EVRDMA_REMOTE_PACKED_BYTES);
		ck_assert_uint_eq(unaligned[0], 0x5a);
		ck_assert_uint_eq(unaligned[EVRDMA_REMOTE_PACKED_BYTES + 1], 0x5a);
		evrdma_remote_unpack(&back, unaligned + 1);
		ck_assert_uint_eq(back.addr, table[i].remote.addr);
		ck_assert_uint_eq(back.key, table[i].remote.key);
		back = evrdma_remote_at(&back, 7);
		ck_assert_uint_eq(back.addr, table[i].remote.addr + 7);
		ck_assert_uint_eq(back.key, table[i].remote.key);
	}
}
END_TEST

TCase *work_case(void)
{
	TCase *tc = tcase_create("work");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, a_vector_is_written_to_the_peer_and_read_back);
	tcase_add_test(tc, a_write_with_immediate_data_tells_the_peer_how_much_was_written);
	tcase_add_test(tc, atomics_change_the_peer_and_give_what_was_there);
	tcase_add_test(tc, what_follows_a_fence_sees_what_was_read);
	tcase_add_loop_test(tc, a_read_is_done_when_its_data_is_there, 0, 3);
	tcase_add_loop_test(tc, a_read_that_was_not_agreed_on_is_refused, 0, 4);
	tcase_add_test(tc, the_depth_that_was_agreed_on_is_known);
	tcase_add_test(tc, a_key_opens_no_more_than_its_memory);
	tcase_add_test(tc, what_was_read_into_is_open_to_nobody_for_writing);
	tcase_add_test(tc, only_what_was_made_for_peers_is_exposed);
	tcase_add_test(tc, a_pool_whose_buffers_may_be_exposed_says_what_for);
	tcase_add_test(tc, a_remote_address_has_the_same_bytes_everywhere);
	tcase_add_test(tc, the_users_memory_is_his_again_after_the_last_completion);
	tcase_add_test(tc, a_vector_arrives_as_one_message_with_its_immediate_data);
	tcase_add_test(tc, work_without_any_bytes_is_done);
	tcase_add_test(tc, inline_data_is_copied_at_once);
	tcase_add_test(tc, work_that_makes_no_sense_is_refused);
	tcase_add_test(tc, sends_wait_in_order_up_to_the_limit);
	tcase_add_test(tc, the_last_of_a_buffer_may_be_followed_by_a_send_into_its_place);
	tcase_add_test(tc, what_waits_is_cancelled_with_the_connection);
	return tc;
}
