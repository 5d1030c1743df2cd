#include "unit/one_process.h"

#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

enum { HANG_S = 1800 };

static bool is_shared(void)
{
#ifdef __SANITIZE_ADDRESS__
	return !getenv("CK_FORK");
#else
	return getenv("EVR_ONE_PROCESS") && !getenv("CK_FORK");
#endif
}

void run_in_one_process(SRunner *runner)
{
	if (!is_shared()) {
		srunner_run_all(runner, CK_ENV);
		return;
	}
	srunner_set_fork_status(runner, CK_NOFORK);
	alarm(HANG_S);
	srunner_run_tagged(runner, NULL, NULL, NULL, OWN_PROCESS, CK_ENV);
}
