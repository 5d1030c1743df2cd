#include "unit/unit.h"

#include "proto/conndata.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

static const struct evr_conndata conn = {
	.big_endian = false,
	.iomap = true,
	.credits = 384,
	.iomap_size = 512,
	.target_addr = UINT64_C(0x1122334455667788),
	.target_rkey = 0x99aabbcc,
	.data = { .addr = UINT64_C(0x7fff00001000), .rkey = 0x01020304, .len = 65536 },
};

static const uint8_t wire[EVR_CONNDATA_LEN] = {
	/* version, flags, credits, reserved, scaled size of the table */
	1,
	2,
	0x01,
	0x80,
	0,
	0,
	0,
	0x82,
	/* target: address, key, entries */
	0x11,
	0x22,
	0x33,
	0x44,
	0x55,
	0x66,
	0x77,
	0x88,
	0x99,
	0xaa,
	0xbb,
	0xcc,
	0,
	0,
	0,
	2,
	/* data buffer: address, key, length */
	0,
	0,
	0x7f,
	0xff,
	0,
	0,
	0x10,
	0,
	1,
	2,
	3,
	4,
	0,
	1,
	0,
	0,
};

static void assert_same(const struct evr_conndata *a, const struct evr_conndata *b)
{
	ck_assert_int_eq(a->big_endian, b->big_endian);
	ck_assert_int_eq(a->iomap, b->iomap);
	ck_assert_uint_eq(a->credits, b->credits);
	ck_assert_uint_eq(a->iomap_size, b->iomap_size);
	ck_assert_uint_eq(a->target_addr, b->target_addr);
	ck_assert_uint_eq(a->target_rkey, b->target_rkey);
	ck_assert_uint_eq(a->data.addr, b->data.addr);
	ck_assert_uint_eq(a->data.rkey, b->data.rkey);
	ck_assert_uint_eq(a->data.len, b->data.len);
}

START_TEST(what_is_sent_is_these_forty_bytes)
{
	uint8_t bytes[EVR_CONNDATA_LEN];

	ck_assert_int_eq(evr_conndata_encode(&conn, 0, bytes, sizeof(bytes)), EVR_CONNDATA_LEN);
	ck_assert_mem_eq(bytes, wire, sizeof(wire));
}
END_TEST

START_TEST(a_big_endian_host_says_so)
{
	struct evr_conndata big = conn, read;
	uint8_t bytes[EVR_CONNDATA_LEN];

	big.big_endian = true;
	big.iomap = false;
	evr_conndata_encode(&big, 0, bytes, sizeof(bytes));
	ck_assert_uint_eq(bytes[1], 1);
	ck_assert_int_eq(evr_conndata_decode(&read, 0, bytes, sizeof(bytes)), 0);
	ck_assert(read.big_endian && !read.iomap);
	ck_assert_uint_eq(read.iomap_size, 0);
}
END_TEST

START_TEST(these_forty_bytes_are_read_and_padding_is_left)
{
	uint8_t padded[56] = { 0 };
	struct evr_conndata read;

	ck_assert_int_eq(evr_conndata_decode(&read, 0, wire, sizeof(wire)), 0);
	assert_same(&read, &conn);
	memset(padded, 0xff, sizeof(padded));
	memcpy(padded, wire, sizeof(wire));
	ck_assert_int_eq(evr_conndata_decode(&read, 0, padded, sizeof(padded)), 0);
	assert_same(&read, &conn);
}
END_TEST

START_TEST(between_ib_addresses_zeroes_come_first)
{
	uint8_t bytes[EVR_CONNDATA_IB_PREFIX + EVR_CONNDATA_LEN];
	static const uint8_t zeroes[EVR_CONNDATA_IB_PREFIX];
	struct evr_conndata read;

	memset(bytes, 0xff, sizeof(bytes));
	ck_assert_int_eq(evr_conndata_encode(&conn, EVR_CONNDATA_IB_PREFIX, bytes, sizeof(bytes)),
		sizeof(bytes));
	ck_assert_mem_eq(bytes, zeroes, sizeof(zeroes));
	ck_assert_mem_eq(bytes + EVR_CONNDATA_IB_PREFIX, wire, sizeof(wire));
	memset(bytes, 0xff, EVR_CONNDATA_IB_PREFIX);
	ck_assert_int_eq(
		evr_conndata_decode(&read, EVR_CONNDATA_IB_PREFIX, bytes, sizeof(bytes)), 0);
	assert_same(&read, &conn);
}
END_TEST

START_TEST(too_little_room_is_refused_and_left_alone)
{
	uint8_t bytes[EVR_CONNDATA_LEN] = { 0 };

	ck_assert_int_eq(evr_conndata_encode(&conn, 0, bytes, 39), -EMSGSIZE);
	ck_assert_int_eq(evr_conndata_encode(&conn, 1, bytes, 40), -EMSGSIZE);
	ck_assert_int_eq(evr_conndata_encode(&conn, 41, bytes, 40), -EMSGSIZE);
	ck_assert_uint_eq(bytes[0], 0);
}
END_TEST

START_TEST(absent_and_short_data_are_refused)
{
	struct evr_conndata read;
	size_t len;

	ck_assert_int_eq(evr_conndata_decode(&read, 0, NULL, 40), -ENODATA);
	ck_assert_int_eq(evr_conndata_decode(&read, 0, wire, 0), -ENODATA);
	for (len = 1; len < EVR_CONNDATA_LEN; len++)
		ck_assert_int_eq(evr_conndata_decode(&read, 0, wire, len), -EMSGSIZE);
	ck_assert_int_eq(evr_conndata_decode(&read, 36, wire, 40), -EMSGSIZE);
	ck_assert_int_eq(evr_conndata_decode(&read, 36, wire, 35), -EMSGSIZE);
}
END_TEST

/* The good bytes, with others at one place. */
static const struct refusal {
	const char *name;
	int error;
	size_t at, len;
	uint8_t bytes[8];
} refusals[] = {
	{ "version 0", -ENOTSUP, 0, 1, { 0 } },
	{ "version 2", -ENOTSUP, 0, 1, { 2 } },
	{ "no credits", -ENOBUFS, 2, 2, { 0, 0 } },
	{ "no target entries", -EDOM, 20, 4, { 0, 0, 0, 0 } },
	{ "one target entry", -EDOM, 20, 4, { 0, 0, 0, 1 } },
	{ "three target entries", -EDOM, 20, 4, { 0, 0, 0, 3 } },
	{ "two in the other order", -EDOM, 20, 4, { 2, 0, 0, 0 } },
	{ "target at the end of all addresses", -ERANGE, 8, 8,
		{ 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xf0 } },
	{ "its table over the end", -ERANGE, 8, 8,
		{ 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xd0, 0 } },
	{ "no data buffer", -ENOSPC, 36, 4, { 0, 0, 0, 0 } },
	{ "a data buffer of 2 GiB", -ERANGE, 36, 4, { 0x80, 0, 0, 0 } },
	{ "a data buffer over the end of all addresses", -ERANGE, 24, 8,
		{ 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 1 } },
};

START_TEST(each_fault_has_its_own_error)
{
	uint8_t bytes[EVR_CONNDATA_LEN];
	struct evr_conndata read;
	size_t i;

	for (i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		const struct refusal *r = &refusals[i];

		memcpy(bytes, wire, sizeof(wire));
		memcpy(bytes + r->at, r->bytes, r->len);
		ck_assert_msg(evr_conndata_decode(&read, 0, bytes, sizeof(bytes)) == r->error, "%s",
			r->name);
	}
}
END_TEST

START_TEST(reserved_bytes_and_flags_do_not_matter)
{
	uint8_t bytes[EVR_CONNDATA_LEN];
	struct evr_conndata read;

	memcpy(bytes, wire, sizeof(wire));
	bytes[1] |= 0xfc;
	memset(bytes + 4, 0xff, 3);
	ck_assert_int_eq(evr_conndata_decode(&read, 0, bytes, sizeof(bytes)), 0);
	assert_same(&read, &conn);
}
END_TEST

START_TEST(sizes_of_tables_are_rounded_down)
{
	static const struct {
		uint32_t size;
		uint8_t scaled;
		uint32_t back;
	} sizes[] = {
		{ 0, 0, 0 },
		{ 1, 1, 1 },
		{ 127, 127, 127 },
		{ 128, 128, 128 },
		{ 129, 128, 128 },
		{ 255, 128, 128 },
		{ 256, 129, 256 },
		{ 511, 129, 256 },
		{ 512, 130, 512 },
		{ 1000, 131, 768 },
		{ 32512, 255, 32512 },
		{ 32767, 255, 32512 },
		{ 32768, 255, 32512 },
		{ UINT32_MAX, 255, 32512 },
	};
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		ck_assert_uint_eq(evr_iomap_scale(sizes[i].size), sizes[i].scaled);
		ck_assert_uint_eq(evr_iomap_unscale(sizes[i].scaled), sizes[i].back);
	}
}
END_TEST

START_TEST(every_scaled_size_stays_itself)
{
	unsigned int i;

	for (i = 0; i <= UINT8_MAX; i++)
		ck_assert_uint_eq(evr_iomap_scale(evr_iomap_unscale((uint8_t)i)), i);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		what_is_sent_is_these_forty_bytes,
		a_big_endian_host_says_so,
		these_forty_bytes_are_read_and_padding_is_left,
		between_ib_addresses_zeroes_come_first,
		too_little_room_is_refused_and_left_alone,
		absent_and_short_data_are_refused,
		each_fault_has_its_own_error,
		reserved_bytes_and_flags_do_not_matter,
		sizes_of_tables_are_rounded_down,
		every_scaled_size_stays_itself,
	};

	return unit_main("proto_conndata", tests, sizeof(tests) / sizeof(tests[0]), NULL, NULL);
}
