/* endure_device ADDRESS CLIENTS SECONDS [SEED]: on a device that there is. */
#include "scale/endure.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

#include "schedule/resources.h"

/* A pool may want some slabs more. */
enum { MR_SLACK = 8 };

static void count(uint64_t objects[ENDURE_KINDS])
{
	uint64_t counts[RESOURCES] = { 0 };
	int i;

	if (resources_count(counts))
		fprintf(stderr, "endure: the kernel does not say what there is\n");
	for (i = 0; i < ENDURE_KINDS; i++)
		objects[i] = i < RESOURCES ? counts[i] : 0;
}

int main(int argc, char **argv)
{
	struct endure_device device = { .addr.sin_family = AF_INET, .count = count,
		.slack = { [RESOURCE_MR] = MR_SLACK } };
	int failed;

	if (argc < 4 || inet_pton(AF_INET, argv[1], &device.addr.sin_addr) != 1) {
		fprintf(stderr, "usage: endure_device ADDRESS CLIENTS SECONDS [SEED]\n");
		return 2;
	}
	device.clients = (unsigned)atoi(argv[2]);
	setvbuf(stdout, NULL, _IOLBF, 0);
	failed = endure(&device, (unsigned)atoi(argv[3]), argc > 4 ? (unsigned)atoi(argv[4]) : 1);
	printf("1..1\n");
	return failed ? 1 : 0;
}
