/* A bufferevent over RDMA is what one over TCP is: what is written arrives, and is held up. */
#include "conform/suite.h"
#include "conform/bufferevent.h"
#include "conform/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* --- there and back ------------------------------------------------------------------------- */

static void echo_of(size_t len, unsigned flags, int bev_options)
{
	bevs.options.flags = flags;
	bevs.bev_options = bev_options;
	bevs.client.on_read = side_check;
	bevs.server.on_read = side_echo;
	bevs_start();
	side_write(&bevs.client, len);
	side_await(&bevs.client, len);
	ck_assert_uint_eq(bevs.client.checked, len);
	ck_assert_uint_eq(bevs.client.connected, 1);
	ck_assert_uint_eq(bevs.server.connected, 0);
	ck_assert_uint_eq(bevs.client.errors + bevs.server.errors, 0);
}

static const size_t lengths[] = { 1, 2, 64, 65, 1023, 4096, 65535, 65536, 131073, MILLION + 7 };

START_TEST(what_is_written_comes_back_whole)
{
	echo_of(lengths[_i], 0, 0);
}
END_TEST

START_TEST(so_it_does_copied_and_with_callbacks_deferred)
{
	echo_of(lengths[_i], EVRDMA_BUFFEREVENT_OPT_COPY, BEV_OPT_DEFER_CALLBACKS);
}
END_TEST

START_TEST(what_is_written_before_CONNECTED_follows_it)
{
	bevs.server.on_read = side_check;
	bevs_listen();
	bevs_connect();
	side_write(&bevs.client, 1000);
	side_await(&bevs.server, 1000);
	ck_assert_uint_eq(bevs.client.connected, 1);
	ck_assert_uint_eq(bevs.server.checked, 1000);
}
END_TEST

static void write_when_connected(struct side *side, short what)
{
	side_write(side, 1000);
}

static const int single_writes[] = { 1, 2, 600, 100000 };

/* However much of it libevent writes at once. */
START_TEST(what_is_written_before_CONNECTED_precedes_what_is_written_then)
{
	bevs.server.on_read = side_check;
	bevs.client.on_event = write_when_connected;
	bevs_listen();
	bevs_connect();
	bufferevent_set_max_single_write(bevs.client.bev, single_writes[_i]);
	side_write(&bevs.client, 1000);
	side_await(&bevs.server, 2000);
}
END_TEST

START_TEST(the_write_callback_comes_when_all_was_written)
{
	bevs.server.on_read = side_check;
	bevs_start();
	side_write(&bevs.client, 100);
	ck_assert_uint_eq(side_output(&bevs.client), 0);
	ck_assert_uint_le(bevs.client.writes, 1);
	bevs_run_until(client_has_written);
}
END_TEST

/* evhttp adds first, and enables then. */
START_TEST(what_was_added_while_EV_WRITE_was_disabled_goes_when_it_is_enabled)
{
	bevs.server.on_read = side_check;
	bevs_start();
	bufferevent_disable(bevs.client.bev, EV_WRITE);
	side_write(&bevs.client, 70000);
	fixture_run_a_little(bevs.f);
	ck_assert_uint_eq(side_output(&bevs.client), 70000);
	bufferevent_enable(bevs.client.bev, EV_WRITE);
	side_await(&bevs.server, 70000);
}
END_TEST

START_TEST(a_file_is_sent_like_any_bytes)
{
	FILE *file = tmpfile();
	size_t i;

	for (i = 0; i < 50000; i++)
		fputc(pattern_at(i), file);
	fflush(file);
	bevs.server.on_read = side_check;
	bevs_start();
	ck_assert_int_eq(evbuffer_add_file(bufferevent_get_output(bevs.client.bev),
				 dup(fileno(file)), 0, 50000),
		0);
	side_await(&bevs.server, 50000);
	fclose(file);
}
END_TEST

/* --- holding up ----------------------------------------------------------------------------- */

START_TEST(a_reader_that_stops_reading_stops_the_sender)
{
	bevs.server.on_read = side_check;
	bevs_start();
	bufferevent_disable(bevs.server.bev, EV_READ);
	side_write(&bevs.client, 4 * MILLION);
	bevs_run_until(client_is_blocked);
	ck_assert_uint_ge(side_output(&bevs.client), 3 * MILLION);
	ck_assert_uint_eq(bevs.server.reads, 0);
	bufferevent_enable(bevs.server.bev, EV_READ);
	side_await(&bevs.server, 4 * MILLION);
	ck_assert_uint_eq(side_output(&bevs.client), 0);
}
END_TEST

static bool server_has_some(struct fixture *f)
{
	return side_input(&bevs.server) == 1000;
}

/* As who finds half a message. */
static void put_back(struct side *side, size_t len)
{
	struct evbuffer *input = bufferevent_get_input(side->bev);
	char bytes[100];

	ck_assert_int_eq(evbuffer_remove(input, bytes, len), len);
	ck_assert_int_eq(evbuffer_prepend(input, bytes, len), 0);
}

START_TEST(what_is_put_back_is_not_taken_for_what_comes)
{
	int i;

	bevs_start();
	side_write(&bevs.client, 1000);
	bevs_run_until(server_has_some);
	bufferevent_disable(bevs.server.bev, EV_READ);
	side_write(&bevs.client, 10000);
	fixture_run_a_little(bevs.f);
	for (i = 0; i < 1000; i++)
		put_back(&bevs.server, 10);
	bevs.server.on_read = side_check;
	bufferevent_enable(bevs.server.bev, EV_READ);
	side_await(&bevs.server, 11000);
	ck_assert_uint_eq(bevs.server.eof + bevs.server.errors, 0);
}
END_TEST

/* At the watermark itself libevent would call again at once. */
static void read_one(struct side *side)
{
	struct evbuffer *some = evbuffer_new();

	evbuffer_remove_buffer(bufferevent_get_input(side->bev), some, 100);
	side_check_in(side, some);
	evbuffer_free(some);
}

START_TEST(the_input_buffer_never_has_more_than_the_high_watermark)
{
	bevs_start();
	bufferevent_setwatermark(bevs.server.bev, EV_READ, 0, 10000);
	bevs.server.on_read = read_one;
	side_write(&bevs.client, 300000);
	side_await(&bevs.server, 1000);
	ck_assert_uint_ge(side_output(&bevs.client), 100000);
	side_await(&bevs.server, 280000);
	ck_assert_uint_eq(bevs.server.most, 10000);
}
END_TEST

START_TEST(the_read_callback_waits_for_the_low_watermark)
{
	bevs_start();
	bevs.server.on_read = side_check;
	bufferevent_setwatermark(bevs.server.bev, EV_READ, 1000, 0);
	side_write(&bevs.client, 999);
	fixture_run_a_little(bevs.f);
	ck_assert_uint_eq(bevs.server.reads, 0);
	side_write(&bevs.client, 1);
	side_await(&bevs.server, 1000);
	ck_assert_uint_eq(bevs.server.reads, 1);
}
END_TEST

static size_t wanted;

static bool server_has_kept(struct fixture *f)
{
	return bevs.server.kept && evbuffer_get_length(bevs.server.kept) >= wanted;
}

/* The references into the ring are all that the program has of it. */
START_TEST(a_reader_that_gathers_everything_does_not_stop_the_stream)
{
	bevs.server.on_read = side_keep;
	bevs_start();
	side_write(&bevs.client, 3 * MILLION);
	wanted = 3 * MILLION;
	bevs_run_until(server_has_kept);
	side_check_in(&bevs.server, bevs.server.kept);
	ck_assert_uint_eq(bevs.server.checked, 3 * MILLION);
}
END_TEST

START_TEST(what_was_gathered_outlives_the_bufferevent_and_the_base)
{
	struct evbuffer *kept;

	bevs.server.on_read = side_keep;
	bevs_start();
	side_write(&bevs.client, MILLION / 16);
	wanted = MILLION / 16;
	bevs_run_until(server_has_kept);
	kept = bevs.server.kept;
	bevs.server.kept = NULL;
	side_free(&bevs.server);
	side_free(&bevs.client);
	fixture_run_turns(bevs.f, 5);
	side_check_in(&bevs.server, kept);
	evbuffer_free(kept);
	ck_assert_uint_eq(bevs.server.checked, MILLION / 16);
}
END_TEST

static bool server_has_read_timeout(struct fixture *f)
{
	return bevs.server.read_timeouts;
}

static bool client_has_write_timeout(struct fixture *f)
{
	return bevs.client.write_timeouts;
}

START_TEST(silence_is_a_read_timeout_and_a_full_window_a_write_timeout)
{
	struct timeval tv = { 1, 0 };

	bevs_start();
	bufferevent_set_timeouts(bevs.server.bev, &tv, NULL);
	bevs_run_until(server_has_read_timeout);
	bufferevent_set_timeouts(bevs.client.bev, NULL, &tv);
	side_write(&bevs.client, MILLION);
	bevs_run_until(client_has_write_timeout);
	ck_assert_uint_eq(bevs.client.write_timeouts, 1);
	ck_assert_uint_eq(bevs.client.errors, 0);
}
END_TEST

/* A bucket of BURST bytes that RATE are added to in each second: what may have gone since SINCE. */
static uint64_t bucket_since(const struct timespec *since)
{
	enum { RATE = 5000, BURST = 5000 };
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return BURST + (uint64_t)(now.tv_sec - since->tv_sec + 2) * RATE;
}

START_TEST(a_rate_limit_holds_the_writer_up)
{
	struct timeval tick = { 1, 0 };
	struct ev_token_bucket_cfg *cfg =
		ev_token_bucket_cfg_new(EV_RATE_LIMIT_MAX, EV_RATE_LIMIT_MAX, 5000, 5000, &tick);
	struct timespec since;
	size_t part;

	bevs.server.on_read = side_check;
	bevs_start();
	clock_gettime(CLOCK_MONOTONIC, &since);
	bufferevent_set_rate_limit(bevs.client.bev, cfg);
	side_write(&bevs.client, 20000);
	ck_assert_uint_ge(side_output(&bevs.client) + bucket_since(&since), 20000);
	for (part = 5000; part <= 20000; part += 5000) {
		side_await(&bevs.server, part);
		ck_assert_uint_le(bevs.server.checked, bucket_since(&since));
	}
	side_free(&bevs.client);
	fixture_run_turns(bevs.f, 2);
	ev_token_bucket_cfg_free(cfg);
}
END_TEST

TCase *bufferevent_case(void)
{
	TCase *tcase = tcase_create("bufferevent");
	int n = sizeof(lengths) / sizeof(lengths[0]);

	tcase_set_timeout(tcase, 120);
	tcase_add_checked_fixture(tcase, testbed.start, testbed.stop);
	bevs_add_fixture(tcase);
	tcase_add_loop_test(tcase, what_is_written_comes_back_whole, 0, n);
	tcase_add_loop_test(tcase, so_it_does_copied_and_with_callbacks_deferred, 0, n);
	tcase_add_test(tcase, what_is_written_before_CONNECTED_follows_it);
	tcase_add_loop_test(
		tcase, what_is_written_before_CONNECTED_precedes_what_is_written_then, 0, 4);
	tcase_add_test(tcase, the_write_callback_comes_when_all_was_written);
	tcase_add_test(tcase,what_was_added_while_EV_WRITE_was_disabled_goes_when_it_is_enabled);
	tcase_add_test(tcase, a_file_is_sent_like_any_bytes);
	tcase_add_test(tcase, a_reader_that_stops_reading_stops_the_sender);
	tcase_add_test(tcase, what_is_put_back_is_not_taken_for_what_comes);
	tcase_add_test(tcase, the_input_buffer_never_has_more_than_the_high_watermark);
	tcase_add_test(tcase, the_read_callback_waits_for_the_low_watermark);
	tcase_add_test(tcase, a_reader_that_gathers_everything_does_not_stop_the_stream);
	tcase_add_test(tcase, what_was_gathered_outlives_the_bufferevent_and_the_base);
	tcase_add_test(tcase, silence_is_a_read_timeout_and_a_full_window_a_write_timeout);
	tcase_add_test(tcase, a_rate_limit_holds_the_writer_up);
	bufferevent_add_ends(tcase);
	bufferevent_add_accepts(tcase);
	return tcase;
}
