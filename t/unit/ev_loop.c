#include "unit/ev_loop.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

struct event_base *ev_loop;
struct evrdma_base *ev_base;

void ev_set_up(void)
{
	struct evrdma_base_options options;

	fake_setup();
	evrdma_base_options_init(&options);
	options.device_idle_ms = 0;
	ck_assert_ptr_nonnull(ev_loop = event_base_new());
	ck_assert_ptr_nonnull(ev_base = evrdma_base_new(ev_loop, &options));
}

static void on_closed(struct evrdma_base *base, void *arg)
{
	*(bool *)arg = true;
}

void ev_tear_down(void)
{
	bool closed = false;

	evrdma_base_close(ev_base, on_closed, &closed);
	ev_run_until(&closed);
	event_base_free(ev_loop);
	fake_teardown();
}

static void on_late(evutil_socket_t fd, short what, void *arg)
{
	*(bool *)arg = true;
}

void ev_run_until(const bool *flag)
{
	const struct timeval patience = { .tv_sec = 5 };
	bool late = false;
	struct event *timer = evtimer_new(ev_loop, on_late, &late);

	ck_assert_int_eq(evtimer_add(timer, &patience), 0);
	while (!*flag && !late)
		event_base_loop(ev_loop, EVLOOP_ONCE);
	event_free(timer);
	ck_assert_msg(*flag, "nothing came within 5 s");
}

/* Without EVLOOP_ONCE it goes on until it is at rest. */
void ev_run_now(void)
{
	event_base_loop(ev_loop, EVLOOP_NONBLOCK);
}

struct sockaddr *ev_addr(const char *ip, uint16_t port)
{
	static struct sockaddr_in ring[4];
	static unsigned turn;
	struct sockaddr_in *in = &ring[turn++ % 4];

	memset(in, 0, sizeof(*in));
	in->sin_family = AF_INET;
	in->sin_port = htons(port);
	ck_assert_int_eq(inet_pton(AF_INET, ip, &in->sin_addr), 1);
	return (struct sockaddr *)in;
}

int ev_main(const char *name, const TTest *const *tests, size_t n)
{
	Suite *suite = suite_create(name);
	TCase *tcase = tcase_create(name);
	size_t i;

	tcase_add_checked_fixture(tcase, ev_set_up, ev_tear_down);
	for (i = 0; i < n; i++)
		tcase_add_test(tcase, tests[i]);
	suite_add_tcase(suite, tcase);
	return fake_run(suite);
}
