/* The contract of errors on the fake kernel: RoCE and iWARP, and what only a fake can bring. */
#include "errors/errors.h"
#include "unit/cm_unit.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_ROWS = 1000 };

#define GROUP "239.77.9.1"
#define CALL(function) ERRORS_NAME(call_##function##_, __LINE__)
/* Around a call: the device leaves before it, or the kernel is
 * another, or a step of it is refused. */
#define UNPLUG(call) (fake_device_remove(FAKE_ROCE), (call))
#define NEWER(call) (fake_newer_kernel(true), (call))
#define REFUSE(step, error, call) (fake_fail_next(step, error), (call))

#define CASE(where, scenario, function, input, answer, ...)                                        \
	static int CALL(function)(struct errors_fixture * f)                                       \
	{                                                                                          \
		return (void)f, __VA_ARGS__;                                                       \
	}
#include "unit/cm_errors.def"
#undef CASE

#define CASE(where, scenario, function, input, answer, ...)                                        \
	{ #function, input, scenario, where, answer, CALL(function) },
static const struct errors_case fake_table[] = {
#include "unit/cm_errors.def"
};
#undef CASE

static void run(const struct errors_case *c)
{
	struct errors_fixture fixture;
	int answer;

	ck_assert_msg(errors_set(&fixture, c->scenario), "%s", fixture.trouble);
	answer = errors_ask(c, &fixture);
	if (answer != c->answer)
		ck_abort_msg("%s, %s: %s", c->function, c->input, errors_name(answer));
	ck_assert_msg(errors_clear(&fixture), "%s", fixture.trouble);
}

static void on_roce(int row)
{
	errors_ip = FAKE_ROCE_IP;
	run(&errors_table[row]);
}

static void on_a_fake(int row)
{
	errors_ip = FAKE_ROCE_IP;
	run(&fake_table[row]);
}

static void on_iwarp(int row)
{
	fake_device_remove(FAKE_ROCE);
	fake_device_add(FAKE_IWARP);
	errors_ip = FAKE_IWARP_IP;
	run(&errors_table[row]);
}

/* A test for each row, with its text for a name. */
static void add_rows(TCase *tcase, const struct errors_case *table, size_t len, unsigned where,
	const char *device, TFun run_row)
{
	static TTest tests[2 * MAX_ROWS];
	static char names[2 * MAX_ROWS][160];
	static size_t num;
	size_t i;

	for (i = 0; i < len; i++) {
		const struct errors_case *c = &table[i];

		if (!(c->where & where))
			continue;
		if (num == 2 * MAX_ROWS)
			abort();
		snprintf(names[num], sizeof(names[num]), "%s on %s, %s", c->function, device,
			c->input);
		tests[num] = (TTest){ names[num], run_row, __FILE__, __LINE__ };
		tcase_add_loop_test(tcase, &tests[num], (int)i, (int)i + 1);
		num++;
	}
}

int main(void)
{
	Suite *suite = suite_create("cm_errors");
	TCase *tcase = tcase_create("table");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, cm_set_up, cm_tear_down);
	add_rows(tcase, errors_table, errors_table_len, ROCE, "RoCE", on_roce);
	add_rows(tcase, errors_table, errors_table_len, IWARP, "iWARP", on_iwarp);
	add_rows(tcase, fake_table, sizeof(fake_table) / sizeof(fake_table[0]), ROCE, "the fake",
		on_a_fake);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
