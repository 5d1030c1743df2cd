/* hostile_dgrams IP: the strangers on a device that is there; nobody else may use one. */
#include "rs/hostile_dgrams.h"

static void nothing(void)
{
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	hostile_dgram_ip = argv[1];
	return hostile_dgrams_run(nothing, nothing);
}
