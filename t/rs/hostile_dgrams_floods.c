/*
 * Strangers without number: each is of another address or port, and tells a queue pair that is
 * none. What is kept of them has a bound, and nobody else is the worse for it.
 */
#include "rs/hostile_dgrams.h"
#include "rs/hostile_objects.h"

#include <arpa/inet.h>
#include <malloc.h>
#include <rdma/rsocket.h>
#include <stdio.h>
#include <string.h>

#include "proto/dgram.h"

enum {
	STRANGERS = 1600, /* more than are known of each rank */
	AT_ONCE = HOSTILE_DGRAMS_ROOM / 2,
	IDS_MOST = 16, /* that look for a path */
	NOISE = 32768, /* bytes that memory may go up and down by */
	ONE = 100,     /* and those that one stranger takes, at least */
	FIRST = 1,     /* ports that nobody has */
};

_Static_assert(STRANGERS * ONE > 4 * NOISE, "it would be seen");

struct flood {
	const char *name;
	bool by_qp, control, answered;
};

static const struct flood floods[] = {
	{ .name = "udp: strangers who are heard" },
	{ .name = "udp: strangers who are answered", .answered = true },
	{ .name = "udp: answers that nobody asked for", .control = true },
	{ .name = "qp: strangers who are heard", .by_qp = true },
	{ .name = "qp: strangers who are answered", .by_qp = true, .answered = true },
};

/* --- one of them ----------------------------------------------------------------------------- */

static void name_of(int stranger, char ip[INET_ADDRSTRLEN])
{
	const struct in_addr addr = {
		.s_addr = htonl(INADDR_LOOPBACK + 256u + (uint32_t)(stranger / 200) * 256u +
				(uint32_t)(stranger % 200)),
	};

	inet_ntop(AF_INET, &addr, ip, INET_ADDRSTRLEN);
}

static void say_by_udp(const struct flood *flood, int stranger)
{
	struct evr_dgram_message message = {
		.version = 4,
		.op = flood->control ? EVR_DGRAM_CONTROL : EVR_DGRAM_DATA,
		.qpn = 0x800000 + (uint32_t)stranger,
	};
	uint8_t bytes[EVR_DGRAM_UDP_LEN4 + 1] = { 0 };
	char ip[INET_ADDRSTRLEN];

	name_of(stranger, ip);
	evr_dgram_message_encode(&message, bytes, sizeof(bytes));
	hostile_dgram_say_from(&hostile_dgrams.hostile, ip, bytes, sizeof(bytes) - flood->control);
}

/* The device tells the address, so that they differ by their ports. */
static void say_by_qp(int stranger)
{
	struct evr_dgram_header header = { .version = 4, .port = (uint16_t)(FIRST + stranger) };
	const struct sockaddr_in *own = &hostile_dgrams.hostile.own;
	uint8_t bytes[EVR_DGRAM_LEN4 + 1] = { 0 };

	memcpy(header.addr, &own->sin_addr, sizeof(own->sin_addr));
	evr_dgram_encode(&header, bytes, sizeof(bytes));
	hostile_dgram_say_by_qp(&hostile_dgrams.hostile, &(struct hostile_dgram_way){ 0 }, bytes,
		sizeof(bytes));
}

/* --- all of them ----------------------------------------------------------------------------- */

static void say(const struct flood *flood, int stranger)
{
	if (flood->by_qp)
		say_by_qp(stranger);
	else
		say_by_udp(flood, stranger);
}

/* No more at once than there is room for, and the honest one among them. */
static void run(const struct flood *flood)
{
	int i;

	for (i = 0; i < STRANGERS; i++) {
		say(flood, i);
		if (i % AT_ONCE < AT_ONCE - 1)
			continue;
		ck_assert_uint_eq(hostile_dgrams_hear_until_last(flood->by_qp, flood->answered),
			flood->control ? 0 : AT_ONCE);
		if (i % 200 == AT_ONCE - 1)
			hostile_dgrams_honest_pass();
	}
	hostile_dgrams_honest_pass();
}

static size_t memory(void)
{
	return mallinfo2().uordblks;
}

static void run_twice(const struct flood *flood)
{
	unsigned int objects = hostile_objects();
	size_t before;

	run(flood);
	ck_assert_uint_le(hostile_objects(), objects + IDS_MOST);
	before = memory();
	run(flood);
	ck_assert_uint_le(memory(), before + NOISE);
	ck_assert_uint_le(hostile_objects(), objects + IDS_MOST);
}

START_TEST(a_flood)
{
	run_twice(&floods[_i]);
}
END_TEST

/* What is not from its peer takes no receive and no memory: there may be any number at once. */
START_TEST(a_connected_one_hears_none_of_them)
{
	struct sockaddr_in *peer = &hostile_dgrams.honest_addr;
	int i;

	ck_assert_int_eq(
		rconnect(hostile_dgrams.victim, (struct sockaddr *)peer, sizeof(*peer)), 0);
	for (i = 0; i < STRANGERS; i++) {
		say_by_qp(i);
		say_by_udp(&floods[i % 3], i);
		if (i % AT_ONCE == AT_ONCE - 1)
			hostile_dgrams_honest_pass();
	}
}
END_TEST

TCase *hostile_dgrams_floods_case(void)
{
	enum { NUM = sizeof(floods) / sizeof(floods[0]) };
	static TTest named[NUM];
	TCase *tcase = tcase_create("floods");
	int i;

	for (i = 0; i < NUM; i++) {
		named[i] = *a_flood;
		named[i].name = floods[i].name;
		tcase_add_loop_test(tcase, &named[i], i, i + 1);
	}
	tcase_add_test(tcase, a_connected_one_hears_none_of_them);
	return tcase;
}
