#include "cmtime.h"

#include <stdlib.h>

int main(int argc, char **argv)
{
	struct cmtime test = { 0 };

	if (cmtime_read_options(&test.options, argc, argv))
		return EXIT_FAILURE;
	cmtime_start(&test);
	return cmtime_finish(&test);
}
