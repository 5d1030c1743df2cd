/* hostile IP: the hostile peer on a device that is there; nobody else may use one. */
#include "rs/hostile_suite.h"

static void nothing(void)
{
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	hostile_place.ip = argv[1];
	return hostile_run(nothing, nothing);
}
