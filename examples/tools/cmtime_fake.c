/* A server of cmtime whose queue pairs are not made (-m). */
#include "capability.h"
#include "cmtime.h"

#include <errno.h>
#include <stdlib.h>

#include <event2/event.h>
#include <rdma/rdma_cma.h>

/* One connection. */
struct served {
	struct cmtime_loop *loop;
	struct rdma_cm_id *cm_id; /* until there is an id */
	struct evrdma_id *id;
	struct event *timer;
	uint32_t qpn;
};

/* The loop's time is of when it woke up, and a step may have taken long since. */
void cmtime_fake_time(const struct cmtime_loop *loop, struct timeval *wait)
{
	long us = loop->test->options.fake_us;

	event_base_update_cache_time(loop->event_base);
	wait->tv_sec = us / 1000000;
	wait->tv_usec = us % 1000000;
}

static void refuse(struct rdma_cm_id *id)
{
	rdma_reject(id, NULL, 0);
	rdma_destroy_id(id);
}

static void close_served(struct served *served)
{
	evtimer_del(served->timer);
	evrdma_id_close(served->id);
}

static void accepted(struct evrdma_id *id, const struct evrdma_error *error,
	const struct rdma_cm_event *event, void *arg)
{
	struct served *served = arg;

	if (!error) {
		served->loop->served++;
		return;
	}
	if (error->err == ECANCELED)
		return;
	cmtime_tell_error(served->loop, error);
	close_served(served);
}

static void accept_it(evutil_socket_t fd, short what, void *arg)
{
	struct served *served = arg;
	struct cmtime_loop *loop = served->loop;
	const struct rdma_conn_param param = {
		.responder_resources = 1,
		.initiator_depth = 1,
		.qp_num = served->qpn,
	};
	int ret;

	if (cmtime_loop_is_stopping(loop))
		return;
	ret = evrdma_id_accept(
		served->id, &param, (int)loop->test->options.patience_s * 1000, accepted, served);
	if (!ret)
		return;
	cmtime_tell_call(loop, EVRDMA_STEP_ACCEPT, -ret);
	close_served(served);
}

static void id_event(struct evrdma_id *id, const struct rdma_cm_event *event, void *arg)
{
	struct served *served = arg;

	if (!event) {
		event_free(served->timer);
		free(served);
	} else if (event->event == RDMA_CM_EVENT_DISCONNECTED) {
		evrdma_id_disconnect(id, NULL, NULL);
		close_served(served);
	} else if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL) {
		cmtime_tell_call(served->loop, EVRDMA_STEP_REMOVAL, ENODEV);
		close_served(served);
	}
}

static void give_up(struct served *served, int err)
{
	cmtime_tell_call(served->loop, EVRDMA_STEP_ACCEPT, err);
	refuse(served->cm_id);
	if (served->timer)
		event_free(served->timer);
	free(served);
}

/* On the loop whose turn it was. */
static void serve(struct evrdma_base *base, void *arg)
{
	struct served *served = arg;
	struct cmtime_loop *loop = served->loop;
	struct timeval wait;

	served->timer = evtimer_new(loop->event_base, accept_it, served);
	if (served->timer)
		served->id = evrdma_id_adopt(base, served->cm_id, id_event, served);
	if (!served->timer || !served->id) {
		give_up(served, errno);
		return;
	}
	cmtime_fake_time(loop, &wait);
	evtimer_add(served->timer, &wait);
}

static void request_came(struct cmtime *test, struct rdma_cm_id *id)
{
	struct served *served = calloc(1, sizeof(*served));
	int ret;

	if (!served) {
		refuse(id);
		cmtime_tell_call(test->loops, EVRDMA_STEP_ACCEPT, ENOMEM);
		return;
	}
	served->loop = cmtime_next_loop(test);
	served->cm_id = id;
	served->qpn = test->next_qpn++ & 0xffffff;
	if (served->loop == test->loops) {
		serve(test->base, served);
		return;
	}
	ret = evrdma_base_run_in_loop(served->loop->base, serve, served);
	if (ret)
		give_up(served, -ret);
}

static void listening_event(struct evrdma_id *id, const struct rdma_cm_event *event, void *arg)
{
	struct cmtime *test = arg;

	if (!event)
		return;
	if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		cmtime_fail_call(test->loops, EVRDMA_STEP_REMOVAL, ENODEV);
	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return;
	if (capability_is_iwarp(event->id))
		cmtime_fail_text(test->loops, cmtime_no_fake);
	if (test->tool.stopping)
		refuse(event->id);
	else
		request_came(test, event->id);
}

/* The device is known already where the address is one's. */
void cmtime_serve_fake(struct cmtime *test)
{
	int ret;

	test->listening = evrdma_id_new(test->base, RDMA_PS_TCP, listening_event, test);
	if (!test->listening) {
		ends_fail_listen(&test->ends, errno);
		return;
	}
	ret = evrdma_id_bind(test->listening, ends_local(&test->ends));
	if (!ret && capability_is_iwarp(evrdma_id_get_cm_id(test->listening))) {
		tool_fail(&test->tool, "%s", cmtime_no_fake);
		return;
	}
	if (!ret)
		ret = evrdma_id_listen(test->listening, 0);
	if (ret)
		ends_fail_listen(&test->ends, -ret);
}
