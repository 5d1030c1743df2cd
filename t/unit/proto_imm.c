#include "unit/unit.h"

#include "proto/bytes.h"
#include "proto/imm.h"
#include "proto/sge.h"
#include "proto/wrid.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

static const struct {
	enum evr_imm_op op;
	uint32_t data, imm;
	uint8_t ib[4];
} immediates[] = {
	{ EVR_IMM_DATA, 1, 0x00000001, { 0, 0, 0, 1 } },
	{ EVR_IMM_DATA, 2048, 0x00000800, { 0, 0, 8, 0 } },
	{ EVR_IMM_DATA, EVR_IMM_DATA_MAX, 0x1fffffff, { 0x1f, 0xff, 0xff, 0xff } },
	{ EVR_IMM_WRITE, 5, 0x40000005, { 0x40, 0, 0, 5 } },
	{ EVR_IMM_SGL, 384, 0x80000180, { 0x80, 0, 1, 0x80 } },
	{ EVR_IMM_SGL, 0x1fffd, 0x8001fffd, { 0x80, 1, 0xff, 0xfd } },
	{ EVR_IMM_IOMAP, 7, 0xc0000007, { 0xc0, 0, 0, 7 } },
	{ EVR_IMM_CONTROL, EVR_IMM_DISCONNECT, 0xe0000000, { 0xe0, 0, 0, 0 } },
	{ EVR_IMM_CONTROL, EVR_IMM_KEEPALIVE, 0xe0000001, { 0xe0, 0, 0, 1 } },
	{ EVR_IMM_CONTROL, EVR_IMM_SHUTDOWN, 0xe0000002, { 0xe0, 0, 0, 2 } },
};

enum { IMMEDIATES = sizeof(immediates) / sizeof(immediates[0]) };

START_TEST(an_immediate_is_three_bits_and_twenty_nine)
{
	int i;

	for (i = 0; i < IMMEDIATES; i++) {
		ck_assert_uint_eq(evr_imm(immediates[i].op, immediates[i].data), immediates[i].imm);
		ck_assert_uint_eq(evr_imm_op(immediates[i].imm), immediates[i].op);
		ck_assert_uint_eq(evr_imm_data(immediates[i].imm), immediates[i].data);
	}
}
END_TEST

START_TEST(data_above_the_bits_does_not_reach_the_operation)
{
	ck_assert_uint_eq(evr_imm(EVR_IMM_DATA, UINT32_MAX), 0x1fffffff);
}
END_TEST

START_TEST(on_infiniband_it_is_big_endian)
{
	uint32_t imm_data;
	int i;

	for (i = 0; i < IMMEDIATES; i++) {
		imm_data = evr_imm_to_ib(immediates[i].imm);
		ck_assert_mem_eq(&imm_data, immediates[i].ib, sizeof(imm_data));
		ck_assert_uint_eq(evr_imm_from_ib(imm_data), immediates[i].imm);
	}
}
END_TEST

START_TEST(on_iwarp_it_is_a_message_in_host_order)
{
	uint8_t message[EVR_IMM_MESSAGE_LEN + 1];
	int i;

	for (i = 0; i < IMMEDIATES; i++) {
		evr_imm_to_message(immediates[i].imm, message + 1);
		ck_assert_mem_eq(message + 1, &immediates[i].imm, EVR_IMM_MESSAGE_LEN);
		ck_assert_uint_eq(evr_imm_from_message(message + 1), immediates[i].imm);
	}
	evr_imm_to_message(0xe0000002, message);
	ck_assert_uint_eq(message[evr_host_is_big_endian() ? 0 : 3], 0xe0);
}
END_TEST

START_TEST(an_entry_has_sixteen_bytes_in_either_order)
{
	static const uint8_t big[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0, 0, 16, 1 };
	static const uint8_t little[] = { 8, 7, 6, 5, 4, 3, 2, 1, 12, 11, 10, 9, 1, 16, 0, 0 };
	struct evr_sge sge = evr_sge_get(big, true), same = evr_sge_get(little, false);
	uint8_t bytes[EVR_SGE_LEN];

	ck_assert_uint_eq(sge.addr, UINT64_C(0x0102030405060708));
	ck_assert_uint_eq(sge.rkey, 0x090a0b0c);
	ck_assert_uint_eq(sge.len, 4097);
	ck_assert_mem_eq(&sge, &same, sizeof(sge));
	evr_sge_put(&sge, bytes, true);
	ck_assert_mem_eq(bytes, big, sizeof(bytes));
	evr_sge_put(&sge, bytes, false);
	ck_assert_mem_eq(bytes, little, sizeof(bytes));
}
END_TEST

/* What a peer writes into our memory by RDMA is read as it lies there. */
START_TEST(an_entry_lies_in_memory_as_its_bytes_do)
{
	struct evr_sge sge = { .addr = UINT64_C(0x0102030405060708), .rkey = 9, .len = 10 };
	uint8_t bytes[EVR_SGE_LEN];

	ck_assert_uint_eq(sizeof(sge), EVR_SGE_LEN);
	evr_sge_put(&sge, bytes, evr_host_is_big_endian());
	ck_assert_mem_eq(bytes, &sge, sizeof(sge));
}
END_TEST

START_TEST(entries_of_no_use_are_refused)
{
	static const struct {
		struct evr_sge sge;
		int error;
	} entries[] = {
		{ { .addr = 0, .len = 1 }, 0 },
		{ { .addr = 1, .len = EVR_SGE_MAX }, 0 },
		{ { .addr = UINT64_MAX - 5, .len = 5 }, 0 },
		{ { .addr = UINT64_MAX - 5, .len = 6 }, -ERANGE },
		{ { .addr = UINT64_MAX, .len = EVR_SGE_MAX }, -ERANGE },
		{ { .addr = 0, .len = UINT32_C(0x80000000) }, -ERANGE },
		{ { .addr = 0, .len = UINT32_MAX }, -ERANGE },
		{ { .addr = 1, .len = 0 }, -ENOSPC },
	};
	size_t i;

	for (i = 0; i < sizeof(entries) / sizeof(entries[0]); i++)
		ck_assert_int_eq(evr_sge_check(&entries[i].sge), entries[i].error);
}
END_TEST

START_TEST(the_kinds_of_work_ids_are_apart)
{
	uint64_t recv = evr_wrid_recv(UINT32_MAX), send = evr_wrid_send(UINT32_MAX);
	uint64_t first = evr_wrid_first(send);

	ck_assert(evr_wrid_is_recv(recv) && !evr_wrid_is_recv(send) && !evr_wrid_is_recv(first));
	ck_assert(evr_wrid_is_first(first) && !evr_wrid_is_first(send));
	ck_assert(!evr_wrid_is_first(recv));
	ck_assert_uint_eq(evr_wrid_number(recv), UINT32_MAX);
	ck_assert_uint_eq(evr_wrid_number(first), UINT32_MAX);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		an_immediate_is_three_bits_and_twenty_nine,
		data_above_the_bits_does_not_reach_the_operation,
		on_infiniband_it_is_big_endian,
		on_iwarp_it_is_a_message_in_host_order,
		an_entry_has_sixteen_bytes_in_either_order,
		an_entry_lies_in_memory_as_its_bytes_do,
		entries_of_no_use_are_refused,
		the_kinds_of_work_ids_are_apart,
	};

	return unit_main("proto_imm", tests, sizeof(tests) / sizeof(tests[0]), NULL, NULL);
}
