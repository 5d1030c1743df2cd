/* A process that may lock little memory: the kernel refuses what the library would register. */
#include "conform/memlock.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "conform/fixture.h"
#include "conform/suite.h"
#include "unit/one_process.h"

enum {
	LIMIT = 512 * 1024,
	SLAB = 4096,
	LEN = 64,
	PAIRS = 20,
	RECEIVES = 3, /* so that all but a few pages of the limit are posted */
	MESSAGES = 10,
	PATIENCE_MS = 20000,
};

static struct evrdma_buf *held[2 * PAIRS];
static struct endpoint *endpoints[2 * PAIRS];
static unsigned num_endpoints, num_held, told, received;

/* Before a device is open, which the kernel lets nobody use who has other rights by then. */
static void lock_little(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const struct rlimit limit = { LIMIT, LIMIT };
	struct __user_cap_data_struct caps[2];

	ck_assert_int_eq(syscall(SYS_capget, &header, caps), 0);
	caps[0].effective &= ~(1u << CAP_IPC_LOCK);
	ck_assert_int_eq(syscall(SYS_capset, &header, caps), 0);
	ck_assert_int_eq(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
}

static void on_starved(struct evrdma_pool *pool, int err, void *arg)
{
	ck_assert_int_eq(err, ENOMEM);
	told++;
}

static void hold_the_first(struct endpoint *endpoint, const struct evrdma_recv *recv)
{
	ck_assert_int_eq(recv->err, 0);
	received++;
	if (endpoint->received == 1)
		held[num_held++] = evrdma_buf_ref(recv->buf);
}

static void stay_open(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	if (event == EVRDMA_CONN_CONNECTED)
		endpoints[num_endpoints++] = endpoint;
	ck_assert_msg(event != EVRDMA_CONN_ERROR, "%s", endpoint->fixture->last_error);
}

static struct evrdma_pool *small_pool(struct fixture *f, size_t size)
{
	struct evrdma_pool_options options;

	evrdma_pool_options_init(&options);
	options.slab_bytes = SLAB;
	return evrdma_pool_new_with_options(f->base, size, &options);
}

/* What is received has a page each, and all that is sent has one. */
static struct fixture *small_fixture(void)
{
	struct fixture *f = fixture_new();

	f->pool = small_pool(f, LEN);
	f->on_recv = hold_the_first;
	f->on_event = stay_open;
	f->options.recv_pool = small_pool(f, SLAB);
	evrdma_pool_set_starved_cb(f->options.recv_pool, on_starved, NULL);
	f->options.recv_depth = RECEIVES;
	f->options.send_depth = 1;
	return f;
}

static bool all_are_up(struct fixture *f)
{
	return num_endpoints == 2 * PAIRS;
}

static bool one_more_came_to_each(struct fixture *f)
{
	return received == 2 * PAIRS;
}

static void pass_one_each(struct fixture *f)
{
	unsigned i;

	received = 0;
	for (i = 0; i < num_endpoints; i++) {
		const unsigned came = received;

		endpoint_send(endpoints[i], 1, LEN);
		while (received == came)
			event_base_loop(f->loop, EVLOOP_ONCE);
	}
	fixture_run_until(f, one_more_came_to_each, PATIENCE_MS);
}

static void let_all_go(struct fixture *f)
{
	unsigned i;

	while (num_held)
		evrdma_buf_unref(held[--num_held]);
	f->on_event = NULL;
	for (i = 0; i < num_endpoints; i++)
		if (endpoints[i]->is_client)
			evrdma_conn_close(endpoints[i]->conn);
	fixture_run_until(f, fixture_none_live, PATIENCE_MS);
}

START_TEST(twenty_connections_go_on_with_what_may_be_locked)
{
	struct fixture *f;
	int i;

	lock_little();
	f = small_fixture();
	fixture_listen(f);
	for (i = 0; i < PAIRS; i++)
		fixture_connect(f);
	fixture_run_until(f, all_are_up, PATIENCE_MS);
	for (i = 0; i < MESSAGES; i++)
		pass_one_each(f);
	ck_assert_uint_eq(num_held, 2 * PAIRS);
	ck_assert_uint_gt(told, 0);
	let_all_go(f);
	fixture_free(f);
}
END_TEST

TCase *memlock_case(void)
{
	TCase *tc = tcase_create("memlock");

	tcase_set_tags(tc, OWN_PROCESS);
	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, twenty_connections_go_on_with_what_may_be_locked);
	return tc;
}
