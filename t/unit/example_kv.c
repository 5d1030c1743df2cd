#include "unit/unit.h"

#include "examples/11-key-value.h"

#include <stdlib.h>

enum { KEY = 3, LEN = 500 };

/* A slot after its put of so many before. */
static struct kv_head *slot_new(uint64_t version, int byte)
{
	struct kv_head *slot = calloc(1, kv_slot_bytes(KEY));

	ck_assert_ptr_nonnull(slot);
	slot->version = htobe64(version);
	slot->key = htobe32(KEY);
	slot->len = htobe32(LEN);
	memset(slot + 1, byte, LEN);
	slot->sum = htobe64(kv_sum(slot));
	return slot;
}

START_TEST(a_slot_of_one_put_is_whole)
{
	struct kv_head *slot = slot_new(1, 'a');

	ck_assert(kv_is_whole(slot, KEY));
	free(slot);
}
END_TEST

/* Torn at any of its bytes, whichever part is the older one. */
START_TEST(a_slot_of_two_puts_is_not_whole)
{
	struct kv_head *old = slot_new(1, 'a'), *new = slot_new(2, 'b'), *torn = slot_new(1, 'a');
	size_t i, bytes = sizeof(*old) + LEN, first = 8; /* before that they do not differ */

	for (i = first; i < bytes; i++) {
		memcpy(torn, new, bytes);
		memcpy(torn, old, i);
		ck_assert(!kv_is_whole(torn, KEY));
		memcpy(torn, old, bytes);
		memcpy(torn, new, i);
		ck_assert(!kv_is_whole(torn, KEY));
	}
	free(old);
	free(new);
	free(torn);
}
END_TEST

START_TEST(a_length_beyond_the_room_is_not_summed)
{
	struct kv_head *slot = slot_new(1, 'a');

	slot->len = htobe32((uint32_t)kv_room(KEY) + 1);
	ck_assert(!kv_is_whole(slot, KEY));
	free(slot);
}
END_TEST

START_TEST(slots_are_side_by_side)
{
	static char taken[KV_KEYS * (sizeof(struct kv_head) + KV_MOST_ROOM) / 8];
	uint32_t key;
	size_t i;

	for (key = 0; key < KV_KEYS; key++)
		for (i = 0; i < kv_slot_bytes(key) / 8; i++)
			ck_assert(!taken[kv_offset(key) / 8 + i]++);
	ck_assert_uint_eq(kv_offset(KV_KEYS - 1) % 8, 0);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		a_slot_of_one_put_is_whole,
		a_slot_of_two_puts_is_not_whole,
		a_length_beyond_the_room_is_not_summed,
		slots_are_side_by_side,
	};

	return unit_main("example_kv", tests, sizeof(tests) / sizeof(tests[0]), NULL, NULL);
}
