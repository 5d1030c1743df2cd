/* A bufferevent over RDMA that is of all threads, as BEV_OPT_THREADSAFE makes it. */
#include "conform/suite.h"
#include "conform/stream.h"

#include <event2/thread.h>
#include <pthread.h>
#include <semaphore.h>

enum { WRITES = 200, WRITE_LEN = 1000, ALL = WRITES * WRITE_LEN };

static void *write_all(void *arg)
{
	int i;

	for (i = 0; i < WRITES; i++)
		side_write(&bevs.client, WRITE_LEN);
	return NULL;
}

/* Where time is virtual none would pass while a thread looks again and again. */
static sem_t something_came;

static void tell_reader(struct side *side)
{
	sem_post(&something_came);
}

static void *read_all(void *arg)
{
	while (bevs.client.checked < ALL) {
		sem_wait(&something_came);
		bufferevent_lock(bevs.client.bev);
		side_check(&bevs.client);
		bufferevent_unlock(bevs.client.bev);
	}
	return NULL;
}

static bool done;

static void *end(void *arg)
{
	pthread_t *threads = arg;

	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	__atomic_store_n(&done, true, __ATOMIC_RELEASE);
	event_base_loopbreak(bevs.f->loop);
	return NULL;
}

static bool threads_are_done(struct fixture *f)
{
	return __atomic_load_n(&done, __ATOMIC_ACQUIRE);
}

/* What comes back is looked at under its lock: its own callback leaves it to the thread. */
START_TEST(one_thread_writes_and_one_reads_while_the_loop_runs)
{
	pthread_t threads[2], ender;

	bevs.bev_options = BEV_OPT_THREADSAFE;
	bevs.server.on_read = side_echo;
	bevs.client.on_read = tell_reader;
	ck_assert_int_eq(sem_init(&something_came, 0, 0), 0);
	bevs_start();
	done = false;
	ck_assert_int_eq(pthread_create(&threads[0], NULL, write_all, NULL), 0);
	ck_assert_int_eq(pthread_create(&threads[1], NULL, read_all, NULL), 0);
	ck_assert_int_eq(pthread_create(&ender, NULL, end, threads), 0);
	bevs_run_until(threads_are_done);
	pthread_join(ender, NULL);
	sem_destroy(&something_came);
	ck_assert_uint_eq(bevs.client.checked, ALL);
	ck_assert_uint_eq(bevs.client.errors + bevs.server.errors, 0);
}
END_TEST

static void *write_much(void *arg)
{
	side_write(&bevs.client, ALL);
	return NULL;
}

/* As many bytes as the window does not take: they are in the buffer when the base goes. */
START_TEST(what_another_thread_wrote_goes_before_the_base_is_shut_down)
{
	pthread_t thread;

	fixture_add_other(bevs.f);
	bevs.bev_options = BEV_OPT_THREADSAFE;
	bevs.server.on_read = side_check;
	bevs_start();
	ck_assert_int_eq(pthread_create(&thread, NULL, write_much, NULL), 0);
	pthread_join(thread, NULL);
	bevs_shut_down();
	bevs_run_until(server_has_eof);
	ck_assert_uint_eq(bevs.server.checked, ALL);
	bevs_run_until(fixture_base_is_closed);
}
END_TEST

static void *free_it(void *arg)
{
	side_free(&bevs.client);
	return NULL;
}

START_TEST(another_thread_frees_it)
{
	pthread_t thread;

	bevs.bev_options = BEV_OPT_THREADSAFE;
	bevs.server.on_read = side_check;
	bevs_start();
	side_write(&bevs.client, 1000);
	bevs_run_until(client_has_written);
	ck_assert_int_eq(pthread_create(&thread, NULL, free_it, NULL), 0);
	bevs_run_until(server_has_eof);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(bevs.server.checked, 1000);
}
END_TEST

static void with_threads(void)
{
	ck_assert_int_eq(evthread_use_pthreads(), 0);
}

TCase *bufferevent_threads_case(void)
{
	TCase *tcase = tcase_create("bufferevent_threads");

	tcase_set_timeout(tcase, 120);
	tcase_add_checked_fixture(tcase, testbed.start, testbed.stop);
	tcase_add_checked_fixture(tcase, with_threads, NULL);
	bevs_add_fixture_on_machine_time(tcase);
	tcase_add_test(tcase, one_thread_writes_and_one_reads_while_the_loop_runs);
	tcase_add_test(tcase, what_another_thread_wrote_goes_before_the_base_is_shut_down);
	tcase_add_test(tcase, another_thread_frees_it);
	return tcase;
}
