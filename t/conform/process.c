/* What the process does around a base: threads, fork, exec, what is inherited. */
#include "conform/suite.h"
#include "conform/world.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MESSAGES = 16, MOST_FDS = 256 };

static void keep_open(
	struct side *side, enum evrdma_conn_event event, const struct evrdma_error *error)
{
}

/* --- threads -------------------------------------------------------------------------------- */

static void note_thread(struct evrdma_base *base, void *arg)
{
	*(pthread_t *)((struct world *)arg)->tag = pthread_self();
}

static void *call_from_here(void *arg)
{
	struct world *w = arg;

	return (void *)(intptr_t)evrdma_base_run_in_loop(w->base, note_thread, w);
}

static bool was_called(struct world *w)
{
	return pthread_equal(*(pthread_t *)w->tag, pthread_self());
}

/* Nothing here has called evthread_use_pthreads(). */
START_TEST(another_thread_wakes_a_loop_without_libevents_threads)
{
	struct world *w = world_new();
	pthread_t thread, called_on;
	void *ret;

	w->tag = &called_on;
	ck_assert_int_eq(pthread_create(&thread, NULL, call_from_here, w), 0);
	called_on = thread;
	world_run_until(w, was_called, 20000);
	ck_assert_int_eq(pthread_join(thread, &ret), 0);
	ck_assert_int_eq((int)(intptr_t)ret, 0);
	world_free(w);
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
	struct world *w;
	int fd;

	for (fd = 0; fd < MOST_FDS; fd++)
		before[fd] = fcntl(fd, F_GETFD) >= 0;
	w = world_new();
	world_connect_pair(w);
	check_close_on_exec(before);
	world_free(w);
}
END_TEST

/* --- children ------------------------------------------------------------------------------- */

static void child_exits(struct world *w)
{
	_exit(0);
}

static void child_frees_the_loop(struct world *w)
{
	if (event_reinit(w->loop))
		_exit(1);
	event_base_free(w->loop);
	_exit(0);
}

static void child_executes(struct world *w)
{
	execl("/bin/true", "true", (char *)NULL);
	_exit(1);
}

static void (*const children[])(struct world *) = {
	child_exits,
	child_frees_the_loop,
	child_executes,
};

static void run_child(struct world *w, void (*child)(struct world *))
{
	pid_t pid = fork();
	int status;

	ck_assert_int_ge(pid, 0);
	if (!pid)
		child(w);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

static bool all_arrived(struct world *w)
{
	return w->server->received == MESSAGES && w->client->sends_ok == MESSAGES;
}

static bool both_down(struct world *w)
{
	return w->client->down && w->server->down;
}

START_TEST(a_child_that_leaves_does_no_harm)
{
	struct world *w = world_new();

	w->on_event = keep_open;
	world_connect_pair(w);
	run_child(w, children[_i]);
	side_send(w->client, MESSAGES, 64);
	world_run_until(w, all_arrived, 20000);
	ck_assert_int_eq(evrdma_conn_disconnect(w->client->conn), 0);
	world_run_until(w, both_down, 20000);
	ck_assert_int_eq(w->client->error, 0);
	ck_assert_int_eq(w->server->error, 0);
	world_free(w);
}
END_TEST

TCase *process_case(void)
{
	TCase *tc = tcase_create("process");

	tcase_add_checked_fixture(tc, place.start, place.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, another_thread_wakes_a_loop_without_libevents_threads);
	tcase_add_test(tc, every_descriptor_is_closed_on_exec);
	tcase_add_loop_test(
		tc, a_child_that_leaves_does_no_harm, 0, sizeof(children) / sizeof(children[0]));
	return tc;
}
