/* What devices report of themselves and their ports: whom it reaches, and who reads it. */
#include "conform/fake.h"
#include "conform/fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>
#include <string.h>

enum { PATIENCE_MS = 20000 };

static struct ibv_context *verbs_of(const struct endpoint *endpoint)
{
	return evrdma_conn_get_cm_id(endpoint->conn)->verbs;
}

static struct ibv_qp *qp_of(const struct endpoint *endpoint)
{
	return evrdma_conn_get_cm_id(endpoint->conn)->qp;
}

static void keep_open(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
}

/* --- of a device ---------------------------------------------------------------------------- */

enum { EVENT_KINDS = EVRDMA_DEVICE_PORT_CHANGED + 1 };

struct told {
	unsigned of[EVENT_KINDS];
	int port_num;
	char device[IBV_SYSFS_NAME_MAX];
};

static void on_device(struct evrdma_base *base, enum evrdma_device_event event, const char *device,
	int port_num, void *arg)
{
	struct told *told = arg;

	told->of[event]++;
	told->port_num = port_num;
	strncpy(told->device, device, sizeof(told->device) - 1);
}

/* A client on the second base, which comes to the device first, and a server on the first. */
static void connect_two_bases(struct fixture *f)
{
	struct sockaddr_in sin;

	f->on_event = keep_open;
	fixture_add_other(f);
	fixture_listen(f);
	fixture_endpoint_new_on(f, f->other, true);
	fixture_address(&sin, testbed.ip, evrdma_listener_get_port(f->listener));
	ck_assert_int_eq(evrdma_conn_connect(f->client->conn, NULL, (struct sockaddr *)&sin), 0);
	while (f->established < 2)
		event_base_loop(f->loop, EVLOOP_ONCE);
}

static const struct {
	enum ibv_event_type type;
	enum evrdma_device_event event;
	int port_num;
} device_events[] = {
	{ IBV_EVENT_PORT_ERR, EVRDMA_DEVICE_PORT_DOWN, 1 },
	{ IBV_EVENT_PORT_ACTIVE, EVRDMA_DEVICE_PORT_UP, 1 },
	{ IBV_EVENT_GID_CHANGE, EVRDMA_DEVICE_PORT_CHANGED, 1 },
	{ IBV_EVENT_LID_CHANGE, EVRDMA_DEVICE_PORT_CHANGED, 1 },
	{ IBV_EVENT_PKEY_CHANGE, EVRDMA_DEVICE_PORT_CHANGED, 1 },
	{ IBV_EVENT_SM_CHANGE, EVRDMA_DEVICE_PORT_CHANGED, 1 },
	{ IBV_EVENT_CLIENT_REREGISTER, EVRDMA_DEVICE_PORT_CHANGED, 1 },
	{ IBV_EVENT_DEVICE_FATAL, EVRDMA_DEVICE_FATAL, 0 },
};

START_TEST(every_base_on_a_device_is_told_what_it_reports)
{
	struct fixture *f = fixture_new();
	struct told told[2] = { 0 };
	int i;

	evrdma_base_set_device_cb(f->base, on_device, &told[0]);
	connect_two_bases(f);
	evrdma_base_set_device_cb(f->other, on_device, &told[1]);
	fake_async_port(fake_testbed_kind, device_events[_i].type);
	fixture_run_a_little(f);
	ck_assert_uint_eq(fake_calls("ibv_ack_async_event"), 1);
	for (i = 0; i < 2; i++) {
		ck_assert_uint_eq(told[i].of[device_events[_i].event], 1);
		ck_assert_int_eq(told[i].port_num, device_events[_i].port_num);
		ck_assert_str_eq(told[i].device, ibv_get_device_name(verbs_of(f->client)->device));
	}
	ck_assert(!f->client->down && !f->server->down);
	fixture_free(f);
}
END_TEST

START_TEST(of_a_port_that_flaps_only_the_last_state_is_told)
{
	struct fixture *f = fixture_new();
	struct told told = { 0 };

	evrdma_base_set_device_cb(f->base, on_device, &told);
	fixture_connect_pair(f);
	fake_async_port(fake_testbed_kind, IBV_EVENT_PORT_ERR);
	fake_async_port(fake_testbed_kind, IBV_EVENT_PORT_ACTIVE);
	fake_async_port(fake_testbed_kind, IBV_EVENT_PORT_ERR);
	fixture_run_a_little(f);
	ck_assert_uint_eq(told.of[EVRDMA_DEVICE_PORT_UP], 0);
	ck_assert_uint_eq(told.of[EVRDMA_DEVICE_PORT_DOWN], 1);
	fixture_free(f);
}
END_TEST

static bool both_are_down(struct fixture *f)
{
	return f->client->down && f->server->down;
}

START_TEST(what_is_on_a_broken_device_is_told_a_second_later)
{
	struct fixture *f = fixture_new();

	fixture_connect_pair(f);
	fake_async_port(fake_testbed_kind, IBV_EVENT_DEVICE_FATAL);
	fixture_run_until(f, both_are_down, 1500);
	ck_assert_int_eq(f->client->error, EIO);
	ck_assert_int_eq(f->server->error, EIO);
	fixture_free(f);
}
END_TEST

static bool device_is_removed(struct fixture *f)
{
	return testbed.device_is_removed();
}

START_TEST(a_removal_that_follows_at_once_is_what_is_told)
{
	struct fixture *f = fixture_new();

	fixture_connect_pair(f);
	fake_async_port(fake_testbed_kind, IBV_EVENT_DEVICE_FATAL);
	fixture_run_a_little(f);
	testbed.remove_device();
	fixture_run_until(f, both_are_down, PATIENCE_MS);
	ck_assert_int_eq(f->client->error, ENODEV);
	fixture_run_until(f, device_is_removed, PATIENCE_MS);
	testbed.add_device();
	fixture_free(f);
}
END_TEST

/* --- who reads ------------------------------------------------------------------------------ */

START_TEST(another_base_reads_when_the_one_that_did_is_closed)
{
	struct fixture *f = fixture_new();
	struct told told = { 0 };

	connect_two_bases(f);
	f->client = f->server = NULL;
	fixture_connect_pair(f);
	evrdma_base_set_device_cb(f->base, on_device, &told);
	fixture_close_other(f);
	fake_async_port(fake_testbed_kind, IBV_EVENT_PORT_ERR);
	fixture_run_a_little(f);
	ck_assert_uint_eq(told.of[EVRDMA_DEVICE_PORT_DOWN], 1);
	fake_async_qp(qp_of(f->client), IBV_EVENT_QP_FATAL);
	fixture_run_until(f, fixture_client_is_down, PATIENCE_MS);
	ck_assert_int_eq(f->client->error, EIO);
	fixture_free(f);
}
END_TEST

static const int read_errors[] = { EIO, EBADF };

START_TEST(events_that_cannot_be_read_do_not_keep_the_loop_busy)
{
	struct fixture *f = fixture_new();
	unsigned calls;

	fixture_connect_pair(f);
	fake_fail_next("ibv_get_async_event", read_errors[_i]);
	fake_async_port(fake_testbed_kind, IBV_EVENT_PORT_ERR);
	fixture_run_a_little(f);
	calls = fake_calls("ibv_get_async_event");
	fixture_run_a_little(f);
	ck_assert_uint_eq(fake_calls("ibv_get_async_event"), calls);
	ck_assert(!f->client->down);
	endpoint_send(f->client, 4, 64);
	fixture_free(f);
}
END_TEST

static struct fixture *fixture_that_reads_itself(void)
{
	struct evrdma_base_options options;
	struct fixture *f = fixture_new();

	evrdma_base_options_init(&options);
	options.flags = EVRDMA_BASE_OPT_NO_ASYNC_EVENTS;
	fixture_replace_base(f, &options);
	return f;
}

START_TEST(a_program_can_read_the_events_itself_and_hand_them_in)
{
	struct fixture *f = fixture_that_reads_itself();
	struct ibv_async_event event;
	struct ibv_context *verbs;

	f->on_event = keep_open;
	fixture_connect_pair(f);
	verbs = verbs_of(f->client);
	ck_assert_int_eq(fcntl(verbs->async_fd, F_GETFL) & O_NONBLOCK, 0);
	fake_async_qp(qp_of(f->client), IBV_EVENT_QP_FATAL);
	fixture_run_a_little(f);
	ck_assert(!f->client->down);
	ck_assert_int_eq(ibv_get_async_event(verbs, &event), 0);
	ck_assert_int_eq(evrdma_async_event(verbs, &event), 0);
	ibv_ack_async_event(&event);
	ck_assert(!f->client->down);
	fixture_run_until(f, fixture_client_is_down, PATIENCE_MS);
	ck_assert_int_eq(f->client->error, EIO);
	ck_assert_int_eq(evrdma_async_event(NULL, &event), -ENODEV);
	fixture_free(f);
}
END_TEST

/* --- across threads ------------------------------------------------------------------------- */

struct far {
	struct fixture *f;
	struct event_base *loop;
	struct evrdma_base *base;
	struct evrdma_conn *conn;
	pthread_t thread;
	uint16_t port;
	atomic_bool up;
	atomic_uint told;
	bool wrong_thread;
};

static void on_far_event(struct evrdma_conn *conn, enum evrdma_conn_event event,
	const struct evrdma_error *error, void *arg)
{
	struct far *far = arg;

	if (event == EVRDMA_CONN_CONNECTED)
		atomic_store(&far->up, true);
}

static void on_far_device(struct evrdma_base *base, enum evrdma_device_event event,
	const char *device, int port_num, void *arg)
{
	struct far *far = arg;

	far->wrong_thread |= !pthread_equal(pthread_self(), far->thread);
	atomic_fetch_add(&far->told, event == EVRDMA_DEVICE_PORT_DOWN);
}

static void *run_far(void *arg)
{
	struct far *far = arg;
	struct sockaddr_in sin;

	fixture_address(&sin, testbed.ip, far->port);
	evrdma_base_set_device_cb(far->base, on_far_device, far);
	far->conn = evrdma_conn_new(far->base, NULL);
	evrdma_conn_setcb(far->conn, NULL, on_far_event, far);
	ck_assert_int_eq(evrdma_conn_connect(far->conn, NULL, (struct sockaddr *)&sin), 0);
	event_base_dispatch(far->loop);
	return NULL;
}

static bool server_is_up(struct fixture *f)
{
	return f->server && f->server->connected;
}

static bool far_is_up(struct fixture *f)
{
	return atomic_load(&((struct far *)f->tag)->up) && server_is_up(f);
}

static bool far_was_told(struct fixture *f)
{
	return atomic_load(&((struct far *)f->tag)->told);
}

static void close_far(struct evrdma_base *base, void *arg)
{
	evrdma_base_close(base, NULL, NULL);
}

static void tick(evutil_socket_t fd, short what, void *arg)
{
}

START_TEST(a_base_of_another_thread_is_told_on_its_own)
{
	static const struct timeval often = { 0, 2000 };
	struct fixture *f = fixture_new_on_machine_time();
	struct far far = { .f = f, .loop = event_base_new() };
	struct event *ticks = event_new(f->loop, -1, EV_PERSIST, tick, NULL);

	f->tag = &far;
	f->on_event = keep_open;
	event_add(ticks, &often);
	fixture_listen(f);
	far.port = evrdma_listener_get_port(f->listener);
	far.base = evrdma_base_new(far.loop, NULL);
	ck_assert_int_eq(pthread_create(&far.thread, NULL, run_far, &far), 0);
	fixture_run_until(f, far_is_up, PATIENCE_MS);
	fake_async_port(fake_testbed_kind, IBV_EVENT_PORT_ERR);
	fixture_run_until(f, far_was_told, PATIENCE_MS);
	ck_assert(!far.wrong_thread);
	ck_assert_int_eq(evrdma_base_run_in_loop(far.base, close_far, NULL), 0);
	ck_assert_int_eq(pthread_join(far.thread, NULL), 0);
	event_base_free(far.loop);
	event_free(ticks);
	fixture_free(f);
}
END_TEST

#define N(array) ((int)(sizeof(array) / sizeof((array)[0])))

TCase *report_case(void)
{
	TCase *tc = tcase_create("report");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(
		tc, every_base_on_a_device_is_told_what_it_reports, 0, N(device_events));
	tcase_add_test(tc, what_is_on_a_broken_device_is_told_a_second_later);
	tcase_add_test(tc, a_removal_that_follows_at_once_is_what_is_told);
	tcase_add_test(tc, of_a_port_that_flaps_only_the_last_state_is_told);
	tcase_add_test(tc, another_base_reads_when_the_one_that_did_is_closed);
	tcase_add_loop_test(
		tc, events_that_cannot_be_read_do_not_keep_the_loop_busy, 0, N(read_errors));
	tcase_add_test(tc, a_program_can_read_the_events_itself_and_hand_them_in);
	tcase_add_test(tc, a_base_of_another_thread_is_told_on_its_own);
	return tc;
}
