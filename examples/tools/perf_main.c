#include "perf.h"

#include <signal.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	struct perf perf = { 0 };

	if (perf_read_options(&perf.options, argc, argv))
		return EXIT_FAILURE;
	signal(SIGPIPE, SIG_IGN); /* a server goes on when nobody reads what it says */
	perf_start(&perf);
	return perf_finish(&perf);
}
