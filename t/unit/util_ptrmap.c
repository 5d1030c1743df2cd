#include "unit/unit.h"

#include "util/ptrmap.h"

#include <errno.h>
#include <stdint.h>

enum { MANY = 2000 };

static struct evr_ptrmap map;
static char things[MANY];

static void set_up(void)
{
	evr_ptrmap_init(&map);
}

static void tear_down(void)
{
	evr_ptrmap_fini(&map);
}

START_TEST(an_empty_map_has_nothing)
{
	ck_assert_ptr_null(evr_ptrmap_find(&map, things));
	ck_assert_ptr_null(evr_ptrmap_remove(&map, things));
}
END_TEST

START_TEST(a_key_is_taken_once)
{
	ck_assert_int_eq(evr_ptrmap_add(&map, things, things + 1), 0);
	ck_assert_int_eq(evr_ptrmap_add(&map, things, things + 2), -EEXIST);
	ck_assert_ptr_eq(evr_ptrmap_find(&map, things), things + 1);
	ck_assert_ptr_eq(evr_ptrmap_remove(&map, things), things + 1);
	ck_assert_int_eq(evr_ptrmap_add(&map, things, things + 2), 0);
}
END_TEST

/* Every third goes: the others must still be found behind the holes. */
START_TEST(many_keys_survive_the_removal_of_others)
{
	int i;

	for (i = 0; i < MANY; i++)
		ck_assert_int_eq(evr_ptrmap_add(&map, &things[i], &things[MANY - 1 - i]), 0);
	for (i = 0; i < MANY; i += 3)
		ck_assert_ptr_eq(evr_ptrmap_remove(&map, &things[i]), &things[MANY - 1 - i]);
	for (i = 0; i < MANY; i++)
		ck_assert_ptr_eq(
			evr_ptrmap_find(&map, &things[i]), i % 3 ? &things[MANY - 1 - i] : NULL);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		an_empty_map_has_nothing,
		a_key_is_taken_once,
		many_keys_survive_the_removal_of_others,
	};

	return unit_main("util_ptrmap", tests, sizeof(tests) / sizeof(tests[0]), set_up, tear_down);
}
