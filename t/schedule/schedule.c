/*
 * Runs schedules, one seed after the other.
 *
 *	schedule.t                            as many as the build can do in about a minute
 *	schedule.t --count N [--from SEED]    so many
 *	schedule.t --seed SEED [--trace]      one, step by step
 *
 * EVR_SCHEDULES in the environment stands for --count, and EVR_PROGRAM says how the program was
 * called.
 */
#include "schedule/schedule.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	ALARM_S = 900,	/* a thousand schedules take less, however busy the machine is */
	CPU_S = 5,	/* a hundred work less, wherever the processor's time goes else */
	REPLAYED = 100, /* schedules that are run twice, to see that the seed says all */
	MANY = 60000,	/* enough to reach everything that can be reached */
	SLOW_S = 2000,	/* of virtual time, for one on the real kernel */
	CELL = 50,	/* of those are one test */
};

static const char *program;

static uint64_t run(uint64_t seed)
{
	struct schedule *s;
	unsigned steps;

	trace_begin(seed, program);
	s = schedule_new(seed);
	steps = 40 + random_below(&s->random, 160);
	while (steps--)
		schedule_step(s);
	schedule_end(s);
	return trace_digest();
}

struct arguments {
	uint64_t from, count;
	bool one, check_cover;
};

static void usage(void)
{
	fprintf(stderr, "usage: %s [--count N] [--from SEED] | --seed SEED [--trace]\n", program);
	exit(2);
}

static void parse(int argc, char **argv, struct arguments *a)
{
	const char *count = getenv("EVR_SCHEDULES");
	int i;

	*a = (struct arguments){ .from = 1, .count = EVR_SCHEDULE_COUNT };
	if (count)
		a->count = strtoull(count, NULL, 10);
	for (i = 1; i < argc; i++) {
		bool more = i + 1 < argc;

		if (!strcmp(argv[i], "--trace")) {
			trace_on = true;
		} else if (more && !strcmp(argv[i], "--count")) {
			a->count = strtoull(argv[++i], NULL, 10);
		} else if (more && !strcmp(argv[i], "--from")) {
			a->from = strtoull(argv[++i], NULL, 10);
		} else if (more && !strcmp(argv[i], "--seed")) {
			a->from = strtoull(argv[++i], NULL, 10);
			a->count = 1;
			a->one = true;
		} else {
			usage();
		}
	}
	a->check_cover = a->count >= MANY;
}

/* The end of a schedule that waits for ever, and of one that works for ever. */
static void watch(uint64_t i)
{
	static const struct itimerval cpu = { .it_value.tv_sec = CPU_S };

	if (!(i % 1000))
		alarm(ALARM_S);
	if (!(i % 100))
		setitimer(ITIMER_PROF, &cpu, NULL);
}

static void watch_no_more(void)
{
	static const struct itimerval none;

	alarm(0);
	setitimer(ITIMER_PROF, &none, NULL);
}

static void run_exact(const struct arguments *a)
{
	uint64_t i, digest;

	for (i = 0; i < a->count; i++) {
		watch(i);
		digest = run(a->from + i);
		if (i < REPLAYED && !a->one && run(a->from + i) != digest)
			wrong("the same seed gives another schedule");
	}
	watch_no_more();
	printf("ok 1 - %llu schedules, from seed %llu\n", (unsigned long long)a->count,
		(unsigned long long)a->from);
}

/* In a process of its own: what the kernel holds of it goes with it. */
static bool run_apart(uint64_t seed)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		setpgid(0, 0);
		alarm(SLOW_S);
		run(seed);
		fflush(stdout);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	if (!status)
		return true;
	kill(-pid, SIGKILL);
	while (!kill(-pid, 0))
		usleep(1000);
	return false;
}

static unsigned run_real(const struct arguments *a)
{
	unsigned bad = 0, bad_here = 0;
	uint64_t i;

	for (i = 0; i < a->count; i++) {
		bad_here += !run_apart(a->from + i);
		if ((i + 1) % CELL && i + 1 < a->count)
			continue;
		printf("%sok %llu - schedules to seed %llu\n", bad_here ? "not " : "",
			(unsigned long long)(i / CELL + 1), (unsigned long long)(a->from + i));
		bad += bad_here;
		bad_here = 0;
	}
	return bad;
}

int main(int argc, char **argv)
{
	struct arguments a;
	uint64_t since_us;
	unsigned bad = 0;

	program = getenv("EVR_PROGRAM") ? getenv("EVR_PROGRAM") : argv[0];
	parse(argc, argv, &a);
	/* What is freed reads as nonsense from then on. */
	mallopt(M_PERTURB, 0xa5);
	machine.set_up();
	since_us = clock_real_us();
	if (!machine.exact) {
		printf("1..%llu\n", (unsigned long long)((a.count + CELL - 1) / CELL));
		return run_real(&a) > 0;
	}
	printf("1..%d\n", a.check_cover ? 2 : 1);
	run_exact(&a);
	printf("# %llu ms\n", (unsigned long long)(clock_real_us() - since_us) / 1000);
	if (!a.one)
		bad = cover_report();
	if (a.check_cover)
		printf("%sok 2 - everything that can happen did\n", bad ? "not " : "");
	return a.check_cover && bad;
}
