#include "conform/suite.h"

int run_suite(const char *name)
{
	Suite *suite = suite_create(name);
	SRunner *runner;
	int failed;

	suite_add_tcase(suite, close_case());
	suite_add_tcase(suite, scale_case());
	suite_add_tcase(suite, removal_case());
	suite_add_tcase(suite, handover_case());
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
