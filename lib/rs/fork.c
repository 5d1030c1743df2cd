/*
 * A child of fork() has none of its parent's rsockets: what they are made of is the parent's, and
 * another thread may have been at it. It begins with an empty table and without a helper.
 */
#include "rs/helper.h"

#include <unistd.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int error;
static pid_t pid;

pid_t evr_rs_pid(void)
{
	return pid;
}

static void before(void)
{
	evr_rs_helper_before_fork();
	evr_rs_end_before_fork();
}

static void after(void)
{
	evr_rs_end_after_fork();
	evr_rs_helper_after_fork();
}

static void begin_child(void)
{
	pid = getpid();
	evr_rs_table_clear();
	evr_rs_repoll_begin_child();
	evr_rs_sleeper_begin_child();
	evr_rs_helper_begin_child();
	evr_rs_end_begin_child();
	evr_rs_close_begin_child();
}

static void watch(void)
{
	pid = getpid();
	error = -pthread_atfork(before, after, begin_child);
}

int evr_rs_watch_forks(void)
{
	pthread_once(&once, watch);
	return error;
}
