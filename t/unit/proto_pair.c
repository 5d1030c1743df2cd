/* Two streams with each other: every byte arrives, nothing is overrun, both come to an end. */
#include "unit/unit.h"

#include "unit/proto_wire.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
	SEEDS = 10000,
	STEPS_MAX = 3000000,
	LENDINGS = 8,
	MAP_OFFSET = 1 << 20,
	BUFFERS = WIRE_QUEUE_MAX,
};

/* When a side ends. */
enum ending {
	WHEN_SENT,  /* its write side when all is sent, then what it reads */
	WHEN_DONE,  /* both when all is sent and read */
	IN_BETWEEN, /* both at any time */
	ENDINGS
};

struct user {
	struct wire_side side;
	enum ending ending;
	uint64_t to_send, sent, to_read, read;
	bool sends_own, maps, pauses, closed, ended;
	uint32_t direct; /* bytes written into the peer's mapping */
	/* What is lent, oldest first. */
	struct {
		uint64_t from, to;
	} lent[LENDINGS];
	int lendings;
	/* Own memory on its way, oldest first. */
	struct {
		uint8_t *bytes;
		uint64_t end;
	} buffer[BUFFERS];
	uint32_t buffer_head, buffer_tail;
};

static struct user users[2];

/* --- sending --------------------------------------------------------------------------------- */

static uint8_t *bytes_of(const struct user *user, uint64_t from, uint32_t len)
{
	uint8_t *bytes = malloc(len ? len : 1);
	uint32_t i;

	holds(bytes);
	for (i = 0; i < len; i++)
		bytes[i] = wire_pattern(&user->side, from + i);
	return bytes;
}

/* Memory of the user's own is gone when the stream says that it may. */
static void free_buffers(struct user *user)
{
	uint64_t completed = evr_stream_status(&user->side.stream).completed;

	while (user->buffer_head != user->buffer_tail &&
		user->buffer[user->buffer_head % BUFFERS].end <= completed)
		free(user->buffer[user->buffer_head++ % BUFFERS].bytes);
}

static void keep_or_free(struct user *user, const struct evr_stream_work *work, uint8_t *bytes)
{
	if (work->local != EVR_STREAM_OWN || work->inlined) {
		free(bytes);
		return;
	}
	holds(user->buffer_tail - user->buffer_head < BUFFERS);
	user->buffer[user->buffer_tail % BUFFERS].bytes = bytes;
	user->buffer[user->buffer_tail++ % BUFFERS].end = work->end;
}

static bool send_piece(struct user *user, struct evr_stream_want *want)
{
	struct evr_stream_work work;
	uint8_t *bytes;
	int len = evr_stream_send(&user->side.stream, want, &work);

	MUST(len >= 0 || len == -ECONNRESET, "send fails with %d", len);
	if (len <= 0)
		return false;
	bytes = bytes_of(user, user->sent, (uint32_t)len);
	wire_post(&user->side, &work, bytes);
	user->sent += (uint32_t)len;
	keep_or_free(user, &work, bytes);
	return true;
}

static void send_some(struct user *user)
{
	uint64_t left = user->to_send - user->sent;
	struct evr_stream_want want = { .own = user->sends_own && wire_random(2) };

	if (user->closed || !left)
		return;
	want.len = 1 + wire_random(3) * wire_random(3000);
	want.more = wire_random(2) && want.len < left;
	if (want.len > left)
		want.len = (uint32_t)left;
	if (!want.own && !user->side.config.tx_size)
		want.own = true;
	wire_pump(&user->side);
	while (want.len && send_piece(user, &want))
		;
}

/* Into the peer's mapping, once it is known. */
static void write_direct(struct user *user)
{
	struct evr_stream_want want = { .len = WIRE_MAP_LEN - user->direct };
	struct evr_stream_work work;
	uint8_t *bytes;
	int len;

	if (!evr_stream_is_tx_open(&user->side.stream) || !want.len || !users[user == users].maps)
		return;
	len = evr_stream_direct(&user->side.stream, MAP_OFFSET + user->direct, &want, &work);
	holds(len >= 0 || len == -ENXIO || len == -ECONNRESET);
	if (len <= 0)
		return;
	bytes = bytes_of(user, user->direct, (uint32_t)len);
	wire_post(&user->side, &work, bytes);
	user->direct += (uint32_t)len;
	keep_or_free(user, &work, bytes);
}

/* --- reading --------------------------------------------------------------------------------- */

static void check_bytes(struct user *user, uint64_t from, uint64_t to)
{
	const struct wire_side *side = &user->side;
	uint64_t size = 2 * (uint64_t)(side->config.rx_size / 2);

	for (; from < to; from++)
		if (side->rx[from % size] != wire_pattern(side->peer, from))
			ck_abort_msg("byte %llu is wrong", (unsigned long long)from);
}

static void note_held(struct user *user)
{
	user->side.held = user->lendings ? user->lent[0].from : user->read;
	user->side.discards = user->closed && !user->lendings;
}

static void take(struct user *user, uint32_t len, bool lend)
{
	check_bytes(user, user->read, user->read + len);
	if (lend) {
		user->lent[user->lendings].from = user->read;
		user->lent[user->lendings++].to = user->read + len;
		evr_stream_lend(&user->side.stream, len);
	} else {
		evr_stream_consume(&user->side.stream, len);
	}
	user->read += len;
	note_held(user);
}

static void give_back(struct user *user)
{
	uint64_t len = user->lent[0].to - user->lent[0].from;

	check_bytes(user, user->lent[0].from, user->lent[0].to);
	len = wire_random(2) ? len : len / 2;
	evr_stream_release(&user->side.stream, (uint32_t)len);
	user->lent[0].from += len;
	if (user->lent[0].from == user->lent[0].to) {
		memmove(user->lent, user->lent + 1, sizeof(user->lent) - sizeof(user->lent[0]));
		user->lendings--;
	}
	note_held(user);
}

static void read_some(struct user *user)
{
	struct evr_span spans[2];
	uint32_t readable = evr_stream_readable(&user->side.stream, spans);

	holds(readable == spans[0].len + spans[1].len);
	if (user->lendings && wire_random(2))
		give_back(user);
	else if (readable && !user->closed)
		take(user, 1 + wire_random(readable), user->lendings < LENDINGS && wire_random(2));
}

/* --- ending ---------------------------------------------------------------------------------- */

static bool is_due(const struct user *user)
{
	if (user->ending == IN_BETWEEN)
		return !wire_random(200);
	if (user->sent < user->to_send || (users[user == users].maps && !user->closed &&
						  user->ending == WHEN_SENT && wire_random(4)))
		return false;
	return user->ending == WHEN_SENT || user->read == user->to_read;
}

static void end_some(struct user *user)
{
	if (user->closed || !is_due(user))
		return;
	if (user->ending == WHEN_SENT) {
		evr_stream_shutdown(&user->side.stream, SHUT_WR);
	} else {
		evr_stream_shutdown(&user->side.stream, SHUT_RDWR);
		user->closed = true;
		note_held(user);
	}
}

static bool has_ended(struct user *user)
{
	struct evr_stream_status status = evr_stream_status(&user->side.stream);

	return status.finished && status.drained && (status.eof || user->closed) &&
	       user->side.sq_head == user->side.sq_tail;
}

/* --- a round --------------------------------------------------------------------------------- */

static uint32_t one_of(const uint32_t *values, uint32_t n)
{
	return values[wire_random(n)];
}

static struct evr_stream_config random_config(bool iwarp)
{
	static const uint32_t rings[] = { 2, 3, 64, 101, 1000, 4096, 9000, 32768 };
	static const uint32_t queues[] = { 16, 17, 20, 32, 64 };
	static const uint32_t inlines[] = { 4, 15, 16, 24, 64 };

	return (struct evr_stream_config){
		.iwarp = iwarp,
		.signal_all = !wire_random(4),
		.sq_size = (uint16_t)one_of(queues, 5),
		.rq_size = (uint16_t)one_of(queues, 5),
		.inline_max = iwarp ? one_of(inlines, 5) : one_of(inlines, 5) & ~4U,
		.tx_size = wire_random(5) ? one_of(rings, 8) : 0,
		.rx_size = one_of(rings, 8),
		.iomap_size = wire_random(2) ? WIRE_MAPPINGS : 0,
	};
}

static void map_some(struct user *user)
{
	struct evr_iomap_entry entry = { .offset = MAP_OFFSET,
		.sge = {
			.addr = (uintptr_t)user->side.mapped, .rkey = 0x33, .len = WIRE_MAP_LEN } };

	user->maps = users[user == users].side.config.iomap_size && wire_random(2);
	if (user->maps)
		holds(evr_stream_map(&user->side.stream, &entry) == 0);
}

static void set_up(uint64_t seed)
{
	struct evr_stream_config configs[2];
	bool iwarp;
	int i;

	wire_seed(seed);
	memset(users, 0, sizeof(users));
	iwarp = wire_random(2);
	configs[0] = random_config(iwarp);
	configs[1] = random_config(iwarp);
	wire_connect(&users[0].side, &users[1].side, &configs[0], &configs[1]);
	for (i = 0; i < 2; i++) {
		struct user *user = &users[i];

		user->ending = (enum ending)wire_random(ENDINGS);
		user->to_send = wire_random(3) * wire_random(12 * configs[!i].rx_size);
		user->to_send %= 12000;
		user->sends_own = wire_random(2);
		user->pauses = !wire_random(4);
		map_some(user);
	}
	users[0].to_read = users[1].to_send;
	users[1].to_read = users[0].to_send;
}

static void poll_some(struct user *user)
{
	uint32_t n = wire_random(10);

	while (n-- && wire_poll(&user->side))
		;
	free_buffers(user);
}

static void execute_some(struct user *user)
{
	uint32_t n = wire_random(10);

	while (n-- && wire_execute(&user->side))
		;
}

static void step(struct user *user)
{
	static void (*const steps[])(struct user *) = { send_some, read_some, write_direct,
		end_some, poll_some, execute_some, poll_some, execute_some };
	uint32_t which = wire_random(sizeof(steps) / sizeof(steps[0]));

	if (user->pauses && steps[which] == read_some && wire_random(20))
		return;
	steps[which](user);
	wire_pump(&user->side);
	user->ended = has_ended(user);
	if (user->ended)
		wire_break(&user->side);
}

static bool both_wait(void)
{
	return users[0].ending != IN_BETWEEN && users[1].ending != IN_BETWEEN;
}

static void check_end(struct user *user)
{
	struct evr_stream_status status = evr_stream_status(&user->side.stream);

	holds(status.error == 0);
	holds(user->read <= user->to_read);
	if (!both_wait())
		return;
	holds(user->sent == user->to_send);
	holds(user->read == user->to_read);
	holds(status.completed == user->sent + user->direct);
}

static void check_mapped(const struct user *user)
{
	const struct user *writer = &users[user == users];
	uint32_t i;

	for (i = 0; !writer->side.failed && i < writer->direct; i++)
		holds(user->side.mapped[i] == wire_pattern(&writer->side, i));
}

static void tear_down(struct user *user)
{
	while (user->buffer_head != user->buffer_tail)
		free(user->buffer[user->buffer_head++ % BUFFERS].bytes);
}

static void run(uint64_t seed)
{
	long steps = 0;
	int i;

	set_up(seed);
	while (!(users[0].ended && users[1].ended)) {
		if (++steps == STEPS_MAX)
			ck_abort_msg("seed %llu comes to no end", (unsigned long long)seed);
		step(&users[wire_random(2)]);
	}
	for (i = 0; i < 2; i++) {
		check_end(&users[i]);
		check_mapped(&users[i]);
		tear_down(&users[i]);
	}
}

static void run_seeds(uint64_t first)
{
	uint64_t seed;

	for (seed = first; seed < first + SEEDS / 4; seed++) {
		mark_point();
		run(seed);
	}
}

START_TEST(random_pairs_transfer_every_byte_and_end_1)
{
	run_seeds(0);
}
END_TEST

START_TEST(random_pairs_transfer_every_byte_and_end_2)
{
	run_seeds(SEEDS / 4);
}
END_TEST

START_TEST(random_pairs_transfer_every_byte_and_end_3)
{
	run_seeds(SEEDS / 2);
}
END_TEST

START_TEST(random_pairs_transfer_every_byte_and_end_4)
{
	run_seeds(SEEDS / 4 * 3);
}
END_TEST

/* --- a reader that stops --------------------------------------------------------------------- */

static void settle(void)
{
	bool moved = true;
	int i;

	while (moved)
		for (moved = false, i = 0; i < 2; i++) {
			wire_pump(&users[i].side);
			moved |= wire_execute(&users[i].side);
			moved |= wire_poll(&users[i].side);
			free_buffers(&users[i]);
		}
}

static void send_all_that_goes(struct user *user)
{
	uint64_t before;

	do {
		before = user->sent;
		send_some(user);
		settle();
	} while (user->sent > before);
}

static void connect_two(bool iwarp)
{
	struct evr_stream_config config = { .iwarp = iwarp,
		.sq_size = 16,
		.rq_size = 16,
		.inline_max = 16,
		.tx_size = 4096,
		.rx_size = 8192 };

	wire_seed(1);
	memset(users, 0, sizeof(users));
	wire_connect(&users[0].side, &users[1].side, &config, &config);
	users[0].to_send = users[1].to_read = 100000;
	settle();
}

static void stop_and_go(bool iwarp)
{
	connect_two(iwarp);
	send_all_that_goes(&users[0]);
	ck_assert_uint_eq(users[0].sent, 8192);
	ck_assert_uint_eq(evr_stream_status(&users[0].side.stream).writable, 0);
	ck_assert_uint_eq(evr_stream_status(&users[1].side.stream).readable, 8192);
	while (users[1].read < users[1].to_read) {
		take(&users[1], evr_stream_status(&users[1].side.stream).readable, false);
		settle();
		ck_assert(users[1].read == users[1].to_read ||
			  evr_stream_status(&users[0].side.stream).writable > 0);
		send_all_that_goes(&users[0]);
	}
	ck_assert_uint_eq(users[0].sent, 100000);
}

START_TEST(a_reader_that_stops_stops_the_sender_until_it_reads)
{
	stop_and_go(false);
	stop_and_go(true);
}
END_TEST

/* The other direction stays open in either order. */
START_TEST(half_a_connection_goes_on_after_the_other_half)
{
	int first;

	for (first = 0; first < 2; first++) {
		struct user *quiet = &users[first], *talks = &users[!first];

		connect_two(false);
		quiet->to_send = talks->to_read = 0;
		talks->to_send = quiet->to_read = 50000;
		evr_stream_shutdown(&quiet->side.stream, SHUT_WR);
		settle();
		ck_assert(evr_stream_status(&talks->side.stream).eof);
		while (quiet->read < quiet->to_read) {
			send_all_that_goes(talks);
			take(quiet, evr_stream_status(&quiet->side.stream).readable, false);
			settle();
		}
		evr_stream_shutdown(&talks->side.stream, SHUT_WR);
		settle();
		ck_assert(evr_stream_status(&quiet->side.stream).hangup);
		ck_assert(has_ended(quiet) && has_ended(talks));
	}
}
END_TEST

START_TEST(both_may_shut_down_at_once)
{
	static const int hows[] = { SHUT_WR, SHUT_RDWR };
	int a, b;

	for (a = 0; a < 2; a++)
		for (b = 0; b < 2; b++) {
			connect_two(a == b);
			evr_stream_shutdown(&users[0].side.stream, hows[a]);
			evr_stream_shutdown(&users[1].side.stream, hows[b]);
			wire_pump(&users[0].side);
			wire_pump(&users[1].side);
			settle();
			ck_assert(has_ended(&users[0]) && has_ended(&users[1]));
			ck_assert(evr_stream_status(&users[0].side.stream).hangup);
			ck_assert(evr_stream_status(&users[1].side.stream).hangup);
		}
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		a_reader_that_stops_stops_the_sender_until_it_reads,
		half_a_connection_goes_on_after_the_other_half,
		both_may_shut_down_at_once,
		random_pairs_transfer_every_byte_and_end_1,
		random_pairs_transfer_every_byte_and_end_2,
		random_pairs_transfer_every_byte_and_end_3,
		random_pairs_transfer_every_byte_and_end_4,
	};

	return unit_main("proto_pair", tests, sizeof(tests) / sizeof(tests[0]), NULL, NULL);
}
