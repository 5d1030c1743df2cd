/* A process that may lock little memory: the kernel refuses what the library would register. */
#include "conform/memlock.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "conform/world.h"

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
static struct side *sides[2 * PAIRS];
static unsigned num_sides, num_held, told, received;

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

static void hold_the_first(struct side *side, const struct evrdma_recv *recv)
{
	ck_assert_int_eq(recv->err, 0);
	received++;
	if (side->received == 1)
		held[num_held++] = evrdma_buf_ref(recv->buf);
}

static void stay_open(
	struct side *side, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	if (event == EVRDMA_CONN_CONNECTED)
		sides[num_sides++] = side;
	ck_assert_msg(event != EVRDMA_CONN_ERROR, "%s", side->world->last_error);
}

static struct evrdma_pool *small_pool(struct world *w, size_t size)
{
	struct evrdma_pool_options options;

	evrdma_pool_options_init(&options);
	options.slab_bytes = SLAB;
	return evrdma_pool_new_with_options(w->base, size, &options);
}

/* What is received has a page each, and all that is sent has one. */
static struct world *small_world(void)
{
	struct world *w = world_new();

	w->pool = small_pool(w, LEN);
	w->on_recv = hold_the_first;
	w->on_event = stay_open;
	w->options.recv_pool = small_pool(w, SLAB);
	evrdma_pool_set_starved_cb(w->options.recv_pool, on_starved, NULL);
	w->options.recv_depth = RECEIVES;
	w->options.send_depth = 1;
	return w;
}

static bool all_are_up(struct world *w)
{
	return num_sides == 2 * PAIRS;
}

static bool one_more_came_to_each(struct world *w)
{
	return received == 2 * PAIRS;
}

static void pass_one_each(struct world *w)
{
	unsigned i;

	received = 0;
	for (i = 0; i < num_sides; i++) {
		const unsigned came = received;

		side_send(sides[i], 1, LEN);
		while (received == came)
			event_base_loop(w->loop, EVLOOP_ONCE);
	}
	world_run_until(w, one_more_came_to_each, PATIENCE_MS);
}

static void let_all_go(struct world *w)
{
	unsigned i;

	while (num_held)
		evrdma_buf_unref(held[--num_held]);
	w->on_event = NULL;
	for (i = 0; i < num_sides; i++)
		if (sides[i]->is_client)
			evrdma_conn_close(sides[i]->conn);
	world_run_until(w, world_none_live, PATIENCE_MS);
}

START_TEST(twenty_connections_go_on_with_what_may_be_locked)
{
	struct world *w;
	int i;

	lock_little();
	w = small_world();
	world_listen(w);
	for (i = 0; i < PAIRS; i++)
		world_connect(w);
	world_run_until(w, all_are_up, PATIENCE_MS);
	for (i = 0; i < MESSAGES; i++)
		pass_one_each(w);
	ck_assert_uint_eq(num_held, 2 * PAIRS);
	ck_assert_uint_gt(told, 0);
	let_all_go(w);
	world_free(w);
}
END_TEST

TCase *memlock_case(void)
{
	TCase *tc = tcase_create("memlock");

	tcase_add_checked_fixture(tc, place.start, place.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, twenty_connections_go_on_with_what_may_be_locked);
	return tc;
}
