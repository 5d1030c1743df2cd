/* What the process does around a base: threads, fork, exec, what is inherited. */
#include "conform/suite.h"
#include "conform/fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MESSAGES = 16, MOST_FDS = 256 };

static void keep_open(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
}

/* --- threads -------------------------------------------------------------------------------- */

static void note_thread(struct evrdma_base *base, void *arg)
{
	*(pthread_t *)((struct fixture *)arg)->tag = pthread_self();
}

static void *call_from_here(void *arg)
{
	struct fixture *f = arg;

	return (void *)(intptr_t)evrdma_base_run_in_loop(f->base, note_thread, f);
}

static bool was_called(struct fixture *f)
{
	return pthread_equal(*(pthread_t *)f->tag, pthread_self());
}

/* Nothing here has called evthread_use_pthreads(). */
START_TEST(another_thread_wakes_a_loop_without_libevents_threads)
{
	struct fixture *f = fixture_new_on_machine_time();
	pthread_t thread, called_on;
	void *ret;

	f->tag = &called_on;
	ck_assert_int_eq(pthread_create(&thread, NULL, call_from_here, f), 0);
	called_on = thread;
	fixture_run_until(f, was_called, 20000);
	ck_assert_int_eq(pthread_join(thread, &ret), 0);
	ck_assert_int_eq((int)(intptr_t)ret, 0);
	fixture_free(f);
}
END_TEST

/* --- descriptors ---------------------------------------------------------------------------- */

/* Those of the test itself were there before. */
static void check_close_on_exec(const bool *before)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	unsigned seen = 0;

	while ((entry = readdir(dir))) {
		int fd = atoi(entry->d_name);

		ck_assert_int_lt(fd, MOST_FDS);
		if (entry->d_name[0] == '.' || before[fd] || fd == dirfd(dir))
			continue;
		seen++;
		ck_assert_msg(fcntl(fd, F_GETFD) & FD_CLOEXEC, "descriptor %d is inherited", fd);
	}
	closedir(dir);
	ck_assert_uint_gt(seen, 3);
}

START_TEST(every_descriptor_is_closed_on_exec)
{
	bool before[MOST_FDS];
	struct fixture *f;
	int fd;

	for (fd = 0; fd < MOST_FDS; fd++)
		before[fd] = fcntl(fd, F_GETFD) >= 0;
	f = fixture_new();
	fixture_connect_pair(f);
	check_close_on_exec(before);
	fixture_free(f);
}
END_TEST

/* --- children ------------------------------------------------------------------------------- */

static void child_exits(struct fixture *f)
{
	_exit(0);
}

static void child_frees_the_loop(struct fixture *f)
{
	if (event_reinit(f->loop))
		_exit(1);
	event_base_free(f->loop);
	_exit(0);
}

static void child_executes(struct fixture *f)
{
	execl("/bin/true", "true", (char *)NULL);
	_exit(1);
}

static void (*const children[])(struct fixture *) = {
	child_exits,
	child_frees_the_loop,
	child_executes,
};

static void run_child(struct fixture *f, void (*child)(struct fixture *))
{
	pid_t pid = fork();
	int status;

	ck_assert_int_ge(pid, 0);
	if (!pid)
		child(f);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

static bool all_arrived(struct fixture *f)
{
	return f->server->received == MESSAGES && f->client->sends_ok == MESSAGES;
}

static bool both_down(struct fixture *f)
{
	return f->client->down && f->server->down;
}

START_TEST(a_child_that_leaves_does_no_harm)
{
	struct fixture *f = fixture_new();

	f->on_event = keep_open;
	fixture_connect_pair(f);
	run_child(f, children[_i]);
	endpoint_send(f->client, MESSAGES, 64);
	fixture_run_until(f, all_arrived, 20000);
	ck_assert_int_eq(evrdma_conn_disconnect(f->client->conn), 0);
	fixture_run_until(f, both_down, 20000);
	ck_assert_int_eq(f->client->error, 0);
	ck_assert_int_eq(f->server->error, 0);
	fixture_free(f);
}
END_TEST

TCase *process_case(void)
{
	TCase *tc = tcase_create("process");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, another_thread_wakes_a_loop_without_libevents_threads);
	tcase_add_test(tc, every_descriptor_is_closed_on_exec);
	tcase_add_loop_test(
		tc, a_child_that_leaves_does_no_harm, 0, sizeof(children) / sizeof(children[0]));
	return tc;
}
