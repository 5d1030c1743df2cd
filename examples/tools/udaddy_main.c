#include "udaddy.h"

#include <stdlib.h>

int main(int argc, char **argv)
{
	struct udaddy test = { 0 };

	if (udaddy_read_options(&test.options, argc, argv))
		return EXIT_FAILURE;
	udaddy_start(&test);
	return udaddy_finish(&test);
}
