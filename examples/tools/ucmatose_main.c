#include "ucmatose.h"

#include <stdlib.h>

int main(int argc, char **argv)
{
	struct ucmatose test = { 0 };

	if (ucmatose_read_options(&test.options, argc, argv))
		return EXIT_FAILURE;
	ucmatose_start(&test);
	return ucmatose_finish(&test);
}
