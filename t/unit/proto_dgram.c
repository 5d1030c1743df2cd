#include "unit/unit.h"

#include "proto/dgram.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t packet4[] = { 4, 8, 0x1d, 0x2f, 192, 168, 1, 2 };
static const struct evr_dgram_header header4 = {
	.version = 4, .port = 7471, .addr = { 192, 168, 1, 2 }
};

static const uint8_t packet6[] = { 6, 24, 0x1c, 0x06, 0x00, 0x01, 0x02, 0x03, 0x20, 1, 0xd, 0xb8, 0,
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9 };
static const struct evr_dgram_header header6 = {
	.version = 6, .port = 7174, .flowinfo = 0x00010203, .addr = { 0x20, 1, 0xd, 0xb8, [15] = 9 }
};

static const uint8_t udp4[] = { 0x55, 0x55, 0x55, 0x55, 4, 0, 16, 0, 0, 0x12, 0x34, 0x56, 10, 0, 0,
	1 };
static const struct evr_dgram_message message4 = {
	.version = 4, .op = EVR_DGRAM_DATA, .qpn = 0x123456, .addr = { 10, 0, 0, 1 }
};

static const uint8_t udp6[] = { 0x55, 0x55, 0x55, 0x55, 6, 7, 28, 0, 0, 0xff, 0xff, 0xff, 0xfe,
	0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5 };
static const struct evr_dgram_message message6 = {
	.version = 6, .op = EVR_DGRAM_CONTROL, .qpn = 0xffffff, .addr = { 0xfe, 0x80, [15] = 5 }
};

/* As long as the input and no longer, for the address sanitizer to see what is read. */
static uint8_t *copy_of(const uint8_t *bytes, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, bytes, len);
	return copy;
}

static int decoded(const uint8_t *bytes, size_t len, struct evr_dgram_header *header)
{
	uint8_t *copy = copy_of(bytes, len);
	int ret = evr_dgram_decode(header, copy, len);

	free(copy);
	return ret;
}

static int decoded_message(const uint8_t *bytes, size_t len, struct evr_dgram_message *message)
{
	uint8_t *copy = copy_of(bytes, len);
	int ret = evr_dgram_message_decode(message, copy, len);

	free(copy);
	return ret;
}

static void assert_header(const struct evr_dgram_header *want, const uint8_t *wire, int len)
{
	struct evr_dgram_header read;
	uint8_t bytes[32];

	ck_assert_int_eq(evr_dgram_encode(want, bytes, sizeof(bytes)), len);
	ck_assert_mem_eq(bytes, wire, (size_t)len);
	ck_assert_int_eq(evr_dgram_encode(want, bytes, (size_t)len - 1), -EMSGSIZE);
	ck_assert_int_eq(decoded(wire, (size_t)len, &read), len);
	ck_assert_uint_eq(read.version, want->version);
	ck_assert_uint_eq(read.port, want->port);
	ck_assert_uint_eq(read.flowinfo, want->flowinfo);
	ck_assert_mem_eq(read.addr, want->addr, sizeof(read.addr));
}

START_TEST(packets_have_these_headers)
{
	assert_header(&header4, packet4, EVR_DGRAM_LEN4);
	assert_header(&header6, packet6, EVR_DGRAM_LEN6);
}
END_TEST

START_TEST(every_cut_of_a_packet_is_refused)
{
	struct evr_dgram_header read;
	size_t len;

	for (len = 0; len < EVR_DGRAM_LEN4; len++)
		ck_assert_int_eq(decoded(packet4, len, &read), -EMSGSIZE);
	for (len = 0; len < EVR_DGRAM_LEN6; len++)
		ck_assert_int_eq(decoded(packet6, len, &read), -EMSGSIZE);
}
END_TEST

START_TEST(packets_of_other_versions_and_lengths_are_refused)
{
	struct evr_dgram_header read, five = header4;
	uint8_t bytes[32] = { 0 };
	unsigned int version, len;

	five.version = 5;
	ck_assert_int_eq(evr_dgram_encode(&five, bytes, sizeof(bytes)), -EAFNOSUPPORT);
	for (version = 0; version <= UINT8_MAX; version++)
		for (len = 0; len <= UINT8_MAX; len++) {
			int want = version == 4 ? 8 : version == 6 ? 24 : -EAFNOSUPPORT;

			bytes[0] = (uint8_t)version;
			bytes[1] = (uint8_t)len;
			if (want > 0 && want != (int)len)
				want = -EBADMSG;
			ck_assert_int_eq(decoded(bytes, sizeof(bytes), &read), want);
		}
}
END_TEST

static void assert_message(const struct evr_dgram_message *want, const uint8_t *wire, int len)
{
	struct evr_dgram_message read;
	uint8_t bytes[32];

	ck_assert_int_eq(evr_dgram_message_encode(want, bytes, sizeof(bytes)), len);
	ck_assert_mem_eq(bytes, wire, (size_t)len);
	ck_assert_int_eq(evr_dgram_message_encode(want, bytes, (size_t)len - 1), -EMSGSIZE);
	ck_assert_int_eq(decoded_message(wire, (size_t)len, &read), len);
	ck_assert_uint_eq(read.version, want->version);
	ck_assert_uint_eq(read.op, want->op);
	ck_assert_uint_eq(read.qpn, want->qpn);
	ck_assert_mem_eq(read.addr, want->addr, sizeof(read.addr));
}

START_TEST(messages_by_udp_are_these_bytes)
{
	assert_message(&message4, udp4, EVR_DGRAM_UDP_LEN4);
	assert_message(&message6, udp6, EVR_DGRAM_UDP_LEN6);
}
END_TEST

START_TEST(every_cut_of_a_message_is_refused)
{
	struct evr_dgram_message read;
	size_t len;

	for (len = 0; len < EVR_DGRAM_UDP_LEN4; len++)
		ck_assert_int_eq(decoded_message(udp4, len, &read), -EMSGSIZE);
	for (len = 0; len < EVR_DGRAM_UDP_LEN6; len++)
		ck_assert_int_eq(decoded_message(udp6, len, &read), -EMSGSIZE);
}
END_TEST

START_TEST(data_may_follow_data_and_nothing_follows_control)
{
	struct evr_dgram_message read;
	uint8_t bytes[64] = { 0 };

	memcpy(bytes, udp4, sizeof(udp4));
	ck_assert_int_eq(decoded_message(bytes, sizeof(bytes), &read), EVR_DGRAM_UDP_LEN4);
	bytes[5] = EVR_DGRAM_CONTROL;
	ck_assert_int_eq(decoded_message(bytes, sizeof(bytes), &read), -EMSGSIZE);
	ck_assert_int_eq(decoded_message(bytes, sizeof(udp4), &read), EVR_DGRAM_UDP_LEN4);
}
END_TEST

static const struct {
	const char *name;
	int error;
	size_t at;
	uint8_t byte;
} faults[] = {
	{ "tag, first byte", -EPROTO, 0, 0x54 },
	{ "tag, last byte", -EPROTO, 3, 0 },
	{ "version 0", -EAFNOSUPPORT, 4, 0 },
	{ "version 5", -EAFNOSUPPORT, 4, 5 },
	{ "version 6 with the length of 4", -EBADMSG, 4, 6 },
	{ "operation 1", -EBADMSG, 5, 1 },
	{ "operation 255", -EBADMSG, 5, 255 },
	{ "length 15", -EBADMSG, 6, 15 },
	{ "length 28 in version 4", -EBADMSG, 6, 28 },
	{ "length 0", -EBADMSG, 6, 0 },
};

START_TEST(each_fault_of_a_message_has_its_error)
{
	struct evr_dgram_message read;
	uint8_t bytes[sizeof(udp4)];
	size_t i;

	for (i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		memcpy(bytes, udp4, sizeof(bytes));
		bytes[faults[i].at] = faults[i].byte;
		ck_assert_msg(decoded_message(bytes, sizeof(bytes), &read) == faults[i].error, "%s",
			faults[i].name);
	}
}
END_TEST

START_TEST(bits_above_the_queue_pair_are_left_out)
{
	struct evr_dgram_message read, wide = message4, odd = message4;
	uint8_t bytes[sizeof(udp4)];

	memcpy(bytes, udp4, sizeof(bytes));
	bytes[7] = bytes[8] = 0xff;
	ck_assert_int_eq(decoded_message(bytes, sizeof(bytes), &read), EVR_DGRAM_UDP_LEN4);
	ck_assert_uint_eq(read.qpn, message4.qpn);
	wide.qpn = EVR_DGRAM_QPN_MAX + 1;
	odd.op = 3;
	ck_assert_int_eq(evr_dgram_message_encode(&wide, bytes, sizeof(bytes)), -EINVAL);
	ck_assert_int_eq(evr_dgram_message_encode(&odd, bytes, sizeof(bytes)), -EINVAL);
	wide.version = 5;
	ck_assert_int_eq(evr_dgram_message_encode(&wide, bytes, sizeof(bytes)), -EAFNOSUPPORT);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		packets_have_these_headers,
		every_cut_of_a_packet_is_refused,
		packets_of_other_versions_and_lengths_are_refused,
		messages_by_udp_are_these_bytes,
		every_cut_of_a_message_is_refused,
		data_may_follow_data_and_nothing_follows_control,
		each_fault_of_a_message_has_its_error,
		bits_above_the_queue_pair_are_left_out,
	};

	return unit_main("proto_dgram", tests, sizeof(tests) / sizeof(tests[0]), NULL, NULL);
}
