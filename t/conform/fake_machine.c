/* Bases on machines that change: devices that come and go, privileges that are dropped. */
#include "conform/fake.h"
#include "conform/world.h"

#include <errno.h>
#include <event2/event.h>
#include <rdma/rdma_cma.h>
#include <string.h>

#include "util/clock.h"

enum { PATIENCE_MS = 20000, POLL_MS = 5 };

static void keep_open(
	struct side *side, enum evrdma_conn_event event, const struct evrdma_error *error)
{
}

/* --- devices that come and go --------------------------------------------------------------- */

struct visits {
	unsigned arrived, removed;
	char device[IBV_SYSFS_NAME_MAX];
};

static void on_device(struct evrdma_base *base, enum evrdma_device_event event, const char *device,
	int port_num, void *arg)
{
	struct visits *visits = arg;

	visits->arrived += event == EVRDMA_DEVICE_ARRIVED;
	visits->removed += event == EVRDMA_DEVICE_REMOVED;
	strncpy(visits->device, device, sizeof(visits->device) - 1);
	ck_assert_int_eq(port_num, 0);
}

static struct world *world_that_looks(unsigned device_poll_ms, struct visits *visits)
{
	struct evrdma_base_options options;
	struct world *w = world_new();

	evrdma_base_options_init(&options);
	options.device_poll_ms = device_poll_ms;
	world_replace_base(w, &options);
	memset(visits, 0, sizeof(*visits));
	evrdma_base_set_device_cb(w->base, on_device, visits);
	w->tag = visits;
	w->on_event = keep_open;
	return w;
}

static bool one_arrived(struct world *w)
{
	return ((struct visits *)w->tag)->arrived == 1;
}

static bool one_was_removed(struct world *w)
{
	return ((struct visits *)w->tag)->removed == 1;
}

/* So often that the list was read some times more. */
static bool was_read_often(struct world *w)
{
	static unsigned calls;
	unsigned now = fake_calls("ibv_get_device_list");

	if (!calls)
		calls = now;
	return now > calls + 4;
}

/* Of a kind that the test does not need otherwise. */
static enum fake_kind another_kind(void)
{
	return fake_place_kind == FAKE_IB ? FAKE_IWARP : FAKE_IB;
}

START_TEST(devices_that_come_and_go_are_told)
{
	struct visits visits;
	struct world *w = world_that_looks(POLL_MS, &visits);

	fake_device_add(another_kind());
	world_run_until(w, one_arrived, PATIENCE_MS);
	ck_assert_str_eq(visits.device, "fakeib0");
	ck_assert_uint_eq(visits.removed, 0);
	visits.device[0] = '\0';
	fake_device_remove(another_kind());
	world_run_until(w, one_was_removed, PATIENCE_MS);
	ck_assert_str_eq(visits.device, "fakeib0");
	world_run_until(w, was_read_often, PATIENCE_MS);
	ck_assert_uint_eq(visits.arrived, 1);
	ck_assert_uint_eq(visits.removed, 1);
	world_free(w);
}
END_TEST

/* Between two looks it may have gone and come again: it is another one. */
START_TEST(a_device_that_was_replaced_is_told_as_gone_and_come)
{
	struct visits visits;
	struct world *w = world_that_looks(POLL_MS, &visits);

	fake_device_add(another_kind());
	world_run_until(w, one_arrived, PATIENCE_MS);
	visits.arrived = 0;
	fake_device_remove(another_kind());
	fake_device_add(another_kind());
	world_run_until(w, one_arrived, PATIENCE_MS);
	ck_assert_uint_eq(visits.removed, 1);
	world_free(w);
}
END_TEST

START_TEST(a_list_that_cannot_be_read_is_read_again)
{
	struct visits visits;
	struct world *w = world_that_looks(POLL_MS, &visits);

	fake_device_add(another_kind());
	fake_fail_next("ibv_get_device_list", ENOMEM);
	world_run_until(w, one_arrived, PATIENCE_MS);
	world_free(w);
}
END_TEST

START_TEST(a_removal_that_both_the_cm_and_the_list_tell_comes_once)
{
	struct visits visits;
	struct world *w = world_that_looks(_i ? POLL_MS : 0, &visits);

	world_connect_pair(w);
	place.remove_device();
	world_run_until(w, world_client_is_down, PATIENCE_MS);
	ck_assert_int_eq(w->client->error, ENODEV);
	ck_assert_uint_eq(visits.removed, 1);
	evrdma_listener_close(w->listener);
	evrdma_conn_close(w->client->conn);
	evrdma_conn_close(w->server->conn);
	world_run_until(w, world_none_live, PATIENCE_MS);
	if (_i)
		world_run_until(w, was_read_often, PATIENCE_MS);
	ck_assert_uint_eq(visits.removed, 1);
	ck_assert_uint_eq(visits.arrived, 0);
	world_free(w);
}
END_TEST

/* --- privileges ----------------------------------------------------------------------------- */

static bool four_more_arrived(struct world *w)
{
	return w->server->received == 4 && w->client->sends_ok == 4;
}

static bool new_one_is_down(struct world *w)
{
	return ((struct side *)w->tag)->down;
}

static void no_request(struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
}

static void expect_access(struct world *w, struct side *side, enum evrdma_step step)
{
	w->tag = side;
	world_run_until(w, new_one_is_down, PATIENCE_MS);
	ck_assert_int_eq(side->error, EACCES);
	ck_assert_int_eq(side->step, step);
}

/* As the kernel does on a channel that was opened by somebody with other credentials. */
START_TEST(with_privileges_dropped_what_is_up_goes_on_and_what_is_new_is_refused)
{
	struct world *w = world_new();
	struct side *client, *server;
	struct sockaddr_in sin;

	w->on_event = keep_open;
	world_connect_pair(w);
	client = w->client;
	server = w->server;
	fake_fail_from(FAKE_KERNEL, 1, EACCES);
	side_send(client, 4, 64);
	world_run_until(w, four_more_arrived, PATIENCE_MS);
	expect_access(w, world_connect(w), EVRDMA_STEP_ADDR);
	world_address(&sin, place.ip, 0);
	ck_assert(!evrdma_listener_new(w->base, (struct sockaddr *)&sin, NULL, no_request, NULL) &&
		  errno == EACCES);
	ck_assert(!client->down && !server->down);
	ck_assert_int_eq(evrdma_conn_disconnect(client->conn), 0);
	expect_access(w, client, EVRDMA_STEP_DISCONNECT);
	fake_fail_from(FAKE_KERNEL, 0, 0);
	world_free(w);
}
END_TEST

/* --- budgets and priorities ----------------------------------------------------------------- */

enum { PAIRS = 4 };

static bool all_up(struct world *w)
{
	return w->established == 2 * PAIRS;
}

static struct side *clients[PAIRS];

static struct world *world_without_time(void)
{
	struct evrdma_base_options options;
	struct world *w = world_new();
	unsigned i;

	evrdma_base_options_init(&options);
	options.turn_budget_us = 0;
	world_replace_base(w, &options);
	world_listen(w);
	for (i = 0; i < PAIRS; i++)
		clients[i] = world_connect(w);
	world_run_until(w, all_up, PATIENCE_MS);
	return w;
}

static bool all_sent(struct world *w)
{
	static unsigned before;
	unsigned calls = fake_calls("ibv_post_send");
	unsigned i, sent = 0;

	ck_assert_uint_le(calls, before + 1);
	before = calls;
	for (i = 0; i < PAIRS; i++)
		sent += clients[i]->sends_ok;
	return sent == PAIRS;
}

/* One queue in a turn, where there is time for no more. */
START_TEST(posting_obeys_the_budget_of_a_turn)
{
	struct world *w = world_without_time();
	unsigned i;

	world_run_a_little(w);
	for (i = 0; i < PAIRS; i++)
		side_send(clients[i], 1, 64);
	ck_assert_uint_eq(fake_calls("ibv_post_send"), 0);
	world_run_until(w, all_sent, PATIENCE_MS);
	ck_assert_uint_eq(fake_calls("ibv_post_send"), PAIRS);
	world_free(w);
}
END_TEST

enum { EVENTS = 5 };

/* Each read of the channel takes one. */
START_TEST(reading_the_channel_obeys_the_budget_of_a_turn)
{
	struct world *w = world_without_time();
	struct rdma_cm_id *cm = evrdma_listener_get_cm_id(w->listener);
	int fd = evrdma_base_get_channel(w->base)->fd;
	unsigned i;

	world_run_a_little(w);
	for (i = 0; i < EVENTS; i++)
		ck_assert_int_eq(fake_inject(cm, RDMA_CM_EVENT_ADDR_CHANGE, 0), 0);
	for (i = EVENTS; i > 0; i--) {
		ck_assert_uint_eq(fake_unread(fd), i);
		event_base_loop(w->loop, EVLOOP_ONCE);
	}
	world_free(w);
}
END_TEST

struct search {
	evutil_socket_t fd;
	int priority;
};

static int find_priority(const struct event_base *loop, const struct event *event, void *arg)
{
	struct search *search = arg;

	if (event_get_fd(event) == search->fd)
		search->priority = event_get_priority(event);
	return 0;
}

static int priority_of(struct event_base *loop, evutil_socket_t fd)
{
	struct search search = { .fd = fd, .priority = -1 };

	event_base_foreach_event(loop, find_priority, &search);
	return search.priority;
}

START_TEST(the_events_of_a_base_have_the_priorities_that_were_asked_for)
{
	struct event_base *loop = event_base_new();
	struct evrdma_base_options options;
	struct evrdma_base *base;

	ck_assert_int_eq(event_base_priority_init(loop, 4), 0);
	evrdma_base_options_init(&options);
	base = evrdma_base_new(loop, &options);
	ck_assert_int_eq(priority_of(loop, evrdma_base_get_channel(base)->fd), 2);
	evrdma_base_close(base, NULL, NULL);
	options.cm_priority = 3;
	options.data_priority = 0;
	base = evrdma_base_new(loop, &options);
	ck_assert_int_eq(priority_of(loop, evrdma_base_get_channel(base)->fd), 3);
	evrdma_base_close(base, NULL, NULL);
	event_base_dispatch(loop);
	options.cm_priority = 4;
	ck_assert(!evrdma_base_new(loop, &options) && errno == EINVAL);
	event_base_free(loop);
}
END_TEST

/* --- a deadline for the end ----------------------------------------------------------------- */

static void on_over(struct evrdma_base *base, void *arg)
{
	((struct world *)arg)->other_closed = true;
}

static bool is_over(struct world *w)
{
	return w->other_closed;
}

/* The answer to the disconnect does not come, and the connection would wait for long. */
START_TEST(a_shutdown_does_not_wait_beyond_its_deadline)
{
	struct world *w = world_new();
	uint64_t start_us;

	world_add_other(w);
	w->on_event = keep_open;
	w->options.drain_timeout_ms = PATIENCE_MS;
	world_connect_pair(w);
	ck_assert_int_eq(evrdma_conn_migrate(w->client->conn, w->other), 0);
	fake_hold(FAKE_DREQ);
	start_us = evr_clock_now_us();
	ck_assert_int_eq(evrdma_base_shutdown(w->other, 300, on_over, w), 0);
	w->other = NULL;
	world_run_a_little(w);
	ck_assert(!w->other_closed);
	world_run_until(w, is_over, PATIENCE_MS / 2);
	ck_assert_uint_ge(evr_clock_now_us() - start_us, 290000);
	fake_release(FAKE_DREQ);
	world_free(w);
}
END_TEST

static bool server_is_down(struct world *w)
{
	return w->server->down;
}

static struct world *disconnect_on_other(int drain_timeout_ms)
{
	struct world *w = world_new();

	world_add_other(w);
	w->on_event = keep_open;
	w->options.drain_timeout_ms = drain_timeout_ms;
	world_connect_pair(w);
	ck_assert_int_eq(evrdma_conn_migrate(w->client->conn, w->other), 0);
	fake_hold(FAKE_DREQ);
	ck_assert_int_eq(evrdma_conn_disconnect(w->client->conn), 0);
	world_run_a_little(w);
	return w;
}

static void begin_to_close_other(struct world *w)
{
	evrdma_base_close(w->other, on_over, w);
	w->other = NULL;
	world_run_a_little(w);
	ck_assert(!w->other_closed);
}

START_TEST(a_base_that_closes_waits_for_the_answer_to_a_disconnect)
{
	struct world *w = disconnect_on_other(PATIENCE_MS);

	begin_to_close_other(w);
	fake_release(FAKE_DREQ);
	world_run_until(w, is_over, PATIENCE_MS / 2);
	world_run_until(w, server_is_down, PATIENCE_MS);
	ck_assert_int_eq(w->server->error, 0);
	world_free(w);
}
END_TEST

/* Of the time that the disconnect has, what is left. */
START_TEST(a_base_that_closes_waits_no_longer_than_the_disconnect_did)
{
	uint64_t start_us = evr_clock_now_us();
	struct world *w = disconnect_on_other(3000);

	while (evr_clock_now_us() - start_us < 1500000)
		event_base_loop(w->loop, EVLOOP_NONBLOCK);
	begin_to_close_other(w);
	start_us = evr_clock_now_us();
	world_run_until(w, is_over, PATIENCE_MS);
	ck_assert_uint_lt(evr_clock_now_us() - start_us, 2700000);
	fake_release(FAKE_DREQ);
	world_free(w);
}
END_TEST

/* It was closed before, and would have all its time on a base that is just closed. */
START_TEST(a_shutdown_waits_for_no_answer_beyond_its_deadline)
{
	struct world *w = disconnect_on_other(PATIENCE_MS);

	ck_assert_int_eq(evrdma_base_shutdown(w->other, 300, on_over, w), 0);
	w->other = NULL;
	evrdma_conn_close(w->client->conn);
	world_run_until(w, is_over, PATIENCE_MS / 2);
	fake_release(FAKE_DREQ);
	world_free(w);
}
END_TEST

TCase *machine_case(void)
{
	TCase *tc = tcase_create("machine");

	tcase_add_checked_fixture(tc, place.start, place.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, devices_that_come_and_go_are_told);
	tcase_add_test(tc, a_device_that_was_replaced_is_told_as_gone_and_come);
	tcase_add_test(tc, a_list_that_cannot_be_read_is_read_again);
	tcase_add_loop_test(tc, a_removal_that_both_the_cm_and_the_list_tell_comes_once, 0, 2);
	tcase_add_test(tc, with_privileges_dropped_what_is_up_goes_on_and_what_is_new_is_refused);
	tcase_add_test(tc, posting_obeys_the_budget_of_a_turn);
	tcase_add_test(tc, reading_the_channel_obeys_the_budget_of_a_turn);
	tcase_add_test(tc, the_events_of_a_base_have_the_priorities_that_were_asked_for);
	tcase_add_test(tc, a_shutdown_does_not_wait_beyond_its_deadline);
	/* An iWARP id has nothing to wait for. */
	if (fake_place_kind == FAKE_IWARP)
		return tc;
	tcase_add_test(tc, a_base_that_closes_waits_for_the_answer_to_a_disconnect);
	tcase_add_test(tc, a_base_that_closes_waits_no_longer_than_the_disconnect_did);
	tcase_add_test(tc, a_shutdown_waits_for_no_answer_beyond_its_deadline);
	return tc;
}
