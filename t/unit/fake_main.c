#include "unit/fake_main.h"

#include <stdlib.h>

void fake_setup(void)
{
	fake_install();
}

void fake_teardown(void)
{
	const char *left = fake_expect_clean();

	ck_assert_msg(!left, "%s", left);
	fake_reset();
}

int fake_run(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int fake_main(const char *name, const TTest *const *tests, size_t n)
{
	Suite *suite = suite_create(name);
	TCase *tcase = tcase_create(name);
	size_t i;

	tcase_add_checked_fixture(tcase, fake_setup, fake_teardown);
	for (i = 0; i < n; i++)
		tcase_add_test(tcase, tests[i]);
	suite_add_tcase(suite, tcase);
	return fake_run(suite);
}
