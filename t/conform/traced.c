#include "conform/traced.h"
#include "conform/fixture.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static int tracing_on = -1;

bool traced(void)
{
	return getenv("EVR_TRACING") != NULL;
}

/*
 * What the first base of a process finds and loads, evrdma_base(3) says so, and what is read from
 * files as it is first used, does not count: nothing but the library's own waiting shall be seen.
 */
void traced_start(void)
{
	char path[PATH_MAX];

	if (tracing_on >= 0)
		return;
	fixture_free(fixture_new());
	ck_assert_int_eq(mlockall(MCL_CURRENT), 0);
	snprintf(path, sizeof(path), "%s/tracing_on", getenv("EVR_TRACING"));
	tracing_on = open(path, O_WRONLY | O_CLOEXEC);
	ck_assert_int_ge(tracing_on, 0);
}

void traced_watch(bool on)
{
	if (tracing_on >= 0)
		ck_assert_int_eq(write(tracing_on, on ? "1" : "0", 1), 1);
}

/* --- what the tracer has to find ------------------------------------------------------------ */

static void doze(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	static const struct timespec nap = { 0, 2000000 };

	if (event == EVRDMA_CONN_CONNECTED)
		nanosleep(&nap, NULL);
	endpoint_close_if_down(endpoint, event);
}

START_TEST(a_callback_that_sleeps)
{
	struct fixture *f = fixture_new();

	f->on_event = doze;
	fixture_connect_pair(f);
	fixture_free(f);
}
END_TEST

TCase *traced_case(void)
{
	TCase *tc = tcase_create("traced");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_add_test(tc, a_callback_that_sleeps);
	return tc;
}
