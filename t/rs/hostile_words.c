/*
 * What a peer may say wrongly once it is connected. Each is said to a stream, which ends with an
 * error of its own; where the device cannot tell, it goes on.
 */
#include "rs/hostile_suite.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "proto/iomap.h"

enum {
	GOES_ON = 0,
	SOME = -1,  /* whatever the device makes of it */
	ENDED = -2, /* an end it is, and it need not be an error */
	ANY = -3,   /* it ends, or it goes on */
	QUIET_MS = 30,
	FLOOD = 24, /* messages */
	LARGE = 7168,
	PIECE = 1024,
	FAR = 1 << 30, /* from what was shown */
};

struct words {
	const char *name;
	void (*say)(struct hostile *hostile, uint64_t x);
	uint64_t x;
	int error, iwarp_error;
};

/* --- kinds ----------------------------------------------------------------------------------- */

static void immediate(struct hostile *hostile, uint64_t x)
{
	hostile_say(hostile, (uint32_t)x);
}

static void control_often(struct hostile *hostile, uint64_t x)
{
	int i;

	for (i = 0; i < 8; i++)
		hostile_say(hostile, evr_imm(EVR_IMM_CONTROL, (uint32_t)x));
}

static void credits_often(struct hostile *hostile, uint64_t x)
{
	int i;

	for (i = 0; i < 8; i++)
		hostile_say(hostile, evr_imm(EVR_IMM_SGL, (uint32_t)x));
}

/* Into the ring, at the place where it goes. */
static void data(struct hostile *hostile, uint32_t len, uint32_t told)
{
	const struct hostile_write write = {
		.addr = hostile->theirs.data.addr,
		.rkey = hostile->theirs.data.rkey,
		.len = len,
		.announced = true,
		.imm = evr_imm(EVR_IMM_DATA, told),
	};

	hostile_write(hostile, &write);
}

static void less_than_told(struct hostile *hostile, uint64_t x)
{
	data(hostile, (uint32_t)x - 1, (uint32_t)x);
}

static void data_after(struct hostile *hostile, uint64_t x)
{
	hostile_say(hostile, evr_imm(EVR_IMM_CONTROL, (uint32_t)x));
	data(hostile, 1, 1);
}

static void flood(struct hostile *hostile, uint64_t x)
{
	int i;

	for (i = 0; i < FLOOD; i++)
		data(hostile, (uint32_t)x, (uint32_t)x);
}

static void entry_at(struct hostile *hostile, const void *bytes, uint32_t len, uint64_t at)
{
	const struct hostile_write write = {
		.addr = hostile->theirs.target_addr + at,
		.rkey = hostile->theirs.target_rkey,
		.len = len,
		.announced = true,
		.imm = evr_imm(EVR_IMM_SGL, HOSTILE_CREDITS),
	};

	memcpy(hostile->memory, bytes, len);
	hostile_write(hostile, &write);
}

static const struct evr_sge entries[] = {
	{ 0, 0, 0 },
	{ UINT64_MAX - 10, 1, 100 },
	{ 4096, 1, UINT32_MAX },
	{ 4096, 1, (uint32_t)INT32_MAX + 1 },
	{ 4096, 1, 100 },
};

/* The first that comes is for the second place. */
static void entry(struct hostile *hostile, uint64_t x)
{
	entry_at(hostile, &entries[x], EVR_SGE_LEN, EVR_SGE_LEN);
}

static void half_an_entry(struct hostile *hostile, uint64_t x)
{
	entry_at(hostile, &entries[x], EVR_SGE_LEN / 2, EVR_SGE_LEN);
}

static void entry_before_its_turn(struct hostile *hostile, uint64_t x)
{
	entry(hostile, x);
	entry_at(hostile, &entries[x], EVR_SGE_LEN, 0);
}

/* Its length is what comes behind the targets; there is no table. */
static void mapping(struct hostile *hostile, uint64_t x)
{
	const struct hostile_write write = {
		.addr = hostile->theirs.target_addr + EVR_SGE_LEN * 2,
		.rkey = hostile->theirs.target_rkey,
		.len = EVR_IOMAP_ENTRY_LEN,
		.announced = true,
		.imm = evr_imm(EVR_IMM_IOMAP, (uint32_t)x),
	};

	hostile_write(hostile, &write);
}

static void write_far(struct hostile *hostile, uint64_t x)
{
	const struct hostile_write write = {
		.addr = hostile->theirs.data.addr + x,
		.rkey = hostile->theirs.data.rkey,
		.len = PIECE,
	};

	hostile_write(hostile, &write);
}

static void write_over_the_end(struct hostile *hostile, uint64_t x)
{
	const struct hostile_write write = {
		.addr = hostile->theirs.data.addr - x,
		.rkey = hostile->theirs.data.rkey,
		.len = PIECE,
	};

	hostile_write(hostile, &write);
}

static void write_with_key(struct hostile *hostile, uint64_t x)
{
	const struct hostile_write write = {
		.addr = hostile->theirs.data.addr,
		.rkey = hostile->theirs.data.rkey ^ (uint32_t)x,
		.len = PIECE,
	};

	hostile_write(hostile, &write);
}

/* siw lets no read leave where none was agreed on. */
static void read_ring(struct hostile *hostile, uint64_t x)
{
	hostile_read(hostile, hostile->theirs.data.addr, hostile->theirs.data.rkey, (uint32_t)x);
}

static void message(struct hostile *hostile, uint64_t x)
{
	hostile_send(hostile, (uint32_t)x);
}

static void disconnect(struct hostile *hostile, uint64_t x)
{
	rdma_disconnect(hostile->id);
}

#define RAW(op) ((uint64_t)(op) << EVR_IMM_DATA_BITS)
#define CONTROL(what) (RAW(EVR_IMM_CONTROL) | (what))

static const struct words table[] = {
	{ "operation 1 is unknown", immediate, RAW(1), EPROTO, EPROTO },
	{ "operation 2 is unknown", immediate, RAW(2) | 64, EPROTO, EPROTO },
	{ "operation 3 is unknown", immediate, RAW(3), EPROTO, EPROTO },
	{ "operation 5 is unknown", immediate, RAW(5) | 1, EPROTO, EPROTO },
	{ "control 3 is unknown", immediate, CONTROL(3), EPROTO, EPROTO },
	{ "the last control is unknown", immediate, UINT32_MAX, EPROTO, EPROTO },
	{ "keepalives are said for ever", control_often, EVR_IMM_KEEPALIVE, EOVERFLOW, EOVERFLOW },
	{ "the end is said for ever", control_often, EVR_IMM_SHUTDOWN, EOVERFLOW, EOVERFLOW },
	{ "data of no length", immediate, RAW(EVR_IMM_DATA), EMSGSIZE, EMSGSIZE },
	{ "data longer than the window", immediate, RAW(EVR_IMM_DATA) | 1 << 20, EMSGSIZE,
		EMSGSIZE },
	{ "the longest data", immediate, EVR_IMM_DATA_MAX, EMSGSIZE, EMSGSIZE },
	{ "data that was not written", immediate, RAW(EVR_IMM_DATA) | 100, EMSGSIZE, GOES_ON },
	{ "less data than was told", less_than_told, 100, EMSGSIZE, GOES_ON },
	{ "data after the end", data_after, EVR_IMM_SHUTDOWN, EPROTO, EPROTO },
	{ "data after the disconnect", data_after, EVR_IMM_DISCONNECT, ENDED, ENDED },
	{ "data over the window", flood, LARGE, EMSGSIZE, EMSGSIZE },
	{ "credits that go back", immediate, RAW(EVR_IMM_SGL), ERANGE, ERANGE },
	{ "credits over the queue", immediate, RAW(EVR_IMM_SGL) | 30000, ERANGE, ERANGE },
	{ "credits without news for ever", credits_often, HOSTILE_CREDITS, EOVERFLOW, EOVERFLOW },
	{ "half an entry", half_an_entry, 4, EBADMSG, GOES_ON },
	{ "an entry of no bytes", entry, 0, EBADMSG, GOES_ON },
	{ "an entry over the end of all addresses", entry, 1, EBADMSG, EBADMSG },
	{ "an entry of 4 GiB", entry, 2, EBADMSG, EBADMSG },
	{ "an entry of 2 GiB", entry, 3, EBADMSG, EBADMSG },
	{ "an entry before its turn", entry_before_its_turn, 4, EBADMSG, EBADMSG },
	{ "a mapping without a table", mapping, 0, ENXIO, ENXIO },
	{ "a mapping behind all tables", mapping, EVR_IMM_DATA_MAX, ENXIO, ENXIO },
	{ "a mapping that was not written", immediate, RAW(EVR_IMM_IOMAP), EBADMSG, ENXIO },
	{ "a write to what was not shown", write_far, FAR, SOME, SOME },
	{ "a write over the beginning of it", write_over_the_end, PIECE / 2, SOME, SOME },
	{ "a write with another key", write_with_key, 0xff, SOME, SOME },
	{ "a write with another device's key", write_with_key, 0xffff00, SOME, SOME },
	{ "a read of the ring", read_ring, 64, SOME, ANY },
	{ "a message of a kilobyte", message, PIECE, SOME, SOME },
	{ "a message of two bytes", message, 2, SOME, EPROTO },
	{ "a message of no bytes", message, 0, EPROTO, EPROTO },
	{ "a disconnect of the CM's", disconnect, 0, SOME, SOME },
};

/* --- what comes of it ------------------------------------------------------------------------ */

static void expect_nothing(struct hostile_victim *victim)
{
	hostile_await_sent(&victim->hostile);
	hostile_rest(QUIET_MS);
	ck_assert_int_eq(hostile_events(victim->fd) & (POLLERR | POLLHUP), 0);
}

/*
 * The error that it ends with, which is told once: to who sends, or asks. On some devices a queue
 * pair that has failed tells nobody who posts nothing.
 */
static int error_of(struct hostile_victim *victim, int expected)
{
	while (!(hostile_events(victim->fd) & (POLLERR | POLLHUP))) {
		if (expected == SOME && hostile_rsend(victim->fd, "x", 1) < 0 && errno != EAGAIN)
			return errno;
		hostile_rest(1);
	}
	return hostile_error(victim->fd);
}

static void expect_error(struct hostile_victim *victim, int expected)
{
	int error = error_of(victim, expected);

	if (expected == SOME)
		ck_assert_int_ne(error, 0);
	else if (expected != ENDED)
		ck_assert_msg(error == expected, "it ended with: %s", strerror(error));
	ck_assert_int_eq(hostile_rsend(victim->fd, "x", 1), -1);
}

/* What lies behind the targets of some is not theirs: the device says so. */
static int expectation(const struct words *row, bool iwarp)
{
	if (row->say == mapping && hostile_kind.shows_targets_alone)
		return SOME;
	if (iwarp && row->iwarp_error == ENXIO && hostile_kind.shows_targets_alone)
		return EPROTO;
	return iwarp ? row->iwarp_error : row->error;
}

START_TEST(words)
{
	const struct words *row = &table[_i / HOSTILE_ROLES];
	struct hostile_victim victim;
	int expected;

	hostile_meet(&victim, (enum hostile_role)(_i % HOSTILE_ROLES));
	row->say(&victim.hostile, row->x);
	expected = expectation(row, victim.hostile.iwarp);
	if (expected == GOES_ON)
		expect_nothing(&victim);
	else if (expected != ANY)
		expect_error(&victim, expected);
	hostile_bytes_pass();
	hostile_part(&victim);
}
END_TEST

TCase *hostile_words_case(enum hostile_role role)
{
	TCase *tcase = tcase_create(role == HOSTILE_CLIENT ? "client" : "server");
	int i;

	for (i = 0; i < (int)(sizeof(table) / sizeof(table[0])); i++)
		hostile_add(tcase, words, table[i].name, i * HOSTILE_ROLES + (int)role);
	return tcase;
}
