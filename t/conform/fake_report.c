/* What devices report of themselves and their ports: whom it reaches, and who reads it. */
#include "conform/fake.h"
#include "conform/world.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>
#include <string.h>

enum { PATIENCE_MS = 20000 };

static struct ibv_context *verbs_of(const struct side *side)
{
	return evrdma_conn_get_cm_id(side->conn)->verbs;
}

static struct ibv_qp *qp_of(const struct side *side)
{
	return evrdma_conn_get_cm_id(side->conn)->qp;
}

static void keep_open(
	struct side *side, enum evrdma_conn_event event, const struct evrdma_error *error)
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
static void connect_two_bases(struct world *w)
{
	struct sockaddr_in sin;

	w->on_event = keep_open;
	world_add_other(w);
	world_listen(w);
	world_side_new_on(w, w->other, true);
	world_address(&sin, place.ip, evrdma_listener_get_port(w->listener));
	ck_assert_int_eq(evrdma_conn_connect(w->client->conn, NULL, (struct sockaddr *)&sin), 0);
	while (w->established < 2)
		event_base_loop(w->loop, EVLOOP_ONCE);
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
	struct world *w = world_new();
	struct told told[2] = { 0 };
	int i;

	evrdma_base_set_device_cb(w->base, on_device, &told[0]);
	connect_two_bases(w);
	evrdma_base_set_device_cb(w->other, on_device, &told[1]);
	fake_async_port(fake_place_kind, device_events[_i].type);
	world_run_a_little(w);
	ck_assert_uint_eq(fake_calls("ibv_ack_async_event"), 1);
	for (i = 0; i < 2; i++) {
		ck_assert_uint_eq(told[i].of[device_events[_i].event], 1);
		ck_assert_int_eq(told[i].port_num, device_events[_i].port_num);
		ck_assert_str_eq(told[i].device, ibv_get_device_name(verbs_of(w->client)->device));
	}
	ck_assert(!w->client->down && !w->server->down);
	world_free(w);
}
END_TEST

START_TEST(of_a_port_that_flaps_only_the_last_state_is_told)
{
	struct world *w = world_new();
	struct told told = { 0 };

	evrdma_base_set_device_cb(w->base, on_device, &told);
	world_connect_pair(w);
	fake_async_port(fake_place_kind, IBV_EVENT_PORT_ERR);
	fake_async_port(fake_place_kind, IBV_EVENT_PORT_ACTIVE);
	fake_async_port(fake_place_kind, IBV_EVENT_PORT_ERR);
	world_run_a_little(w);
	ck_assert_uint_eq(told.of[EVRDMA_DEVICE_PORT_UP], 0);
	ck_assert_uint_eq(told.of[EVRDMA_DEVICE_PORT_DOWN], 1);
	world_free(w);
}
END_TEST

/* --- who reads ------------------------------------------------------------------------------ */

START_TEST(another_base_reads_when_the_one_that_did_is_closed)
{
	struct world *w = world_new();
	struct told told = { 0 };

	connect_two_bases(w);
	w->client = w->server = NULL;
	world_connect_pair(w);
	evrdma_base_set_device_cb(w->base, on_device, &told);
	world_close_other(w);
	fake_async_port(fake_place_kind, IBV_EVENT_PORT_ERR);
	world_run_a_little(w);
	ck_assert_uint_eq(told.of[EVRDMA_DEVICE_PORT_DOWN], 1);
	fake_async_qp(qp_of(w->client), IBV_EVENT_QP_FATAL);
	world_run_until(w, world_client_is_down, PATIENCE_MS);
	ck_assert_int_eq(w->client->error, EIO);
	world_free(w);
}
END_TEST

static const int read_errors[] = { EIO, EBADF };

START_TEST(events_that_cannot_be_read_do_not_keep_the_loop_busy)
{
	struct world *w = world_new();
	unsigned calls;

	world_connect_pair(w);
	fake_fail_next("ibv_get_async_event", read_errors[_i]);
	fake_async_port(fake_place_kind, IBV_EVENT_PORT_ERR);
	world_run_a_little(w);
	calls = fake_calls("ibv_get_async_event");
	world_run_a_little(w);
	ck_assert_uint_eq(fake_calls("ibv_get_async_event"), calls);
	ck_assert(!w->client->down);
	side_send(w->client, 4, 64);
	world_free(w);
}
END_TEST

static struct world *world_that_reads_itself(void)
{
	struct evrdma_base_options options;
	struct world *w = world_new();

	evrdma_base_options_init(&options);
	options.flags = EVRDMA_BASE_OPT_NO_ASYNC_EVENTS;
	world_replace_base(w, &options);
	return w;
}

START_TEST(a_program_can_read_the_events_itself_and_hand_them_in)
{
	struct world *w = world_that_reads_itself();
	struct ibv_async_event event;
	struct ibv_context *verbs;

	w->on_event = keep_open;
	world_connect_pair(w);
	verbs = verbs_of(w->client);
	ck_assert_int_eq(fcntl(verbs->async_fd, F_GETFL) & O_NONBLOCK, 0);
	fake_async_qp(qp_of(w->client), IBV_EVENT_QP_FATAL);
	world_run_a_little(w);
	ck_assert(!w->client->down);
	ck_assert_int_eq(ibv_get_async_event(verbs, &event), 0);
	ck_assert_int_eq(evrdma_async_event(verbs, &event), 0);
	ibv_ack_async_event(&event);
	ck_assert(!w->client->down);
	world_run_until(w, world_client_is_down, PATIENCE_MS);
	ck_assert_int_eq(w->client->error, EIO);
	ck_assert_int_eq(evrdma_async_event(NULL, &event), -ENODEV);
	world_free(w);
}
END_TEST

/* --- across threads ------------------------------------------------------------------------- */

struct far {
	struct world *w;
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

	world_address(&sin, place.ip, far->port);
	evrdma_base_set_device_cb(far->base, on_far_device, far);
	far->conn = evrdma_conn_new(far->base, NULL);
	evrdma_conn_setcb(far->conn, NULL, on_far_event, far);
	ck_assert_int_eq(evrdma_conn_connect(far->conn, NULL, (struct sockaddr *)&sin), 0);
	event_base_dispatch(far->loop);
	return NULL;
}

static bool server_is_up(struct world *w)
{
	return w->server && w->server->connected;
}

static bool far_is_up(struct world *w)
{
	return atomic_load(&((struct far *)w->tag)->up) && server_is_up(w);
}

static bool far_was_told(struct world *w)
{
	return atomic_load(&((struct far *)w->tag)->told);
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
	struct world *w = world_new();
	struct far far = { .w = w, .loop = event_base_new() };
	struct event *ticks = event_new(w->loop, -1, EV_PERSIST, tick, NULL);

	w->tag = &far;
	w->on_event = keep_open;
	event_add(ticks, &often);
	world_listen(w);
	far.port = evrdma_listener_get_port(w->listener);
	far.base = evrdma_base_new(far.loop, NULL);
	ck_assert_int_eq(pthread_create(&far.thread, NULL, run_far, &far), 0);
	world_run_until(w, far_is_up, PATIENCE_MS);
	fake_async_port(fake_place_kind, IBV_EVENT_PORT_ERR);
	world_run_until(w, far_was_told, PATIENCE_MS);
	ck_assert(!far.wrong_thread);
	ck_assert_int_eq(evrdma_base_run_in_loop(far.base, close_far, NULL), 0);
	ck_assert_int_eq(pthread_join(far.thread, NULL), 0);
	event_base_free(far.loop);
	event_free(ticks);
	world_free(w);
}
END_TEST

#define N(array) ((int)(sizeof(array) / sizeof((array)[0])))

TCase *report_case(void)
{
	TCase *tc = tcase_create("report");

	tcase_add_checked_fixture(tc, place.start, place.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(
		tc, every_base_on_a_device_is_told_what_it_reports, 0, N(device_events));
	tcase_add_test(tc, of_a_port_that_flaps_only_the_last_state_is_told);
	tcase_add_test(tc, another_base_reads_when_the_one_that_did_is_closed);
	tcase_add_loop_test(
		tc, events_that_cannot_be_read_do_not_keep_the_loop_busy, 0, N(read_errors));
	tcase_add_test(tc, a_program_can_read_the_events_itself_and_hand_them_in);
	tcase_add_test(tc, a_base_of_another_thread_is_told_on_its_own);
	return tc;
}
