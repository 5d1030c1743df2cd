/*
 * Random schedules of rsockets, on the fake. EVR_RS_SCHEDULES in the environment says how many,
 * EVR_RS_SEED from which seed on, and EVR_RS_TRACE prints what each call gave.
 */
#define _GNU_SOURCE
#include "rs/random.h"

#include "unit/cm_unit.h"

#include <dirent.h>
#include <rdma/rsocket.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { PATIENCE_TURNS = 60000, TURN_US = 1000, TIMEOUT_S = 3600 };

/* --- what is left ---------------------------------------------------------------------------- */

static unsigned entries(const char *path)
{
	DIR *dir = opendir(path);
	unsigned n = 0;

	ck_assert_ptr_nonnull(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static unsigned threads; /* of the test, and of what watches it */

static void wait_a_turn(unsigned *turns)
{
	if ((*turns)++ == PATIENCE_TURNS)
		ck_abort_msg("%s is left, or a thread", fake_expect_clean());
	usleep(TURN_US);
}

/*
 * The library's thread closes what lingers, and ends. That a device has left where nobody was told
 * of it the library learns when it is asked for devices.
 */
static void await_the_end(void)
{
	unsigned turns = 0;

	while (entries("/proc/self/task") > threads)
		wait_a_turn(&turns);
	rdma_free_devices(rdma_get_devices(NULL));
	while (fake_expect_clean())
		wait_a_turn(&turns);
}

static void *name_itself(void *arg)
{
	*(pid_t *)arg = gettid();
	return NULL;
}

/* A sanitizer's own begins with the first, which is joined some time before it is gone. */
static void count_threads(void)
{
	pthread_t thread;
	char path[64];
	pid_t tid;

	ck_assert_int_eq(pthread_create(&thread, NULL, name_itself, &tid), 0);
	pthread_join(thread, NULL);
	snprintf(path, sizeof(path), "/proc/self/task/%d", (int)tid);
	while (!access(path, F_OK))
		usleep(TURN_US);
	threads = entries("/proc/self/task");
}

/*
 * This thread gets its own one, by which others wake it, when it first sleeps: not where the time
 * is over before it would, as it may be on a busy machine.
 */
static void sleep_once(void)
{
	struct pollfd pfd = { .events = POLLIN };
	static bool has_slept;
	unsigned files;

	if (has_slept)
		return;
	count_threads();
	fake_install();
	pfd.fd = rsocket(AF_INET, SOCK_STREAM, 0);
	ck_assert_ok(rbind(pfd.fd, cm_addr(FAKE_ROCE_IP, CM_PORT), sizeof(struct sockaddr_in)));
	ck_assert_ok(rlisten(pfd.fd, 0));
	files = entries("/proc/self/fd");
	while (!has_slept) {
		ck_assert_int_eq(rpoll(&pfd, 1, 1), 0);
		has_slept = entries("/proc/self/fd") > files;
	}
	ck_assert_ok(rclose(pfd.fd));
	cm_tear_down();
}

static void check_descriptors(uint64_t seed)
{
	static unsigned before;
	unsigned now = entries("/proc/self/fd");

	if (before && now > before)
		ck_abort_msg(
			"seed %llu leaves %u descriptors", (unsigned long long)seed, now - before);
	before = now;
}

static uint64_t run(uint64_t seed, bool alone)
{
	uint64_t digest;

	fake_install();
	digest = random_run(seed, alone);
	await_the_end();
	cm_tear_down();
	check_descriptors(seed);
	return digest;
}

/* --- the tests ------------------------------------------------------------------------------- */

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : otherwise;
}

static uint64_t first, count;

START_TEST(who_waits_is_woken_and_each_byte_comes_once)
{
	uint64_t i;

	sleep_once();
	for (i = 0; i < count; i++)
		run(first + i, false);
}
END_TEST

START_TEST(one_thread_does_the_same_again)
{
	uint64_t i;

	sleep_once();
	for (i = 0; i < count; i++)
		if (run(first + i, true) != run(first + i, true))
			ck_abort_msg(
				"seed %llu is not the same again", (unsigned long long)(first + i));
}
END_TEST

START_TEST(each_datagram_comes_once_and_who_waits_is_woken)
{
	uint64_t i;

	sleep_once();
	for (i = 0; i < count; i++) {
		fake_install();
		random_dgrams(first + i);
		await_the_end();
		cm_tear_down();
		check_descriptors(first + i);
	}
}
END_TEST

static void end_one(void)
{
	await_the_end();
	cm_tear_down();
}

START_TEST(who_comes_between_two_looks_is_seen)
{
	sleep_once();
	random_between(end_one);
}
END_TEST

/* Each has a case of its own, to be run alone. */
static void add(Suite *suite, const char *name, const TTest *test)
{
	TCase *tcase = tcase_create(name);

	tcase_set_timeout(tcase, TIMEOUT_S);
	tcase_add_test(tcase, test);
	suite_add_tcase(suite, tcase);
}

int main(void)
{
	Suite *suite = suite_create("random");
	SRunner *runner;
	int failed;

	first = from_environment("EVR_RS_SEED", 1);
	count = from_environment("EVR_RS_SCHEDULES", EVR_RS_SCHEDULE_COUNT);
	add(suite, "streams", who_waits_is_woken_and_each_byte_comes_once);
	if (fake_kind_to_test(FAKE_ROCE) != FAKE_IWARP)
		add(suite, "alone", one_thread_does_the_same_again);
	add(suite, "between", who_comes_between_two_looks_is_seen);
	add(suite, "datagrams", each_datagram_comes_once_and_who_waits_is_woken);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
