#include "conform/apart.h"

#include "conform/fixture.h"

#include <errno.h>
#include <string.h>

struct event_base *apart_loop;

static struct evrdma_base *base;
static bool is_closed;

void apart_start(void)
{
	apart_loop = event_base_new();
	base = evrdma_base_new(apart_loop, NULL);
	ck_assert_msg(base, "base: %s", strerror(errno));
}

struct endpoint *apart_connect(struct fixture *f)
{
	struct endpoint *endpoint = fixture_endpoint_new_on(f, base, true);
	struct sockaddr_in sin;

	fixture_address(&sin, testbed.ip, evrdma_listener_get_port(f->listener));
	ck_assert_int_eq(evrdma_conn_connect(endpoint->conn, NULL, (struct sockaddr *)&sin), 0);
	return endpoint;
}

void apart_run_until(struct fixture *f, bool (*condition)(struct fixture *))
{
	while (!condition(f))
		event_base_loop(apart_loop, EVLOOP_ONCE);
}

static void on_closed(struct evrdma_base *closed, void *arg)
{
	is_closed = true;
}

static bool has_ended(struct fixture *f)
{
	return is_closed;
}

void apart_end(void)
{
	is_closed = false;
	evrdma_base_close(base, on_closed, NULL);
	apart_run_until(NULL, has_ended);
	event_base_free(apart_loop);
}
