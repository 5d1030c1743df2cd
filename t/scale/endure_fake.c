/* endure_fake.t [SECONDS [SEED]]: on the fake, in the machine's time. */
#include "scale/endure.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

#include "fake/fake.h"

/* SLACK: a pool may want some slabs more. */
enum { SECONDS = 6, MR_SLACK = 8 };

static void count(uint64_t objects[ENDURE_KINDS])
{
	static const enum fake_object kinds[ENDURE_KINDS] = { FAKE_MR, FAKE_ID, FAKE_PD, FAKE_CQ,
		FAKE_QP, FAKE_SRQ, FAKE_AH, FAKE_CHANNEL };
	int i;

	for (i = 0; i < ENDURE_KINDS; i++)
		objects[i] = fake_live(kinds[i]);
}

int main(int argc, char **argv)
{
	struct endure_device device = { .addr.sin_family = AF_INET, .clients = 64,
		.count = count,
		.slack = { MR_SLACK } };
	int failed;

	setvbuf(stdout, NULL, _IOLBF, 0);
	inet_pton(AF_INET, FAKE_ROCE_IP, &device.addr.sin_addr);
	fake_install();
	failed = endure(&device, argc > 1 ? (unsigned)atoi(argv[1]) : SECONDS,
		argc > 2 ? (unsigned)atoi(argv[2]) : 1);
	printf("1..1\n");
	return failed ? 1 : 0;
}
