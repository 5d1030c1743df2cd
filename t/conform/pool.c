/* How a pool takes its memory, and how it gives it back. */
#include "conform/suite.h"
#include "conform/fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLAB = 4096, BUF = 1024, PER_SLAB = SLAB / BUF };

static struct evrdma_pool *small_slabs(struct fixture *f, size_t min_bufs)
{
	struct evrdma_pool_options options;
	struct evrdma_pool *pool;

	evrdma_pool_options_init(&options);
	options.slab_bytes = SLAB;
	options.min_bufs = min_bufs;
	pool = evrdma_pool_new_with_options(f->base, BUF, &options);
	ck_assert_ptr_nonnull(pool);
	return pool;
}

static struct evrdma_pool_stats stats_of(const struct evrdma_pool *pool)
{
	struct evrdma_pool_stats stats;

	evrdma_pool_get_stats(pool, &stats);
	return stats;
}

START_TEST(a_pool_has_the_memory_of_its_first_buffers_from_the_start)
{
	struct fixture *f = fixture_new();
	struct evrdma_pool *lazy = small_slabs(f, 0), *eager = small_slabs(f, PER_SLAB + 1);

	ck_assert_uint_eq(stats_of(lazy).slabs, 0);
	ck_assert_uint_eq(stats_of(eager).slabs, 2);
	ck_assert_uint_eq(stats_of(eager).bufs, 2 * PER_SLAB);
	ck_assert_uint_eq(stats_of(eager).bufs_out, 0);
	fixture_free(f);
}
END_TEST

START_TEST(buffers_are_aligned_as_asked)
{
	struct fixture *f = fixture_new();
	struct evrdma_pool_options options;
	struct evrdma_pool *pool;
	int i;

	evrdma_pool_options_init(&options);
	options.alignment = 4096;
	options.max_bufs = 3;
	pool = evrdma_pool_new_with_options(f->base, 10, &options);
	for (i = 0; i < 3; i++) {
		struct evrdma_buf *buf = evrdma_pool_get(pool);

		ck_assert_uint_eq((uintptr_t)evrdma_buf_data(buf) % 4096, 0);
		evrdma_buf_unref(buf);
	}
	fixture_free(f);
}
END_TEST

START_TEST(huge_pages_are_used_where_they_are)
{
	struct fixture *f = fixture_new();
	struct evrdma_pool_options options;
	struct evrdma_pool *pool, *only;
	struct evrdma_buf *buf;

	evrdma_pool_options_init(&options);
	options.flags = EVRDMA_POOL_OPT_HUGE_PAGES;
	pool = evrdma_pool_new_with_options(f->base, BUF, &options);
	buf = evrdma_pool_get(pool);
	ck_assert_ptr_nonnull(buf);
	memset(evrdma_buf_data(buf), 1, BUF);
	evrdma_buf_unref(buf);
	options.flags |= EVRDMA_POOL_OPT_HUGE_PAGES_ONLY; /* both are that one */
	options.min_bufs = 1;
	only = evrdma_pool_new_with_options(f->base, BUF, &options);
	if (!only)
		ck_assert_int_eq(errno, ENOMEM);
	else
		ck_assert_uint_eq(stats_of(only).slabs_huge, 1);
	fixture_free(f);
}
END_TEST

START_TEST(a_trimmed_pool_gives_back_the_slabs_that_are_free)
{
	struct evrdma_buf *bufs[3 * PER_SLAB];
	struct fixture *f = fixture_new();
	struct evrdma_pool *pool = small_slabs(f, 0);
	unsigned i;

	for (i = 0; i < 3 * PER_SLAB; i++)
		bufs[i] = evrdma_pool_get(pool);
	ck_assert_uint_eq(evrdma_pool_trim(pool), 0);
	for (i = 1; i < 3 * PER_SLAB; i++)
		evrdma_buf_unref(bufs[i]);
	ck_assert_uint_eq(evrdma_pool_trim(pool), 2 * SLAB);
	ck_assert_uint_eq(stats_of(pool).slabs, 1);
	ck_assert_uint_eq(stats_of(pool).bufs, PER_SLAB);
	ck_assert_uint_eq(stats_of(pool).bufs_out_max, 3 * PER_SLAB);
	/* What is left is whole, and it grows again. */
	for (i = 1; i < 2 * PER_SLAB; i++) {
		bufs[i] = evrdma_pool_get(pool);
		memset(evrdma_buf_data(bufs[i]), (int)i, BUF);
	}
	for (i = 0; i < 2 * PER_SLAB; i++)
		evrdma_buf_unref(bufs[i]);
	fixture_free(f);
}
END_TEST

START_TEST(a_trimmed_pool_keeps_what_it_was_made_with)
{
	struct fixture *f = fixture_new();
	struct evrdma_pool *pool = small_slabs(f, PER_SLAB);

	ck_assert_uint_eq(evrdma_pool_trim(pool), 0);
	ck_assert_uint_eq(stats_of(pool).bufs, PER_SLAB);
	fixture_free(f);
}
END_TEST

START_TEST(a_pointer_of_the_users_stays_on_a_buffer_until_it_is_given_back)
{
	struct fixture *f = fixture_new();
	struct evrdma_pool *pool = small_slabs(f, PER_SLAB);
	struct evrdma_buf *buf = evrdma_pool_get(pool), *same;
	struct evrdma_buf *reference = evrdma_buf_new_reference(f, sizeof(*f), 0, NULL, NULL);

	ck_assert_ptr_null(evrdma_buf_get_user(buf));
	ck_assert_ptr_null(evrdma_buf_get_user(reference));
	evrdma_buf_set_user(buf, f);
	evrdma_buf_set_user(reference, pool);
	evrdma_buf_ref(buf);
	evrdma_buf_unref(buf);
	ck_assert_ptr_eq(evrdma_buf_get_user(buf), f);
	ck_assert_ptr_eq(evrdma_buf_get_user(reference), pool);
	evrdma_buf_unref(buf);
	same = evrdma_pool_get(pool);
	ck_assert_ptr_eq(same, buf);
	ck_assert_ptr_null(evrdma_buf_get_user(same));
	evrdma_buf_unref(same);
	evrdma_buf_unref(reference);
	fixture_free(f);
}
END_TEST

/* --- for debugging -------------------------------------------------------------------------- */

struct told {
	unsigned held, held_each, received, mine, written;
};

static void count_told(enum evrdma_log_level level, const char *text, void *arg)
{
	struct told *told = arg;
	char mine[32];

	snprintf(mine, sizeof(mine), "user pointer %p", arg);
	if (strstr(text, "buffers of 4096 bytes are still held"))
		told->held = (unsigned)strtoul(strstr(text, "and ") + 4, NULL, 10);
	told->held_each += !!strstr(text, "still held: the buffer");
	told->received += !!strstr(text, "to receive into");
	told->mine += !!strstr(text, mine);
	told->written += level == EVRDMA_LOG_ERROR && strstr(text, "written to after");
}

static void keep_it(struct endpoint *endpoint, const struct evrdma_recv *recv)
{
	endpoint->fixture->tag = evrdma_buf_ref(recv->buf);
}

static bool something_kept(struct fixture *f)
{
	return f->tag;
}

START_TEST(a_base_that_closes_tells_the_log_whose_buffers_are_still_held)
{
	struct fixture *f = fixture_new();
	struct told told = { 0 };
	struct evrdma_buf *taken = evrdma_pool_get(f->pool), *received;

	evrdma_buf_set_user(taken, &told);
	f->on_recv = keep_it;
	fixture_connect_pair(f);
	endpoint_send(f->client, 1, 16);
	fixture_run_until(f, something_kept, 20000);
	received = f->tag;
	evrdma_set_log_cb(count_told, &told);
	fixture_free(f);
	evrdma_set_log_cb(NULL, NULL);
	ck_assert_uint_eq(told.held, 2);
	ck_assert_uint_eq(told.held_each, 2);
	ck_assert_uint_eq(told.received, 1);
	ck_assert_uint_eq(told.mine, 1);
	evrdma_buf_unref(taken);
	evrdma_buf_unref(received);
}
END_TEST

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>

START_TEST(a_buffer_that_was_given_back_is_out_of_bounds)
{
	struct fixture *f = fixture_new();
	struct evrdma_buf *buf = evrdma_pool_get(f->pool);
	void *data = evrdma_buf_data(buf);

	ck_assert(!__asan_region_is_poisoned(data, evrdma_buf_size(buf)));
	evrdma_buf_unref(buf);
	ck_assert(__asan_region_is_poisoned(data, 1));
	fixture_free(f);
}
END_TEST
#else
START_TEST(who_writes_to_a_buffer_that_was_given_back_is_found)
{
	struct fixture *f = fixture_new();
	struct told told = { 0 };
	struct evrdma_pool_options options;
	struct evrdma_pool *pool;
	struct evrdma_buf *buf;
	unsigned char *data;

	evrdma_pool_options_init(&options);
	options.flags = EVRDMA_POOL_OPT_POISON;
	pool = evrdma_pool_new_with_options(f->base, BUF, &options);
	evrdma_set_log_cb(count_told, &told);
	buf = evrdma_pool_get(pool);
	data = evrdma_buf_data(buf);
	memset(data, 1, BUF);
	evrdma_buf_unref(buf);
	ck_assert_uint_eq(data[0], 0xdb);
	ck_assert_uint_eq(data[BUF - 1], 0xdb);
	evrdma_buf_unref(evrdma_pool_get(pool));
	ck_assert_uint_eq(told.written, 0);
	data[BUF - 1] = 0;
	evrdma_buf_unref(evrdma_pool_get(pool));
	evrdma_set_log_cb(NULL, NULL);
	ck_assert_uint_eq(told.written, 1);
	fixture_free(f);
}
END_TEST
#endif

static bool message_came(struct fixture *f)
{
	return f->server->received && f->client->sends_ok;
}

START_TEST(trimming_ends_what_was_registered)
{
	struct fixture *f = fixture_new();
	struct evrdma_pool *pool = small_slabs(f, 0);
	struct evrdma_buf *buf = evrdma_pool_get(pool);
	struct evrdma_base_stats before, after;

	fixture_connect_pair(f);
	ck_assert_int_eq(endpoint_send_buf(f->client, buf, BUF), 0);
	evrdma_buf_unref(buf);
	fixture_run_until(f, message_came, 20000);
	evrdma_base_get_stats(f->base, &before);
	ck_assert_uint_eq(evrdma_pool_trim(pool), SLAB);
	evrdma_base_get_stats(f->base, &after);
	ck_assert_uint_eq(after.bytes_pinned, before.bytes_pinned - SLAB);
	ck_assert_uint_eq(after.registrations_now, before.registrations_now - 1);
	fixture_free(f);
}
END_TEST

#define REFUSED_POOL(f, field, value)                                                              \
	do {                                                                                       \
		struct evrdma_pool_options o;                                                      \
		evrdma_pool_options_init(&o);                                                      \
		o.max_bufs = 10;                                                                   \
		o.field = (value);                                                                 \
		errno = 0;                                                                         \
		ck_assert_ptr_null(evrdma_pool_new_with_options((f)->base, BUF, &o));              \
		ck_assert_msg(errno == EINVAL, #field " = " #value " was taken");                  \
	} while (0)

START_TEST(a_pool_without_options_has_the_defaults)
{
	struct fixture *f = fixture_new();
	struct evrdma_pool *pool = evrdma_pool_new_with_options(f->base, BUF, NULL);
	struct evrdma_buf *buf = evrdma_pool_get(pool);
	struct evrdma_pool_stats stats;

	evrdma_pool_get_stats(pool, &stats);
	ck_assert_uint_eq(stats.bytes, 262144);
	evrdma_buf_unref(buf);
	fixture_free(f);
}
END_TEST

START_TEST(values_out_of_range_for_a_pool_are_refused)
{
	struct fixture *f = fixture_new();

	REFUSED_POOL(f, min_bufs, 11);
	REFUSED_POOL(f, alignment, 0);
	REFUSED_POOL(f, alignment, 4);
	REFUSED_POOL(f, alignment, 96);
	REFUSED_POOL(f, alignment, 8192);
	REFUSED_POOL(f, slab_bytes, 4095);
	REFUSED_POOL(f, slab_bytes, ((size_t)1 << 30) + 1);
	REFUSED_POOL(f, flags, 0x8);
	REFUSED_POOL(f, size, 1);
	ck_assert_ptr_null(evrdma_pool_new_with_options(f->base, 0, NULL));
	ck_assert_int_eq(errno, EINVAL);
	fixture_free(f);
}
END_TEST

TCase *pool_case(void)
{
	TCase *tc = tcase_create("pool");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, a_pool_has_the_memory_of_its_first_buffers_from_the_start);
	tcase_add_test(tc, buffers_are_aligned_as_asked);
	tcase_add_test(tc, huge_pages_are_used_where_they_are);
	tcase_add_test(tc, a_trimmed_pool_gives_back_the_slabs_that_are_free);
	tcase_add_test(tc, a_trimmed_pool_keeps_what_it_was_made_with);
	tcase_add_test(tc, a_pointer_of_the_users_stays_on_a_buffer_until_it_is_given_back);
	tcase_add_test(tc, a_base_that_closes_tells_the_log_whose_buffers_are_still_held);
#ifdef __SANITIZE_ADDRESS__
	tcase_add_test(tc, a_buffer_that_was_given_back_is_out_of_bounds);
#else
	tcase_add_test(tc, who_writes_to_a_buffer_that_was_given_back_is_found);
#endif
	tcase_add_test(tc, trimming_ends_what_was_registered);
	tcase_add_test(tc, a_pool_without_options_has_the_defaults);
	tcase_add_test(tc, values_out_of_range_for_a_pool_are_refused);
	return tc;
}
