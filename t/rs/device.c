/* device tcp|rs IP [MANY]: the suites on a device that is there, or on TCP beside it. */
#include "rs/bases.h"
#include "rs/bytes.h"
#include "rs/descriptor.h"
#include "rs/edges.h"
#include "rs/goodbyes.h"
#include "rs/limits.h"
#include "rs/options.h"
#include "rs/seen.h"
#include "rs/selects.h"
#include "rs/states.h"
#include "unit/one_process.h"

#include <stdlib.h>
#include <string.h>

enum { MANY = 20 };

int main(int argc, char **argv)
{
	Suite *suite = suite_create("sockets");
	const char *name = argc > 1 ? argv[1] : "";
	SRunner *runner;
	int failed;

	if (argc < 3)
		return 2;
	pair_place.calls = strcmp(name, "rs") ? &rs_calls_tcp : &rs_calls_rs;
	pair_place.ip = argv[2];
	pair_place.many = argc > 3 ? atoi(argv[3]) : MANY;
	suite_add_tcase(suite, descriptor_case(name, call()->is_rs));
	suite_add_tcase(suite, bytes_case(name));
	suite_add_tcase(suite, states_case(name));
	suite_add_tcase(suite, seen_case(name));
	suite_add_tcase(suite, edges_case(name));
	suite_add_tcase(suite, goodbyes_case(name));
	suite_add_tcase(suite, limits_case(name));
	suite_add_tcase(suite, selects_case(name, call()->is_rs));
	suite_add_tcase(suite, bases_case(name));
	if (family() == AF_INET)
		suite_add_tcase(suite,
			call()->is_rs ? options_rs_case(argv[2]) : options_tcp_case(argv[2]));
	runner = srunner_create(suite);
	run_in_one_process(runner);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
