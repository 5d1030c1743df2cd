/*
 * Every call below the event layer fails, each in a run of its own, once alone and once with all
 * that come after it: each kernel command, each verb, each allocation, libevent's too; and in the
 * middle of each of the first two the device is pulled. Whatever comes of it, the reason is told,
 * each object is closed, each piece of work is over once, nothing is left, and the next run goes
 * through.
 *
 * EVR_SWEEP in the environment: only the scenarios whose name has this in it. EVR_SWEEP_EVERY=N:
 * only each Nth point.
 */
#include "conform/sweep.h"
#include "fake/fake_heap.h"
#include "schedule/clock.h"
#include "unit/must.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <event2/event_struct.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* INJECTED is an errno that nobody else gives. */
enum {
	INJECTED = EOVERFLOW,
	MANY_POINTS = 1000,
	FEW_POINTS = 0,
	FIRST_POINTS = 40,
	MANY_BASES = 4,
	TICK_US = 20,
	MEMORY_BACK_US = 300000,
	HANG_US = 12000000, /* an iWARP id whose device went while it was asked takes most of it */
	MANY_TURNS = 2000,
	LIMIT_S = 120
};

static const struct fault {
	const char *name;
	enum fake_layer layer; /* 0: allocations */
	int err;	       /* 0: the device is pulled in the middle of the call */
	bool lasting;
} faults[] = {
	{ "kernel calls", FAKE_KERNEL, INJECTED, false },
	{ "kernel calls, EINVAL", FAKE_KERNEL, EINVAL, false },
	{ "kernel calls, all from", FAKE_KERNEL, INJECTED, true },
	{ "verbs", FAKE_VERBS, INJECTED, false },
	{ "verbs, ENOMEM", FAKE_VERBS, ENOMEM, false },
	{ "verbs, all from", FAKE_VERBS, INJECTED, true },
	{ "allocations", 0, ENOMEM, false },
	{ "allocations, all from", 0, ENOMEM, true },
	{ "removals", FAKE_ANY, 0, false },
};

static const struct scenario *const lists[] = { sweep_conn, sweep_connect, sweep_work, sweep_alive,
	sweep_dgram, sweep_id, sweep_base, sweep_device, sweep_bufferevent };

enum { FAULTS = sizeof(faults) / sizeof(faults[0]), LISTS = sizeof(lists) / sizeof(lists[0]) };

/* Counted over all the processes that Check runs the tests in. */
static struct {
	unsigned points;
} * total;

enum fake_kind sweep_kind;

const char *sweep_ip(void)
{
	static const char *const ips[FAKE_KINDS] = {
		[FAKE_ROCE] = FAKE_ROCE_IP, [FAKE_IWARP] = FAKE_IWARP_IP, [FAKE_IB] = FAKE_IB_IP
	};

	return ips[sweep_kind];
}

/* The fault of this run; NULL in those that are to go through. */
static const struct fault *fault_now;
static bool heap_failed, timer_failed;

static struct {
	struct {
		struct evrdma_base *base;
		evrdma_base_cb closed;
	} bases[MANY_BASES];
	unsigned count;
	struct event *timer;
} fixture;

/* --- what scenarios use ---------------------------------------------------------------------- */

void run_take_base(struct run *r, struct evrdma_base *base, evrdma_base_cb closed)
{
	fixture.bases[fixture.count].base = base;
	fixture.bases[fixture.count++].closed = closed;
	r->bases++;
}

struct evrdma_base *run_add_base(struct run *r, const struct evrdma_base_options *options)
{
	struct evrdma_base *base = run_have(r, evrdma_base_new(r->loop, options));

	if (base)
		run_take_base(r, base, run_on_base_closed);
	return base;
}

void run_on_base_closed(struct evrdma_base *base, void *arg)
{
	struct run *r = arg;
	unsigned i;

	for (i = 0; i < fixture.count; i++)
		if (fixture.bases[i].base == base)
			fixture.bases[i].base = NULL;
	r->bases--;
}

void run_finish(struct run *r)
{
	unsigned i;

	r->finished = true;
	for (i = 0; i < fixture.count; i++)
		evrdma_base_close(fixture.bases[i].base, fixture.bases[i].closed, r);
}

/* EIO is what comes of a device that waits for nobody. */
static bool is_of_removal(int err)
{
	return err == EIO || err == ENODEV || err == EADDRNOTAVAIL || err == ENETUNREACH;
}

static bool is_the_reason(int err)
{
	const char *failed = fake_failed();

	if (!fault_now)
		return false;
	if (!fault_now->err)
		return is_of_removal(err);
	/* Who cannot see the devices has none. */
	if (err == ENODEV && failed && fault_now->layer == FAKE_VERBS)
		return fault_now->lasting || !strcmp(failed, "ibv_get_device_list");
	return err == fault_now->err;
}

/* What the other side, or work under way, is told of a connection that ended for the reason. */
static bool comes_of_it(int err)
{
	return fault_now &&
	       (err == ECANCELED || err == ECONNREFUSED || err == ECONNRESET || err == ETIMEDOUT);
}

/* Without memory libevent passes over a line of names: the last may not be the right one. */
static bool is_of_a_line_passed_over(const struct run *r, const struct fault *fault, int err)
{
	return r->reads_names && fault && !fault->layer && err == ENODEV;
}

void run_note(struct run *r, int err)
{
	if (!r->finished && err != ECANCELED)
		r->last = err;
	if (is_the_reason(err))
		r->told = true;
	else if (!r->finished && !r->odd && err != r->awaited && !comes_of_it(err) &&
		 !is_of_a_line_passed_over(r, fault_now, err))
		r->odd = err;
}

void run_fail(struct run *r, int err)
{
	run_note(r, err);
	run_finish(r);
}

bool run_ok(struct run *r, int ret)
{
	if (ret < 0)
		run_fail(r, -ret);
	return ret >= 0;
}

void *run_have(struct run *r, void *made)
{
	if (!made)
		run_fail(r, errno);
	return made;
}

void *run_made(struct run *r, void *object)
{
	r->made += object != NULL;
	return run_have(r, object);
}

struct evrdma_buf *run_hold(struct run *r, struct evrdma_buf *buf)
{
	if (run_have(r, buf))
		r->held[r->held_count++] = buf;
	return buf;
}

void run_after_ms(struct run *r, int ms, event_callback_fn cb)
{
	const struct timeval tv = { ms / 1000, ms % 1000 * 1000 };

	if (fixture.timer)
		event_free(fixture.timer);
	fixture.timer = run_have(r, evtimer_new(r->loop, cb, r));
	if (fixture.timer && evtimer_add(fixture.timer, &tv))
		run_fail(r, ENOMEM);
}

struct sockaddr *run_address(const char *ip, uint16_t port)
{
	static struct sockaddr_in sin;

	sin = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port) };
	inet_pton(AF_INET, ip, &sin.sin_addr);
	return (struct sockaddr *)&sin;
}

/* What fails with nobody to be told of it. */
static void on_log(enum evrdma_log_level level, const char *text, void *arg)
{
	struct run *r = arg;

	if (level >= EVRDMA_LOG_WARN && fault_now && fault_now->err &&
		strstr(text, strerror(fault_now->err)))
		r->told = true;
}

/* Each timer of the library is as the one for which libevent's heap has to grow. */
int __real_event_add(struct event *event, const struct timeval *tv);
int __wrap_event_add(struct event *event, const struct timeval *tv);

int __wrap_event_add(struct event *event, const struct timeval *tv)
{
	bool has_place = event->ev_evcallback.evcb_flags & EVLIST_TIMEOUT;

	if (!tv || has_place || event == fixture.timer || !fake_heap_fails())
		return __real_event_add(event, tv);
	timer_failed = true;
	return -1;
}

/* --- faults ---------------------------------------------------------------------------------- */

static void pull_device(void *arg)
{
	fake_device_remove(sweep_kind);
}

static void arm(const struct fault *fault, unsigned n)
{
	if (!fault->layer)
		(fault->lasting ? fake_heap_fail_from : fake_heap_fail_nth)(n);
	else if (!fault->err)
		fake_at_nth(fault->layer, n, pull_device, NULL);
	else if (fault->lasting)
		fake_fail_from(fault->layer, n, fault->err);
	else
		fake_fail_nth(fault->layer, n, fault->err);
	fault_now = fault;
	heap_failed = false;
	timer_failed = false;
}

/* Without memory no event can be read: they come when there is some again. */
static void give_memory_back(void)
{
	heap_failed |= fake_heap_failed();
	fake_heap_fail_nth(0);
}

static const char *disarm(const struct fault *fault)
{
	const char *failed = fake_failed();

	give_memory_back();
	if (!fault->layer)
		failed = heap_failed ? "an allocation" : NULL;
	fake_fail_nth(FAKE_ANY, 0, 0);
	fault_now = NULL;
	return failed;
}

/* --- one run --------------------------------------------------------------------------------- */

static bool runs_on(struct run *r)
{
	enum clock_turn turn = clock_turn(r->loop, true);

	r->turns++;
	if (clock_now_us() > MEMORY_BACK_US)
		give_memory_back();
	return r->bases && turn != CLOCK_FOREVER && turn != CLOCK_EMPTY && clock_now_us() < HANG_US;
}

/* fault: NULL, or what is to fail in it, the n-th time. */
static void run_scenario(
	const struct scenario *s, struct run *r, const struct fault *fault, unsigned n)
{
	memset(&fixture, 0, sizeof(fixture));
	clock_start(TICK_US);
	*r = (struct run){ .loop = event_base_new() };
	evrdma_set_log_cb(on_log, r);
	if (fault)
		arm(fault, n);
	r->base = run_add_base(r, NULL);
	if (r->base)
		s->start(r);
	while (r->bases && runs_on(r))
		;
	while (r->held_count)
		evrdma_buf_unref(r->held[--r->held_count]);
	if (r->after)
		r->after(r);
	if (fixture.timer)
		event_free(fixture.timer);
	event_base_free(r->loop);
	evrdma_set_log_cb(NULL, NULL);
	clock_stop();
}

/* Not before the fault is disarmed: what checks allocates as well. */
static void check_end(const struct run *r, const char *what)
{
	const char *left;

	/* Of a removed device that nobody uses the CM learns by looking. */
	rdma_free_devices(rdma_get_devices(NULL));
	left = fake_expect_clean();
	MUST(!r->bases, "%s: hangs, %u objects made, %u closed", what, r->made, r->closed);
	MUST(r->turns < MANY_TURNS, "%s: keeps the loop busy", what);
	MUST(r->closed == r->made, "%s: %u made, %u closed", what, r->made, r->closed);
	MUST(r->asked == r->over, "%s: %u asked for, %u over", what, r->asked, r->over);
	MUST(!r->odd, "%s: somebody was told: %s", what, strerror(r->odd));
	MUST(!left, "%s: %s", what, left);
}

static void check_next_run(const struct scenario *s, const char *what)
{
	struct run r;

	run_scenario(s, &r, NULL, 0);
	check_end(&r, what);
	MUST(r.through, "%s: the next run does not go through", what);
}

static void put_device_back(const char *what)
{
	/* A scenario may have put one in after the fault. */
	fake_device_remove(sweep_kind);
	rdma_free_devices(rdma_get_devices(NULL));
	MUST(fake_device_gone(sweep_kind), "%s: the device is held", what);
	fake_device_add(sweep_kind);
}

static bool is_of_a_handshake(const char *failed)
{
	return !strcmp(failed, "INIT_QP_ATTR") || !strcmp(failed, "ACCEPT") ||
	       !strcmp(failed, "ibv_modify_qp");
}

/*
 * On iWARP a device that goes takes its queue pairs along: who has no memory to be told of the
 * device is told of those.
 */
static bool is_of_a_queue_pair(const struct run *r, const struct fault *fault)
{
	return sweep_kind == FAKE_IWARP && !fault->layer && r->awaited == ENODEV &&
	       r->last == ECONNRESET;
}

/* There, too, a queue pair is over before the event that says why, for which there is no memory. */
static bool is_of_an_end_unread(const struct run *r, const struct fault *fault)
{
	return sweep_kind == FAKE_IWARP && !fault->layer && fault->lasting && r->last == ECONNRESET;
}

/*
 * A request that the CM cannot take is told to nobody, as if it had not come: its peer is refused.
 * Without memory no event can be told: what has a deadline ends with it. A request that has no
 * attributes for a QP is one that its peer gave up.
 */
static bool cannot_be_told(const struct run *r, const struct fault *fault, const char *failed)
{
	if (r->last == ECONNREFUSED)
		return r->requests < r->connects_begun ||
		       (failed && !strcmp(failed, "INIT_QP_ATTR"));
	/* Of several addresses the last one's error is told. */
	if ((r->awaited && r->last == r->awaited) || is_of_a_line_passed_over(r, fault, r->last))
		return true;
	if (is_of_a_queue_pair(r, fault) || is_of_an_end_unread(r, fault))
		return true;
	/* To who is about to accept, or to confirm, EINVAL says that the other side gave up. */
	if (r->last == ECONNRESET && fault->err == EINVAL && is_of_a_handshake(failed))
		return true;
	/* EINVAL from a disconnect says that the other side was first. */
	return r->last == ETIMEDOUT && (!fault->layer || !strcmp(failed, "DISCONNECT"));
}

/* With the fault, and after it. False when the scenario has no such point. */
static bool fails_at(const struct scenario *s, const struct fault *fault, unsigned n)
{
	const char *failed;
	struct run r;
	char what[128];

	run_scenario(s, &r, fault, n);
	failed = disarm(fault);
	snprintf(what, sizeof(what), "%s, %s %u (%s)", s->name, fault->name, n,
		failed ? failed : "not reached");
	check_end(&r, what);
	MUST(r.through || r.told || cannot_be_told(&r, fault, failed),
		"%s: nobody was told but: %s", what, strerror(r.last));
	MUST(r.through || !timer_failed || fault->lasting, "%s: a timer is not in time: %s", what,
		strerror(r.last));
	if (failed && !fault->err)
		put_device_back(what);
	check_next_run(s, what);
	return failed;
}

/* --- the sweep ------------------------------------------------------------------------------- */

static bool can_be(const struct scenario *s)
{
	const char *only = getenv("EVR_SWEEP");

	return !(fake_lacks(sweep_kind) & s->needs) && (!only || strstr(s->name, only));
}

static unsigned count_scenarios(void)
{
	const struct scenario *s;
	unsigned i, n = 0;

	for (i = 0; i < LISTS; i++)
		for (s = lists[i]; s->name; s++)
			n += can_be(s);
	return n;
}

static const struct scenario *scenario(unsigned n)
{
	const struct scenario *s;
	unsigned i;

	for (i = 0; i < LISTS; i++)
		for (s = lists[i]; s->name; s++)
			if (can_be(s) && !n--)
				return s;
	return NULL;
}

static unsigned step(void)
{
	const char *every = getenv("EVR_SWEEP_EVERY");
	unsigned n = every ? (unsigned)atoi(every) : 1;

	return n ? n : 1;
}

static void start(void)
{
	fake_install();
	if (sweep_kind != FAKE_ROCE)
		fake_device_add(sweep_kind);
}

START_TEST(whatever_fails_is_told_and_nothing_is_left_and_the_next_run_goes_through)
{
	const struct scenario *s = scenario((unsigned)_i / FAULTS);
	const struct fault *fault = &faults[_i % FAULTS];
	unsigned at = 1, n = 0;

	start();
	for (; fails_at(s, fault, at) && at <= MANY_POINTS; at += step())
		n++;
	ck_assert_uint_gt(n, FEW_POINTS);
	ck_assert_uint_le(at, MANY_POINTS);
	total->points += n;
	printf("# %s: %u points of %s\n", s->name, n, fault->name);
	fflush(stdout);
	fake_reset();
}
END_TEST

/*
 * What a process does only once has failed in none of those runs but the first: the device is
 * opened, and maps grow.
 */
START_TEST(the_first_run_of_a_process_may_fail_as_well)
{
	const struct fault *fault = &faults[_i / FIRST_POINTS];

	start();
	total->points += fails_at(scenario(0), fault, (unsigned)_i % FIRST_POINTS + 1);
	fake_reset();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sweep");
	TCase *tc = tcase_create("sweep");
	SRunner *runner = srunner_create(suite);
	unsigned scenarios;
	int failed;

	sweep_kind = fake_kind_to_test(FAKE_ROCE);
	scenarios = count_scenarios();

	total = mmap(
		NULL, sizeof(*total), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (total == MAP_FAILED)
		return EXIT_FAILURE;
	event_set_mem_functions(malloc, realloc, free);
	tcase_set_timeout(tc, LIMIT_S);
	tcase_add_loop_test(tc,
		whatever_fails_is_told_and_nothing_is_left_and_the_next_run_goes_through, 0,
		(int)(scenarios * FAULTS));
	tcase_add_loop_test(
		tc, the_first_run_of_a_process_may_fail_as_well, 0, FIRST_POINTS * FAULTS);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	printf("# %u scenarios, %u points\n", scenarios, total->points);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
