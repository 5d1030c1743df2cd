/*
 * Requests whose peers gave up before the server came to them, and some that asked again.
 *
 * Of a peer that gives up the kernel hears by one message, a REJ. It does not pass that on to the
 * program, and one that is lost is not sent again: the request looks good then. Where thousands
 * come at once many are lost, for want of room on the wire here, or of the 512 receives of the
 * CM's queue pair; a lost request comes again after 6 s. So the peers come in batches that all have
 * room for on most machines, and the server's loop does not run before their deadlines are over:
 * what it finds are stale requests, one after the other, by construction. siw's are TCP
 * connections.
 *
 * When it goes on it tells each of them once, makes no queue pair for any, and answers those who
 * asked again, all before it waits for anything. iWARP's driver finds out when it accepts, with a
 * queue pair.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <event2/event.h>
#include <rdma/rdma_cma.h>
#include <unistd.h>

#include "conform/apart.h"
#include "conform/timeouts.h"
#include "schedule/clock.h"

enum {
	BATCHES = 20,
	BATCH = 100,
	/* siw makes some 55 queue pairs in a process. */
	IWARP_BATCHES = 3,
	IWARP_BATCH = 8,
	TURN_US = 1000,
};

static unsigned came_up, gave_up, stale, qps_made;

static unsigned batch(void)
{
	return testbed.is_iwarp ? IWARP_BATCH : BATCH;
}

static unsigned all_stale(void)
{
	return testbed.is_iwarp ? IWARP_BATCHES * IWARP_BATCH : BATCHES * BATCH;
}

/* In place of the CM's. */
int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	static int (*create)(struct rdma_cm_id *, struct ibv_qp_init_attr_ex *);

	if (!create)
		*(void **)&create = dlsym(RTLD_NEXT, "rdma_create_qp_ex");
	qps_made++;
	return create(id, attr);
}

/* --- the peers ------------------------------------------------------------------------------- */

static void note_peer(const struct endpoint *endpoint, enum evrdma_conn_event event)
{
	came_up += event == EVRDMA_CONN_CONNECTED;
	if (event != EVRDMA_CONN_ERROR)
		return;
	ck_assert_int_eq(endpoint->error, ETIMEDOUT);
	gave_up++;
}

static void connect_batch(struct fixture *f)
{
	unsigned i;

	for (i = 0; i < batch(); i++)
		apart_connect(f);
}

static void on_second(evutil_socket_t fd, short what, void *arg)
{
	*(bool *)arg = true;
}

static bool second_is_over;

static bool is_second_over(struct fixture *f)
{
	return second_is_over;
}

/* What they have sent has arrived. */
static void connect_batch_again(struct fixture *f)
{
	static const struct timeval second = { .tv_sec = 1 };

	connect_batch(f);
	event_base_once(apart_loop, -1, EV_TIMEOUT, on_second, &second_is_over, &second);
	apart_run_until(f, is_second_over);
}

/* Those who asked again, in vain: the kernel may have lost that, too. */
static unsigned gave_up_again(void)
{
	return gave_up - all_stale();
}

static bool those_have_an_answer(struct fixture *f)
{
	return came_up + gave_up_again() == batch();
}

/* --- the server ------------------------------------------------------------------------------ */

static void note_server(const struct endpoint *endpoint, enum evrdma_conn_event event)
{
	if (event != EVRDMA_CONN_ERROR)
		return;
	ck_assert_msg(endpoint->error == ECONNRESET, "%s", endpoint->fixture->last_error);
	ck_assert_int_eq(endpoint->step, EVRDMA_STEP_ACCEPT);
	stale++;
}

static void note_end(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	if (endpoint->is_client)
		note_peer(endpoint, event);
	else
		note_server(endpoint, event);
	endpoint_close_if_down(endpoint, event);
}

static struct fixture *held_up_server(void)
{
	struct fixture *f = noting_fixture();

	apart_start();
	f->on_event = note_end;
	f->options.recv_pool = NULL;
	f->options.send_depth = 4;
	fixture_listen(f);
	while (gave_up < all_stale()) {
		connect_batch(f);
		apart_run_until(f, fixture_none_live);
	}
	connect_batch_again(f);
	return f;
}

/* As far as it can without an answer. */
static void go_on(struct fixture *f)
{
	qps_made = 0;
	begin();
	while (clock_turn(f->loop, false) == CLOCK_RAN)
		;
	assert_library_took(passed_ms(), 0);
}

/* Of those who asked again, how many have come. One that was lost before is no stale request. */
static unsigned check_requests(struct fixture *f)
{
	struct evrdma_listener_stats stats;

	evrdma_listener_get_stats(f->listener, &stats);
	ck_assert_uint_le(stale, all_stale());
	ck_assert_uint_gt(stale, all_stale() / 2);
	ck_assert_uint_ge(stats.requests, stale);
	ck_assert_uint_le(stats.requests, stale + batch());
	ck_assert_uint_eq(stats.accepted, stats.requests);
	return (unsigned)stats.requests - stale;
}

/* A request that was lost comes again after seconds: the server has to be there then. */
static void run_both_until(struct fixture *f, bool (*condition)(struct fixture *))
{
	while (!condition(f)) {
		event_base_loop(apart_loop, EVLOOP_NONBLOCK);
		clock_turn(f->loop, false);
		usleep(TURN_US);
	}
}

static bool both_ends_are_up(struct fixture *f)
{
	return f->established == 2 * came_up;
}

START_TEST(requests_whose_peers_gave_up_cost_no_queue_pair_and_no_time)
{
	struct fixture *f = held_up_server();
	unsigned again, found;

	go_on(f);
	again = check_requests(f);
	found = stale;
	ck_assert_uint_eq(qps_made, again + (testbed.is_iwarp ? found : 0));
	run_both_until(f, those_have_an_answer);
	ck_assert_uint_gt(came_up, batch() / 2);
	run_until(f, both_ends_are_up);
	apart_end();
	run_until(f, fixture_none_live);
	ck_assert_uint_le(stale, found + gave_up_again());
	finish(f);
}
END_TEST

TCase *timeouts_stale_case(void)
{
	TCase *tc = new_case("stale");

	tcase_add_test(tc, requests_whose_peers_gave_up_cost_no_queue_pair_and_no_time);
	return tc;
}
