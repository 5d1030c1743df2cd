#include "unit/unit.h"

#include "util/fdmap.h"

#include <errno.h>

static struct evr_fdmap map;
static int things[2];
static void *held;

static void set_up(void)
{
	int fd;

	for (fd = evr_fdmap_next(&map, 0, NULL); fd >= 0; fd = evr_fdmap_next(&map, fd, NULL))
		evr_fdmap_set(&map, fd, NULL);
	held = NULL;
}

static void hold(void *value)
{
	held = value;
}

START_TEST(a_number_without_a_place_has_nothing)
{
	ck_assert_ptr_null(evr_fdmap_peek(&map, 5000));
	ck_assert_ptr_null(evr_fdmap_get(&map, 5000, hold));
	ck_assert_ptr_null(evr_fdmap_set(&map, 5000, things));
	ck_assert_int_eq(evr_fdmap_make(&map, -1), -EBADF);
	ck_assert_int_eq(evr_fdmap_make(&map, EVR_FDMAP_MAX), -EMFILE);
	ck_assert_ptr_null(held);
}
END_TEST

START_TEST(what_was_there_is_returned)
{
	ck_assert_int_eq(evr_fdmap_make(&map, 7), 0);
	ck_assert_ptr_null(evr_fdmap_set(&map, 7, things));
	ck_assert_ptr_eq(evr_fdmap_get(&map, 7, hold), things);
	ck_assert_ptr_eq(held, things);
	ck_assert_ptr_eq(evr_fdmap_set(&map, 7, things + 1), things);
	ck_assert_ptr_eq(evr_fdmap_peek(&map, 7), things + 1);
}
END_TEST

START_TEST(the_next_number_is_found_beyond_holes)
{
	const int last = EVR_FDMAP_MAX - 1;

	ck_assert_int_eq(evr_fdmap_make(&map, 7), 0);
	ck_assert_int_eq(evr_fdmap_make(&map, last), 0);
	evr_fdmap_set(&map, 7, things);
	evr_fdmap_set(&map, last, things + 1);
	ck_assert_int_eq(evr_fdmap_next(&map, 0, NULL), 7);
	ck_assert_int_eq(evr_fdmap_next(&map, 8, NULL), last);
	ck_assert_int_eq(evr_fdmap_next(&map, 0, things + 1), last);
	ck_assert_int_eq(evr_fdmap_next(&map, last + 1, NULL), -1);
}
END_TEST

/* As by a thread that is not there in the child: one that takes hold, one that puts the first. */
static void stop_in_the_middle(int fd)
{
	atomic_fetch_or(&map.blocks[fd / EVR_FDMAP_BLOCK][fd % EVR_FDMAP_BLOCK], 1);
}

START_TEST(a_child_waits_for_nobody_at_a_number_that_has_nothing_either)
{
	ck_assert_int_eq(evr_fdmap_make(&map, 8), 0);
	evr_fdmap_set(&map, 7, things);
	stop_in_the_middle(7);
	stop_in_the_middle(8);
	evr_fdmap_unlock_all(&map);
	ck_assert_ptr_eq(evr_fdmap_get(&map, 7, hold), things);
	ck_assert_ptr_null(evr_fdmap_get(&map, 8, hold));
	ck_assert_ptr_null(evr_fdmap_set(&map, 8, things + 1));
}
END_TEST

START_TEST(who_waits_for_nobody_has_what_nobody_is_at)
{
	ck_assert_ptr_null(evr_fdmap_try(&map, 5000, hold));
	ck_assert_int_eq(evr_fdmap_make(&map, 7), 0);
	ck_assert_ptr_null(evr_fdmap_try(&map, 7, hold));
	evr_fdmap_set(&map, 7, things);
	stop_in_the_middle(7);
	ck_assert_ptr_null(evr_fdmap_try(&map, 7, hold));
	ck_assert_ptr_null(held);
	evr_fdmap_unlock_all(&map);
	ck_assert_ptr_eq(evr_fdmap_try(&map, 7, hold), things);
	ck_assert_ptr_eq(held, things);
	ck_assert_ptr_eq(evr_fdmap_set(&map, 7, NULL), things);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		a_number_without_a_place_has_nothing,
		what_was_there_is_returned,
		the_next_number_is_found_beyond_holes,
		a_child_waits_for_nobody_at_a_number_that_has_nothing_either,
		who_waits_for_nobody_has_what_nobody_is_at,
	};

	return unit_main("util_fdmap", tests, sizeof(tests) / sizeof(tests[0]), set_up, NULL);
}
