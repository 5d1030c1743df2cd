/*
 * What breaks beneath bufferevents over RDMA: each is told its end once, or has its bytes, others
 * go on, and nothing is left of them while the process lives.
 */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "interop/faults.h"
#include "schedule/wire.h"

enum {
	STORMS = 4,
	FEW = 10,
	OPEN = 50,
	CHUNK = 4096,
	MUCH = 8192,
	BLOCK = 4 * FAULT_WINDOW, /* more than both sides' memory has room for */
	PATIENCE_S = 2,
	LEFT_S = 20, /* the linger_timeout_ms, and the end of both sides */
};

static void set_up(void) { faults_start(PEER_ECHO, PEER_ECHO); }

static void set_up_deaf(void) { faults_start(PEER_DEAF, PEER_ECHO); }

static bool over_roce(void) { return !strcmp(getenv("EVR_KIND"), "rxe"); }

static void exchange(unsigned first, unsigned n)
{
	streams_send(first, n, CHUNK);
	streams_await_bytes(first, n);
	assert_goes_on(first, n);
}

/* --- frames that are lost, late and out of order --------------------------------------------- */

static void exchange_in(const struct weather *weather)
{
	wire_set(weather);
	streams_connect(&faults.peers[0], STREAMS);
	streams_send(0, STREAMS, CHUNK);
	streams_await_bytes(0, STREAMS);
}

static void end_those_that_go_on(void)
{
	unsigned i;

	for (i = 0; i < STREAMS; i++)
		if (!faults.streams[i].ended)
			shutdown(bufferevent_getfd(faults.streams[i].bev), SHUT_WR);
	streams_await_ends(0, STREAMS);
}

START_TEST(each_byte_arrives_whatever_is_lost)
{
	const struct weather rough = {
		.seed = 1, .loss = 10, .delay_us = 500, .jitter_us = 1000
	};

	exchange_in(&rough);
	assert_goes_on(0, STREAMS);
	end_those_that_go_on();
	assert_ended(0, STREAMS, 0);
}
END_TEST

/*
 * Those of which all came may be told that the end of theirs did not arrive. A server of iWARP's
 * gives up a client whose request does not come in time, and closes TCP's connection, which the
 * client's device tells as a reject.
 */
static bool may_end_with(const struct stream *s, int error)
{
	if (s->got == CHUNK)
		return s->connected == 1 && (!error || error == ETIMEDOUT);
	return error == ETIMEDOUT || (!over_roce() && !s->connected && error == ECONNREFUSED);
}

static void assert_whole_or_told(const struct stream *s)
{
	ck_assert_msg(s->ended == 1 && !s->late && !s->wrong && may_end_with(s, s->error),
		"connected %u ended %u late %u wrong %d, %zu bytes: %s", s->connected, s->ended,
		s->late, s->wrong, s->got, s->text);
}

/* A frame may be lost as often as there are retries. */
START_TEST(each_byte_arrives_or_the_end_is_told_where_much_is_lost)
{
	const struct weather storm = {
		.seed = 2 + (unsigned)_i, .loss = 100, .delay_us = 500, .jitter_us = 1000
	};
	unsigned i;

	exchange_in(&storm);
	end_those_that_go_on();
	for (i = 0; i < STREAMS; i++)
		assert_whole_or_told(&faults.streams[i]);
}
END_TEST

/* --- peers ----------------------------------------------------------------------------------- */

START_TEST(a_peer_that_is_killed_ends_its_streams_and_no_others)
{
	streams_connect(&faults.peers[0], FEW);
	streams_connect(&faults.peers[1], FEW);
	exchange(0, 2 * FEW);
	streams_send(0, FEW, MUCH);
	peer_end(&faults.peers[0]);
	streams_await_ends(0, FEW);
	assert_ended(0, FEW, ECONNRESET);
	exchange(FEW, FEW);
}
END_TEST

static const unsigned stops_s[] = { 3, 15, 60 };

START_TEST(a_peer_that_is_stopped_goes_on_where_it_was)
{
	streams_connect(&faults.peers[0], FEW);
	streams_connect(&faults.peers[1], FEW);
	exchange(0, 2 * FEW);
	kill(faults.peers[0].pid, SIGSTOP);
	streams_send(0, FEW, BLOCK);
	exchange(FEW, FEW);
	faults_run_for(stops_s[_i]);
	ck_assert_uint_lt(faults.streams[0].got, faults.streams[0].sent);
	kill(faults.peers[0].pid, SIGCONT);
	streams_await_bytes(0, FEW);
	assert_goes_on(0, 2 * FEW);
}
END_TEST

/* The window is full, and the rest stays in the output buffer until there is room. */
START_TEST(a_peer_that_reads_nothing_holds_up_its_stream_alone)
{
	struct evbuffer *output;
	uint64_t begun;

	streams_connect(&faults.peers[0], 1);
	streams_connect(&faults.peers[1], FEW);
	streams_send(0, 1, 2 * BLOCK);
	output = bufferevent_get_output(faults.streams[0].bev);
	faults_run_for(PATIENCE_S);
	ck_assert_uint_ge(evbuffer_get_length(output), BLOCK);
	exchange(1, FEW);
	ck_assert_uint_eq(faults.streams[0].ended + faults.streams[0].timeouts, 0);
	begun = faults_now_ms();
	faults_settle();
	ck_assert_uint_le(faults_now_ms() - begun, LEFT_S * MS_PER_S);
}
END_TEST

/* --- timeouts while nothing passes ----------------------------------------------------------- */

static bool has_timed_out(void)
{
	unsigned i;

	for (i = 0; i < faults.n; i++)
		if (!faults.streams[i].timeouts && faults.streams[i].bev)
			return false;
	return true;
}

static void set_timeouts(unsigned n, unsigned read_s, unsigned write_s)
{
	const struct timeval read = { .tv_sec = read_s }, write = { .tv_sec = write_s };
	unsigned i;

	for (i = 0; i < n; i++)
		bufferevent_set_timeouts(faults.streams[i].bev, read_s ? &read : NULL,
			write_s ? &write : NULL);
}

static void assert_timed_out(unsigned n, int what)
{
	unsigned i;

	for (i = 0; i < n; i++) {
		const struct stream *s = &faults.streams[i];

		ck_assert_msg(s->timeouts == 1 && s->what == (what | BEV_EVENT_TIMEOUT) &&
			!s->ended, "stream %u: %u timeouts, last event %#x, ended %u", i,
			s->timeouts, (unsigned)s->what, s->ended);
	}
}

static const struct {
	unsigned read_s, write_s;
	int what;
	short again;
} timeouts[] = {
	{ 2, 0, BEV_EVENT_READING, EV_READ },
	{ 0, 2, BEV_EVENT_WRITING, EV_WRITE },
};

START_TEST(a_timeout_while_the_peer_is_stopped_is_told_and_enabling_goes_on)
{
	unsigned i;

	streams_connect(&faults.peers[0], FEW);
	exchange(0, FEW);
	kill(faults.peers[0].pid, SIGSTOP);
	set_timeouts(FEW, timeouts[_i].read_s, timeouts[_i].write_s);
	streams_send(0, FEW, BLOCK);
	faults_run_until(has_timed_out);
	assert_timed_out(FEW, timeouts[_i].what);
	faults_run_for(PATIENCE_S);
	set_timeouts(FEW, 0, 0);
	for (i = 0; i < FEW; i++)
		bufferevent_enable(faults.streams[i].bev, timeouts[_i].again);
	kill(faults.peers[0].pid, SIGCONT);
	streams_await_bytes(0, FEW);
	assert_goes_on(0, FEW);
}
END_TEST

/* --- freed in each callback ------------------------------------------------------------------ */

static bool all_are_freed(void)
{
	unsigned i;

	for (i = 0; i < FEW; i++)
		if (faults.streams[i].bev)
			return false;
	return true;
}

static void connect_to_be_freed(enum when when)
{
	unsigned i;

	for (i = 0; i < FEW; i++) {
		stream_open(&faults.streams[i], &faults.peers[0]);
		faults.streams[i].free_at = when;
	}
	faults.n = FEW;
	streams_await(0, FEW);
}

/* A read or a write that is under way, a timeout of a stopped peer, the end of a killed one. */
START_TEST(a_stream_may_be_freed_in_the_callback_that_tells)
{
	unsigned i;

	connect_to_be_freed((enum when)_i);
	if (_i == AT_TIMEOUT)
		kill(faults.peers[0].pid, SIGSTOP);
	if (_i == AT_TIMEOUT)
		set_timeouts(FEW, 1, 0);
	streams_send(0, FEW, _i == AT_WRITTEN ? CHUNK : BLOCK);
	if (_i == AT_END)
		peer_end(&faults.peers[0]);
	faults_run_until(all_are_freed);
	kill(faults.peers[0].pid ? faults.peers[0].pid : faults.peers[1].pid, SIGCONT);
	faults_run_for(PATIENCE_S);
	for (i = 0; i < FEW; i++)
		ck_assert_uint_eq(faults.streams[i].late, 0);
	streams_connect(&faults.peers[1], FEW);
	exchange(FEW, FEW);
}
END_TEST

/* --- the link -------------------------------------------------------------------------------- */

static const unsigned downs_s[] = { 5, 30 };

static void link_is_down_for(unsigned s)
{
	const struct weather down = { .seed = 1, .down = { true, true } }, up = { .seed = 1 };

	wire_set(&down);
	faults_run_for(s);
	wire_set(&up);
}

/*
 * On RoCE the kernel tells the connecting side after three seconds that its neighbour does not
 * answer (cma_netevent_callback() of its cma.c), which ends a connection. On iWARP it is up to TCP.
 */
START_TEST(a_link_that_was_down_ends_streams_over_roce_and_no_others)
{
	streams_connect(&faults.peers[0], FEW);
	exchange(0, FEW);
	streams_send(0, FEW, MUCH);
	link_is_down_for(downs_s[_i]);
	if (over_roce()) {
		streams_await_ends(0, FEW);
		assert_ended(0, FEW, ETIMEDOUT);
	} else {
		streams_await_bytes(0, FEW);
		assert_goes_on(0, FEW);
	}
	streams_connect(&faults.peers[0], FEW);
	exchange(FEW, FEW);
}
END_TEST

/* --- the device ------------------------------------------------------------------------------ */

static bool is_removed(void)
{
	return !system("test -e /tmp/removed");
}

static void plug_in(void)
{
	ck_assert_int_eq(
		system("rdma link add \"$EVR_DEV_A\" type \"$EVR_KIND\" netdev evr_a"), 0);
	while (system("rdma link show \"$EVR_DEV_A/1\" | grep -q 'state ACTIVE'"))
		faults_run_for(1);
}

START_TEST(a_device_that_goes_ends_all_its_streams_and_comes_back)
{
	streams_connect(&faults.peers[0], OPEN);
	exchange(0, OPEN);
	streams_send(0, OPEN, MUCH);
	ck_assert_int_eq(system("(rdma link delete \"$EVR_DEV_A\"; : >/tmp/removed) &"), 0);
	streams_await_ends(0, OPEN);
	assert_ended(0, OPEN, ENODEV);
	faults_run_until(is_removed);
	plug_in();
	streams_connect(&faults.peers[0], FEW);
	exchange(OPEN, FEW);
}
END_TEST

/* --- all ------------------------------------------------------------------------------------- */

static TCase *add_case(Suite *suite, const char *name, void (*begin)(void))
{
	TCase *tcase = tcase_create(name);

	tcase_add_checked_fixture(tcase, begin, faults_finish);
	tcase_set_timeout(tcase, LIMIT_S);
	suite_add_tcase(suite, tcase);
	return tcase;
}

static void add_all(Suite *suite)
{
	TCase *tcase = add_case(suite, "loss", set_up);

	tcase_add_test(tcase, each_byte_arrives_whatever_is_lost);
	tcase_add_loop_test(
		tcase, each_byte_arrives_or_the_end_is_told_where_much_is_lost, 0, STORMS);
	tcase = add_case(suite, "peer", set_up);
	tcase_add_test(tcase, a_peer_that_is_killed_ends_its_streams_and_no_others);
	tcase_add_loop_test(tcase, a_peer_that_is_stopped_goes_on_where_it_was, 0, 3);
	tcase = add_case(suite, "deaf", set_up_deaf);
	tcase_add_test(tcase, a_peer_that_reads_nothing_holds_up_its_stream_alone);
	tcase = add_case(suite, "stall", set_up);
	tcase_add_loop_test(
		tcase, a_timeout_while_the_peer_is_stopped_is_told_and_enabling_goes_on, 0, 2);
	tcase_add_loop_test(tcase, a_stream_may_be_freed_in_the_callback_that_tells, 0, AT_NONE);
	tcase = add_case(suite, "link", set_up);
	tcase_add_loop_test(tcase, a_link_that_was_down_ends_streams_over_roce_and_no_others, 0, 2);
	tcase = add_case(suite, "device", set_up);
	tcase_add_test(tcase, a_device_that_goes_ends_all_its_streams_and_comes_back);
}

static void start_wire(void)
{
	static const char *const ends[WIRE_ENDS] = { "wire_a", "wire_b" };
	int ret = wire_start("wire", ends);

	if (!ret)
		ret = wire_whole_frames("evr_a");
	if (!ret)
		ret = wire_whole_frames("evr_b");
	if (!ret)
		return;
	fprintf(stderr, "the wire: %s\n", strerror(-ret));
	exit(2);
}

int main(void)
{
	Suite *suite = suite_create("faults");
	SRunner *runner;
	int failed;

	start_wire();
	add_all(suite);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
