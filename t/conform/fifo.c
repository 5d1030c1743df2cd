/*
 * A server of the scheduler's first class on a processor of its own, whose peers go without a word:
 * fifo.sh starts it. What the kernel queues on that processor waits for the server, and what it
 * queues on the other one overtakes it.
 */
#define _GNU_SOURCE
#include <check.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "conform/hostile.h"
#include "conform/fixture.h"
#include "util/clock.h"

enum {
	SERVER_CPU = 1,
	PEERS_CPU = 0,
	PRIORITY = 10,
	LONGEST_MS = 5000, /* an emulated machine takes its time; who is held is so for 65 s */
	PATIENCE_MS = 120000,
	CONNECTION_MS = 200, /* patience for each; an emulated machine serves some 50 a second */
};

static void count(int counts[TESTBED_COUNTS])
{
	int i;

	for (i = 0; i < TESTBED_COUNTS; i++)
		counts[i] = 0;
}

struct testbed testbed = { .own_core = true, .count = count, .now_us = evr_clock_now_us };

static unsigned each;

/* --- the timer ------------------------------------------------------------------------------- */

struct ticker {
	uint64_t last_us, longest_us;
	unsigned ticks;
};

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct ticker *ticker = arg;
	uint64_t now = testbed.now_us(), gap = now - ticker->last_us;

	if (gap > ticker->longest_us)
		ticker->longest_us = gap;
	ck_assert_msg(gap < LONGEST_MS * EVR_US_PER_MS, "the loop was kept for %llu ms",
		(unsigned long long)gap / EVR_US_PER_MS);
	ticker->last_us = now;
	ticker->ticks++;
}

static struct event *start_ticking(struct fixture *f, struct ticker *ticker)
{
	static const struct timeval every = { 0, EVR_US_PER_MS };
	struct event *event = event_new(f->loop, -1, EV_PERSIST, on_tick, ticker);

	ticker->last_us = testbed.now_us();
	event_add(event, &every);
	return event;
}

/* --- the processors -------------------------------------------------------------------------- */

static void keep_to(int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(cpus), &cpus), 0);
}

static void come_first(void)
{
	const struct sched_param param = { .sched_priority = PRIORITY };

	keep_to(SERVER_CPU);
	ck_assert_int_eq(sched_setscheduler(0, SCHED_FIFO, &param), 0);
}

static struct fixture *listening_fixture(void)
{
	struct fixture *f = fixture_new();

	f->options.recv_depth = 4;
	fixture_listen(f);
	return f;
}

static void say(const struct ticker *ticker, unsigned conns, uint64_t us)
{
	printf("# %u connections in %llu ms, %u ticks, at most %llu ms between two\n", conns,
		(unsigned long long)us / EVR_US_PER_MS, ticker->ticks,
		(unsigned long long)ticker->longest_us / EVR_US_PER_MS);
	fflush(stdout);
}

static int patience_ms(void)
{
	return PATIENCE_MS + (int)(each * HOSTILE_PEERS) * CONNECTION_MS;
}

START_TEST(a_server_that_comes_first_is_kept_by_nobody)
{
	struct ticker ticker = { 0 };
	struct event *event;
	struct fixture *f;
	uint64_t since;

	keep_to(PEERS_CPU);
	hostile_start(each);
	come_first();
	f = listening_fixture();
	event = start_ticking(f, &ticker);
	since = testbed.now_us();
	hostile_let_go(f);
	fixture_run_until(f, hostile_are_gone, patience_ms());
	event_free(event);
	say(&ticker, f->established, testbed.now_us() - since);
	ck_assert_uint_ge(f->established, HOSTILE_PEERS * (each - each / 100));
	fixture_free(f);
}
END_TEST

int main(int argc, char **argv)
{
	Suite *suite = suite_create("fifo");
	SRunner *runner = srunner_create(suite);
	TCase *tc = tcase_create("fifo");
	int failed;

	if (argc != 3)
		return 2;
	testbed.ip = argv[1];
	each = (unsigned)atoi(argv[2]) / HOSTILE_PEERS;
	tcase_set_timeout(tc, 2 * patience_ms() / 1000);
	tcase_add_test(tc, a_server_that_comes_first_is_kept_by_nobody);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
