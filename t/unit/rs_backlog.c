/* The places of a listener's backlog, and those who take them and say nothing more. */
#include "unit/rs_unit.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "proto/conndata.h"
#include "rs/rs.h"
#include "util/clock.h"

enum {
	BACKLOG = 4,
	PLACES = BACKLOG + 1,
	LONG_US = 60000000,
	NEARLY_US = 4900000, /* not as long as a place may be kept in vain, by what a timer takes */
	RINGS_US = 300000,   /* a timer of what is left of that */
	US_PER_S = 1000000,
	NS_PER_US = 1000,
};

/* What a test says has passed. */
static _Atomic(uint64_t) passed_us;

uint64_t evr_clock_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return passed_us + (uint64_t)now.tv_sec * US_PER_S + (uint64_t)now.tv_nsec / NS_PER_US;
}

/* --- who says nothing more ------------------------------------------------------------------- */

static void request(struct rdma_cm_id *id)
{
	const struct evr_conndata conn = {
		.credits = 4, .target_addr = 4096, .data = { .addr = 8192, .len = 4096 }
	};
	struct rdma_conn_param param = { .retry_count = 6 };
	uint8_t data[EVR_CONNDATA_LEN];

	param.private_data = data;
	param.private_data_len = (uint8_t)evr_conndata_encode(&conn, 0, data, sizeof(data));
	cm_make_qp(id);
	ck_assert_ok(rdma_connect(id, &param));
}

/* They take all places; nobody reads the answers. */
struct silent {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *ids[PLACES];
};

static void fill_places(struct silent *silent, int listener)
{
	int i;

	silent->channel = cm_channel();
	for (i = 0; i < PLACES; i++) {
		silent->ids[i] = cm_id(silent->channel, RDMA_PS_TCP);
		cm_resolve(silent->ids[i], FAKE_ROCE_IP);
	}
	for (i = 0; i < PLACES; i++) {
		request(silent->ids[i]);
		ck_assert_int_eq(rs_events(listener, POLLIN), 0);
	}
}

static void end(struct silent *silent)
{
	int i;

	for (i = 0; i < PLACES; i++)
		cm_destroy(silent->ids[i]);
	rdma_destroy_event_channel(silent->channel);
}

static void take_one(int listener)
{
	int fd;

	ck_assert_int_ne(rs_await(listener, POLLIN) & POLLIN, 0);
	fd = raccept(listener, NULL, NULL);
	ck_assert_int_ge(fd, 0);
	ck_assert_ok(rclose(fd));
}

/* --- tests ----------------------------------------------------------------------------------- */

/* All places are taken, and so much time has passed, when the next one comes. */
static void next_one_gets_a_place(uint64_t us)
{
	int listener = rs_listener(), client;
	struct silent silent;

	fill_places(&silent, listener);
	passed_us += us;
	client = rs_client();
	take_one(listener);
	ck_assert_ok(rclose(client));
	ck_assert_ok(rclose(listener));
	end(&silent);
}

START_TEST(a_place_that_was_kept_for_long_is_the_next_ones)
{
	next_one_gets_a_place(LONG_US);
}
END_TEST

START_TEST(who_waits_for_one_needs_nobody_else_to_come)
{
	next_one_gets_a_place(NEARLY_US);
}
END_TEST

/* Who waits is refused, and its timer has gone. */
START_TEST(one_that_listens_no_more_keeps_nobody_waiting)
{
	int listener = rs_listener(), client, other;
	struct silent silent;

	fill_places(&silent, listener);
	client = rs_client();
	rs_events(client, POLLOUT);
	other = rs_client();
	ck_assert_int_eq(rs_events(listener, POLLIN), 0);
	ck_assert_ok(rshutdown(listener, SHUT_RDWR));
	ck_assert_ok(rclose(listener));
	ck_assert_int_ne(rs_await(client, POLLOUT) & POLLERR, 0);
	ck_assert_ok(rclose(client));
	ck_assert_ok(rclose(other));
	end(&silent);
}
END_TEST

/* They are connected, and nobody accepts them. */
static void connect_each(int *clients, int listener)
{
	int i;

	for (i = 0; i < PLACES; i++) {
		clients[i] = rs_client();
		while (!rs_events(clients[i], POLLOUT))
			rs_events(listener, POLLIN);
	}
}

static unsigned waiting(int listener)
{
	struct evr_rs *rs = evr_rs_get(listener);
	unsigned n;

	pthread_mutex_lock(&rs->lock);
	n = rs->listener.waiting;
	pthread_mutex_unlock(&rs->lock);
	evr_rs_put(rs);
	return n;
}

START_TEST(a_larger_backlog_has_places_for_those_who_wait_already)
{
	int listener = rs_listener(), clients[PLACES], last, i;

	connect_each(clients, listener);
	last = rs_client();
	while (!waiting(listener))
		rs_events(listener, POLLIN);
	ck_assert_int_eq(rs_events(last, POLLOUT), 0);
	ck_assert_ok(rlisten(listener, BACKLOG + 1));
	ck_assert_uint_eq(waiting(listener), 0);
	ck_assert_int_eq(rs_await(last, POLLOUT), POLLOUT);
	for (i = 0; i < PLACES; i++)
		ck_assert_ok(rclose(clients[i]));
	ck_assert_ok(rclose(last));
	ck_assert_ok(rclose(listener));
}
END_TEST

static in_port_t own_port(int fd)
{
	struct sockaddr_in sin;
	socklen_t len = sizeof(sin);

	ck_assert_ok(rgetsockname(fd, (struct sockaddr *)&sin, &len));
	return sin.sin_port;
}

static int blocking_listener_of_one(void)
{
	int listener = rs_listener();

	ck_assert_ok(rlisten(listener, 0));
	ck_assert_ok(rfcntl(listener, F_SETFL, O_RDWR));
	return listener;
}

/* Whose answer is held. */
static int take_the_place(int listener)
{
	int client;

	fake_hold(FAKE_RTU);
	client = rs_client();
	while (!rs_events(client, POLLOUT))
		rs_events(listener, POLLIN);
	return client;
}

/* It is still there, and all are closed. */
static void accept_first(int listener, int first, int second)
{
	struct sockaddr_in peer;
	socklen_t len = sizeof(peer);
	int fd = raccept(listener, (struct sockaddr *)&peer, &len);

	ck_assert_int_ge(fd, 0);
	ck_assert_uint_eq(peer.sin_port, own_port(first));
	ck_assert_ok(rclose(fd));
	ck_assert_ok(rclose(first));
	ck_assert_ok(rclose(second));
	ck_assert_ok(rclose(listener));
}

/* The listener's user is busy meanwhile, and nobody else looks at its events. */
START_TEST(a_place_is_kept_for_who_has_answered_unread)
{
	int listener = blocking_listener_of_one(), first = take_the_place(listener), second;

	passed_us += NEARLY_US;
	second = rs_client();
	while (!waiting(listener)) {
		rs_events(second, POLLOUT);
		rs_events(listener, POLLIN);
	}
	fake_release(FAKE_RTU);
	usleep(RINGS_US);
	ck_assert_uint_eq(waiting(listener), 1);
	accept_first(listener, first, second);
}
END_TEST

static bool has_unread(int listener)
{
	struct evr_rs *rs = evr_rs_get(listener);
	unsigned unread = fake_unread(rs->channel->fd);

	evr_rs_put(rs);
	return unread > 0;
}

/* The request of the next one was there first. */
START_TEST(a_place_is_kept_for_who_answers_behind_a_request)
{
	int listener = blocking_listener_of_one(), first = take_the_place(listener), second;

	second = rs_client();
	while (!has_unread(listener))
		rs_events(second, POLLOUT);
	fake_release(FAKE_RTU);
	passed_us += LONG_US;
	accept_first(listener, first, second);
}
END_TEST

static const void *restless;

static void say_more(void)
{
	fake_inject(restless, RDMA_CM_EVENT_ADDR_CHANGE, 0);
}

/* While it reads an event the next one is there. */
START_TEST(events_that_never_pause_keep_no_call_for_ever)
{
	int listener = rs_listener();
	struct evr_rs *rs = evr_rs_get(listener);

	restless = rs->id;
	evr_rs_put(rs);
	fake_each_call(say_more);
	say_more();
	ck_assert_fails(raccept(listener, NULL, NULL), EAGAIN);
	fake_each_call(NULL);
	ck_assert_ok(rclose(listener));
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		a_place_is_kept_for_who_answers_behind_a_request,
		events_that_never_pause_keep_no_call_for_ever,
		a_larger_backlog_has_places_for_those_who_wait_already,
		a_place_that_was_kept_for_long_is_the_next_ones,
		a_place_is_kept_for_who_has_answered_unread,
		who_waits_for_one_needs_nobody_else_to_come,
		one_that_listens_no_more_keeps_nobody_waiting,
	};

	return cm_main("rs_backlog", tests, sizeof(tests) / sizeof(tests[0]));
}
