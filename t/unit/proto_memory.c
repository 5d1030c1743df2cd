/* Rings, the peer's target, mappings. */
#include "unit/unit.h"

#include "proto/iomap.h"
#include "proto/rxring.h"
#include "proto/target.h"
#include "proto/txring.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

/* --- the receive ring ------------------------------------------------------------------------ */

enum { HALF = 100 };

static struct evr_rxring rx;

static void assert_readable(uint32_t offset, uint32_t len, uint32_t wrapped)
{
	struct evr_span spans[2];

	ck_assert_uint_eq(evr_rxring_spans(&rx, spans), len + wrapped);
	ck_assert_uint_eq(spans[0].offset, offset);
	ck_assert_uint_eq(spans[0].len, len);
	ck_assert_uint_eq(spans[1].offset, 0);
	ck_assert_uint_eq(spans[1].len, wrapped);
}

START_TEST(the_first_half_is_given_and_the_second_is_due)
{
	evr_rxring_init(&rx, HALF);
	ck_assert_uint_eq(evr_rxring_room(&rx), HALF);
	ck_assert(evr_rxring_is_due(&rx));
	ck_assert_uint_eq(evr_rxring_give(&rx), HALF);
	ck_assert(!evr_rxring_is_due(&rx));
	ck_assert_uint_eq(evr_rxring_room(&rx), HALF);
	assert_readable(0, 0, 0);
}
END_TEST

START_TEST(the_peer_may_not_write_over_a_half)
{
	evr_rxring_init(&rx, HALF);
	ck_assert_int_eq(evr_rxring_write(&rx, 0), -EMSGSIZE);
	ck_assert_int_eq(evr_rxring_write(&rx, HALF + 1), -EMSGSIZE);
	ck_assert_int_eq(evr_rxring_write(&rx, 60), 0);
	ck_assert_int_eq(evr_rxring_write(&rx, 41), -EMSGSIZE);
	ck_assert_int_eq(evr_rxring_write(&rx, 40), 0);
	ck_assert_int_eq(evr_rxring_write(&rx, 1), -EMSGSIZE);
	evr_rxring_give(&rx);
	ck_assert_int_eq(evr_rxring_write(&rx, UINT32_MAX), -EMSGSIZE);
	ck_assert_int_eq(evr_rxring_write(&rx, HALF), 0);
	assert_readable(0, 2 * HALF, 0);
}
END_TEST

START_TEST(a_half_is_due_again_when_its_last_byte_is_back)
{
	evr_rxring_init(&rx, HALF);
	evr_rxring_give(&rx);
	evr_rxring_write(&rx, HALF);
	evr_rxring_write(&rx, 50);
	evr_rxring_consume(&rx, HALF - 1);
	ck_assert(!evr_rxring_is_due(&rx));
	evr_rxring_consume(&rx, 1);
	ck_assert(evr_rxring_is_due(&rx));
	ck_assert_uint_eq(evr_rxring_give(&rx), 0);
	assert_readable(HALF, 50, 0);
	evr_rxring_write(&rx, 50);
	evr_rxring_write(&rx, 30);
	assert_readable(HALF, HALF, 30);
}
END_TEST

START_TEST(what_is_lent_is_not_given_to_the_peer)
{
	evr_rxring_init(&rx, HALF);
	evr_rxring_give(&rx);
	evr_rxring_write(&rx, HALF);
	evr_rxring_write(&rx, HALF);
	evr_rxring_lend(&rx, 10);
	evr_rxring_consume(&rx, 190);
	assert_readable(0, 0, 0);
	ck_assert(!evr_rxring_is_due(&rx));
	evr_rxring_release(&rx, 9);
	ck_assert(!evr_rxring_is_due(&rx));
	evr_rxring_release(&rx, 1);
	ck_assert_uint_eq(rx.released, 200);
	evr_rxring_release(&rx, 50);
	ck_assert_uint_eq(rx.released, 200);
}
END_TEST

START_TEST(more_than_there_is_cannot_be_read)
{
	evr_rxring_init(&rx, HALF);
	evr_rxring_write(&rx, 7);
	evr_rxring_lend(&rx, 1000);
	ck_assert_uint_eq(rx.taken, 7);
	evr_rxring_release(&rx, 1000);
	evr_rxring_consume(&rx, 1000);
	ck_assert_uint_eq(rx.released, 7);
}
END_TEST

/* --- the send ring --------------------------------------------------------------------------- */

START_TEST(a_send_ring_goes_round_in_pieces)
{
	struct evr_txring tx;

	evr_txring_init(&tx, 100);
	ck_assert_uint_eq(evr_txring_take(&tx, 70), 0);
	ck_assert_uint_eq(evr_txring_contiguous(&tx), 30);
	evr_txring_release(&tx, 50);
	ck_assert_uint_eq(evr_txring_free(&tx), 80);
	ck_assert_uint_eq(evr_txring_contiguous(&tx), 30);
	ck_assert_uint_eq(evr_txring_take(&tx, 30), 70);
	ck_assert_uint_eq(evr_txring_contiguous(&tx), 50);
	ck_assert_uint_eq(evr_txring_take(&tx, 50), 0);
	ck_assert_uint_eq(evr_txring_contiguous(&tx), 0);
}
END_TEST

/* --- the peer's target ----------------------------------------------------------------------- */

static struct evr_sge memory[EVR_TARGET_ENTRIES];
static struct evr_target target;
static const struct evr_sge first = { .addr = 1000, .rkey = 7, .len = 100 };
static const struct evr_sge second = { .addr = 1100, .rkey = 7, .len = 100 };

static void start_target(void)
{
	memset(memory, 0xff, sizeof(memory));
	evr_target_init(&target, memory);
	ck_assert_uint_eq(memory[0].len | memory[1].len, 0);
	evr_target_start(&target, &first);
}

static void assert_taken(uint32_t len, uint64_t addr)
{
	struct evr_sge sge = evr_target_take(&target, len);

	ck_assert_uint_eq(sge.addr, addr);
	ck_assert_uint_eq(sge.rkey, 7);
	ck_assert_uint_eq(sge.len, len);
}

START_TEST(entries_are_used_in_turns)
{
	start_target();
	memory[1] = second;
	ck_assert_int_eq(evr_target_announce(&target, 16), 1);
	ck_assert_uint_eq(evr_target_window(&target), 200);
	assert_taken(60, 1000);
	ck_assert_uint_eq(evr_target_left(&target), 40);
	assert_taken(40, 1060);
	memory[0] = first;
	ck_assert_int_eq(evr_target_announce(&target, 16), 1);
	assert_taken(100, 1100);
	assert_taken(100, 1000);
	ck_assert_uint_eq(evr_target_left(&target), 0);
	ck_assert_uint_eq(evr_target_window(&target), 0);
}
END_TEST

START_TEST(what_was_not_announced_is_not_read)
{
	start_target();
	memory[1] = second;
	ck_assert_int_eq(evr_target_announce(&target, 0), 0);
	ck_assert_uint_eq(evr_target_window(&target), 100);
	ck_assert_int_eq(evr_target_announce(&target, 16), 1);
}
END_TEST

START_TEST(an_announced_entry_cannot_be_changed)
{
	start_target();
	memory[1] = second;
	evr_target_announce(&target, 16);
	memory[0] = memory[1] = (struct evr_sge){ .addr = UINT64_MAX, .len = UINT32_MAX };
	assert_taken(100, 1000);
	assert_taken(100, 1100);
	ck_assert_int_eq(evr_target_announce(&target, 16), -EBADMSG);
}
END_TEST

START_TEST(an_entry_that_is_not_free_is_refused)
{
	start_target();
	memory[1] = second;
	ck_assert_int_eq(evr_target_announce(&target, 16), 1);
	memory[0] = first;
	ck_assert_int_eq(evr_target_announce(&target, 16), -EBADMSG);
	assert_taken(99, 1000);
	ck_assert_int_eq(evr_target_announce(&target, 16), -EBADMSG);
	assert_taken(1, 1099);
	ck_assert_int_eq(evr_target_announce(&target, 16), 1);
}
END_TEST

START_TEST(unsound_entries_are_refused)
{
	static const struct evr_sge unsound[] = {
		{ .addr = 1, .rkey = 7, .len = 0 },
		{ .addr = 1, .rkey = 7, .len = UINT32_C(0x80000000) },
		{ .addr = UINT64_MAX - 9, .rkey = 7, .len = 10 },
	};
	size_t i;

	for (i = 0; i < sizeof(unsound) / sizeof(unsound[0]); i++) {
		start_target();
		memory[1] = unsound[i];
		ck_assert_int_eq(evr_target_announce(&target, 16), -EBADMSG);
		ck_assert_uint_eq(evr_target_window(&target), 100);
	}
	ck_assert_int_eq(evr_target_announce(&target, 15), -EBADMSG);
	ck_assert_int_eq(evr_target_announce(&target, 17), -EBADMSG);
}
END_TEST

/* Where the device does not say what was written, half an entry is none yet. */
START_TEST(without_a_length_an_entry_is_taken_when_it_is_whole)
{
	start_target();
	ck_assert_int_eq(evr_target_announce(&target, EVR_WRITTEN_UNKNOWN), 0);
	memory[1].len = 100;
	ck_assert_int_eq(evr_target_announce(&target, EVR_WRITTEN_UNKNOWN), 0);
	memory[1].rkey = 7;
	ck_assert_int_eq(evr_target_announce(&target, EVR_WRITTEN_UNKNOWN), 0);
	memory[1].addr = 1100;
	ck_assert_int_eq(evr_target_announce(&target, EVR_WRITTEN_UNKNOWN), 1);
	ck_assert_uint_eq(memory[1].addr | memory[1].rkey | memory[1].len, 0);
	ck_assert_int_eq(evr_target_announce(&target, EVR_WRITTEN_UNKNOWN), 0);
}
END_TEST

/* Its length has four bytes that are not 0. */
START_TEST(without_a_length_an_entry_is_not_taken_by_half_of_its_own)
{
	const struct evr_sge whole = { .addr = 1000, .rkey = 7, .len = 0x12345678 };
	size_t at = offsetof(struct evr_sge, len), i;

	evr_target_init(&target, memory);
	evr_target_start(&target, &whole);
	memory[1].addr = 1100;
	memory[1].rkey = 7;
	for (i = 0; i < sizeof(whole.len); i++) {
		ck_assert_int_eq(evr_target_announce(&target, EVR_WRITTEN_UNKNOWN), 0);
		((volatile uint8_t *)&memory[1])[at + i] = ((const uint8_t *)&whole)[at + i];
	}
	ck_assert_int_eq(evr_target_announce(&target, EVR_WRITTEN_UNKNOWN), 1);
	ck_assert_uint_eq(evr_target_window(&target), 2 * (uint64_t)whole.len);
}
END_TEST

/* What is no part of the length that it has is another one. */
START_TEST(without_a_length_a_wrong_one_is_told)
{
	start_target();
	memory[1] = (struct evr_sge){ .addr = UINT64_MAX - 9, .rkey = 7, .len = 10 };
	ck_assert_int_eq(evr_target_announce(&target, EVR_WRITTEN_UNKNOWN), -EBADMSG);
}
END_TEST

/* --- mappings -------------------------------------------------------------------------------- */

enum { MAPPINGS = 4 };

static struct evr_iomap_entry table[MAPPINGS], copies[MAPPINGS];
static struct evr_iomap_slot slots[MAPPINGS];
static struct evr_iomap_in in;
static struct evr_iomap_out out;

START_TEST(a_mapping_has_these_bytes)
{
	static const uint8_t big[] = { 0, 0, 0, 0, 0, 0, 0x10, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0,
		9, 0, 0, 0, 0x40 };
	static const uint8_t little[] = { 0, 0x10, 0, 0, 0, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1, 9, 0,
		0, 0, 0x40, 0, 0, 0 };
	struct evr_iomap_entry entry = { .offset = 0x1000,
		.sge = { .addr = UINT64_C(0x0102030405060708), .rkey = 9, .len = 64 } };
	uint8_t bytes[EVR_IOMAP_ENTRY_LEN];

	ck_assert_uint_eq(sizeof(entry), EVR_IOMAP_ENTRY_LEN);
	evr_iomap_put(&entry, bytes, true);
	ck_assert_mem_eq(bytes, big, sizeof(bytes));
	evr_iomap_put(&entry, bytes, false);
	ck_assert_mem_eq(bytes, little, sizeof(bytes));
}
END_TEST

static void start_table(void)
{
	memset(table, 0, sizeof(table));
	memset(copies, 0xff, sizeof(copies));
	evr_iomap_in_init(&in, table, copies, MAPPINGS);
}

static void assert_found(uint64_t offset, uint32_t len, uint64_t addr, uint32_t want)
{
	struct evr_sge place;

	ck_assert_int_eq(evr_iomap_in_find(&in, offset, len, &place), 0);
	ck_assert_uint_eq(place.addr, addr);
	ck_assert_uint_eq(place.len, want);
}

START_TEST(a_mapping_is_found_from_its_first_to_its_last_byte)
{
	struct evr_sge place;

	start_table();
	table[2] = (struct evr_iomap_entry){ .offset = 4096,
		.sge = { .addr = 70000, .rkey = 5, .len = 100 } };
	ck_assert_int_eq(evr_iomap_in_find(&in, 4096, 1, &place), -ENXIO);
	ck_assert_int_eq(evr_iomap_in_take(&in, 2), 0);
	assert_found(4096, 1000, 70000, 100);
	assert_found(4150, 10, 70054, 10);
	assert_found(4195, 10, 70099, 1);
	ck_assert_int_eq(evr_iomap_in_find(&in, 4095, 1, &place), -ENXIO);
	ck_assert_int_eq(evr_iomap_in_find(&in, 4196, 1, &place), -ENXIO);
	ck_assert_int_eq(evr_iomap_in_find(&in, UINT64_MAX, 1, &place), -ENXIO);
}
END_TEST

START_TEST(an_index_outside_the_table_is_refused)
{
	start_table();
	ck_assert_int_eq(evr_iomap_in_take(&in, MAPPINGS), -ENXIO);
	ck_assert_int_eq(evr_iomap_in_take(&in, UINT32_MAX), -ENXIO);
	evr_iomap_in_init(&in, NULL, NULL, 0);
	ck_assert_int_eq(evr_iomap_in_take(&in, 0), -ENXIO);
}
END_TEST

START_TEST(unsound_mappings_are_refused_and_empty_ones_map_nothing)
{
	static const struct evr_iomap_entry unsound[] = {
		{ .offset = 0, .sge = { .addr = UINT64_MAX, .len = 2 } },
		{ .offset = UINT64_MAX - 1, .sge = { .addr = 1, .len = 2 } },
		{ .offset = 0, .sge = { .addr = 1, .len = UINT32_MAX } },
	};
	struct evr_sge place;
	size_t i;

	start_table();
	for (i = 0; i < sizeof(unsound) / sizeof(unsound[0]); i++) {
		table[0] = unsound[i];
		ck_assert_int_eq(evr_iomap_in_take(&in, 0), -EBADMSG);
		ck_assert_uint_eq(copies[0].sge.len, 0);
	}
	table[0] = (struct evr_iomap_entry){ .offset = 1, .sge = { .addr = 1 } };
	ck_assert_int_eq(evr_iomap_in_take(&in, 0), 0);
	ck_assert_int_eq(evr_iomap_in_find(&in, 1, 1, &place), -ENXIO);
}
END_TEST

static int map(uint64_t offset)
{
	struct evr_iomap_entry entry = { .offset = offset, .sge = { .addr = 1, .len = 1 } };

	return evr_iomap_out_map(&out, &entry);
}

START_TEST(the_peer_is_told_of_mappings_in_their_order)
{
	struct evr_iomap_entry entry;

	evr_iomap_out_init(&out, slots, MAPPINGS);
	out.turn = UINT32_MAX; /* and it comes round */
	ck_assert_int_eq(map(10), 0);
	ck_assert_int_eq(map(11), 1);
	ck_assert_int_eq(map(12), 2);
	ck_assert_int_eq(evr_iomap_out_unmap(&out, 1), 0);
	ck_assert_int_eq(evr_iomap_out_next(&out, &entry), 0);
	ck_assert_int_eq(map(13), 1);
	ck_assert_uint_eq(out.waiting, 2);
	ck_assert_int_eq(evr_iomap_out_next(&out, &entry), 2);
	ck_assert_int_eq(evr_iomap_out_next(&out, &entry), 1);
	ck_assert_uint_eq(entry.offset, 13);
	ck_assert_int_eq(evr_iomap_out_next(&out, &entry), -ENOENT);
}
END_TEST

START_TEST(places_of_the_peers_table_run_out_and_come_back)
{
	int i;

	evr_iomap_out_init(&out, slots, MAPPINGS);
	for (i = 0; i < MAPPINGS; i++)
		ck_assert_int_eq(map(0), i);
	ck_assert_int_eq(map(0), -ENOSPC);
	ck_assert_int_eq(evr_iomap_out_unmap(&out, 2), 0);
	ck_assert_int_eq(evr_iomap_out_unmap(&out, 2), -EINVAL);
	ck_assert_int_eq(evr_iomap_out_unmap(&out, MAPPINGS), -EINVAL);
	ck_assert_int_eq(map(0), 2);
	ck_assert_int_eq(map(UINT64_MAX), -EINVAL);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		the_first_half_is_given_and_the_second_is_due,
		the_peer_may_not_write_over_a_half,
		a_half_is_due_again_when_its_last_byte_is_back,
		what_is_lent_is_not_given_to_the_peer,
		more_than_there_is_cannot_be_read,
		a_send_ring_goes_round_in_pieces,
		entries_are_used_in_turns,
		what_was_not_announced_is_not_read,
		an_announced_entry_cannot_be_changed,
		an_entry_that_is_not_free_is_refused,
		unsound_entries_are_refused,
		without_a_length_an_entry_is_taken_when_it_is_whole,
		without_a_length_an_entry_is_not_taken_by_half_of_its_own,
		without_a_length_a_wrong_one_is_told,
		a_mapping_has_these_bytes,
		a_mapping_is_found_from_its_first_to_its_last_byte,
		an_index_outside_the_table_is_refused,
		unsound_mappings_are_refused_and_empty_ones_map_nothing,
		the_peer_is_told_of_mappings_in_their_order,
		places_of_the_peers_table_run_out_and_come_back,
	};

	return unit_main("proto_memory", tests, sizeof(tests) / sizeof(tests[0]), NULL, NULL);
}
