#include "perf.h"

#include <stdlib.h>

int main(int argc, char **argv)
{
	struct perf perf = { 0 };

	if (perf_read_options(&perf.options, argc, argv))
		return EXIT_FAILURE;
	perf_start(&perf);
	return perf_finish(&perf);
}
