/*
 * What a connection costs among few and among many: calls of the kernel and allocations of each
 * phase, on the fake. The time is the test's own, and passes with the calls.
 */
#include "scale/crowd.h"

#include <arpa/inet.h>
#include <check.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake/fake.h"
#include "fake/fake_heap.h"
#include "schedule/clock.h"

/* A gap: the budgets of a turn and a call of the kernel in each. */
enum { FEW = 500, MANY = 4000, MOST = 20000, READING_US = 1, CALL_US = 20, LIMIT_S = 600 };
enum { PERCENT = 120, LONGEST_GAP_US = 4000 };

struct cost {
	unsigned calls, allocations;
	size_t bytes; /* of the heap */
};

struct account {
	struct cost before, of[CROWD_PHASES];
};

static const char *const names[CROWD_PHASES] = { "set up", "idle", "used", "torn down" };

static unsigned calls;

static void on_call(void)
{
	calls++;
	clock_advance_us(CALL_US);
}

static struct cost so_far(void)
{
	return (struct cost){ calls, fake_heap_count(), mallinfo2().uordblks };
}

static void watch(enum crowd_phase phase, int has_ended, void *arg)
{
	struct account *account = arg;
	struct cost now = so_far(), *of = &account->of[phase];

	if (!has_ended) {
		account->before = now;
		return;
	}
	*of = (struct cost){ now.calls - account->before.calls,
		now.allocations - account->before.allocations,
		now.bytes - account->before.bytes };
}

static void say(const struct crowd *crowd, const struct account *account)
{
	int i;

	printf("# %u connections: %zu bytes of each with those of the fake, at most %llu us "
	       "between two ticks\n",
		crowd->wanted, account->of[CROWD_SET_UP].bytes / crowd->wanted,
		(unsigned long long)crowd->longest_gap_us);
	for (i = 0; i < CROWD_PHASES; i++)
		printf("# %-10s %8.2f calls %8.2f allocations of each\n", names[i],
			(double)account->of[i].calls / crowd->wanted,
			(double)account->of[i].allocations / crowd->wanted);
	fflush(stdout);
}

static struct account measure(unsigned num)
{
	struct account account = { 0 };
	struct crowd crowd = { .wanted = num, .watch = watch, .arg = &account };
	struct sockaddr_in addr = { .sin_family = AF_INET };

	inet_pton(AF_INET, FAKE_ROCE_IP, &addr.sin_addr);
	clock_start(READING_US);
	fake_each_call(on_call);
	ck_assert_msg(!crowd_run(&crowd, (struct sockaddr *)&addr, clock_now_us), "%s",
		crowd.error);
	fake_each_call(NULL);
	clock_stop();
	say(&crowd, &account);
	ck_assert_uint_eq(crowd.closed, 2 * num);
	ck_assert_uint_le(crowd.longest_gap_us, LONGEST_GAP_US);
	return account;
}

static void is_flat(const struct account *few, unsigned num, const struct account *many)
{
	int i;

	for (i = 0; i < CROWD_PHASES; i++) {
		ck_assert_msg((double)many->of[i].calls / num <=
				      (double)(few->of[i].calls + 1) * PERCENT / 100 / FEW,
			"%s: %u calls of %u, %u of %u", names[i], few->of[i].calls, FEW,
			many->of[i].calls, num);
		ck_assert_msg((double)many->of[i].allocations / num <=
				      (double)(few->of[i].allocations + 1) * PERCENT / 100 / FEW,
			"%s: %u allocations of %u, %u of %u", names[i], few->of[i].allocations, FEW,
			many->of[i].allocations, num);
	}
}

static void install(void)
{
	fake_install();
	fake_device_attr(FAKE_ROCE)->max_qp = 3 * MOST;
}

static const unsigned sizes[] = { MANY, MOST };

START_TEST(one_of_many_costs_what_one_of_few_does)
{
	struct account few, many;

	install();
	few = measure(FEW);
	many = measure(sizes[_i]);
	is_flat(&few, sizes[_i], &many);
}
END_TEST

/* fake.t [NUM]: with a number, that crowd alone; instructions.sh counts what it takes. */
int main(int argc, char **argv)
{
	Suite *suite = suite_create("scale");
	TCase *tcase = tcase_create("crowd");
	SRunner *runner;
	int failed;

	if (argc > 1) {
		install();
		measure((unsigned)atoi(argv[1]));
		return 0;
	}
	tcase_set_timeout(tcase, LIMIT_S);
	tcase_add_loop_test(tcase, one_of_many_costs_what_one_of_few_does, 0,
		sizeof(sizes) / sizeof(sizes[0]));
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
