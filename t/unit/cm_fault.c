/*
 * Every call under a scenario fails once, one run for each: whatever the scenario then makes of
 * it, it ends, with nothing left, and goes through in the next run.
 */
#include "unit/cm_unit.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>

#define GROUP "239.1.2.3"

/* An errno that nobody else gives. */
enum { INJECTED = EOVERFLOW, MANY_POINTS = 400 };

struct world {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener;
	struct rdma_cm_id *client;
	struct rdma_cm_id *server;
};

typedef int (*scenario)(struct world *w);

/* The event that has to come; another one, or none, is a failure that was delivered. */
static int take(struct world *w, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;
	int ret;

	if (rdma_get_cm_event(w->channel, &event))
		return -1;
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		w->server = event->id;
	ret = event->event == type ? 0 : -1;
	ck_assert_ok(rdma_ack_cm_event(event));
	return ret;
}

static int open_channel(struct world *w)
{
	w->channel = rdma_create_event_channel();
	if (!w->channel)
		return -1;
	return fcntl(w->channel->fd, F_SETFL, O_NONBLOCK);
}

static int make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = cm_qp_attr(id->qp_type);

	return rdma_create_qp(id, NULL, &attr);
}

static int listen_and_resolve(struct world *w, enum rdma_port_space ps)
{
	if (open_channel(w) || rdma_create_id(w->channel, &w->listener, NULL, ps))
		return -1;
	if (rdma_bind_addr(w->listener, cm_addr("0.0.0.0", CM_PORT)) || rdma_listen(w->listener, 0))
		return -1;
	if (rdma_create_id(w->channel, &w->client, NULL, ps))
		return -1;
	if (rdma_resolve_addr(w->client, NULL, cm_addr(FAKE_ROCE_IP, CM_PORT), 1) ||
		take(w, RDMA_CM_EVENT_ADDR_RESOLVED))
		return -1;
	if (rdma_resolve_route(w->client, 1) || take(w, RDMA_CM_EVENT_ROUTE_RESOLVED))
		return -1;
	return 0;
}

static int connection(struct world *w)
{
	if (listen_and_resolve(w, RDMA_PS_TCP) || make_qp(w->client))
		return -1;
	if (rdma_connect(w->client, NULL) || take(w, RDMA_CM_EVENT_CONNECT_REQUEST))
		return -1;
	if (make_qp(w->server) || rdma_accept(w->server, NULL))
		return -1;
	if (take(w, RDMA_CM_EVENT_ESTABLISHED) || take(w, RDMA_CM_EVENT_ESTABLISHED))
		return -1;
	if (rdma_disconnect(w->client) || take(w, RDMA_CM_EVENT_DISCONNECTED))
		return -1;
	return rdma_disconnect(w->server) || take(w, RDMA_CM_EVENT_DISCONNECTED) ? -1 : 0;
}

static int own_queue_pairs(struct world *w)
{
	struct rdma_conn_param param = { .qp_num = 77 };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	int mask;

	if (listen_and_resolve(w, RDMA_PS_TCP) || rdma_connect(w->client, &param))
		return -1;
	if (take(w, RDMA_CM_EVENT_CONNECT_REQUEST) || rdma_accept(w->server, &param))
		return -1;
	if (take(w, RDMA_CM_EVENT_CONNECT_RESPONSE) || rdma_init_qp_attr(w->client, &attr, &mask))
		return -1;
	return rdma_establish(w->client) || take(w, RDMA_CM_EVENT_ESTABLISHED) ? -1 : 0;
}

static int rejection(struct world *w)
{
	if (listen_and_resolve(w, RDMA_PS_TCP) || make_qp(w->client))
		return -1;
	if (rdma_connect(w->client, NULL) || take(w, RDMA_CM_EVENT_CONNECT_REQUEST))
		return -1;
	return rdma_reject(w->server, "no", 2) || take(w, RDMA_CM_EVENT_REJECTED) ? -1 : 0;
}

static int datagrams(struct world *w)
{
	if (listen_and_resolve(w, RDMA_PS_UDP) || make_qp(w->client))
		return -1;
	if (rdma_connect(w->client, NULL) || take(w, RDMA_CM_EVENT_CONNECT_REQUEST))
		return -1;
	if (make_qp(w->server) || rdma_accept(w->server, NULL))
		return -1;
	return take(w, RDMA_CM_EVENT_ESTABLISHED);
}

static int membership(struct world *w)
{
	if (open_channel(w) || rdma_create_id(w->channel, &w->client, NULL, RDMA_PS_UDP))
		return -1;
	if (rdma_bind_addr(w->client, cm_addr(FAKE_ROCE_IP, 0)) || make_qp(w->client))
		return -1;
	if (rdma_join_multicast(w->client, cm_addr(GROUP, 0), NULL) ||
		take(w, RDMA_CM_EVENT_MULTICAST_JOIN))
		return -1;
	return rdma_leave_multicast(w->client, cm_addr(GROUP, 0));
}

static int synchronous(struct world *w)
{
	if (rdma_create_id(NULL, &w->client, NULL, RDMA_PS_TCP))
		return -1;
	if (rdma_resolve_addr(w->client, NULL, cm_addr(FAKE_ROCE_IP, CM_PORT), 1))
		return -1;
	return rdma_resolve_route(w->client, 1) || make_qp(w->client) ? -1 : 0;
}

static int migration(struct world *w)
{
	if (listen_and_resolve(w, RDMA_PS_TCP) || rdma_migrate_id(w->client, NULL))
		return -1;
	return rdma_migrate_id(w->client, w->channel);
}

static int device_list(struct world *w)
{
	struct ibv_context **list = rdma_get_devices(NULL);

	rdma_free_devices(list);
	return list ? 0 : -1;
}

static void end(struct world *w)
{
	cm_destroy(w->client);
	cm_destroy(w->server);
	cm_destroy(w->listener);
	rdma_destroy_event_channel(w->channel);
}

/* How many points the scenario has: each of them was made to fail. */
static unsigned sweep(scenario run)
{
	struct world w;
	unsigned n;
	int ret;

	for (n = 1; n < MANY_POINTS; n++) {
		bool failed;

		w = (struct world){ 0 };
		fake_fail_nth(FAKE_ANY, n, INJECTED);
		ret = run(&w);
		failed = fake_failed();
		fake_fail_nth(FAKE_ANY, 0, 0);
		end(&w);
		ck_assert_pstr_eq(fake_expect_clean(), NULL);
		if (!failed)
			break;
	}
	ck_assert_int_eq(ret, 0);
	return n - 1;
}

static const struct {
	const char *name;
	scenario run;
	unsigned least;
} scenarios[] = {
	{ "a connection", connection, 40 },
	{ "queue pairs of the caller's", own_queue_pairs, 20 },
	{ "a rejection", rejection, 20 },
	{ "a datagram service", datagrams, 30 },
	{ "a membership", membership, 15 },
	{ "a synchronous id", synchronous, 12 },
	{ "a migration", migration, 12 },
	{ "the list of devices", device_list, 2 },
};

START_TEST(whatever_call_fails_nothing_is_left_and_the_next_run_passes)
{
	unsigned points = sweep(scenarios[_i].run);

	printf("# %s: %u points\n", scenarios[_i].name, points);
	fflush(stdout);
	ck_assert_uint_ge(points, scenarios[_i].least);
	ck_assert_uint_lt(points, MANY_POINTS - 1);
}
END_TEST

int main(void)
{
	const int num = sizeof(scenarios) / sizeof(scenarios[0]);
	Suite *suite = suite_create("cm_fault");
	TCase *tcase = tcase_create("sweep");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, cm_set_up, cm_tear_down);
	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(
		tcase, whatever_call_fails_nothing_is_left_and_the_next_run_passes, 0, num);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
