#include "conform/beside.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/clock.h"
#include "schedule/resources.h"
#include "util/clock.h"

enum {
	US_PER_MS = 1000,
	US_PER_S = 1000000,
	LONG_S = 3000,	  /* longer than anything here takes */
	TICK_MS = 10,	  /* of the kernel's timers */
	HELD_US = 60000,  /* what sleeps in the kernel does so for a tick of 10 ms at least */
	LINGER_MS = 1000, /* of the ids of closed connections, when their base closes */
};

struct end client_end, server_end;
const struct weather no_frame = { .loss = 1000 };
const struct weather no_carrier = { .down = { true, true } };

/* --- the testbed ----------------------------------------------------------------------------- */

static const char *env(const char *name)
{
	const char *value = getenv(name);

	if (!value) {
		fprintf(stderr, "%s is not set: run t/conform/timeouts.sh\n", name);
		exit(2);
	}
	return value;
}

void calm(void)
{
	static const struct weather weather = { .seed = 1 };

	wire_set(&weather);
}

void lose(enum wire_message message)
{
	const struct weather weather = { .lost = 1u << message };

	wire_set(&weather);
}

/* Nobody else is here. */
static void count(int counts[TESTBED_COUNTS])
{
	static const enum resource kinds[TESTBED_COUNTS] = {
		RESOURCE_QP,
		RESOURCE_CQ,
		RESOURCE_MR,
		RESOURCE_PD,
		RESOURCE_CM_ID,
	};
	uint64_t all[RESOURCES];
	int i;

	ck_assert_int_eq(resources_count(all), 0);
	for (i = 0; i < TESTBED_COUNTS; i++)
		counts[i] = (int)all[kinds[i]];
}

/* A connection to this address leaves by device A, and crosses the wire to device B. */
struct testbed testbed = {
	.ip = "10.77.0.2",
	.own_core = true,
	.start = calm,
	.count = count,
	.now_us = evr_clock_now_us,
};

/* --- time ------------------------------------------------------------------------------------ */

static uint64_t begun_us, held_us;

void begin(void)
{
	begun_us = clock_real_us();
	held_us = 0;
}

uint64_t passed_ms(void)
{
	return (clock_real_us() - begun_us) / US_PER_MS;
}

static void assert_between(uint64_t ms, uint64_t low_ms, uint64_t high_ms)
{
	ck_assert_msg(ms >= low_ms && ms <= high_ms, "it took %llu ms, not %llu to %llu",
		(unsigned long long)ms, (unsigned long long)low_ms, (unsigned long long)high_ms);
}

/* libevent's clock is a coarse one, which stands still for a tick. */
void assert_library_took(uint64_t ms, uint64_t timer_ms)
{
	assert_between(ms + TICK_MS, timer_ms, timer_ms + TICK_MS + SLACK_MS);
}

/* The kernel cuts its times to whole ticks, the first of which has begun, and rounds up what is
   long. */
void assert_kernel_took(uint64_t ms, uint64_t timers_ms)
{
	uint64_t cut_ms = timers_ms / 200 + TICK_MS;

	assert_between(ms + cut_ms, timers_ms, timers_ms + timers_ms / 8 + 2 * TICK_MS + cut_ms);
}

void assert_told(const struct end *end, int error)
{
	ck_assert_uint_eq(end->told, 1);
	ck_assert_msg(end->error == error, "%s, not %s, after %llu ms", strerror(end->error),
		strerror(error), (unsigned long long)end->ms);
}

static void turn(struct fixture *f)
{
	uint64_t us;

	clock_turn(f->loop, true);
	us = clock_held_us();
	if (us > held_us)
		held_us = us;
}

void run_until(struct fixture *f, bool (*condition)(struct fixture *))
{
	uint64_t until_us = clock_real_us() + (uint64_t)LONG_S * US_PER_S;

	while (!condition(f)) {
		ck_assert_msg(
			clock_real_us() < until_us, "it did not come true: %s", f->last_error);
		turn(f);
	}
}

static void on_time(evutil_socket_t fd, short what, void *arg)
{
}

void run_for(struct fixture *f, unsigned s)
{
	const struct timeval tv = { .tv_sec = (time_t)s };
	struct event *timer = evtimer_new(f->loop, on_time, NULL);

	evtimer_add(timer, &tv);
	while (evtimer_pending(timer, NULL))
		turn(f);
	event_free(timer);
}

/* --- what happens ---------------------------------------------------------------------------- */

static void note(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	struct end *end = endpoint->is_client ? &client_end : &server_end;

	if (event == EVRDMA_CONN_CLOSED)
		end->closed_ms = passed_ms();
	if (event != EVRDMA_CONN_ERROR && event != EVRDMA_CONN_DISCONNECTED)
		return;
	end->told++;
	end->error = error ? error->err : 0;
	end->ms = passed_ms();
}

static void note_and_close(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	note(endpoint, event, error);
	endpoint_close_if_down(endpoint, event);
}

bool client_is_told(struct fixture *f)
{
	return client_end.told;
}

bool both_are_told(struct fixture *f)
{
	return client_end.told && server_end.told;
}

bool nobody_is_told(void)
{
	return !client_end.told && !server_end.told;
}

bool client_is_up(struct fixture *f)
{
	return f->client && f->client->connected;
}

bool both_are_up(struct fixture *f)
{
	return client_is_up(f) && f->server && f->server->connected;
}

/* --- beginning and end ----------------------------------------------------------------------- */

struct fixture *noting_fixture(void)
{
	struct fixture *f = fixture_new();

	f->on_event = note;
	return f;
}

struct fixture *closing_fixture(void)
{
	struct fixture *f = fixture_new();

	f->on_event = note_and_close;
	return f;
}

void close_client(struct fixture *f)
{
	evrdma_conn_close(f->client->conn);
}

static void assert_held(void)
{
	ck_assert_msg(
		held_us < HELD_US, "the loop was kept for %llu us", (unsigned long long)held_us);
}

void close_base(struct fixture *f, uint64_t most_ms)
{
	begin();
	fixture_close_base(f);
	run_until(f, fixture_base_is_closed);
	assert_between(passed_ms(), 0, most_ms + SLACK_MS);
	assert_held();
	fixture_free(f);
}

void finish(struct fixture *f)
{
	assert_held();
	begin();
	if (f->client)
		close_client(f);
	if (f->server)
		evrdma_conn_close(f->server->conn);
	run_until(f, fixture_none_live);
	assert_between(passed_ms(), 0, DRAIN_MS + SLACK_MS);
	assert_held();
	close_base(f, LINGER_MS);
}

/* --- main ------------------------------------------------------------------------------------ */

TCase *new_case(const char *name)
{
	TCase *tc = tcase_create(name);

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 2 * LONG_S);
	return tc;
}

static void start_wire(void)
{
	static const char *const ends[WIRE_ENDS] = { "wire_a", "wire_b" };
	int ret = wire_start("wire", ends);

	if (!ret)
		ret = wire_whole_frames(env("EVR_NETDEV_A"));
	if (!ret)
		ret = wire_whole_frames(env("EVR_NETDEV_B"));
	if (!ret)
		return;
	fprintf(stderr, "no wire: %s\n", strerror(-ret));
	exit(2);
}

static void add_roce_cases(Suite *suite)
{
	suite_add_tcase(suite, timeouts_connect_case());
	suite_add_tcase(suite, timeouts_handshake_case());
	suite_add_tcase(suite, timeouts_cut_case());
	suite_add_tcase(suite, timeouts_buffer_case());
	suite_add_tcase(suite, timeouts_close_case());
	suite_add_tcase(suite, timeouts_link_case());
	suite_add_tcase(suite, timeouts_groups_case());
	suite_add_tcase(suite, timeouts_forged_case());
	suite_add_tcase(suite, timeouts_hostile_case());
}

static void add_iwarp_cases(Suite *suite)
{
	suite_add_tcase(suite, timeouts_iwarp_connect_case());
	suite_add_tcase(suite, timeouts_iwarp_cut_case());
	suite_add_tcase(suite, timeouts_iwarp_buffer_case());
}

static void add_all_cases(Suite *suite)
{
	if (testbed.is_iwarp)
		add_iwarp_cases(suite);
	else
		add_roce_cases(suite);
	suite_add_tcase(suite, timeouts_silence_case());
	suite_add_tcase(suite, timeouts_again_case());
	suite_add_tcase(suite, timeouts_stale_case());
}

/* With an argument: what the others have of it, see beside.h. */
int main(int argc, char **argv)
{
	Suite *suite = suite_create("timeouts");
	SRunner *runner = srunner_create(suite);
	int failed;

	testbed.is_iwarp = !strcmp(env("EVR_KIND"), "siw");
	start_wire();
	if (argc > 1)
		beside_cases(suite);
	else
		add_all_cases(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
