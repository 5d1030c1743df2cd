/*
 * What libevent's own tests ask of a bufferevent (its test/regress_bufferevent.c), asked of a pair
 * over RDMA on each device, and of both sides; libevent_tests.sh runs the tests themselves, on the
 * fake. Those that are not here, and why:
 *
 *   pair_*, pair_flush         of bufferevent_pair_new(): it has a partner, and its flush finishes
 *                              it; ours has neither, as a socket's
 *   *_lock, *_unlocked         take libevent's locks for threads, which this program has not
 *   timeout                    there on sockets that are not connected; on a full window in
 *                              bufferevent.c, under filters here
 *   socket_filter_inactive     there on no descriptor; here on one that connects
 *   connectex, iocp            of Windows
 *   zlib                       in bufferevent_zlib.c
 */
#include "conform/stream.h"
#include "conform/suite.h"

#include <errno.h>
#include <string.h>

enum { SOME = 8333, MANY = 65000 };

#define GREETING "a server that speaks first, and leaves when all of it is on its way"

static struct side *const client = &bevs.client, *const server = &bevs.server;

static void read_all(struct side *side)
{
	side_check(side);
	if (side->checked == SOME)
		bufferevent_disable(side->bev, EV_READ);
}

/* --- one way -------------------------------------------------------------------------------- */

static void nothing(struct bufferevent *bev, void *arg)
{
}

static void no_event(struct bufferevent *bev, short what, void *arg)
{
	ck_abort_msg("event %x", what);
}

static bool client_is_through(struct fixture *f)
{
	return client->writes && !side_output(client);
}

static const int flushes[] = { -1, BEV_NORMAL, BEV_FLUSH, BEV_FINISHED };

/* Nor does a flush of any kind change that. */
START_TEST(what_is_written_is_read_and_both_are_told)
{
	server->on_read = read_all;
	bevs_start();
	bufferevent_disable(client->bev, EV_READ);
	client->writes = 0;
	side_write(client, SOME);
	if (flushes[_i] >= 0)
		ck_assert_int_ge(bufferevent_flush(client->bev, EV_WRITE, flushes[_i]), 0);
	side_await(server, SOME);
	bevs_run_until(client_is_through);
	fixture_run_a_little(bevs.f);
	ck_assert_int_eq(bufferevent_get_enabled(client->bev), EV_WRITE);
	ck_assert_int_eq(bufferevent_get_enabled(server->bev), EV_WRITE);
	ck_assert_uint_eq(client->writes, 1);
	ck_assert_uint_eq(server->eof + server->errors + client->errors, 0);
}
END_TEST

START_TEST(it_says_what_it_is)
{
	bufferevent_data_cb read, write;
	bufferevent_event_cb event;
	void *arg;

	bevs_start();
	bufferevent_setcb(client->bev, nothing, NULL, no_event, &bevs);
	bufferevent_getcb(client->bev, &read, &write, &event, &arg);
	ck_assert(read == nothing && !write && event == no_event && arg == &bevs);
	ck_assert_int_ge(bufferevent_getfd(client->bev), 0);
	ck_assert_ptr_null(bufferevent_get_underlying(client->bev));
	ck_assert_ptr_null(bufferevent_pair_get_partner(client->bev));
	ck_assert_ptr_eq(bufferevent_get_base(client->bev), bevs.f->loop);
}
END_TEST

/* --- watermarks ----------------------------------------------------------------------------- */

static void check_within_marks(struct side *side)
{
	size_t len = side_input(side);

	ck_assert_msg(len >= 10 && len <= 20, "%zu bytes", len);
	side_check(side);
}

static void check_low_mark(struct side *side)
{
	ck_assert_uint_le(side_output(side), 100);
}

START_TEST(callbacks_come_between_the_watermarks)
{
	size_t low = 1, high = 1;

	server->on_read = check_within_marks;
	bevs_start();
	bufferevent_getwatermark(client->bev, EV_READ, &low, NULL);
	ck_assert_uint_eq(low, 0);
	bufferevent_setwatermark(server->bev, EV_READ, 10, 20);
	bufferevent_getwatermark(server->bev, EV_READ, &low, &high);
	ck_assert(low == 10 && high == 20);
	bufferevent_setwatermark(client->bev, EV_WRITE, 100, 2000);
	ck_assert_int_ne(
		bufferevent_getwatermark(client->bev, EV_WRITE | EV_READ, &low, &high), 0);
	fixture_run_a_little(bevs.f);
	client->on_write = check_low_mark;
	side_write(client, MANY);
	side_await(server, MANY);
	bevs_run_until(client_is_through);
	ck_assert_uint_le(server->most, 20);
}
END_TEST

/* --- filters -------------------------------------------------------------------------------- */

/* A 'x' before each byte. */
static enum bufferevent_filter_result add_x(struct evbuffer *from, struct evbuffer *to,
	ev_ssize_t limit, enum bufferevent_flush_mode mode, void *arg)
{
	unsigned *calls = arg;
	char pair[2] = "x";

	++*calls;
	while (evbuffer_remove(from, pair + 1, 1) == 1)
		evbuffer_add(to, pair, 2);
	return BEV_OK;
}

/* And away with it. */
static enum bufferevent_filter_result take_x(struct evbuffer *from, struct evbuffer *to,
	ev_ssize_t limit, enum bufferevent_flush_mode mode, void *arg)
{
	char pair[2];

	while (evbuffer_get_length(from) >= 2) {
		evbuffer_remove(from, pair, 2);
		ck_assert_int_eq(pair[0], 'x');
		evbuffer_add(to, pair + 1, 1);
	}
	return BEV_OK;
}

/* The side is the filter from now on, which owns what is below. */
static void put_on(struct side *side, bufferevent_filter_cb in, bufferevent_filter_cb out,
	int options, void *arg)
{
	struct bufferevent *below = side->bev;

	side_begin(side, bufferevent_filter_new(
				 below, in, out, BEV_OPT_CLOSE_ON_FREE | options, NULL, arg));
	ck_assert_ptr_eq(bufferevent_get_underlying(side->bev), below);
	ck_assert_int_eq(bufferevent_getfd(side->bev), bufferevent_getfd(below));
}

START_TEST(filters_see_all_that_passes)
{
	static unsigned calls;

	server->on_read = read_all;
	bevs_start();
	put_on(client, NULL, add_x, 0, &calls);
	put_on(server, take_x, NULL, 0, NULL);
	bufferevent_disable(client->bev, EV_READ);
	client->writes = 0;
	side_write(client, SOME);
	side_await(server, SOME);
	bevs_run_until(client_is_through);
	ck_assert_uint_gt(calls, 0);
}
END_TEST

static struct {
	unsigned calls;
	bool inside;
} again;

/* Writes to its own bufferevent: libevent calls no filter within a filter. */
static enum bufferevent_filter_result add_and_write(struct evbuffer *from, struct evbuffer *to,
	ev_ssize_t limit, enum bufferevent_flush_mode mode, void *arg)
{
	ck_assert(!again.inside);
	again.inside = true;
	evbuffer_add_buffer(to, from);
	if (again.calls++ == 0)
		side_write(client, 1);
	again.inside = false;
	return BEV_OK;
}

START_TEST(a_filter_that_writes_to_its_bufferevent_is_not_called_within)
{
	again.calls = 0;
	server->on_read = side_check;
	bevs_start();
	put_on(client, NULL, add_and_write, 0, NULL);
	side_write(client, SOME);
	side_await(server, SOME);
	side_write(client, 1);
	side_await(server, SOME + 2);
}
END_TEST

START_TEST(a_filter_on_one_that_connects_is_freed_with_it)
{
	static unsigned calls;

	bevs_listen();
	bevs_connect();
	put_on(client, take_x, add_x, 0, &calls);
	fixture_run_turns(bevs.f, _i);
	side_free(client);
	fixture_run_a_little(bevs.f);
}
END_TEST

/* A header, once; then as much as the limit leaves. */
static enum bufferevent_filter_result add_header(struct evbuffer *from, struct evbuffer *to,
	ev_ssize_t limit, enum bufferevent_flush_mode mode, void *arg)
{
	static const char header[20];
	bool *has_header = arg;
	size_t room = limit >= 0 ? (size_t)limit : SIZE_MAX;

	if (!*has_header) {
		evbuffer_add(to, header, sizeof(header));
		room = room > sizeof(header) ? room - sizeof(header) : 0;
	}
	*has_header = true;
	evbuffer_remove_buffer(from, to, room < 1 << 30 ? room : 1 << 30);
	return BEV_OK;
}

static size_t dropped;

static void drop(struct side *side)
{
	dropped += side_input(side);
	evbuffer_drain(bufferevent_get_input(side->bev), side_input(side));
}

static bool all_is_dropped(struct fixture *f)
{
	return dropped == 4096 + 20;
}

START_TEST(nothing_is_stuck_in_a_filter_whose_reader_has_a_high_watermark)
{
	static bool has_header;

	dropped = 0;
	server->on_read = drop;
	bevs_start();
	put_on(server, add_header, NULL, BEV_OPT_DEFER_CALLBACKS, &has_header);
	bufferevent_setwatermark(server->bev, EV_READ, 0, 4096);
	side_write(client, 4096);
	bevs_run_until(all_is_dropped);
}
END_TEST

/* --- connecting ----------------------------------------------------------------------------- */

static void free_when_written(struct bufferevent *bev, void *arg)
{
	if (!evbuffer_get_length(bufferevent_get_output(bev)))
		bufferevent_free(bev);
}

static void greet(struct evrdma_listener *listener, struct bufferevent *bev,
	const struct sockaddr *peer, void *arg)
{
	bufferevent_setcb(bev, NULL, free_when_written, no_event, NULL);
	bufferevent_write(bev, GREETING, sizeof(GREETING));
}

static void listen_to_greet(struct sockaddr_in *sin)
{
	fixture_address(sin, testbed.ip, 0);
	bevs.listener = evrdma_bufferevent_listen(bevs.f->base, (struct sockaddr *)sin, NULL,
		&bevs.options, bevs.bev_options, greet, NULL);
	ck_assert_ptr_nonnull(bevs.listener);
	sin->sin_port = htons(evrdma_listener_get_port(bevs.listener));
}

static void expect_greeting(struct side *side)
{
	char text[sizeof(GREETING)];

	ck_assert_uint_eq(bufferevent_read(side->bev, text, sizeof(text)), sizeof(text));
	ck_assert_str_eq(text, GREETING);
	ck_assert_uint_eq(side_input(side), 0);
}

static bool both_have_an_end(struct fixture *f)
{
	return client->eof && server->eof;
}

static const int options_of[] = { 0, BEV_OPT_DEFER_CALLBACKS };

/* The server's side is a client here, too. */
START_TEST(what_the_server_wrote_before_its_free_is_there_at_the_end)
{
	struct sockaddr_in sin;
	struct sockaddr *addr = (struct sockaddr *)&sin;

	bevs.bev_options = options_of[_i];
	listen_to_greet(&sin);
	side_begin(client, evrdma_bufferevent_connect(bevs.f->base, NULL, addr, &bevs.options,
				   bevs.bev_options));
	side_begin(server, evrdma_bufferevent_connect(bevs.f->base, NULL, addr, &bevs.options,
				   bevs.bev_options));
	bevs_run_until(both_have_an_end);
	expect_greeting(client);
	expect_greeting(server);
	ck_assert(client->connected == 1 && server->connected == 1);
	ck_assert(client->reads && server->reads);
}
END_TEST

START_TEST(a_connect_that_fails_is_one_event)
{
	struct sockaddr_in sin;

	fixture_address(&sin, testbed.ip, 9);
	side_begin(client, evrdma_bufferevent_connect(bevs.f->base, NULL, (struct sockaddr *)&sin,
				   &bevs.options, options_of[_i]));
	ck_assert_uint_eq(client->errors, 0);
	bevs_run_until(client_has_error);
	fixture_run_a_little(bevs.f);
	ck_assert_uint_eq(client->errors, 1);
	ck_assert_uint_eq(client->reads + client->writes + client->connected + client->eof, 0);
}
END_TEST

/* --- timeouts ------------------------------------------------------------------------------- */

static bool client_has_both_timeouts(struct fixture *f)
{
	return client->read_timeouts && client->write_timeouts;
}

/* Nothing to read, and nobody who takes what is written; the other side waits for neither. */
START_TEST(timeouts_are_told_under_a_filter)
{
	struct timeval tv = { 0, 100000 };

	bevs_start();
	bufferevent_disable(server->bev, EV_READ);
	put_on(client, NULL, NULL, 0, NULL);
	bufferevent_setwatermark(bufferevent_get_underlying(client->bev), EV_WRITE, 0, 4096);
	bufferevent_set_timeouts(client->bev, &tv, &tv);
	side_write(client, MILLION);
	bevs_run_until(client_has_both_timeouts);
	ck_assert_uint_eq(client->read_timeouts, 1);
	ck_assert_uint_eq(client->write_timeouts, 1);
	ck_assert_uint_eq(client->errors + server->read_timeouts + server->write_timeouts, 0);
}
END_TEST

/* --- triggers ------------------------------------------------------------------------------- */

static struct {
	unsigned reads, events;
	int options;
} told;

static void on_triggered_event(struct bufferevent *bev, short what, void *arg)
{
	told.events += what == ~0;
}

static void on_triggered_read(struct bufferevent *bev, void *arg)
{
	told.reads++;
	bufferevent_trigger_event(bev, ~0, told.options);
}

/* Below the watermark the callback is not called, unless that is to be ignored. */
static void trigger(struct side *side)
{
	bool deferred = told.options || bevs.bev_options;
	size_t low, high;

	bufferevent_setcb(side->bev, on_triggered_read, NULL, on_triggered_event, NULL);
	bufferevent_getwatermark(side->bev, EV_READ, &low, &high);
	bufferevent_setwatermark(side->bev, EV_READ, side_input(side) + 1, 0);
	bufferevent_trigger(side->bev, EV_READ, told.options);
	ck_assert_uint_eq(told.reads, 0);
	bufferevent_trigger(side->bev, EV_READ, told.options | BEV_TRIG_IGNORE_WATERMARKS);
	ck_assert_uint_eq(told.reads, !deferred);
	bufferevent_setwatermark(side->bev, EV_READ, low, high);
}

static bool is_triggered(struct fixture *f)
{
	return told.events;
}

START_TEST(a_callback_that_is_triggered_comes)
{
	told.reads = told.events = 0;
	told.options = _i & 2 ? BEV_TRIG_DEFER_CALLBACKS : 0;
	bevs.bev_options = options_of[_i & 1];
	server->on_read = trigger;
	bevs_start();
	side_write(client, 10);
	bevs_run_until(is_triggered);
	ck_assert_uint_eq(told.reads, 1);
	ck_assert_uint_eq(told.events, 1);
}
END_TEST

TCase *bufferevent_regress_case(void)
{
	TCase *tcase = tcase_create("bufferevent_regress");

	tcase_set_timeout(tcase, 120);
	tcase_add_checked_fixture(tcase, testbed.start, testbed.stop);
	bevs_add_fixture(tcase);
	tcase_add_loop_test(tcase, what_is_written_is_read_and_both_are_told, 0, 4);
	tcase_add_test(tcase, it_says_what_it_is);
	tcase_add_test(tcase, callbacks_come_between_the_watermarks);
	tcase_add_test(tcase, filters_see_all_that_passes);
	tcase_add_test(tcase, a_filter_that_writes_to_its_bufferevent_is_not_called_within);
	tcase_add_loop_test(tcase, a_filter_on_one_that_connects_is_freed_with_it, 0, 8);
	tcase_add_test(tcase, nothing_is_stuck_in_a_filter_whose_reader_has_a_high_watermark);
	tcase_add_loop_test(tcase, what_the_server_wrote_before_its_free_is_there_at_the_end, 0, 2);
	tcase_add_loop_test(tcase, a_connect_that_fails_is_one_event, 0, 2);
	tcase_add_test(tcase, timeouts_are_told_under_a_filter);
	tcase_add_loop_test(tcase, a_callback_that_is_triggered_comes, 0, 4);
	return tcase;
}
