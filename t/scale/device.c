/*
 * device ADDRESS [NUM|large|limit]...: so many connections on one loop of a real device, both ends
 * of each; what a connection takes, of time and of the program's memory, and how long the loop's
 * timer waited. Large: from there on the completion queues that they share are of the largest size.
 * Limit: how many there may be until the device or its driver has had enough.
 */
#include "scale/allocations.h"
#include "scale/crowd.h"

#include <arpa/inet.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/clock.h"

/*
 * Nothing of the library sleeps in the kernel for longer where all goes well; the time that is
 * tested on may be one that stands still while a program runs.
 */
enum { LONGEST_MS = 100 };

/* What the limit is looked for up to; what a CQ has at most on rxe and siw. */
enum { MORE = 4000, LARGE_CQ = 32767, PERCENT = 120 };

static unsigned cq_entries; /* 0: the usual */

/* --- memory ---------------------------------------------------------------------------------- */

/*
 * The program's: what it has allocated, and what it has in memory, queues and buffers included; and
 * how often it has asked for some.
 */
struct memory {
	size_t heap, resident;
	unsigned long allocations;
};

static struct memory memory_now(void)
{
	struct mallinfo2 info = mallinfo2();
	struct memory memory = { .heap = info.uordblks + info.hblkhd,
		.allocations = allocations_now() };
	FILE *statm = fopen("/proc/self/statm", "re");
	size_t pages = 0;

	if (!statm || fscanf(statm, "%*u %zu", &pages) != 1)
		fprintf(stderr, "device: /proc/self/statm cannot be read\n");
	if (statm)
		fclose(statm);
	memory.resident = pages * (size_t)sysconf(_SC_PAGESIZE);
	return memory;
}

/* What the connections took by the time that all were up. */
static void watch(enum crowd_phase phase, int has_ended, void *arg)
{
	static struct memory before;
	struct memory *taken = arg, now = memory_now();

	if (phase != CROWD_SET_UP)
		return;
	if (has_ended)
		*taken = (struct memory){ now.heap - before.heap, now.resident - before.resident,
			now.allocations - before.allocations };
	before = now;
}

/* --- runs ------------------------------------------------------------------------------------ */

static unsigned long each_us(const struct crowd *crowd, enum crowd_phase phase)
{
	return (unsigned long)((crowd->ended_us[phase] - crowd->began_us[phase]) / crowd->wanted);
}

/* Among many a connection takes what it takes among the first. */
static int is_flat(const struct memory *taken, unsigned num)
{
	static struct memory first;
	static unsigned first_num;

	if (!first_num) {
		first = *taken;
		first_num = num;
	}
	return taken->heap / num * 100 <= first.heap / first_num * PERCENT &&
	       taken->allocations * first_num * 100 <= first.allocations * num * PERCENT;
}

static int run(const struct sockaddr_in *addr, unsigned num)
{
	struct memory taken;
	struct crowd crowd = {
		.wanted = num, .cq_entries = cq_entries, .watch = watch, .arg = &taken
	};
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
	printf("# %u connections: %zu bytes of the heap for an idle one with both ends, %zu "
	       "resident, with its queues and buffers; %.1f allocations to make it\n",
		num, taken.heap / num, taken.resident / num, (double)taken.allocations / num);
	ret = crowd.closed == 2 * num && crowd.longest_gap_us < LONGEST_MS * EVR_US_PER_MS &&
	      is_flat(&taken, num);
	printf("%s - %u connections on one loop\n", ret ? "ok" : "not ok", num);
	return ret ? 0 : -1;
}

/* One after the other, so that what is there when one fails is known. */
static int find_limit(const struct sockaddr_in *addr)
{
	struct crowd crowd = { .wanted = MORE, .at_once = 1, .cq_entries = cq_entries };
	int ret = crowd_run(&crowd, (const struct sockaddr *)addr, evr_clock_now_us);

	printf("%s - %u connections fit, with completion queues of %s size: %s\n",
		crowd.made ? "ok" : "not ok", crowd.made, cq_entries ? "the largest" : "the usual",
		ret ? crowd.error : "there may be more");
	return crowd.made ? 0 : -1;
}

int main(int argc, char **argv)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	int i, cells = 0, failed = 0;

	if (argc < 3 || inet_pton(AF_INET, argv[1], &addr.sin_addr) != 1) {
		fprintf(stderr, "usage: device ADDRESS [NUM|large|limit]...\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (i = 2; i < argc; i++) {
		if (!strcmp(argv[i], "large")) {
			cq_entries = LARGE_CQ;
			continue;
		}
		failed |= strcmp(argv[i], "limit") ? run(&addr, (unsigned)atoi(argv[i]))
						   : find_limit(&addr);
		cells++;
	}
	printf("1..%d\n", cells);
	return failed ? 1 : 0;
}
