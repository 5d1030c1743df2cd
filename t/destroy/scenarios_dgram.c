/* What happens to endpoints, groups and peers while something is ended. Only RoCE has them here. */
#include "destroy/fixture.h"

#include <check.h>
#include <errno.h>
#include <rdma/rdma_cma.h>

/* --- steps ---------------------------------------------------------------------------------- */

static void endpoint(struct fixture *fixture)
{
	fixture->endpoint = make_ready_endpoint(fixture, FAKE_ROCE);
}

static void service(struct fixture *fixture)
{
	fixture->other_endpoint = make_ready_endpoint(fixture, FAKE_ROCE);
	fixture->listener = make_listener(fixture->base, FAKE_ROCE, RDMA_PS_UDP);
	if (!fixture->listener)
		return;
	fixture->listener->answer = SERVE;
	fixture->listener->endpoint = fixture->other_endpoint;
}

static void endpoint_joins(struct fixture *fixture)
{
	fixture->group = join(fixture->endpoint);
}

static void endpoint_asks(struct fixture *fixture)
{
	fixture->peer = find_peer(fixture->endpoint, fixture->listener, FAKE_ROCE);
}

static void group_hears(struct fixture *fixture)
{
	endpoint_send(fixture->endpoint, fixture->group, NULL, 2);
}

static void peer_hears(struct fixture *fixture)
{
	endpoint_send(fixture->endpoint, NULL, fixture->peer, 2);
}

static void endpoint_fills_its_queue(struct fixture *fixture)
{
	endpoint_send(fixture->endpoint, fixture->group, NULL, 3);
	endpoint_send(fixture->endpoint, NULL, fixture->peer, 3);
}

static void group_closes(struct fixture *fixture)
{
	end_object(fixture->group);
}

static void peer_closes(struct fixture *fixture)
{
	end_object(fixture->peer);
}

static void endpoint_closes(struct fixture *fixture)
{
	end_object(fixture->endpoint);
}

static void all_close(struct fixture *fixture)
{
	end_object(fixture->endpoint);
	end_object(fixture->other_endpoint);
	end_object(fixture->listener);
}

static STEPS(datagrams) = { endpoint, service, endpoint_joins, endpoint_asks, group_hears,
	peer_hears, tick, group_closes, tick, peer_closes, tick, all_close, NULL };

static STEPS(closed_first) = { endpoint, service, endpoint_joins, endpoint_asks, peer_hears,
	endpoint_closes, tick, all_close, NULL };

/* --- step by step --------------------------------------------------------------------------- */

static void endpoint_is_looking(struct fixture *fixture)
{
	fake_hold(FAKE_ADDR);
	fixture->endpoint = make_endpoint(fixture->base, fixture->pool);
	endpoint_open(fixture->endpoint, NULL, FAKE_ROCE_IP);
}

static void endpoint_finds(struct fixture *fixture)
{
	fake_release(FAKE_ADDR);
}

static void hold_join(struct fixture *fixture)
{
	fake_hold(FAKE_JOIN);
}

static void let_join(struct fixture *fixture)
{
	fake_release(FAKE_JOIN);
}

static void hold_addr(struct fixture *fixture)
{
	fake_hold(FAKE_ADDR);
}

static void go_on_to_route(struct fixture *fixture)
{
	fake_hold(FAKE_ROUTE);
	fake_release(FAKE_ADDR);
}

static void go_on_to_question(struct fixture *fixture)
{
	fake_hold(FAKE_SIDR_REQ);
	fake_release(FAKE_ROUTE);
}

static void go_on_to_answer(struct fixture *fixture)
{
	fake_hold(FAKE_SIDR_REP);
	fake_release(FAKE_SIDR_REQ);
}

static void let_answer(struct fixture *fixture)
{
	fake_release(FAKE_SIDR_REP);
}

static STEPS(each_step) = { endpoint_is_looking, tick, endpoint_finds, hold_join, endpoint_joins,
	tick, let_join, service, hold_addr, endpoint_asks, tick, go_on_to_route, tick,
	go_on_to_question, tick, go_on_to_answer, tick, let_answer, tick, all_close, NULL };

/* --- failures ------------------------------------------------------------------------------- */

static void endpoint_finds_nothing(struct fixture *fixture)
{
	fixture->endpoint = make_endpoint(fixture->base, fixture->pool);
	endpoint_open(fixture->endpoint, "10.1.2.3", NULL);
}

static STEPS(no_device) = { endpoint_finds_nothing, tick, endpoint_closes, NULL };

static void join_is_refused(struct fixture *fixture)
{
	fake_answer(FAKE_JOIN, -EINVAL);
	endpoint_joins(fixture);
}

static STEPS(
	no_group) = { endpoint, join_is_refused, tick, group_closes, tick, endpoint_closes, NULL };

static void service_says_no(struct fixture *fixture)
{
	service(fixture);
	if (fixture->listener)
		fixture->listener->answer = REJECT;
}

static STEPS(no_service) = { endpoint, service_says_no, endpoint_asks, tick, peer_closes, tick,
	all_close, NULL };

static STEPS(full) = { endpoint, service, endpoint_joins, endpoint_asks, fixture_stop_work,
	endpoint_fills_its_queue, endpoint_fills_its_queue, tick, fixture_go_on_working, tick,
	all_close, NULL };

static STEPS(closing) = { endpoint, service, endpoint_joins, endpoint_asks, fixture_stop_work,
	endpoint_fills_its_queue, group_closes, peer_closes, tick, endpoint_closes, tick, NULL };

static void device_is_pulled(struct fixture *fixture)
{
	fixture_pull(fixture, FAKE_ROCE);
}

static STEPS(pulled) = { endpoint, service, endpoint_joins, endpoint_asks, fixture_stop_work,
	endpoint_fills_its_queue, device_is_pulled, tick, all_close, NULL };

const struct scenario dgram_scenarios[] = {
	{ "datagrams", datagrams_steps },
	{ "an endpoint that closes before its members", closed_first_steps },
	{ "an endpoint, step by step", each_step_steps },
	{ "an endpoint without a device", no_device_steps },
	{ "a join that is refused", no_group_steps },
	{ "a service that says no", no_service_steps },
	{ "a full queue of datagrams", full_steps },
	{ "an endpoint that closes with work under way", closing_steps },
	{ "an endpoint whose device is pulled", pulled_steps },
};

const unsigned num_dgram_scenarios = sizeof(dgram_scenarios) / sizeof(dgram_scenarios[0]);
