/* dgrams_device udp|rs IP: the suite on a device that is there, or on UDP beside it. */
#include "rs/dgrams.h"

#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	Suite *suite = suite_create("dgrams");
	SRunner *runner;
	int failed;

	if (argc < 3)
		return 2;
	dgram_place.calls = strcmp(argv[1], "rs") ? &dgram_calls_udp : &dgram_calls_rs;
	dgram_place.ip = argv[2];
	suite_add_tcase(suite, dgrams_case());
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
