/* The times of evrdma-perf: what it says of many, beside what sorting them says. */
#include "unit/unit.h"

#include <stdlib.h>

#include "perf_hist.h"

enum { SAMPLES = 5000 };

static struct perf_hist hist;
static uint64_t samples[SAMPLES];

static int compare(const void *a, const void *b)
{
	const uint64_t *one = a, *other = b;

	return (*one > *other) - (*one < *other);
}

/* Of every order of size, as many of each. */
static uint64_t any(void)
{
	unsigned bits = (unsigned)rand() % 50;

	return (((uint64_t)1 << bits) | ((uint64_t)rand() << 20 | (uint64_t)rand())) &
	       (((uint64_t)2 << bits) - 1);
}

static void fill(void)
{
	hist = (struct perf_hist){ 0 };
	srand(1);
	for (int i = 0; i < SAMPLES; i++) {
		samples[i] = any();
		perf_hist_add(&hist, samples[i]);
	}
	qsort(samples, SAMPLES, sizeof(samples[0]), compare);
}

START_TEST(a_quantile_is_no_less_than_it_is_and_no_more_than_three_in_a_hundred_above)
{
	uint64_t exact, told;

	fill();
	for (unsigned permille = 1; permille <= 1000; permille++) {
		exact = samples[(SAMPLES * permille + 999) / 1000 - 1];
		told = perf_hist_quantile(&hist, permille);
		ck_assert_uint_ge(told, exact);
		ck_assert_uint_le(told, exact + exact / 32);
	}
}
END_TEST

START_TEST(the_ends_are_exact)
{
	fill();
	ck_assert_uint_eq(hist.min, samples[0]);
	ck_assert_uint_eq(hist.max, samples[SAMPLES - 1]);
	ck_assert_uint_eq(perf_hist_quantile(&hist, 1000), samples[SAMPLES - 1]);
}
END_TEST

START_TEST(the_largest_number_has_its_place)
{
	hist = (struct perf_hist){ 0 };
	perf_hist_add(&hist, UINT64_MAX);
	ck_assert_uint_eq(perf_hist_quantile(&hist, 500), UINT64_MAX);
}
END_TEST

START_TEST(none_is_nothing)
{
	hist = (struct perf_hist){ 0 };
	ck_assert_uint_eq(perf_hist_quantile(&hist, 500), 0);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		a_quantile_is_no_less_than_it_is_and_no_more_than_three_in_a_hundred_above,
		the_ends_are_exact,
		the_largest_number_has_its_place,
		none_is_nothing,
	};

	return unit_main("perf_hist", tests, sizeof(tests) / sizeof(tests[0]), NULL, NULL);
}
