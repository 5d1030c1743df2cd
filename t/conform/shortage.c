/* Too little memory that may be registered, too few files, too few buffers. */
#include "conform/suite.h"
#include "conform/fixture.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static bool one_failed(struct fixture *f)
{
	return f->last_error[0];
}

START_TEST(a_base_registers_no_more_memory_than_it_may)
{
	struct evrdma_base_options options;
	struct evrdma_base_stats stats;
	struct fixture *f = fixture_new();

	evrdma_base_options_init(&options);
	options.max_pinned_bytes = 4096;
	fixture_replace_base(f, &options);
	fixture_listen(f);
	fixture_connect(f); /* its pool's slabs are larger */
	fixture_run_until(f, one_failed, 20000);
	ck_assert_ptr_nonnull(strstr(f->last_error, "max_pinned_bytes"));
	evrdma_base_get_stats(f->base, &stats);
	ck_assert_uint_ge(stats.quota_errors, 1);
	ck_assert_uint_eq(stats.registrations, 0);
	fixture_free(f);
}
END_TEST

START_TEST(a_call_that_needs_more_memory_than_is_left_says_so)
{
	static unsigned char memory[1024 * 1024];
	struct evrdma_base_options options;
	struct evrdma_base_stats stats;
	struct fixture *f = fixture_new();
	struct evrdma_buf *buf = evrdma_buf_new_reference(
		memory, sizeof(memory), EVRDMA_BUF_OPT_REMOTE_READ, NULL, NULL);
	struct evrdma_remote remote;

	evrdma_base_options_init(&options);
	options.max_pinned_bytes = sizeof(memory);
	fixture_replace_base(f, &options);
	fixture_connect_pair(f);
	ck_assert_int_eq(endpoint_send_buf(f->client, buf, sizeof(memory)), -EDQUOT);
	ck_assert_int_eq(evrdma_conn_expose(f->client->conn, buf, &remote), -EDQUOT);
	evrdma_base_get_stats(f->base, &stats);
	ck_assert_uint_eq(stats.quota_errors, 2);
	ck_assert_uint_le(stats.bytes_pinned_max, sizeof(memory));
	evrdma_buf_unref(buf);
	fixture_free(f);
}
END_TEST

/* --- the limits of the process -------------------------------------------------------------- */

START_TEST(the_limit_of_open_files_is_named)
{
	struct evrdma_error error = { .err = EMFILE, .step = EVRDMA_STEP_DEVICE, .cm_event = -1 };
	char text[EVRDMA_ERROR_TEXT_MAX], wanted[64];
	struct rlimit limit;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	snprintf(wanted, sizeof(wanted), "(the limit of open files is %llu)",
		(unsigned long long)limit.rlim_cur);
	ck_assert_ptr_nonnull(strstr(evrdma_error_text(&error, text, sizeof(text)), wanted));
}
END_TEST

/* The right to lock memory without a limit; false when there is none to give up. */
static bool give_up_ipc_lock(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2];
	bool had;

	ck_assert_int_eq(syscall(SYS_capget, &header, caps), 0);
	had = caps[0].effective & 1u << CAP_IPC_LOCK;
	caps[0].effective &= ~(1u << CAP_IPC_LOCK);
	ck_assert_int_eq(syscall(SYS_capset, &header, caps), 0);
	return had;
}

static bool names(const struct evrdma_error *error, const char *what)
{
	char text[EVRDMA_ERROR_TEXT_MAX];

	return strstr(evrdma_error_text(error, text, sizeof(text)), what);
}

static bool names_the_limit_to_those_it_binds(void)
{
	struct evrdma_error error = { .err = ENOMEM, .step = EVRDMA_STEP_DEVICE, .cm_event = -1 };
	const struct rlimit limit = { 65536, 65536 };
	bool right;

	ck_assert_int_eq(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	right = names(&error, "limit");
	right = right != give_up_ipc_lock();
	right &= names(&error, "(the limit of locked memory is 64 KiB)");
	error.step = EVRDMA_STEP_CONNECT;
	return right && !names(&error, "limit");
}

/*
 * Whoever may lock what he likes has no limit to name. In a process of its own: the kernel lets
 * none use a device with other rights than it was opened with.
 */
START_TEST(the_limit_of_locked_memory_is_named_to_those_it_binds)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(!names_the_limit_to_those_it_binds());
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}
END_TEST

/* --- when no more can be registered --------------------------------------------------------- */

enum { SLAB = 4096, SEND_SLAB = 256 * 1024, RECEIVES = 2 };

struct shortage {
	struct evrdma_pool *pool;
	struct evrdma_buf *held;
	unsigned told, received, passed, refused;
	int err;
};

static void on_starved(struct evrdma_pool *pool, int err, void *arg)
{
	struct shortage *shortage = arg;

	ck_assert_ptr_eq(pool, shortage->pool);
	shortage->told++;
	shortage->err = err;
}

static void hold_first(struct endpoint *endpoint, const struct evrdma_recv *recv)
{
	struct shortage *shortage = endpoint->fixture->tag;

	if (recv->err) {
		shortage->refused++;
		shortage->err = recv->err;
		return;
	}
	if (!shortage->received++)
		shortage->held = evrdma_buf_ref(recv->buf);
}

static void stay_open(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
}

/* A pool of a slab for each buffer, and a base that may pin what is posted, and no more. */
static struct fixture *fixture_that_may_pin(struct shortage *shortage, unsigned slabs)
{
	struct evrdma_base_options options;
	struct evrdma_pool_options pool;
	struct fixture *f = fixture_new();

	evrdma_base_options_init(&options);
	options.max_pinned_bytes = SEND_SLAB + slabs * SLAB;
	fixture_replace_base(f, &options);
	evrdma_pool_options_init(&pool);
	pool.slab_bytes = SLAB;
	*shortage = (struct shortage){ 0 };
	shortage->pool = evrdma_pool_new_with_options(f->base, SLAB, &pool);
	evrdma_pool_set_starved_cb(shortage->pool, on_starved, shortage);
	f->tag = shortage;
	f->on_recv = hold_first;
	f->on_event = stay_open;
	f->options.recv_pool = shortage->pool;
	f->options.recv_depth = RECEIVES;
	f->options.send_depth = 1;
	return f;
}

static bool shortage_is_told(struct fixture *f)
{
	return ((struct shortage *)f->tag)->told;
}

static bool one_more_came(struct fixture *f)
{
	const struct shortage *shortage = f->tag;

	return shortage->received > shortage->passed;
}

static void pass_one(struct fixture *f)
{
	struct shortage *shortage = f->tag;

	shortage->passed = shortage->received;
	endpoint_send(f->client, 1, 64);
	fixture_run_until(f, one_more_came, 20000);
}

/* One buffer is held and cannot be replaced; the other one goes round. */
static void live_through(struct fixture *f, struct shortage *shortage)
{
	unsigned i;

	fixture_connect_pair(f);
	pass_one(f);
	fixture_run_until(f, shortage_is_told, 20000);
	ck_assert_int_eq(shortage->err, EDQUOT);
	for (i = 0; i < 10; i++)
		pass_one(f);
	evrdma_buf_unref(shortage->held);
	fixture_run_a_little(f);
	for (i = 0; i < 10; i++)
		pass_one(f);
	ck_assert_uint_eq(shortage->told, 1);
	ck_assert(!f->client->down && !f->server->down);
}

START_TEST(a_connection_goes_on_with_what_it_has_when_no_more_may_be_registered)
{
	struct shortage shortage;
	struct fixture *f = fixture_that_may_pin(&shortage, 2 * RECEIVES);

	live_through(f, &shortage);
	fixture_free(f);
}
END_TEST

START_TEST(a_shared_queue_goes_on_with_what_it_has_when_no_more_may_be_registered)
{
	struct shortage shortage;
	struct fixture *f = fixture_that_may_pin(&shortage, RECEIVES);
	struct evrdma_srq *srq = evrdma_srq_new(f->base, shortage.pool, RECEIVES);

	f->options.recv_pool = NULL;
	f->options.srq = srq;
	live_through(f, &shortage);
	fixture_free(f);
}
END_TEST

static bool one_was_refused(struct fixture *f)
{
	return ((struct shortage *)f->tag)->refused;
}

START_TEST(a_buffer_of_the_users_that_may_not_be_registered_comes_back)
{
	static unsigned char memory[SLAB], more[SLAB];
	struct shortage shortage;
	struct fixture *f = fixture_that_may_pin(&shortage, 1);
	struct evrdma_buf *buf = evrdma_buf_new_reference(memory, SLAB, 0, NULL, NULL);
	struct evrdma_buf *beyond = evrdma_buf_new_reference(more, SLAB, 0, NULL, NULL);

	f->options.recv_pool = NULL;
	fixture_connect_pair(f);
	ck_assert_int_eq(evrdma_conn_recv(f->server->conn, buf), 0);
	pass_one(f);
	ck_assert_int_eq(evrdma_conn_recv(f->server->conn, buf), 0);
	ck_assert_int_eq(evrdma_conn_recv(f->server->conn, beyond), 0);
	fixture_run_until(f, one_was_refused, 20000);
	ck_assert_int_eq(shortage.err, EDQUOT);
	pass_one(f);
	ck_assert(!f->client->down && !f->server->down);
	evrdma_buf_unref(shortage.held);
	evrdma_buf_unref(buf);
	evrdma_buf_unref(beyond);
	fixture_free(f);
}
END_TEST

/* Memory that is freed elsewhere is used without anybody's doing. */
START_TEST(what_could_not_be_registered_is_tried_again)
{
	static unsigned char memory[SEND_SLAB + SLAB];
	struct evrdma_buf *other = evrdma_buf_new_reference(memory, sizeof(memory), 0, NULL, NULL);
	struct shortage shortage;
	struct fixture *f = fixture_that_may_pin(&shortage, 2 * RECEIVES + 1);
	struct evrdma_base_stats stats;

	fixture_connect_pair(f);
	ck_assert_int_eq(endpoint_send_buf(f->client, other, 64), 0);
	fixture_run_until(f, shortage_is_told, 20000);
	evrdma_buf_unref(other);
	do {
		event_base_loop(f->loop, EVLOOP_ONCE);
		evrdma_base_get_stats(f->base, &stats);
	} while (stats.bytes_pinned != (2 * RECEIVES + 1) * SLAB);
	evrdma_buf_unref(shortage.held);
	fixture_free(f);
}
END_TEST

/* --- a pool with a limit --------------------------------------------------------------------- */

struct limited {
	struct evrdma_pool *pool;
	struct evrdma_buf *held[2 * RECEIVES];
	unsigned held_count, received;
};

static void accept_into_limited(struct fixture *f, struct evrdma_request *request)
{
	struct limited *limited = f->tag;
	struct evrdma_pool *pool = f->options.recv_pool;

	f->options.recv_pool = limited->pool;
	endpoint_accept(fixture_endpoint_new(f, false), request);
	f->options.recv_pool = pool;
}

static void hold_all(struct endpoint *endpoint, const struct evrdma_recv *recv)
{
	struct limited *limited = endpoint->fixture->tag;

	limited->received++;
	if (limited->held_count < 2 * RECEIVES)
		limited->held[limited->held_count++] = evrdma_buf_ref(recv->buf);
}

static unsigned wanted_messages;

static bool enough_messages(struct fixture *f)
{
	return ((struct limited *)f->tag)->received >= wanted_messages;
}

static void send_and_wait(struct fixture *f, struct endpoint *client, unsigned n, unsigned all)
{
	endpoint_send(client, n, 64);
	wanted_messages = all;
	fixture_run_until(f, enough_messages, 20000);
	fixture_run_a_little(f);
}

static bool tagged_is_down(struct fixture *f)
{
	return f->server->down;
}

enum { KEPT = 200, ROOM_LEFT = 24, A_CHAIN = 32, BUF_BYTES = 4096, OVERHEAD = 256 * 1024 };

static struct {
	struct evrdma_buf *bufs[KEPT];
	unsigned num, received, wanted;
} kept;

static void keep_first(struct endpoint *endpoint, const struct evrdma_recv *recv)
{
	if (recv->err)
		return;
	kept.received++;
	if (kept.num < KEPT)
		kept.bufs[kept.num++] = evrdma_buf_ref(recv->buf);
}

static bool has_received(struct fixture *f)
{
	return kept.received >= kept.wanted;
}

static void receive_one(struct fixture *f)
{
	kept.wanted = kept.received + 1;
	endpoint_send(f->client, 1, 64);
	fixture_run_until(f, has_received, 20000);
	fixture_run_turns(f, 3);
}

static uint64_t refused(struct fixture *f)
{
	struct evrdma_base_stats stats;

	evrdma_base_get_stats(f->base, &stats);
	return stats.quota_errors;
}

/* Each slab is one buffer: for so many that are kept no other can be registered. */
static struct fixture *starving_fixture(void)
{
	struct evrdma_base_options base;
	struct evrdma_pool_options pool;
	struct fixture *f = fixture_new();

	evrdma_base_options_init(&base);
	base.max_pinned_bytes = OVERHEAD + 2 * (KEPT + ROOM_LEFT) * BUF_BYTES;
	fixture_replace_base(f, &base);
	evrdma_pool_options_init(&pool);
	pool.slab_bytes = BUF_BYTES;
	f->options.recv_pool = evrdma_pool_new_with_options(f->base, BUF_BYTES, &pool);
	f->options.recv_depth = KEPT + ROOM_LEFT;
	f->on_recv = keep_first;
	memset(&kept, 0, sizeof(kept));
	return f;
}

START_TEST(what_cannot_be_registered_is_not_asked_for_all_at_once)
{
	struct fixture *f = starving_fixture();
	uint64_t before;
	unsigned i;

	fixture_connect_pair(f);
	while (kept.num < KEPT)
		receive_one(f);
	for (i = 0; i < 5; i++) {
		before = refused(f);
		receive_one(f);
		ck_assert_uint_le(refused(f) - before, 2 * A_CHAIN);
	}
	ck_assert_uint_gt(refused(f), 0);
	for (i = 0; i < kept.num; i++)
		evrdma_buf_unref(kept.bufs[i]);
	for (i = 0; i < KEPT; i++)
		receive_one(f);
	fixture_free(f);
}
END_TEST

/* Two servers wait for a buffer of the pool when the first one's connection ends. */
START_TEST(a_buffer_that_comes_back_goes_to_a_connection_that_can_use_it)
{
	struct limited limited = { 0 };
	struct fixture *f = fixture_new();
	struct endpoint *clients[2], *servers[2];
	unsigned i;

	limited.pool = evrdma_pool_new(f->base, 4096, 2 * RECEIVES);
	f->tag = &limited;
	f->on_request = accept_into_limited;
	f->on_recv = hold_all;
	f->on_event = stay_open;
	f->options.recv_depth = RECEIVES;
	for (i = 0; i < 2; i++) {
		f->client = f->server = NULL;
		fixture_connect_pair(f);
		clients[i] = f->client;
		servers[i] = f->server;
	}
	for (i = 0; i < 2; i++)
		send_and_wait(f, clients[i], RECEIVES, (i + 1) * RECEIVES);
	f->server = servers[0];
	ck_assert_int_eq(evrdma_conn_disconnect(clients[0]->conn), 0);
	fixture_run_until(f, tagged_is_down, 20000);
	evrdma_buf_unref(limited.held[0]);
	fixture_run_a_little(f);
	send_and_wait(f, clients[1], 1, 2 * RECEIVES + 1);
	for (i = 1; i < 2 * RECEIVES; i++)
		evrdma_buf_unref(limited.held[i]);
	fixture_free(f);
}
END_TEST

TCase *shortage_case(void)
{
	TCase *tc = tcase_create("shortage");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, a_base_registers_no_more_memory_than_it_may);
	tcase_add_test(tc, a_call_that_needs_more_memory_than_is_left_says_so);
	tcase_add_test(tc, the_limit_of_open_files_is_named);
	tcase_add_test(tc, the_limit_of_locked_memory_is_named_to_those_it_binds);
	tcase_add_test(tc, a_connection_goes_on_with_what_it_has_when_no_more_may_be_registered);
	if (testbed_has(TESTBED_SRQS))
		tcase_add_test(
			tc, a_shared_queue_goes_on_with_what_it_has_when_no_more_may_be_registered);
	tcase_add_test(tc, a_buffer_of_the_users_that_may_not_be_registered_comes_back);
	tcase_add_test(tc, what_could_not_be_registered_is_tried_again);
	if (testbed_has(TESTBED_DEEP_QUEUES))
		tcase_add_test(tc, what_cannot_be_registered_is_not_asked_for_all_at_once);
	tcase_add_test(tc, a_buffer_that_comes_back_goes_to_a_connection_that_can_use_it);
	return tc;
}
