#include "unit/unit.h"

#include <stdlib.h>

int unit_main(const char *name, const TTest *const tests[], size_t num, unit_fixture setup,
	unit_fixture teardown)
{
	Suite *suite = suite_create(name);
	TCase *tcase = tcase_create(name);
	SRunner *runner;
	int failed;
	size_t i;

	tcase_add_checked_fixture(tcase, setup, teardown);
	for (i = 0; i < num; i++)
		tcase_add_test(tcase, tests[i]);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
