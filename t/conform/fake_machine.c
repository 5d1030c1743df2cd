/* Bases on machines that change: devices that come and go, privileges that are dropped. */
#include "conform/fake.h"
#include "conform/fixture.h"

#include <errno.h>
#include <event2/event.h>
#include <rdma/rdma_cma.h>
#include <string.h>

#include "schedule/clock.h"

/* What the calls of a few turns take, and a tick of the fixture. */
enum { PATIENCE_MS = 20000, POLL_MS = 5, SLACK_US = 20000 };

static void keep_open(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
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

static struct fixture *fixture_that_looks(unsigned device_poll_ms, struct visits *visits)
{
	struct evrdma_base_options options;
	struct fixture *f = fixture_new();

	evrdma_base_options_init(&options);
	options.device_poll_ms = device_poll_ms;
	fixture_replace_base(f, &options);
	memset(visits, 0, sizeof(*visits));
	evrdma_base_set_device_cb(f->base, on_device, visits);
	f->tag = visits;
	f->on_event = keep_open;
	return f;
}

static bool one_arrived(struct fixture *f)
{
	return ((struct visits *)f->tag)->arrived == 1;
}

static bool one_was_removed(struct fixture *f)
{
	return ((struct visits *)f->tag)->removed == 1;
}

/* So often that the list was read some times more. */
static bool was_read_often(struct fixture *f)
{
	static unsigned calls;
	unsigned now = fake_calls("ibv_get_device_list");

	if (!calls)
		calls = now;
	return now > calls + 4;
}

static const char *its_name(void)
{
	return fake_another_kind() == FAKE_IB ? "fakeib0" : "fakeiw0";
}

START_TEST(devices_that_come_and_go_are_told)
{
	struct visits visits;
	struct fixture *f = fixture_that_looks(POLL_MS, &visits);

	fake_device_add(fake_another_kind());
	fixture_run_until(f, one_arrived, PATIENCE_MS);
	ck_assert_str_eq(visits.device, its_name());
	ck_assert_uint_eq(visits.removed, 0);
	visits.device[0] = '\0';
	fake_device_remove(fake_another_kind());
	fixture_run_until(f, one_was_removed, PATIENCE_MS);
	ck_assert_str_eq(visits.device, its_name());
	fixture_run_until(f, was_read_often, PATIENCE_MS);
	ck_assert_uint_eq(visits.arrived, 1);
	ck_assert_uint_eq(visits.removed, 1);
	fixture_free(f);
}
END_TEST

/* Between two looks it may have gone and come again: it is another one. */
START_TEST(a_device_that_was_replaced_is_told_as_gone_and_come)
{
	struct visits visits;
	struct fixture *f = fixture_that_looks(POLL_MS, &visits);

	fake_device_add(fake_another_kind());
	fixture_run_until(f, one_arrived, PATIENCE_MS);
	visits.arrived = 0;
	fake_device_remove(fake_another_kind());
	fake_device_add(fake_another_kind());
	fixture_run_until(f, one_arrived, PATIENCE_MS);
	ck_assert_uint_eq(visits.removed, 1);
	fixture_free(f);
}
END_TEST

START_TEST(a_list_that_cannot_be_read_is_read_again)
{
	struct visits visits;
	struct fixture *f = fixture_that_looks(POLL_MS, &visits);

	fake_device_add(fake_another_kind());
	fake_fail_next("ibv_get_device_list", ENOMEM);
	fixture_run_until(f, one_arrived, PATIENCE_MS);
	fixture_free(f);
}
END_TEST

START_TEST(a_removal_that_both_the_cm_and_the_list_tell_comes_once)
{
	struct visits visits;
	struct fixture *f = fixture_that_looks(_i ? POLL_MS : 0, &visits);

	fixture_connect_pair(f);
	testbed.remove_device();
	fixture_run_until(f, fixture_client_is_down, PATIENCE_MS);
	ck_assert_int_eq(f->client->error, ENODEV);
	ck_assert_uint_eq(visits.removed, 1);
	evrdma_listener_close(f->listener);
	evrdma_conn_close(f->client->conn);
	evrdma_conn_close(f->server->conn);
	fixture_run_until(f, fixture_none_live, PATIENCE_MS);
	if (_i)
		fixture_run_until(f, was_read_often, PATIENCE_MS);
	ck_assert_uint_eq(visits.removed, 1);
	ck_assert_uint_eq(visits.arrived, 0);
	fixture_free(f);
}
END_TEST

/* --- privileges ----------------------------------------------------------------------------- */

static bool four_more_arrived(struct fixture *f)
{
	return f->server->received == 4 && f->client->sends_ok == 4;
}

static bool new_one_is_down(struct fixture *f)
{
	return ((struct endpoint *)f->tag)->down;
}

static void no_request(struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
}

static void expect_access(struct fixture *f, struct endpoint *endpoint, enum evrdma_step step)
{
	f->tag = endpoint;
	fixture_run_until(f, new_one_is_down, PATIENCE_MS);
	ck_assert_int_eq(endpoint->error, EACCES);
	ck_assert_int_eq(endpoint->step, step);
}

/* As the kernel does on a channel that was opened by somebody with other credentials. */
START_TEST(with_privileges_dropped_what_is_up_goes_on_and_what_is_new_is_refused)
{
	struct fixture *f = fixture_new();
	struct endpoint *client, *server;
	struct sockaddr_in sin;

	f->on_event = keep_open;
	fixture_connect_pair(f);
	client = f->client;
	server = f->server;
	fake_fail_from(FAKE_KERNEL, 1, EACCES);
	endpoint_send(client, 4, 64);
	fixture_run_until(f, four_more_arrived, PATIENCE_MS);
	expect_access(f, fixture_connect(f), EVRDMA_STEP_ADDR);
	fixture_address(&sin, testbed.ip, 0);
	ck_assert(!evrdma_listener_new(f->base, (struct sockaddr *)&sin, NULL, no_request, NULL) &&
		  errno == EACCES);
	ck_assert(!client->down && !server->down);
	ck_assert_int_eq(evrdma_conn_disconnect(client->conn), 0);
	expect_access(f, client, EVRDMA_STEP_DISCONNECT);
	fake_fail_from(FAKE_KERNEL, 0, 0);
	fixture_free(f);
}
END_TEST

/* --- budgets and priorities ----------------------------------------------------------------- */

enum { PAIRS = 4 };

static bool all_up(struct fixture *f)
{
	return f->established == 2 * PAIRS;
}

static struct endpoint *clients[PAIRS];

static struct fixture *fixture_without_time(void)
{
	struct evrdma_base_options options;
	struct fixture *f = fixture_new();
	unsigned i;

	evrdma_base_options_init(&options);
	options.turn_budget_us = 0;
	fixture_replace_base(f, &options);
	fixture_listen(f);
	for (i = 0; i < PAIRS; i++)
		clients[i] = fixture_connect(f);
	fixture_run_until(f, all_up, PATIENCE_MS);
	return f;
}

static bool all_sent(struct fixture *f)
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
	struct fixture *f = fixture_without_time();
	unsigned i;

	fixture_run_a_little(f);
	for (i = 0; i < PAIRS; i++)
		endpoint_send(clients[i], 1, 64);
	ck_assert_uint_eq(fake_calls("ibv_post_send"), 0);
	fixture_run_until(f, all_sent, PATIENCE_MS);
	ck_assert_uint_eq(fake_calls("ibv_post_send"), PAIRS);
	fixture_free(f);
}
END_TEST

enum { EVENTS = 5 };

/* Each read of the channel takes one. */
START_TEST(reading_the_channel_obeys_the_budget_of_a_turn)
{
	struct fixture *f = fixture_without_time();
	struct rdma_cm_id *cm = evrdma_listener_get_cm_id(f->listener);
	int fd = evrdma_base_get_channel(f->base)->fd;
	unsigned i;

	fixture_run_a_little(f);
	for (i = 0; i < EVENTS; i++)
		ck_assert_int_eq(fake_inject(cm, RDMA_CM_EVENT_ADDR_CHANGE, 0), 0);
	for (i = EVENTS; i > 0; i--) {
		ck_assert_uint_eq(fake_unread(fd), i);
		event_base_loop(f->loop, EVLOOP_ONCE);
	}
	fixture_free(f);
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
	((struct fixture *)arg)->other_closed = true;
}

static bool is_over(struct fixture *f)
{
	return f->other_closed;
}

/* The answer to the disconnect does not come, and the connection would wait for long. */
START_TEST(a_shutdown_does_not_wait_beyond_its_deadline)
{
	struct fixture *f = fixture_new();
	uint64_t start_us;

	fixture_add_other(f);
	f->on_event = keep_open;
	f->options.drain_timeout_ms = PATIENCE_MS;
	fixture_connect_pair(f);
	ck_assert_int_eq(evrdma_conn_migrate(f->client->conn, f->other), 0);
	fake_hold(FAKE_DREQ);
	start_us = testbed.now_us();
	ck_assert_int_eq(evrdma_base_shutdown(f->other, 300, on_over, f), 0);
	f->other = NULL;
	fixture_run_a_little(f);
	ck_assert(!f->other_closed);
	fixture_run_until(f, is_over, PATIENCE_MS / 2);
	ck_assert_uint_ge(testbed.now_us() - start_us, 300000);
	ck_assert_uint_le(testbed.now_us() - start_us, 300000 + SLACK_US);
	fake_release(FAKE_DREQ);
	fixture_free(f);
}
END_TEST

static bool server_is_down(struct fixture *f)
{
	return f->server->down;
}

static struct fixture *disconnect_on_other(int drain_timeout_ms)
{
	struct fixture *f = fixture_new();

	fixture_add_other(f);
	f->on_event = keep_open;
	f->options.drain_timeout_ms = drain_timeout_ms;
	fixture_connect_pair(f);
	ck_assert_int_eq(evrdma_conn_migrate(f->client->conn, f->other), 0);
	fake_hold(FAKE_DREQ);
	ck_assert_int_eq(evrdma_conn_disconnect(f->client->conn), 0);
	fixture_run_a_little(f);
	return f;
}

static void begin_to_close_other(struct fixture *f)
{
	evrdma_base_close(f->other, on_over, f);
	f->other = NULL;
	fixture_run_a_little(f);
	ck_assert(!f->other_closed);
}

START_TEST(a_base_that_closes_waits_for_the_answer_to_a_disconnect)
{
	struct fixture *f = disconnect_on_other(PATIENCE_MS);

	begin_to_close_other(f);
	fake_release(FAKE_DREQ);
	fixture_run_until(f, is_over, PATIENCE_MS / 2);
	fixture_run_until(f, server_is_down, PATIENCE_MS);
	ck_assert_int_eq(f->server->error, 0);
	fixture_free(f);
}
END_TEST

/* Of the time that the disconnect has, what is left. */
START_TEST(a_base_that_closes_waits_no_longer_than_the_disconnect_did)
{
	struct fixture *f = disconnect_on_other(3000);
	uint64_t start_us;

	clock_advance_us(1500000);
	fixture_run_a_little(f);
	begin_to_close_other(f);
	start_us = testbed.now_us();
	fixture_run_until(f, is_over, PATIENCE_MS);
	ck_assert_uint_le(testbed.now_us() - start_us, 1500000 + SLACK_US);
	fake_release(FAKE_DREQ);
	fixture_free(f);
}
END_TEST

/* It was closed before, and would have all its time on a base that is just closed. */
START_TEST(a_shutdown_waits_for_no_answer_beyond_its_deadline)
{
	struct fixture *f = disconnect_on_other(PATIENCE_MS);

	ck_assert_int_eq(evrdma_base_shutdown(f->other, 300, on_over, f), 0);
	f->other = NULL;
	evrdma_conn_close(f->client->conn);
	fixture_run_until(f, is_over, PATIENCE_MS / 2);
	fake_release(FAKE_DREQ);
	fixture_free(f);
}
END_TEST

TCase *machine_case(void)
{
	TCase *tc = tcase_create("machine");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
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
	if (fake_testbed_kind == FAKE_IWARP)
		return tc;
	tcase_add_test(tc, a_base_that_closes_waits_for_the_answer_to_a_disconnect);
	tcase_add_test(tc, a_base_that_closes_waits_no_longer_than_the_disconnect_did);
	tcase_add_test(tc, a_shutdown_waits_for_no_answer_beyond_its_deadline);
	return tc;
}
