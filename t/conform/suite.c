#include "conform/suite.h"

static TCase *(*const cases[])(void) = {
	close_case,
	scale_case,
	removal_case,
	handover_case,
	transfer_case,
	work_case,
	source_case,
	peer_case,
	alive_case,
	share_case,
	connect_case,
	listener_case,
	base_case,
	process_case,
	shutdown_case,
	option_case,
	name_case,
	id_case,
	group_case,
	stats_case,
	limits_case,
	pool_case,
	receive_case,
	read_case,
	memory_case,
};

int run_suite(const char *name, TCase *(*const more[])(void), size_t n)
{
	Suite *suite = suite_create(name);
	SRunner *runner;
	size_t i;
	int failed;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		suite_add_tcase(suite, cases[i]());
	for (i = 0; i < n; i++)
		suite_add_tcase(suite, more[i]());
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
