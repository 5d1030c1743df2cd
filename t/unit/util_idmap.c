#include "unit/unit.h"

#include "util/idmap.h"

#include <errno.h>
#include <stdint.h>

enum { MANY = 2000, GENERATIONS = 1 << 12, ALL = 1 << 20 };

static struct evr_idmap map;
static char things[MANY];
static uint32_t numbers[MANY];

static void set_up(void)
{
	evr_idmap_init(&map);
}

static void tear_down(void)
{
	evr_idmap_fini(&map);
}

static uint32_t add(void *value)
{
	uint32_t number = 0;

	ck_assert_int_eq(evr_idmap_add(&map, value, &number), 0);
	ck_assert_uint_ne(number, 0);
	return number;
}

START_TEST(an_empty_map_has_nothing)
{
	ck_assert_ptr_null(evr_idmap_find(&map, 0));
	ck_assert_ptr_null(evr_idmap_find(&map, 1));
	ck_assert_ptr_null(evr_idmap_find(&map, UINT32_MAX));
	evr_idmap_remove(&map, 1);
}
END_TEST

START_TEST(many_numbers_find_their_values_while_others_go)
{
	int i;

	for (i = 0; i < MANY; i++)
		numbers[i] = add(&things[i]);
	for (i = 0; i < MANY; i += 2)
		evr_idmap_remove(&map, numbers[i]);
	for (i = 0; i < MANY; i++)
		ck_assert_ptr_eq(
			evr_idmap_find(&map, numbers[i]), i % 2 ? (void *)&things[i] : NULL);
}
END_TEST

START_TEST(a_number_that_was_given_back_does_not_find_its_successor)
{
	uint32_t old = add(&things[0]), new;

	evr_idmap_remove(&map, old);
	new = add(&things[1]);
	ck_assert_uint_ne(new, old);
	ck_assert_ptr_null(evr_idmap_find(&map, old));
	evr_idmap_remove(&map, old);
	ck_assert_ptr_eq(evr_idmap_find(&map, new), &things[1]);
}
END_TEST

/* One slot, used until its generation has come round twice; add() checks that none is 0. */
START_TEST(a_number_comes_again_only_when_the_generations_have_come_round)
{
	uint32_t first = add(&things[0]), number = first;
	int i, again = 0;

	for (i = 1; i < 2 * GENERATIONS; i++) {
		evr_idmap_remove(&map, number);
		number = add(&things[0]);
		ck_assert(number != first || i >= GENERATIONS - 1);
		again += number == first;
	}
	ck_assert_int_ge(again, 1);
}
END_TEST

START_TEST(a_full_map_says_so_and_takes_one_for_one_given_back)
{
	uint32_t number = 0, last = 0;
	int i, refused = 0;

	for (i = 0; i < ALL; i++)
		refused += evr_idmap_add(&map, &things[0], &last) != 0;
	ck_assert_int_eq(refused, 0);
	ck_assert_int_eq(evr_idmap_add(&map, &things[1], &number), -ENOSPC);
	evr_idmap_remove(&map, last);
	number = add(&things[1]);
	ck_assert_ptr_eq(evr_idmap_find(&map, number), &things[1]);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		an_empty_map_has_nothing,
		many_numbers_find_their_values_while_others_go,
		a_number_that_was_given_back_does_not_find_its_successor,
		a_number_comes_again_only_when_the_generations_have_come_round,
		a_full_map_says_so_and_takes_one_for_one_given_back,
	};

	return unit_main("util_idmap", tests, sizeof(tests) / sizeof(tests[0]), set_up, tear_down);
}
