/* Durations for timers. */
#include "unit/unit.h"

#include "util/clock.h"

#include <limits.h>

START_TEST(a_timer_is_not_early)
{
	ck_assert_int_eq(evr_clock_ms_of(0), 0);
	ck_assert_int_eq(evr_clock_ms_of(1), 1);
	ck_assert_int_eq(evr_clock_ms_of(EVR_US_PER_MS), 1);
	ck_assert_int_eq(evr_clock_ms_of(EVR_US_PER_MS + 1), 2);
}
END_TEST

/* SO_LINGER, for one, may ask for more microseconds than an int has. */
START_TEST(a_timer_of_more_microseconds_than_an_int_has_is_as_long_as_it_says)
{
	const uint64_t us = (uint64_t)INT_MAX * EVR_US_PER_MS;

	ck_assert_int_eq(evr_clock_ms_of((uint64_t)INT_MAX + 1), INT_MAX / EVR_US_PER_MS + 1);
	ck_assert_int_eq(evr_clock_ms_of((uint64_t)3000 * 1000 * EVR_US_PER_MS), 3000 * 1000);
	ck_assert_int_eq(evr_clock_ms_of(us - EVR_US_PER_MS), INT_MAX - 1);
	ck_assert_int_eq(evr_clock_ms_of(us), INT_MAX);
}
END_TEST

START_TEST(a_timer_is_no_longer_than_a_timer_may_be)
{
	ck_assert_int_eq(evr_clock_ms_of((uint64_t)INT_MAX * EVR_US_PER_MS + 1), INT_MAX);
	ck_assert_int_eq(evr_clock_ms_of(UINT64_MAX), INT_MAX);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		a_timer_is_not_early,
		a_timer_of_more_microseconds_than_an_int_has_is_as_long_as_it_says,
		a_timer_is_no_longer_than_a_timer_may_be,
	};

	return unit_main("util_clock", tests, sizeof(tests) / sizeof(tests[0]), NULL, NULL);
}
