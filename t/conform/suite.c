#include "conform/suite.h"

#include "unit/one_process.h"

static TCase *(*const cases[])(void) = {
	close_case,
	scale_case,
	removal_case,
	handover_case,
	transfer_case,
	work_case,
	bufferevent_http_case,
	bufferevent_regress_case,
#ifdef EVR_WITH_TLS
	bufferevent_tls_case,
#endif
#ifdef EVR_WITH_ZLIB
	bufferevent_zlib_case,
#endif
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
	shortage_case,
	pool_case,
	receive_case,
	read_case,
	memory_case,
	bufferevent_case,
	bufferevent_threads_case,
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
	run_in_one_process(runner);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
