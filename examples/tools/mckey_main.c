#include "mckey.h"

#include <stdlib.h>

int main(int argc, char **argv)
{
	struct mckey test = { 0 };

	if (mckey_read_options(&test.options, argc, argv))
		return EXIT_FAILURE;
	mckey_start(&test);
	return mckey_finish(&test);
}
