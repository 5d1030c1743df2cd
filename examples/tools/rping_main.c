#include "rping.h"

#include <stdlib.h>

int main(int argc, char **argv)
{
	struct rping test = { 0 };

	if (rping_read_options(&test.options, argc, argv))
		return EXIT_FAILURE;
	rping_start(&test);
	return rping_finish(&test);
}
