/* device tcp|rs IP [MANY]: the suite on a device that is there, or on TCP beside it. */
#include "rs/descriptor.h"
#include "rs/options.h"

#include <stdlib.h>
#include <string.h>

enum { MANY = 20 };

int main(int argc, char **argv)
{
	Suite *suite = suite_create("descriptor");
	SRunner *runner;
	int failed;

	if (argc < 3)
		return 2;
	descriptor_place.calls = strcmp(argv[1], "rs") ? &rs_calls_tcp : &rs_calls_rs;
	descriptor_place.ip = argv[2];
	descriptor_place.many = argc > 3 ? atoi(argv[3]) : MANY;
	suite_add_tcase(suite, descriptor_case());
	suite_add_tcase(suite, descriptor_place.calls->is_rs ? options_rs_case(argv[2])
							     : options_tcp_case(argv[2]));
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
