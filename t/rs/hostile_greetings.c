/*
 * What a peer may say of itself. Who asks so is refused, and the listener goes on; who answers so
 * is no rsocket to the side that asked. What cannot be told from the truth is believed, and does no
 * harm.
 */
#include "rs/hostile_suite.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GARBLED = 24, WHOLE = EVR_CONNDATA_LEN, QUIET_MS = 20 };

struct greeting {
	const char *name;
	size_t len;	    /* of the data */
	size_t at, num;	    /* what of it is changed, */
	uint8_t bytes[8];   /* and to what */
	bool is_believed;
	bool needs_no_padding; /* a CM that pads with zeroes makes it whole */
};

static const struct greeting table[] = {
	{ "nothing at all", 0, 0, 0, { 0 }, false, false },
	{ "one byte", 1, 0, 0, { 0 }, false, false },
	{ "half of it", 20, 0, 0, { 0 }, false, false },
	{ "all but the data buffer", 24, 0, 0, { 0 }, false, false },
	{ "all but the last byte", 39, 0, 0, { 0 }, false, true },
	{ "more than it", 56, 0, 0, { 0 }, true, false },
	{ "version 0", WHOLE, 0, 1, { 0 }, false, false },
	{ "version 2", WHOLE, 0, 1, { 2 }, false, false },
	{ "version 255", WHOLE, 0, 1, { 255 }, false, false },
	{ "no credits", WHOLE, 2, 2, { 0, 0 }, false, false },
	{ "the most credits", WHOLE, 2, 2, { 255, 255 }, true, false },
	{ "one credit", WHOLE, 2, 2, { 0, 1 }, true, false },
	{ "all flags, the largest table", WHOLE, 1, 7, { 255, 0, 64, 255, 255, 255, 255 }, true,
		false },
	{ "no targets", WHOLE, 20, 4, { 0, 0, 0, 0 }, false, false },
	{ "one target", WHOLE, 20, 4, { 0, 0, 0, 1 }, false, false },
	{ "three targets", WHOLE, 20, 4, { 0, 0, 0, 3 }, false, false },
	{ "2^32-1 targets", WHOLE, 20, 4, { 255, 255, 255, 255 }, false, false },
	{ "targets over the end of all addresses", WHOLE, 8, 8,
		{ 255, 255, 255, 255, 255, 255, 255, 240 }, false, false },
	{ "targets with another key", WHOLE, 16, 4, { 222, 173, 190, 239 }, true, false },
	{ "a buffer of no bytes", WHOLE, 36, 4, { 0, 0, 0, 0 }, false, false },
	{ "a buffer of one byte", WHOLE, 36, 4, { 0, 0, 0, 1 }, true, false },
	{ "a buffer of 2 GiB", WHOLE, 36, 4, { 128, 0, 0, 0 }, false, false },
	{ "a buffer of 4 GiB", WHOLE, 36, 4, { 255, 255, 255, 255 }, false, false },
	{ "a buffer over the end of all addresses", WHOLE, 24, 8,
		{ 255, 255, 255, 255, 255, 255, 255, 0 }, false, false },
	{ "a buffer at address 0", WHOLE, 24, 8, { 0 }, true, false },
	{ "a buffer with another key", WHOLE, 32, 4, { 222, 173, 190, 239 }, true, false },
};

static size_t write_greeting(
	const struct hostile *hostile, const struct greeting *row, uint8_t data[HOSTILE_DATA_MAX])
{
	memset(data, 0xa5, HOSTILE_DATA_MAX);
	hostile_encode(hostile, data);
	memcpy(data + row->at, row->bytes, row->num);
	return row->len;
}

static bool is_believed(const struct hostile *hostile, const struct greeting *row)
{
	return row->is_believed || (row->needs_no_padding && !hostile->iwarp);
}

/* Where it shows nothing of its own, what goes there by itself fails. */
static bool is_no_harm(int error)
{
	return !error || error == ECONNRESET;
}

/* --- to a listener --------------------------------------------------------------------------- */

/* One that is believed may be sent to, and ended. */
static void use_it(int fd)
{
	char bytes[4096] = "";

	hostile_rsend(fd, bytes, sizeof(bytes));
	hostile_rest(QUIET_MS);
	hostile_rrecv(fd, bytes, sizeof(bytes));
	ck_assert_int_eq(hostile_rclose(fd), 0);
}

static bool was_accepted(struct hostile *hostile)
{
	switch (hostile_await(hostile)) {
	case RDMA_CM_EVENT_ESTABLISHED:
		return true;
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_CONNECT_ERROR:
		return false;
	default:
		ck_abort_msg("neither accepted nor refused");
	}
}

static bool greet_listener(int listener, uint16_t port, const struct greeting *row, bool *expected)
{
	uint8_t data[HOSTILE_DATA_MAX];
	struct hostile hostile;
	bool accepted;

	hostile_open(&hostile);
	hostile_resolve(&hostile, port);
	*expected = is_believed(&hostile, row);
	hostile_request(&hostile, data, write_greeting(&hostile, row, data));
	accepted = was_accepted(&hostile);
	if (accepted)
		use_it(hostile_raccept(listener));
	hostile_close(&hostile);
	return accepted;
}

/* It has one more connection, of one that tells the truth. */
static void goes_on(int listener, uint16_t port)
{
	int client = hostile_rconnect(port), server = hostile_raccept(listener);

	hostile_wait_for(client, POLLOUT);
	ck_assert_int_eq(hostile_rsend(client, "x", 1), 1);
	hostile_wait_for(server, POLLIN);
	ck_assert_int_eq(hostile_rclose(client), 0);
	ck_assert_int_eq(hostile_rclose(server), 0);
}

static void to_listener(const struct greeting *row)
{
	uint16_t port;
	int listener = hostile_rlisten(&port);
	bool expected, accepted = greet_listener(listener, port, row, &expected);

	ck_assert_int_eq(accepted, expected);
	goes_on(listener, port);
	ck_assert_int_eq(hostile_rclose(listener), 0);
}

/* --- to one that asked ----------------------------------------------------------------------- */

static int answer(struct hostile *hostile, const struct greeting *row)
{
	uint8_t data[HOSTILE_DATA_MAX];
	int fd;

	hostile_open(hostile);
	fd = hostile_rconnect(hostile_listen(hostile));
	hostile_take_request(hostile);
	hostile_accept(hostile, data, write_greeting(hostile, row, data));
	hostile_wait_for(fd, POLLOUT);
	return fd;
}

static void to_client(const struct greeting *row)
{
	struct hostile hostile;
	int fd = answer(&hostile, row), error = hostile_error(fd);

	if (is_believed(&hostile, row)) {
		ck_assert_msg(is_no_harm(error), "%s", strerror(error));
		use_it(fd);
	} else {
		ck_assert_msg(error == ENOTSUP || error == EPROTO, "%s", strerror(error));
		ck_assert_int_eq(hostile_rclose(fd), 0);
	}
	hostile_close(&hostile);
}

START_TEST(greetings)
{
	const struct greeting *row = &table[_i / HOSTILE_ROLES];

	if (_i % HOSTILE_ROLES == HOSTILE_CLIENT)
		to_listener(row);
	else
		to_client(row);
	hostile_bytes_pass();
}
END_TEST

/* --- any bytes ------------------------------------------------------------------------------- */

static struct greeting garble(unsigned int seed)
{
	struct greeting row = { .len = 1 + seed * 5 % HOSTILE_DATA_MAX };
	size_t i;

	srandom(seed);
	row.at = (size_t)random() % (WHOLE - sizeof(row.bytes));
	row.num = sizeof(row.bytes);
	for (i = 0; i < row.num; i++)
		row.bytes[i] = (uint8_t)random();
	return row;
}

START_TEST(any_bytes_do_no_harm)
{
	uint16_t port;
	int listener = hostile_rlisten(&port);
	unsigned int seed;
	bool expected;

	for (seed = 1; seed <= GARBLED; seed++) {
		struct greeting row = garble(seed);

		greet_listener(listener, port, &row, &expected);
	}
	goes_on(listener, port);
	ck_assert_int_eq(hostile_rclose(listener), 0);
}
END_TEST

TCase *hostile_greetings_case(enum hostile_role role)
{
	TCase *tcase = tcase_create(role == HOSTILE_CLIENT ? "request" : "reply");
	int i;

	for (i = 0; i < (int)(sizeof(table) / sizeof(table[0])); i++)
		hostile_add(tcase, greetings, table[i].name, i * HOSTILE_ROLES + (int)role);
	if (role == HOSTILE_CLIENT)
		tcase_add_test(tcase, any_bytes_do_no_harm);
	return tcase;
}
