/* What happens to endpoints, groups and peers while something is ended. Only RoCE has them here. */
#include "destroy/stage.h"

#include <check.h>
#include <errno.h>
#include <rdma/rdma_cma.h>

/* --- steps ---------------------------------------------------------------------------------- */

static void endpoint(struct stage *stage)
{
	stage->endpoint = make_ready_endpoint(stage, FAKE_ROCE);
}

static void service(struct stage *stage)
{
	stage->other_endpoint = make_ready_endpoint(stage, FAKE_ROCE);
	stage->listener = make_listener(stage->base, FAKE_ROCE, RDMA_PS_UDP);
	if (!stage->listener)
		return;
	stage->listener->answer = SERVE;
	stage->listener->endpoint = stage->other_endpoint;
}

static void endpoint_joins(struct stage *stage)
{
	stage->group = join(stage->endpoint);
}

static void endpoint_asks(struct stage *stage)
{
	stage->peer = find_peer(stage->endpoint, stage->listener, FAKE_ROCE);
}

static void group_hears(struct stage *stage)
{
	endpoint_send(stage->endpoint, stage->group, NULL, 2);
}

static void peer_hears(struct stage *stage)
{
	endpoint_send(stage->endpoint, NULL, stage->peer, 2);
}

static void endpoint_fills_its_queue(struct stage *stage)
{
	endpoint_send(stage->endpoint, stage->group, NULL, 3);
	endpoint_send(stage->endpoint, NULL, stage->peer, 3);
}

static void group_closes(struct stage *stage)
{
	end_actor(stage->group);
}

static void peer_closes(struct stage *stage)
{
	end_actor(stage->peer);
}

static void endpoint_closes(struct stage *stage)
{
	end_actor(stage->endpoint);
}

static void all_close(struct stage *stage)
{
	end_actor(stage->endpoint);
	end_actor(stage->other_endpoint);
	end_actor(stage->listener);
}

static STEPS(datagrams) = { endpoint, service, endpoint_joins, endpoint_asks, group_hears,
	peer_hears, tick, group_closes, tick, peer_closes, tick, all_close, NULL };

static STEPS(closed_first) = { endpoint, service, endpoint_joins, endpoint_asks, peer_hears,
	endpoint_closes, tick, all_close, NULL };

/* --- step by step --------------------------------------------------------------------------- */

static void endpoint_is_looking(struct stage *stage)
{
	fake_hold(FAKE_ADDR);
	stage->endpoint = make_endpoint(stage->base, stage->pool);
	endpoint_open(stage->endpoint, NULL, FAKE_ROCE_IP);
}

static void endpoint_finds(struct stage *stage)
{
	fake_release(FAKE_ADDR);
}

static void hold_join(struct stage *stage)
{
	fake_hold(FAKE_JOIN);
}

static void let_join(struct stage *stage)
{
	fake_release(FAKE_JOIN);
}

static void hold_addr(struct stage *stage)
{
	fake_hold(FAKE_ADDR);
}

static void go_on_to_route(struct stage *stage)
{
	fake_hold(FAKE_ROUTE);
	fake_release(FAKE_ADDR);
}

static void go_on_to_question(struct stage *stage)
{
	fake_hold(FAKE_SIDR_REQ);
	fake_release(FAKE_ROUTE);
}

static void go_on_to_answer(struct stage *stage)
{
	fake_hold(FAKE_SIDR_REP);
	fake_release(FAKE_SIDR_REQ);
}

static void let_answer(struct stage *stage)
{
	fake_release(FAKE_SIDR_REP);
}

static STEPS(each_step) = { endpoint_is_looking, tick, endpoint_finds, hold_join, endpoint_joins,
	tick, let_join, service, hold_addr, endpoint_asks, tick, go_on_to_route, tick,
	go_on_to_question, tick, go_on_to_answer, tick, let_answer, tick, all_close, NULL };

/* --- failures ------------------------------------------------------------------------------- */

static void endpoint_finds_nothing(struct stage *stage)
{
	stage->endpoint = make_endpoint(stage->base, stage->pool);
	endpoint_open(stage->endpoint, "10.1.2.3", NULL);
}

static STEPS(no_device) = { endpoint_finds_nothing, tick, endpoint_closes, NULL };

static void join_is_refused(struct stage *stage)
{
	fake_answer(FAKE_JOIN, -EINVAL);
	endpoint_joins(stage);
}

static STEPS(
	no_group) = { endpoint, join_is_refused, tick, group_closes, tick, endpoint_closes, NULL };

static void service_says_no(struct stage *stage)
{
	service(stage);
	if (stage->listener)
		stage->listener->answer = REJECT;
}

static STEPS(no_service) = { endpoint, service_says_no, endpoint_asks, tick, peer_closes, tick,
	all_close, NULL };

static STEPS(full) = { endpoint, service, endpoint_joins, endpoint_asks, stage_stop_work,
	endpoint_fills_its_queue, endpoint_fills_its_queue, tick, stage_go_on_working, tick,
	all_close, NULL };

static STEPS(closing) = { endpoint, service, endpoint_joins, endpoint_asks, stage_stop_work,
	endpoint_fills_its_queue, group_closes, peer_closes, tick, endpoint_closes, tick, NULL };

static void device_is_pulled(struct stage *stage)
{
	stage_pull(stage, FAKE_ROCE);
}

static STEPS(pulled) = { endpoint, service, endpoint_joins, endpoint_asks, stage_stop_work,
	endpoint_fills_its_queue, device_is_pulled, tick, all_close, NULL };

const struct scene dgram_scenes[] = {
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

const unsigned num_dgram_scenes = sizeof(dgram_scenes) / sizeof(dgram_scenes[0]);
