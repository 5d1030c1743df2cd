/*
 * Every call below a scenario fails, each in a run of its own, once alone and once with all that
 * come after it: whatever the scenario then makes of it, the reason comes out, it ends, nothing is
 * left, and the next run goes through.
 */
#include "fake/fake_heap.h"
#include "unit/cm_scenario.h"
#include "unit/cm_unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* An errno that nobody else gives. */
enum { INJECTED = EOVERFLOW, MANY_POINTS = 500, FIRST_POINTS = 20, LIMIT_S = 120 };

static const struct fault {
	const char *name;
	enum fake_layer layer; /* 0: allocations */
	int error;
	bool lasting;
} faults[] = {
	{ "kernel calls", FAKE_KERNEL, INJECTED, false },
	{ "kernel calls, all from", FAKE_KERNEL, INJECTED, true },
	{ "verbs", FAKE_VERBS, INJECTED, false },
	{ "verbs, all from", FAKE_VERBS, INJECTED, true },
	{ "allocations", 0, ENOMEM, false },
	{ "allocations, all from", 0, ENOMEM, true },
};

enum { FAULTS = sizeof(faults) / sizeof(faults[0]) };

/* Counted over all the processes that Check runs the tests in. */
static struct {
	unsigned points;
	unsigned scenarios;
} * total;

/* --- one point -------------------------------------------------------------------------------- */

static void arm(const struct fault *fault, unsigned n)
{
	if (!fault->layer)
		(fault->lasting ? fake_heap_fail_from : fake_heap_fail_nth)(n);
	else if (fault->lasting)
		fake_fail_from(fault->layer, n, fault->error);
	else
		fake_fail_nth(fault->layer, n, fault->error);
}

static const char *disarm(const struct fault *fault)
{
	const char *failed = fake_failed();

	if (!fault->layer)
		failed = fake_heap_failed() ? "an allocation" : NULL;
	fake_heap_fail_nth(0);
	fake_fail_nth(FAKE_ANY, 0, 0);
	return failed;
}

/* The device's path has a default. */
static bool can_do_without(const struct cm_scenario *s, const char *call)
{
	return !strcmp(call, "find_cm_device") || (s->untold && !strcmp(call, s->untold));
}

static bool is_the_reason(const struct fault *fault, const char *call, int error)
{
	return error == fault->error || (error == ENODEV && !strcmp(call, "ibv_get_device_list"));
}

static void check_told(const struct cm_scenario *s, const struct fault *fault,
	const struct cm_fixture *f, const char *call, int ret, int error, const char *what)
{
	if (!ret)
		ck_assert_msg(can_do_without(s, call), "%s: nobody was told", what);
	else if (f->refused)
		ck_assert_msg(!f->peer_error || is_the_reason(fault, call, f->peer_error),
			"%s: the other side was told %s", what, strerror(f->peer_error));
	else
		ck_assert_msg(is_the_reason(fault, call, error), "%s: %s", what, strerror(error));
}

static void prepare(const struct cm_scenario *s)
{
	if (fake_device_gone(FAKE_ROCE))
		fake_device_add(FAKE_ROCE);
	if (s->device != FAKE_ROCE && fake_device_gone(s->device))
		fake_device_add(s->device);
}

static void check_gone(const struct cm_scenario *s, bool gone, const char *what)
{
	const char *left;

	cm_take_back();
	left = fake_expect_clean();
	ck_assert_msg(gone, "%s: an id does not go", what);
	ck_assert_msg(!left, "%s: %s", what, left);
	prepare(s);
}

static void check_next_run(const struct cm_scenario *s, const char *what)
{
	struct cm_fixture f = { 0 };
	int ret = s->run(&f), error = errno;

	ck_assert_msg(!ret, "%s: the next run fails: %s", what, strerror(error));
	check_gone(s, cm_scenario_end(&f), what);
}

/* False when the scenario has no such point. */
static bool fails_at(const struct cm_scenario *s, const struct fault *fault, unsigned n)
{
	struct cm_fixture f = { 0 };
	const char *failed;
	int ret, error;
	char what[160];

	errno = 0;
	arm(fault, n);
	ret = s->run(&f);
	error = errno;
	failed = disarm(fault);
	snprintf(what, sizeof(what), "%s, %s %u (%s)", s->name, fault->name, n,
		failed ? failed : "not reached");
	if (failed)
		check_told(s, fault, &f, failed, ret, error, what);
	else
		ck_assert_msg(!ret, "%s: %s", what, strerror(error));
	check_gone(s, cm_scenario_end(&f), what);
	if (failed)
		check_next_run(s, what);
	return failed;
}

/* --- the sweep ---------------------------------------------------------------------------------
 */

static unsigned sweep(const struct cm_scenario *s, const struct fault *fault)
{
	unsigned n = 0;

	while (fails_at(s, fault, n + 1) && n < MANY_POINTS)
		n++;
	ck_assert_uint_lt(n, MANY_POINTS);
	total->points += n;
	return n;
}

START_TEST(whatever_fails_is_told_and_nothing_is_left_and_the_next_run_passes)
{
	const struct cm_scenario *s = &cm_scenarios[_i];
	unsigned points[FAULTS], all = 0, i;

	prepare(s);
	check_next_run(s, "before all");
	for (i = 0; i < FAULTS; i++) {
		points[i] = sweep(s, &faults[i]);
		all += points[i];
	}
	ck_assert_uint_ge(all, s->least);
	total->scenarios++;
	printf("# %s: %u kernel calls, %u verbs, %u allocations\n", s->name, points[0], points[2],
		points[4]);
	fflush(stdout);
}
END_TEST

/*
 * What the library does only once for a process has failed in none of those runs: it opens the
 * device, and its maps grow.
 */
START_TEST(the_first_run_of_a_process_may_fail_as_well)
{
	const struct fault *fault = &faults[_i / FIRST_POINTS * 2];

	prepare(&cm_scenarios[0]);
	total->points += fails_at(&cm_scenarios[0], fault, (unsigned)_i % FIRST_POINTS + 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cm_fault");
	TCase *tcase = tcase_create("sweep");
	SRunner *runner = srunner_create(suite);
	int failed;

	total = mmap(
		NULL, sizeof(*total), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (total == MAP_FAILED)
		return EXIT_FAILURE;
	tcase_add_checked_fixture(tcase, cm_set_up, cm_tear_down);
	tcase_set_timeout(tcase, LIMIT_S);
	tcase_add_loop_test(tcase,
		whatever_fails_is_told_and_nothing_is_left_and_the_next_run_passes, 0,
		(int)cm_num_scenarios);
	tcase_add_loop_test(
		tcase, the_first_run_of_a_process_may_fail_as_well, 0, FIRST_POINTS * FAULTS / 2);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	printf("# %u scenarios, %u points\n", total->scenarios, total->points);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
