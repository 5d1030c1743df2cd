/*
 * device ADDRESS NUM...: so many connections on one loop of a real device, both ends of each; what
 * a connection takes and how long the loop's timer waited.
 */
#include "scale/crowd.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/clock.h"

/*
 * Nothing of the library sleeps in the kernel for longer where all goes well; the time that is
 * tested on may be one that stands still while a program runs.
 */
enum { LONGEST_MS = 100 };

static unsigned long each_us(const struct crowd *crowd, enum crowd_phase phase)
{
	return (unsigned long)((crowd->ended_us[phase] - crowd->began_us[phase]) / crowd->wanted);
}

static int run(const struct sockaddr_in *addr, unsigned num)
{
	struct crowd crowd = { .wanted = num };
	int ret = crowd_run(&crowd, (const struct sockaddr *)addr, evr_clock_now_us);

	if (ret) {
		printf("not ok - %u connections: %s\n", num, crowd.error);
		return -1;
	}
	printf("# %u connections: %lu us to make one, %lu for a message there and back, %lu to "
	       "close; %u ticks, at most %llu us between two\n",
		num, each_us(&crowd, CROWD_SET_UP), each_us(&crowd, CROWD_USED),
		each_us(&crowd, CROWD_TORN_DOWN), crowd.ticks,
		(unsigned long long)crowd.longest_gap_us);
	ret = crowd.closed == 2 * num && crowd.longest_gap_us < LONGEST_MS * EVR_US_PER_MS;
	printf("%s - %u connections on one loop\n", ret ? "ok" : "not ok", num);
	return ret ? 0 : -1;
}

int main(int argc, char **argv)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	int i, failed = 0;

	if (argc < 3 || inet_pton(AF_INET, argv[1], &addr.sin_addr) != 1) {
		fprintf(stderr, "usage: device ADDRESS NUM...\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (i = 2; i < argc; i++)
		failed |= run(&addr, (unsigned)atoi(argv[i]));
	printf("1..%d\n", argc - 2);
	return failed ? 1 : 0;
}
