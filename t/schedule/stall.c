/*
 * The loop never stalls: the kernel's answer to each operation is withheld, and a timer of 1 ms on
 * the same loop goes on. Then the object is closed, with the answer still withheld; and once more
 * it is left alone until its own deadline. The time is the clock's, so nothing but the loop waits.
 */
#include "destroy/fixture.h"
#include "schedule/clock.h"

#include <check.h>
#include <event2/event.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	READING_US = 10, /* what each look at the clock takes */
	TICK_US = 1000,
	LATE_US = 500,	/* the turn_budget_us of a base that was not told otherwise */
	WITHHELD = 100, /* ticks, where there is no deadline */
	SLACK = 5,	/* ticks after a deadline */
	CLOSING = 100,	/* ticks until the last callback of a close */
	TURNS = 1000,	/* of one tick, at most */
};

/* An operation, and the state in which t/destroy has it. */
static const struct operation {
	const char *name;
	const char *state;
	int deadline_ms;   /* 0: it has none, or it is the kernel's affair */
	bool not_on_iwarp; /* where nothing is to be withheld */
	bool of_endpoint;  /* it ends with the endpoint, whose work it waits for */
	bool asks_peer;	   /* on iWARP its end waits for the answer, in the loop */
} operations[] = {
	{ "connect by name: the name", "a connection that looks up a name", 10000 },
	{ "connect: the address", "a connection that looks for its address", 10000 },
	{ "connect: the route", "a connection that looks for its route", 10000 },
	{ "connect: the request", "a connection that asks", 10000, .asks_peer = true },
	{ "connect: the reply", "a connection that is answered", 10000, .asks_peer = true },
	{ "accept: the reply", "a connection that accepts", 10000, .not_on_iwarp = true },
	{ "accept: the confirmation", "a connection that has accepted", 10000 },
	{ "listener: the requests", "a listener", 0 },
	{ "request: the user's answer", "a request", 0 },
	{ "receive: the messages", "a connection that is up", 0 },
	{ "send: the completions", "a connection with work posted and waiting", 0 },
	{ "send: the turn's end", "a connection with work just taken", 0 },
	{ "disconnect: the completions", "a connection that disconnects with work posted", 20 },
	{ "disconnect: the answer", "a connection that disconnects", 20 },
	{ "peer's disconnect: the completions", "a connection that its peer left, with work posted",
		50 },
	{ "migrate, then the messages", "a connection with events on another base", 0 },
	{ "shared queue: the messages", "a connection that shares", 0 },
	{ "endpoint: the address", "an endpoint that looks for its device", 0 },
	{ "endpoint, send: the completions", "an endpoint with datagrams posted", 0 },
	{ "join: the answer", "a membership that begins", 0 },
	{ "leave: the completions", "a membership that closes", .of_endpoint = true },
	{ "peer: the address", "a peer whose address is looked for", 5000 },
	{ "peer: the route", "a peer whose route is looked for", 5000 },
	{ "peer: the service's answer", "a peer who is asked", 5000 },
	{ "peer, close: the completions", "a peer that closes", .of_endpoint = true },
	{ "id, resolve_addr: the address", "an id that is resolved", 0 },
	{ "id, resolve_route: the route", "an id whose route is looked for", 0 },
	{ "id, connect: the request", "an id that connects", 1000, .asks_peer = true },
	{ "id, accept: the reply", "an id that accepts", 1000, .not_on_iwarp = true },
	{ "id, disconnect: the answer", "an id that disconnects", 0 },
	{ "id, join: the answer", "an id that joins", 0 },
	{ "buffer in use: the completions", "a buffer that is posted", 0 },
	{ "pool in use: the completions", "a pool in use", 0 },
	{ "base, close: the completions", "another base that closes", 50 },
	{ "base, shutdown: the completions", "another base that is shut down", SHUTDOWN_MS },
};

enum { OPERATIONS = sizeof(operations) / sizeof(operations[0]) };

static const struct state *find_state(const char *name)
{
	unsigned i;

	for (i = 0; i < num_conn_states; i++)
		if (!strcmp(conn_states[i].name, name))
			return &conn_states[i];
	for (i = 0; i < num_id_states; i++)
		if (!strcmp(id_states[i].name, name))
			return &id_states[i];
	for (i = 0; i < num_more_states; i++)
		if (!strcmp(more_states[i].name, name))
			return &more_states[i];
	ck_abort_msg("there is no %s", name);
	return NULL;
}

/* --- waiting, which nobody may ---------------------------------------------------------------- */

/* In place of the C library's. What it waits for another thread would do, and there is none. */
int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	ck_abort_msg("%s: waits for another thread", running);
	return 0;
}

/* --- the timer -------------------------------------------------------------------------------- */

static struct {
	struct event *timer;
	unsigned ticks;
	uint64_t last_us, latest_us; /* the last tick; the most that one was late */
} pulse;

static void on_pulse(evutil_socket_t fd, short what, void *arg)
{
	uint64_t now = clock_now_us(), gap = now - pulse.last_us;

	pulse.ticks++;
	pulse.last_us = now;
	if (gap > TICK_US && gap - TICK_US > pulse.latest_us)
		pulse.latest_us = gap - TICK_US;
}

static void pulse_start(struct fixture *fixture)
{
	static const struct timeval tick = { 0, TICK_US };

	memset(&pulse, 0, sizeof(pulse));
	pulse.timer = event_new(fixture->loop, -1, EV_PERSIST, on_pulse, NULL);
	event_add(pulse.timer, &tick);
	pulse.last_us = clock_now_us();
}

static void pulse_stop(void)
{
	event_free(pulse.timer);
	ck_assert_msg(pulse.latest_us <= LATE_US, "%s: a tick came %u us late", running,
		(unsigned)pulse.latest_us);
	ck_assert_msg(!fake_waits(), "%s: %u calls would have waited", running, fake_waits());
}

/* Runs the loop for so many ticks, or until the object is over. Returns how many there were. */
static unsigned run_ticks(
	struct fixture *fixture, unsigned n, bool (*over)(const struct fixture *fixture))
{
	unsigned first = pulse.ticks, turns = 0;

	while (pulse.ticks - first < n && !(over && over(fixture))) {
		clock_turn(fixture->loop, true);
		ck_assert_msg(turns++ < n * TURNS, "%s: the timer stands still", running);
	}
	return pulse.ticks - first;
}

/* --- the object ------------------------------------------------------------------------------- */

static bool has_work(const struct fixture *fixture)
{
	unsigned i;

	for (i = 0; i < fixture->num_ops; i++)
		if (fixture->ops[i].object == fixture->victim && fixture->ops[i].taken &&
			!fixture->ops[i].told)
			return true;
	return false;
}

static bool is_closed(const struct fixture *fixture)
{
	return fixture->victim->closed;
}

/* It, or its operation, has ended one way or the other. */
static bool is_over(const struct fixture *fixture)
{
	const struct object *victim = fixture->victim;

	return victim->closed || ((victim->ended || victim->type == ID) && !has_work(fixture));
}

/* What is over without a callback of its own. */
static bool goes_silently(const struct object *object)
{
	return object->type == REQUEST || object->type == POOL || object->type == BUF;
}

/* --- the runs --------------------------------------------------------------------------------- */

static struct {
	const struct operation *operation;
	unsigned ticks, withheld, over, closed;
	uint64_t latest_us;
} told;

static void count_pulse(void)
{
	pulse_stop();
	told.ticks += pulse.ticks;
	if (pulse.latest_us > told.latest_us)
		told.latest_us = pulse.latest_us;
}

/* Nothing happens for as long as nothing may. */
static void withhold(struct fixture *fixture)
{
	int deadline_ms = told.operation->deadline_ms;
	unsigned n = deadline_ms ? (unsigned)deadline_ms / 2 : WITHHELD;

	ck_assert_uint_eq(run_ticks(fixture, n, NULL), n);
	ck_assert_msg(!is_over(fixture), "%s: it did not wait", running);
	told.withheld = n;
}

static void end_endpoints(struct fixture *fixture)
{
	unsigned i;

	for (i = 0; i < fixture->num_objects; i++)
		if (fixture->objects[i].type == DGRAM)
			end_object(&fixture->objects[i]);
}

static void wait_for_answer(struct fixture *fixture)
{
	ck_assert_uint_eq(run_ticks(fixture, CLOSING, NULL), CLOSING);
	ck_assert(!is_closed(fixture));
	fixture_answer(fixture);
}

static void is_closed_meanwhile(struct fixture *fixture)
{
	bool silently = goes_silently(fixture->victim);

	pulse_start(fixture);
	withhold(fixture);
	end_object(fixture->victim);
	if (told.operation->of_endpoint)
		end_endpoints(fixture);
	if (told.operation->asks_peer && fixture->kind == FAKE_IWARP)
		wait_for_answer(fixture);
	told.closed = run_ticks(fixture, CLOSING, silently ? NULL : is_closed);
	ck_assert_msg(silently || is_closed(fixture), "%s: it does not close", running);
	count_pulse();
}

static void ends_by_itself(struct fixture *fixture)
{
	unsigned deadline = (unsigned)told.operation->deadline_ms;

	pulse_start(fixture);
	withhold(fixture);
	told.over = told.withheld + run_ticks(fixture, deadline, is_over);
	ck_assert_msg(is_over(fixture), "%s: it does not end", running);
	ck_assert_msg(
		told.over <= deadline + SLACK, "%s: it ended after %u ms", running, told.over);
	count_pulse();
}

static STEPS(close) = { is_closed_meanwhile, NULL };
static STEPS(deadline) = { ends_by_itself, NULL };

static const char *name_of(enum fake_kind kind)
{
	return kind == FAKE_IWARP ? "iWARP" : "RoCE";
}

static void run(enum fake_kind kind, const struct state *state,
	void (*const *steps)(struct fixture *fixture))
{
	static struct fixture fixture;
	char name[64];
	const struct scenario scenario = { name, steps };
	const struct plan plan = { .scenario = &scenario, .state = state };

	snprintf(name, sizeof(name), "%s, %s", name_of(kind), told.operation->name);
	clock_start(READING_US);
	fixture_run(&fixture, kind, &plan);
}

static void print_told(enum fake_kind kind)
{
	char over[32] = "-";

	if (told.over)
		snprintf(over, sizeof(over), "%u", told.over);
	printf("# %-6s %-36s %8u %8u %8u %8s %8u\n", name_of(kind), told.operation->name,
		told.withheld, told.ticks, (unsigned)told.latest_us, over, told.closed);
	fflush(stdout);
}

/* iWARP has no third message, and no datagrams. */
static bool is_on_iwarp(const struct operation *operation, const struct state *state)
{
	return !operation->not_on_iwarp && !state->not_on_iwarp && state->type != DGRAM &&
	       state->type != MCAST && state->type != PEER;
}

static void test_on(enum fake_kind kind, const struct operation *operation)
{
	const struct state *state = find_state(operation->state);

	if (kind == FAKE_IWARP && !is_on_iwarp(operation, state))
		return;
	memset(&told, 0, sizeof(told));
	told.operation = operation;
	run(kind, state, close_steps);
	if (told.operation->deadline_ms)
		run(kind, state, deadline_steps);
	print_told(kind);
}

START_TEST(the_timer_goes_on_while_an_answer_is_withheld)
{
	test_on(FAKE_ROCE, &operations[_i]);
	test_on(FAKE_IWARP, &operations[_i]);
}
END_TEST

/* --- what has to be found --------------------------------------------------------------------- */

static void on_slow(struct evrdma_base *base, void *arg)
{
	clock_advance_us(2 * (uint64_t)TICK_US);
}

static void is_slow(struct fixture *fixture)
{
	pulse_start(fixture);
	run_ticks(fixture, WITHHELD, NULL);
	ck_assert_uint_le(pulse.latest_us, LATE_US);
	ck_assert_int_eq(evrdma_base_run_in_loop(fixture->base->it, on_slow, NULL), 0);
	run_ticks(fixture, WITHHELD, NULL);
	ck_assert_uint_ge(pulse.latest_us, TICK_US);
	event_free(pulse.timer);
}

START_TEST(a_callback_that_takes_its_time_is_found)
{
	static STEPS(slow) = { is_slow, NULL };
	static const struct operation operation = { .name = "a slow callback" };

	told.operation = &operation;
	run(FAKE_ROCE, find_state("a connection that is up"), slow_steps);
}
END_TEST

START_TEST(a_read_that_would_wait_is_found)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_event *event;

	ck_assert_uint_eq(fake_waits(), 0);
	ck_assert_int_eq(rdma_get_cm_event(channel, &event), -1);
	ck_assert_uint_eq(fake_waits(), 1);
	rdma_destroy_event_channel(channel);
}
END_TEST

static void start(void)
{
	fake_install();
	fake_device_add(FAKE_IWARP);
	fake_device_add(FAKE_IB);
}

int main(void)
{
	Suite *suite = suite_create("stall");
	TCase *tc = tcase_create("stall");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tc, start, fake_reset);
	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, a_callback_that_takes_its_time_is_found);
	tcase_add_test(tc, a_read_that_would_wait_is_found);
	tcase_add_loop_test(tc, the_timer_goes_on_while_an_answer_is_withheld, 0, OPERATIONS);
	suite_add_tcase(suite, tc);
	printf("# %-6s %-36s %8s %8s %8s %8s %8s\n", "", "withheld of", "ms", "ticks", "late us",
		"ended ms", "close ms");
	fflush(stdout);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
