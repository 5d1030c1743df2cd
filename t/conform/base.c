/* Bases: calls into their loop, a caller's own channel, connections that move between them. */
#include "conform/suite.h"
#include "conform/fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <rdma/rdma_cma.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

struct visit {
	unsigned calls, closed, calls_when_closed;
	unsigned requests, id_closed;
	struct rdma_cm_id *listener;
	struct evrdma_base *base;
	bool adopt;
};

static void keep_open(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
}

static bool client_is_refused(struct fixture *f)
{
	return f->client->down && f->client->error == ECONNREFUSED;
}

static bool both_down(struct fixture *f)
{
	return f->client->down && f->server->down;
}

/* --- descriptors ---------------------------------------------------------------------------- */

enum { OF_A_BASE = 3, MOST_FILES = 1024 };

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static int count_files(void)
{
	int fd, num = 0;

	for (fd = 0; fd < MOST_FILES; fd++)
		num += is_open(fd);
	return num;
}

/* Below the limit so many numbers are free. */
static void leave_room(int room)
{
	struct rlimit files;
	int fd = 0;

	while (room >= 0)
		room -= !is_open(fd++);
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = (rlim_t)fd - 1;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
}

static struct evrdma_base *base_with_room_for(struct fixture *f, int room)
{
	struct evrdma_base *base;
	struct rlimit before;
	int error;

	getrlimit(RLIMIT_NOFILE, &before);
	leave_room(room);
	errno = 0;
	base = evrdma_base_new(f->loop, NULL);
	error = errno;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	ck_assert(base || error == EMFILE);
	return base;
}

START_TEST(a_base_has_three_descriptors_and_is_not_made_with_fewer)
{
	struct fixture *f = fixture_new();
	int before = count_files(), room;

	for (room = 0; room < OF_A_BASE; room++) {
		ck_assert_ptr_null(base_with_room_for(f, room));
		ck_assert_int_eq(count_files(), before);
	}
	evrdma_base_close(base_with_room_for(f, OF_A_BASE), NULL, NULL);
	fixture_free(f);
	ck_assert_int_lt(count_files(), before);
}
END_TEST

/* --- calls into the loop -------------------------------------------------------------------- */

static void count_call(struct evrdma_base *base, void *arg)
{
	((struct visit *)arg)->calls++;
}

static void count_closed(struct evrdma_base *base, void *arg)
{
	struct visit *visit = arg;

	visit->closed++;
	visit->calls_when_closed = visit->calls;
}

static bool visit_is_over(struct fixture *f)
{
	return ((struct visit *)f->tag)->closed;
}

START_TEST(calls_made_before_the_close_run_before_its_callback_and_none_after)
{
	struct visit visit = { 0 };
	struct fixture *f = fixture_new();
	struct evrdma_base *base;

	f->tag = &visit;
	base = evrdma_base_new(f->loop, NULL);
	ck_assert_int_eq(evrdma_base_run_in_loop(base, count_call, &visit), 0);
	ck_assert_int_eq(evrdma_base_run_in_loop(base, count_call, &visit), 0);
	evrdma_base_close(base, count_closed, &visit);
	evrdma_base_close(base, NULL, NULL);
	ck_assert_int_eq(evrdma_base_run_in_loop(base, count_call, &visit), -EPIPE);
	ck_assert_uint_eq(visit.calls, 0);
	fixture_run_until(f, visit_is_over, 10000);
	ck_assert_uint_eq(visit.calls_when_closed, 2);
	fixture_free(f);
	ck_assert_uint_eq(visit.closed, 1);
}
END_TEST

START_TEST(a_closing_base_makes_no_objects)
{
	struct visit visit = { 0 };
	struct fixture *f = fixture_new();
	struct evrdma_base *base = evrdma_base_new(f->loop, NULL);

	f->tag = &visit;
	evrdma_base_close(base, count_closed, &visit);
	fixture_expect_closing(base);
	fixture_run_until(f, visit_is_over, 10000);
	fixture_free(f);
}
END_TEST

static void close_too(struct evrdma_base *base, void *arg)
{
	struct visit *visit = arg;

	visit->calls++;
	evrdma_base_close(visit->base, count_closed, visit);
}

START_TEST(a_base_can_be_closed_in_the_callback_of_another)
{
	struct visit visit = { 0 };
	struct fixture *f = fixture_new();

	f->tag = &visit;
	visit.base = evrdma_base_new(f->loop, NULL);
	evrdma_base_close(evrdma_base_new(f->loop, NULL), close_too, &visit);
	fixture_run_until(f, visit_is_over, 10000);
	ck_assert_uint_eq(visit.calls, 1);
	fixture_free(f);
}
END_TEST

/* --- a caller's channel --------------------------------------------------------------------- */

static struct rdma_cm_id *listen_by_hand(struct rdma_event_channel *channel)
{
	struct rdma_cm_id *id;
	struct sockaddr_in sin;

	fixture_address(&sin, testbed.ip, 0);
	ck_assert_int_eq(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	ck_assert_int_eq(rdma_bind_addr(id, (struct sockaddr *)&sin), 0);
	ck_assert_int_eq(rdma_listen(id, 8), 0);
	return id;
}

static void on_child(struct evrdma_id *id, const struct rdma_cm_event *event, void *arg)
{
	((struct visit *)arg)->id_closed += !event;
}

/* The id of the request is the callback's: it goes with the object that adopts it. */
static void on_foreign(struct evrdma_base *base, const struct rdma_cm_event *event, void *arg)
{
	struct visit *visit = arg;
	struct evrdma_id *child;

	ck_assert_int_eq(event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	ck_assert_ptr_eq(event->listen_id, visit->listener);
	visit->requests++;
	if (!visit->adopt) {
		rdma_destroy_id(event->id);
		return;
	}
	child = evrdma_id_adopt(base, event->id, on_child, visit);
	ck_assert_ptr_eq(evrdma_id_get_cm_id(child), event->id);
	ck_assert(!evrdma_id_adopt(base, event->id, on_child, visit) && errno == EEXIST);
	ck_assert_int_eq(evrdma_id_reject(child, "no", 3), 0);
	evrdma_id_close(child);
}

static void connect_to_hand_made(struct fixture *f, struct visit *visit)
{
	f->on_event = keep_open;
	fixture_connect_to(f, testbed.ip, ntohs(rdma_get_src_port(visit->listener)));
	fixture_run_until(f, client_is_refused, 20000);
}

static void close_visited(struct fixture *f, struct visit *visit)
{
	f->tag = visit;
	evrdma_base_close(visit->base, count_closed, visit);
	fixture_run_until(f, visit_is_over, 10000);
}

START_TEST(a_callers_channel_reports_its_ids_and_is_given_back_as_it_was)
{
	struct visit visit = { 0 };
	struct fixture *f = fixture_new();
	struct rdma_event_channel *channel = rdma_create_event_channel();
	int flags = fcntl(channel->fd, F_GETFL);

	visit.adopt = _i;
	visit.listener = listen_by_hand(channel);
	visit.base = evrdma_base_new_with_channel(f->loop, channel, NULL);
	ck_assert_ptr_eq(evrdma_base_get_channel(visit.base), channel);
	ck_assert_int_eq(fcntl(channel->fd, F_GETFL), flags | O_NONBLOCK);
	evrdma_base_set_event_cb(visit.base, on_foreign, &visit);
	connect_to_hand_made(f, &visit);
	close_visited(f, &visit);
	ck_assert_uint_eq(visit.requests, 1);
	ck_assert_uint_eq(visit.id_closed, visit.adopt);
	ck_assert_int_eq(fcntl(channel->fd, F_GETFL), flags);
	ck_assert_int_eq(rdma_destroy_id(visit.listener), 0);
	rdma_destroy_event_channel(channel);
	fixture_free(f);
}
END_TEST

START_TEST(a_request_that_nobody_asked_for_is_refused)
{
	struct visit visit = { 0 };
	struct fixture *f = fixture_new();
	struct rdma_event_channel *channel = rdma_create_event_channel();

	visit.listener = listen_by_hand(channel);
	visit.base = evrdma_base_new_with_channel(f->loop, channel, NULL);
	connect_to_hand_made(f, &visit);
	close_visited(f, &visit);
	ck_assert_int_eq(rdma_destroy_id(visit.listener), 0);
	rdma_destroy_event_channel(channel);
	fixture_free(f);
}
END_TEST

START_TEST(an_id_of_another_channel_is_moved_when_it_is_adopted)
{
	struct visit visit = { 0 };
	struct fixture *f = fixture_new();
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *cm;
	struct evrdma_id *id;

	ck_assert_int_eq(rdma_create_id(channel, &cm, &visit, RDMA_PS_TCP), 0);
	id = evrdma_id_adopt(f->base, cm, on_child, &visit);
	ck_assert_ptr_nonnull(id);
	ck_assert_ptr_eq(cm->channel, evrdma_base_get_channel(f->base));
	ck_assert_ptr_eq(cm->context, &visit);
	rdma_destroy_event_channel(channel);
	fixture_free(f);
	ck_assert_uint_eq(visit.id_closed, 1);
}
END_TEST

/* --- connections that move ------------------------------------------------------------------ */

static struct rdma_event_channel *channel_of(const struct endpoint *endpoint)
{
	return evrdma_conn_get_cm_id(endpoint->conn)->channel;
}

static uint64_t completions(const struct evrdma_base *base)
{
	struct evrdma_base_stats stats;

	evrdma_base_get_stats(base, &stats);
	return stats.completions;
}

static bool server_got_all(struct fixture *f)
{
	return f->server->received == 4;
}

/* Also of one that has no queue pair yet. */
START_TEST(the_data_of_a_moved_connection_stays_on_its_base)
{
	struct fixture *f = fixture_new();

	fixture_add_other(f);
	fixture_listen(f);
	fixture_connect(f);
	while (!evrdma_conn_get_cm_id(f->client->conn))
		event_base_loop(f->loop, EVLOOP_ONCE);
	ck_assert_int_eq(evrdma_conn_migrate(f->client->conn, f->other), 0);
	fixture_run_until(f, fixture_pair_is_up, 20000);
	endpoint_send(f->client, 4, 64);
	fixture_run_until(f, server_got_all, 20000);
	ck_assert_uint_gt(completions(f->base), 0);
	ck_assert_uint_eq(completions(f->other), 0);
	fixture_free(f);
}
END_TEST

START_TEST(a_moved_connection_passes_data_and_disconnects)
{
	struct fixture *f = fixture_new();

	f->on_event = keep_open;
	fixture_add_other(f);
	fixture_connect_pair(f);
	ck_assert_int_eq(evrdma_conn_migrate(f->client->conn, f->other), 0);
	ck_assert_int_eq(evrdma_conn_migrate(f->client->conn, f->other), 0);
	ck_assert_ptr_eq(channel_of(f->client), evrdma_base_get_channel(f->other));
	ck_assert_ptr_eq(evrdma_conn_get_base(f->client->conn), f->base);
	endpoint_send(f->client, 4, 64);
	ck_assert_int_eq(evrdma_conn_disconnect(f->server->conn), 0);
	fixture_run_until(f, both_down, 20000);
	ck_assert_int_eq(f->client->error, 0);
	ck_assert_int_eq(evrdma_conn_migrate(f->client->conn, f->base), -ENOTCONN);
	fixture_free(f);
}
END_TEST

START_TEST(a_base_that_closes_closes_what_moved_to_it)
{
	struct fixture *f = fixture_new();

	fixture_add_other(f);
	fixture_connect_pair(f);
	ck_assert_int_eq(evrdma_conn_migrate(f->client->conn, f->other), 0);
	fixture_close_other(f);
	ck_assert_ptr_null(f->client);
	fixture_run_until(f, fixture_none_live, 20000);
	fixture_free(f);
}
END_TEST

START_TEST(a_moved_connection_can_come_back_and_outlive_the_other_base)
{
	struct fixture *f = fixture_new();

	fixture_add_other(f);
	fixture_connect_pair(f);
	ck_assert_int_eq(evrdma_conn_migrate(f->client->conn, f->other), 0);
	ck_assert_int_eq(evrdma_conn_migrate(f->client->conn, f->base), 0);
	fixture_close_other(f);
	ck_assert_ptr_nonnull(f->client);
	ck_assert_int_eq(evrdma_conn_disconnect(f->client->conn), 0);
	fixture_run_until(f, fixture_none_live, 20000);
	fixture_free(f);
}
END_TEST

START_TEST(a_connection_does_not_move_where_it_cannot)
{
	struct visit visit = { 0 };
	struct fixture *f = fixture_new();
	struct event_base *elsewhere = event_base_new();
	struct evrdma_base *far_away = evrdma_base_new(elsewhere, NULL);
	struct evrdma_base *closing = evrdma_base_new(f->loop, NULL);

	ck_assert_int_eq(
		evrdma_conn_migrate(fixture_endpoint_new(f, true)->conn, f->base), -ENOTCONN);
	fixture_connect_pair(f);
	ck_assert_int_eq(evrdma_conn_migrate(f->client->conn, far_away), -EXDEV);
	evrdma_base_close(closing, NULL, NULL);
	ck_assert_int_eq(evrdma_conn_migrate(f->client->conn, closing), -EPIPE);
	ck_assert_ptr_eq(channel_of(f->client), evrdma_base_get_channel(f->base));
	evrdma_base_close(far_away, count_closed, &visit);
	event_base_dispatch(elsewhere);
	ck_assert_uint_eq(visit.closed, 1);
	event_base_free(elsewhere);
	fixture_free(f);
}
END_TEST

/* --- spinning ------------------------------------------------------------------------------- */

enum { TRIPS = 20, LONG_SPIN_US = 1000000, SHORT_SPIN_US = 1000 };

static void send_back(struct endpoint *endpoint, const struct evrdma_recv *recv)
{
	if (!recv->err && (!endpoint->is_client || endpoint->received < TRIPS))
		ck_assert_int_eq(endpoint_send_buf(endpoint, recv->buf, recv->len), 0);
}

static bool has_come_back(struct fixture *f)
{
	return f->client->received;
}

static bool all_trips_made(struct fixture *f)
{
	return f->client->received == TRIPS;
}

static struct fixture *spinning_pair(uint32_t spin_us)
{
	struct evrdma_base_options options;
	struct fixture *f = fixture_new();

	evrdma_base_options_init(&options);
	options.spin_us = spin_us;
	fixture_replace_base(f, &options);
	f->on_recv = send_back;
	fixture_connect_pair(f);
	return f;
}

START_TEST(a_base_that_spins_does_not_sleep_between_messages)
{
	struct fixture *f = spinning_pair(LONG_SPIN_US);
	struct evrdma_base_stats before;

	endpoint_send(f->client, 1, 16);
	fixture_run_until(f, has_come_back, 20000);
	before = fixture_stats(f);
	fixture_run_until(f, all_trips_made, 20000);
	ck_assert_uint_eq(fixture_stats(f).arms, before.arms);
	ck_assert_uint_eq(fixture_stats(f).cq_events, before.cq_events);
	fixture_free(f);
}
END_TEST

static uint64_t arms_before;

static bool is_armed_again(struct fixture *f)
{
	return fixture_stats(f).arms > arms_before;
}

START_TEST(a_base_that_spins_sleeps_when_nothing_has_come_for_a_while)
{
	struct fixture *f = spinning_pair(SHORT_SPIN_US);

	arms_before = fixture_stats(f).arms;
	endpoint_send(f->client, 1, 16);
	fixture_run_until(f, all_trips_made, 20000);
	fixture_run_until(f, is_armed_again, 20000);
	fixture_free(f);
}
END_TEST

TCase *base_case(void)
{
	TCase *tc = tcase_create("base");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, a_base_has_three_descriptors_and_is_not_made_with_fewer);
	tcase_add_test(tc, calls_made_before_the_close_run_before_its_callback_and_none_after);
	tcase_add_test(tc, a_closing_base_makes_no_objects);
	tcase_add_test(tc, a_base_can_be_closed_in_the_callback_of_another);
	tcase_add_loop_test(
		tc, a_callers_channel_reports_its_ids_and_is_given_back_as_it_was, 0, 2);
	tcase_add_test(tc, a_request_that_nobody_asked_for_is_refused);
	tcase_add_test(tc, an_id_of_another_channel_is_moved_when_it_is_adopted);
	tcase_add_test(tc, the_data_of_a_moved_connection_stays_on_its_base);
	tcase_add_test(tc, a_moved_connection_passes_data_and_disconnects);
	tcase_add_test(tc, a_base_that_closes_closes_what_moved_to_it);
	tcase_add_test(tc, a_moved_connection_can_come_back_and_outlive_the_other_base);
	tcase_add_test(tc, a_connection_does_not_move_where_it_cannot);
	tcase_add_test(tc, a_base_that_spins_does_not_sleep_between_messages);
	tcase_add_test(tc, a_base_that_spins_sleeps_when_nothing_has_come_for_a_while);
	return tc;
}
