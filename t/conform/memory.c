/* Memory that loops in several threads serve, registered once for all of them. */
#include "conform/suite.h"
#include "conform/fixture.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { LOOPS = 4, MANY = 32, MEMORY = 65536, MRS = 2, PATIENCE_MS = 30000 };

struct cache {
	struct evrdma_domain *domain;
	struct evrdma_buf *buf;
	unsigned char *memory;
	struct evrdma_buf *many[MANY]; /* to begin with, or NULL: with a reference for each loop */
	atomic_uint cleaned, cleaned_many;
	struct server {
		pthread_t thread;
		struct event_base *loop;
		struct evrdma_base *base;
		struct cache *cache;
		struct evrdma_conn *conn; /* of its own thread */
		sem_t ended, leaves;
	} servers[LOOPS];
	unsigned next; /* who gets the next request */
	struct reader {
		struct evrdma_remote remote;
		struct evrdma_conn *conn;
		struct evrdma_buf *into;
		unsigned char *memory;
		bool told, failed;
	} readers[LOOPS];
	unsigned asked, done;
};

/* --- on the thread of a server -------------------------------------------------------------- */

static void use_many(struct server *server)
{
	struct evrdma_remote remote;
	unsigned i;

	for (i = 0; i < MANY && server->cache->many[i]; i++) {
		struct evrdma_buf *buf = server->cache->many[i];

		ck_assert_int_eq(evrdma_conn_expose(server->conn, buf, &remote), 0);
		evrdma_buf_unref(buf);
	}
}

static void tell_where(struct server *server)
{
	unsigned char packed[EVRDMA_REMOTE_PACKED_BYTES];
	struct evrdma_work work = {
		.op = EVRDMA_OP_SEND, .inline_data = packed, .inline_len = sizeof(packed)
	};
	struct evrdma_remote remote;

	ck_assert_int_eq(evrdma_conn_expose(server->conn, server->cache->buf, &remote), 0);
	evrdma_remote_pack(&remote, packed);
	ck_assert_int_eq(evrdma_conn_submit(server->conn, &work, NULL, NULL), 0);
}

static void on_served(struct evrdma_conn *conn, enum evrdma_conn_event event,
	const struct evrdma_error *error, void *arg)
{
	if (event == EVRDMA_CONN_CONNECTED) {
		use_many(arg);
		tell_where(arg);
	}
	if (event == EVRDMA_CONN_DISCONNECTED || event == EVRDMA_CONN_ERROR)
		evrdma_conn_close(conn);
}

static void serve(struct evrdma_request *request, void *arg)
{
	struct server *server = arg;
	struct evrdma_conn_options options;

	evrdma_conn_options_init(&options);
	options.domain = server->cache->domain;
	options.inline_bytes = EVRDMA_REMOTE_PACKED_BYTES;
	server->conn = evrdma_conn_new(server->base, &options);
	ck_assert_ptr_nonnull(server->conn);
	evrdma_conn_setcb(server->conn, NULL, on_served, server);
	ck_assert_int_eq(evrdma_conn_accept(server->conn, request), 0);
}

static void end(struct evrdma_base *base, void *arg)
{
	evrdma_base_close(base, NULL, NULL);
}

/* Until the end: the kernel counts no more what a thread made that is gone. */
static void *run(void *arg)
{
	struct server *server = arg;

	event_base_dispatch(server->loop);
	sem_post(&server->ended);
	sem_wait(&server->leaves);
	return NULL;
}

/* --- on the main thread --------------------------------------------------------------------- */

static void on_cleanup(void *memory, size_t size, void *arg)
{
	struct cache *cache = arg;

	ck_assert(memory == cache->memory && size == MEMORY);
	atomic_fetch_add(&cache->cleaned, 1);
}

static void start_server(struct cache *cache, struct server *server)
{
	server->cache = cache;
	server->loop = event_base_new();
	server->base = evrdma_base_new(server->loop, NULL);
	ck_assert_ptr_nonnull(server->base);
	sem_init(&server->ended, 0, 0);
	sem_init(&server->leaves, 0, 0);
	ck_assert_int_eq(pthread_create(&server->thread, NULL, run, server), 0);
}

static struct server *ending;

static bool has_ended(struct fixture *f)
{
	return !sem_trywait(&ending->ended);
}

/* The readers hear of it meanwhile. */
static void end_server(struct fixture *f, struct server *server)
{
	ck_assert_int_eq(evrdma_base_run_in_loop(server->base, end, NULL), 0);
	ending = server;
	fixture_run_until(f, has_ended, PATIENCE_MS);
	event_base_free(server->loop);
}

static void open_cache(struct cache *cache)
{
	unsigned i;

	memset(cache, 0, sizeof(*cache));
	cache->memory = malloc(MEMORY);
	for (i = 0; i < MEMORY; i++)
		cache->memory[i] = (unsigned char)(i * 7 + i / 256);
	cache->domain = evrdma_domain_new_shared();
	ck_assert_ptr_nonnull(cache->domain);
	cache->buf = evrdma_buf_new_shared(cache->domain, cache->memory, MEMORY,
		EVRDMA_BUF_OPT_REMOTE_READ, on_cleanup, cache);
	ck_assert_ptr_nonnull(cache->buf);
	for (i = 0; i < LOOPS; i++)
		start_server(cache, &cache->servers[i]);
}

static void hand_over(struct fixture *f, struct evrdma_request *request)
{
	struct cache *cache = f->tag;
	struct server *server = &cache->servers[cache->next++ % LOOPS];

	ck_assert_int_eq(evrdma_request_move(request, server->base, serve, server), 0);
}

static void on_read(struct evrdma_conn *conn, const struct evrdma_error *error, void *arg)
{
	struct cache *cache = arg;
	unsigned i;

	for (i = 0; i < LOOPS; i++)
		if (cache->readers[i].conn == conn)
			cache->readers[i].failed = error;
	cache->done++;
}

static void read_all(struct cache *cache, struct reader *reader)
{
	struct evrdma_seg seg = { .buf = reader->into, .len = MEMORY };
	struct evrdma_work work = {
		.op = EVRDMA_OP_READ, .segs = &seg, .seg_count = 1, .remote = reader->remote
	};

	ck_assert_int_eq(evrdma_conn_submit(reader->conn, &work, on_read, cache), 0);
	cache->asked++;
}

static void on_told(struct endpoint *endpoint, const struct evrdma_recv *recv)
{
	struct reader *reader = endpoint->tag;

	if (recv->err)
		return;
	ck_assert_uint_eq(recv->len, EVRDMA_REMOTE_PACKED_BYTES);
	evrdma_remote_unpack(&reader->remote, recv->data);
	reader->told = true;
	read_all(endpoint->fixture->tag, reader);
}

static void connect_reader(struct fixture *f, struct reader *reader)
{
	struct endpoint *endpoint = fixture_connect(f);

	endpoint->tag = reader;
	reader->conn = endpoint->conn;
	reader->memory = calloc(1, MEMORY);
	reader->into = evrdma_buf_new_reference(reader->memory, MEMORY, 0, NULL, NULL);
	ck_assert_ptr_nonnull(reader->into);
}

static bool all_read(struct fixture *f)
{
	struct cache *cache = f->tag;

	return cache->done == LOOPS;
}

static void check_readers(struct cache *cache)
{
	unsigned i;

	for (i = 0; i < LOOPS; i++) {
		struct reader *reader = &cache->readers[i];

		ck_assert(reader->told && !reader->failed);
		ck_assert_uint_eq(reader->remote.key, cache->readers[0].remote.key);
		ck_assert_int_eq(memcmp(reader->memory, cache->memory, MEMORY), 0);
	}
}

static void close_readers(struct fixture *f)
{
	struct cache *cache = f->tag;
	unsigned i;

	for (i = 0; i < LOOPS; i++)
		evrdma_conn_close(cache->readers[i].conn);
	fixture_run_until(f, fixture_none_live, PATIENCE_MS);
	for (i = 0; i < LOOPS; i++) {
		evrdma_buf_unref(cache->readers[i].into);
		free(cache->readers[i].memory);
	}
}

static void free_cache(struct cache *cache)
{
	unsigned i;

	for (i = 0; i < LOOPS; i++) {
		sem_post(&cache->servers[i].leaves);
		pthread_join(cache->servers[i].thread, NULL);
		sem_destroy(&cache->servers[i].ended);
		sem_destroy(&cache->servers[i].leaves);
	}
	ck_assert_uint_eq(cache->cleaned, 1);
	free(cache->memory);
}

static void keep_open(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
}

/* Four readers, each of another loop. */
static void serve_readers(struct fixture *f, struct cache *cache)
{
	unsigned i;

	f->tag = cache;
	f->on_request = hand_over;
	f->on_recv = on_told;
	f->on_event = keep_open;
	if (!f->listener)
		fixture_listen(f);
	for (i = 0; i < LOOPS; i++)
		connect_reader(f, &cache->readers[i]);
	fixture_run_until(f, all_read, PATIENCE_MS);
	check_readers(cache);
}

/* Of the process, but for those of the readers' base. */
static int registered_by_servers(struct fixture *f)
{
	struct evrdma_base_stats stats;
	int counts[TESTBED_COUNTS];

	testbed.count(counts);
	evrdma_base_get_stats(f->base, &stats);
	return counts[MRS] - f->counts_before[MRS] - (int)stats.registrations_now;
}

/* Which server goes first changes nothing, nor does what goes before the servers do. */
START_TEST(four_threads_serve_memory_that_is_registered_once)
{
	struct fixture *f = fixture_new_on_machine_time();
	struct cache cache;
	unsigned i;

	open_cache(&cache);
	serve_readers(f, &cache);
	ck_assert_int_eq(registered_by_servers(f), 1);
	if (_i % 2)
		evrdma_domain_free(cache.domain);
	for (i = 0; i < LOOPS; i++) {
		ck_assert_int_eq(registered_by_servers(f), 1);
		end_server(f, &cache.servers[(i + _i / 2) % LOOPS]);
	}
	ck_assert_int_eq(registered_by_servers(f), 0);
	ck_assert_uint_eq(cache.cleaned, 0);
	evrdma_buf_unref(cache.buf);
	if (!(_i % 2))
		evrdma_domain_free(cache.domain);
	close_readers(f);
	free_cache(&cache);
	fixture_free(f);
}
END_TEST

static void on_one_cleanup(void *memory, size_t size, void *arg)
{
	atomic_fetch_add(&((struct cache *)arg)->cleaned_many, 1);
	free(memory);
}

static void add_many(struct cache *cache)
{
	unsigned i, loop;

	for (i = 0; i < MANY; i++) {
		cache->many[i] = evrdma_buf_new_shared(cache->domain, calloc(1, 64), 64,
			EVRDMA_BUF_OPT_REMOTE_READ, on_one_cleanup, cache);
		ck_assert_ptr_nonnull(cache->many[i]);
		for (loop = 1; loop < LOOPS; loop++)
			evrdma_buf_ref(cache->many[i]);
	}
}

/* Whoever is first registers, whoever is last ends that, on whichever thread. */
START_TEST(threads_begin_and_end_with_the_same_memory_at_once)
{
	struct fixture *f = fixture_new_on_machine_time();
	struct cache cache;
	unsigned i;

	open_cache(&cache);
	add_many(&cache);
	serve_readers(f, &cache);
	ck_assert_uint_eq(cache.cleaned_many, MANY);
	ck_assert_int_eq(registered_by_servers(f), 1);
	for (i = 0; i < LOOPS; i++)
		end_server(f, &cache.servers[i]);
	evrdma_domain_free(cache.domain);
	evrdma_buf_unref(cache.buf);
	close_readers(f);
	free_cache(&cache);
	fixture_free(f);
}
END_TEST

/* It is registered nowhere, while all the loops are there. */
START_TEST(memory_that_is_given_up_is_registered_nowhere)
{
	struct fixture *f = fixture_new_on_machine_time();
	struct cache cache;
	unsigned i;

	open_cache(&cache);
	serve_readers(f, &cache);
	evrdma_buf_unref(cache.buf);
	ck_assert_uint_eq(cache.cleaned, 1);
	ck_assert_int_eq(registered_by_servers(f), 0);
	evrdma_domain_free(cache.domain);
	for (i = 0; i < LOOPS; i++)
		end_server(f, &cache.servers[i]);
	close_readers(f);
	free_cache(&cache);
	fixture_free(f);
}
END_TEST

static bool device_is_removed(struct fixture *f)
{
	return testbed.device_is_removed();
}

static void ignore(struct evrdma_listener *listener, enum evrdma_listener_event event,
	const struct evrdma_error *error, void *arg)
{
}

/* The last loop to go lets the device go, and none of them has to be the one that registered. */
START_TEST(shared_memory_does_not_keep_a_device_and_is_there_when_it_comes_back)
{
	struct fixture *f = fixture_new_on_machine_time();
	struct cache cache;
	unsigned i;

	open_cache(&cache);
	serve_readers(f, &cache);
	evrdma_listener_set_event_cb(f->listener, ignore);
	testbed.remove_device();
	evrdma_listener_close(f->listener);
	f->listener = NULL;
	close_readers(f);
	if (testbed.own_core)
		fixture_run_until(f, device_is_removed, PATIENCE_MS);
	if (testbed.own_core)
		testbed.add_device();
	cache.done = 0;
	memset(cache.readers, 0, sizeof(cache.readers));
	if (testbed.own_core) {
		serve_readers(f, &cache);
		ck_assert_int_eq(registered_by_servers(f), 1);
		close_readers(f);
	}
	for (i = 0; i < LOOPS; i++)
		end_server(f, &cache.servers[i]);
	evrdma_domain_free(cache.domain);
	evrdma_buf_unref(cache.buf);
	free_cache(&cache);
	fixture_free(f);
}
END_TEST

/* --- what goes together --------------------------------------------------------------------- */

static void expect_refused(struct evrdma_conn *conn, struct evrdma_buf *buf)
{
	struct evrdma_remote remote;

	ck_assert_int_eq(evrdma_conn_expose(conn, buf, &remote), -EXDEV);
	ck_assert_int_eq(evrdma_conn_send(conn, buf, 8, NULL, NULL), -EXDEV);
}

START_TEST(shared_memory_is_of_its_own_domain_only)
{
	static char memory[64];
	struct fixture *f = fixture_new();
	struct evrdma_domain *one = evrdma_domain_new_shared();
	struct evrdma_domain *other = evrdma_domain_new_shared();
	struct evrdma_domain *of_base = evrdma_domain_new(f->base);
	struct evrdma_buf *buf = evrdma_buf_new_shared(
		one, memory, sizeof(memory), EVRDMA_BUF_OPT_REMOTE_READ, NULL, NULL);
	unsigned i;

	for (i = 0; i < 3; i++) {
		f->options.domain = i == 0 ? NULL : i == 1 ? other : of_base;
		f->client = f->server = NULL;
		fixture_connect_pair(f);
		expect_refused(f->client->conn, buf);
	}
	evrdma_buf_unref(buf);
	evrdma_domain_free(one);
	evrdma_domain_free(other);
	fixture_free(f);
}
END_TEST

START_TEST(shared_memory_wants_a_shared_domain)
{
	static char memory[64];
	struct fixture *f = fixture_new();
	struct evrdma_domain *of_base = evrdma_domain_new(f->base);
	struct evrdma_domain *shared = evrdma_domain_new_shared();

	ck_assert(!evrdma_buf_new_shared(NULL, memory, 64, 0, NULL, NULL) && errno == EINVAL);
	ck_assert(!evrdma_buf_new_shared(of_base, memory, 64, 0, NULL, NULL) && errno == EINVAL);
	ck_assert(!evrdma_buf_new_shared(shared, NULL, 64, 0, NULL, NULL) && errno == EINVAL);
	ck_assert(!evrdma_buf_new_shared(shared, memory, 0, 0, NULL, NULL) && errno == EINVAL);
	ck_assert(!evrdma_buf_new_shared(shared, memory, 64, 8, NULL, NULL) && errno == EINVAL);
	evrdma_domain_free(shared);
	fixture_free(f);
}
END_TEST

TCase *memory_case(void)
{
	TCase *tc = tcase_create("memory");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, four_threads_serve_memory_that_is_registered_once, 0, 2 * LOOPS);
	tcase_add_test(tc, threads_begin_and_end_with_the_same_memory_at_once);
	tcase_add_test(tc, memory_that_is_given_up_is_registered_nowhere);
	tcase_add_test(tc, shared_memory_does_not_keep_a_device_and_is_there_when_it_comes_back);
	tcase_add_test(tc, shared_memory_is_of_its_own_domain_only);
	tcase_add_test(tc, shared_memory_wants_a_shared_domain);
	return tc;
}
