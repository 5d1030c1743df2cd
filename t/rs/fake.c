/* The suites on the fake, on each of its devices. */
#include "rs/descriptor.h"
#include "rs/options.h"

#include "unit/cm_unit.h"

#include <stdlib.h>

enum { MANY = 20 };

int main(void)
{
	Suite *suite = suite_create("descriptor");
	TCase *cases;
	SRunner *runner;
	int failed;

	descriptor_place.calls = &rs_calls_rs;
	descriptor_place.ip = FAKE_ROCE_IP;
	descriptor_place.many = MANY;
	cases = descriptor_case();
	tcase_add_checked_fixture(cases, fake_install, fake_reset);
	suite_add_tcase(suite, cases);
	suite_add_tcase(suite, options_tcp_case("127.0.0.1"));
	cases = options_rs_case(FAKE_ROCE_IP);
	tcase_add_checked_fixture(cases, fake_install, fake_reset);
	suite_add_tcase(suite, cases);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
