/*
 * Events of one id in every order, more than once, too late, and while the id goes: what is seen is
 * what was sent, but for what the failed answer makes pointless; every event is acknowledged once,
 * in any order, and destroying always ends. EVR_SERIES=no in the environment: of the sequences all
 * but the longest.
 */
#include "unit/cm_subject.h"

#include "kern/ucma_abi.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* MANY: after so many the fake begins anew, since it looks through all the ids it ever had. */
enum { LONGEST = 4, MANY = 50, LAST_EVENT = RDMA_CM_EVENT_INTERNAL, LIMIT_S = 120 };

/* All that the kernel can send to an id that has asked for a connection. */
static const enum rdma_cm_event_type kinds[] = { RDMA_CM_EVENT_CONNECT_RESPONSE,
	RDMA_CM_EVENT_CONNECT_ERROR, RDMA_CM_EVENT_UNREACHABLE, RDMA_CM_EVENT_REJECTED,
	RDMA_CM_EVENT_ESTABLISHED, RDMA_CM_EVENT_DISCONNECTED, RDMA_CM_EVENT_DEVICE_REMOVAL,
	RDMA_CM_EVENT_ADDR_CHANGE, RDMA_CM_EVENT_TIMEWAIT_EXIT };

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

enum acking { AT_ONCE, LAST_FIRST, HALF_UNREAD, ACKINGS };

struct sequence {
	enum rdma_cm_event_type types[LONGEST];
	unsigned len;
};

/* --- sequences
 * ------------------------------------------------------------------------------------ */

/* What is seen of them: not delivered is what comes after an answer that could not be served. */
static struct sequence expect(const struct sequence *sent, unsigned len, bool qp)
{
	struct sequence seen = { .len = 0 };
	bool failed = false;
	unsigned i;

	for (i = 0; i < len; i++) {
		enum rdma_cm_event_type type = sent->types[i];
		bool ends = type == RDMA_CM_EVENT_REJECTED || type == RDMA_CM_EVENT_DISCONNECTED;

		if (failed && ends)
			continue;
		if (qp && type == RDMA_CM_EVENT_CONNECT_RESPONSE) {
			failed = true;
			type = RDMA_CM_EVENT_CONNECT_ERROR;
		}
		seen.types[seen.len++] = type;
	}
	return seen;
}

static void name(char *text, size_t size, const struct sequence *s)
{
	size_t used = 0;
	unsigned i;

	text[0] = '\0';
	for (i = 0; i < s->len && used < size; i++)
		used += (size_t)snprintf(
			text + used, size - used, " %s", rdma_event_str(s->types[i]) + 14);
}

static void complain(const struct sequence *sent, const char *what, int got)
{
	char text[200];

	name(text, sizeof(text), sent);
	ck_abort_msg("%s: %s (%d)", text, what, got);
}

static void read_all(const struct cm_subject *s, const struct sequence *sent,
	const struct sequence *seen, enum acking acking)
{
	struct rdma_cm_event *events[LONGEST];
	unsigned i;

	for (i = 0; i < seen->len; i++) {
		if (rdma_get_cm_event(s->channel, &events[i]))
			complain(sent, "less is seen", errno);
		if (events[i]->event != seen->types[i] || events[i]->id != s->id)
			complain(sent, "something else is seen", (int)events[i]->event);
		if (acking != LAST_FIRST)
			rdma_ack_cm_event(events[i]);
	}
	for (i = seen->len; acking == LAST_FIRST && i > 0; i--)
		rdma_ack_cm_event(events[i - 1]);
}

static void check_empty(const struct cm_subject *s, const struct sequence *sent)
{
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(s->channel, &event) == 0)
		complain(sent, "more is seen", (int)event->event);
	if (errno != EAGAIN)
		complain(sent, "reading fails", errno);
}

static void run(
	const struct cm_state *state, const struct sequence *sent, bool qp, enum acking acking)
{
	unsigned i, len = acking == HALF_UNREAD ? sent->len / 2 : sent->len;
	const struct sequence seen = expect(sent, len, qp);
	struct cm_subject s;

	cm_subject_reach(&s, state, qp, false);
	for (i = 0; i < sent->len; i++)
		fake_inject(s.id, sent->types[i], 0);
	read_all(&s, sent, &seen, acking);
	if (acking != HALF_UNREAD)
		check_empty(&s, sent);
	cm_subject_end(&s);
}

/* Counts through all sequences of this length like through numbers. */
static bool next(unsigned digits[LONGEST], unsigned len)
{
	unsigned i;

	for (i = 0; i < len; i++) {
		if (++digits[i] < KINDS)
			return true;
		digits[i] = 0;
	}
	return false;
}

static unsigned run_all(const struct cm_state *state, unsigned len, bool qp, enum acking acking)
{
	unsigned digits[LONGEST] = { 0 }, i, sequences = 0;

	do {
		struct sequence sent = { .len = len };

		for (i = 0; i < len; i++)
			sent.types[i] = kinds[digits[i]];
		run(state, &sent, qp, acking);
		if (++sequences % MANY == 0)
			fake_reset();
	} while (next(digits, len));
	return sequences;
}

static bool leaves_series(void)
{
	const char *series = getenv("EVR_SERIES");

	return series && !strcmp(series, "no");
}

START_TEST(events_in_every_order_are_seen_and_the_id_goes)
{
	const struct cm_state *state = _i & 1 ? cm_connected : cm_connecting;
	unsigned longest = leaves_series() ? LONGEST - 1 : LONGEST;
	unsigned len, acking, sequences = 0;
	bool qp = _i & 2;

	for (len = 1; len <= longest; len++)
		for (acking = 0; acking < ACKINGS; acking++)
			sequences += run_all(state, len, qp, (enum acking)acking);
	printf("# an id %s, %s queue pair: %u sequences of up to %u events\n", state->name,
		qp ? "with" : "without", sequences, longest);
	fflush(stdout);
}
END_TEST

/* --- the kernel's own events in another order
 * -------------------------------------------------------- */

enum { OWN_EVENTS = 4, ORDERS = 24 };

/* The n-th order of four: which of those that are left is next, each time. */
static void reorder(int fd, unsigned n)
{
	unsigned left;

	for (left = OWN_EVENTS; left > 0; left--) {
		ck_assert_int_eq(fake_bring_forward(fd, OWN_EVENTS - left + 1 + n % left), 0);
		n /= left;
	}
}

/* Two connections, each with its end: established and disconnected, none of it read. */
static void connect_and_end_unread(struct cm_pair *pair)
{
	cm_pair_start(pair, RDMA_PS_TCP);
	cm_pair_request(pair, NULL);
	cm_make_qp(pair->server);
	ck_assert_ok(rdma_accept(pair->server, NULL));
	cm_await(pair->channel, RDMA_CM_EVENT_ESTABLISHED);
	ck_assert_ok(rdma_disconnect(pair->client));
	ck_assert_ok(rdma_disconnect(pair->server));
	fake_inject(pair->client, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
}

START_TEST(the_kernels_own_events_may_change_places)
{
	struct rdma_cm_event *event;
	struct cm_pair pair;
	unsigned i;

	connect_and_end_unread(&pair);
	ck_assert_uint_eq(fake_unread(pair.channel->fd), OWN_EVENTS);
	reorder(pair.channel->fd, (unsigned)_i);
	for (i = 0; i < OWN_EVENTS; i++) {
		ck_assert_ok(rdma_get_cm_event(pair.channel, &event));
		ck_assert(event->id == pair.client || event->id == pair.server);
		ck_assert_ok(rdma_ack_cm_event(event));
	}
	cm_expect_none(pair.channel);
	cm_pair_end(&pair);
}
END_TEST

START_TEST(a_disconnect_told_twice_is_seen_twice)
{
	struct cm_pair pair;

	cm_pair_connect(&pair);
	ck_assert_ok(rdma_disconnect(pair.client));
	ck_assert_int_eq(fake_repeat(pair.channel->fd, 1), 0);
	ck_assert_ptr_eq(cm_await(pair.channel, RDMA_CM_EVENT_DISCONNECTED), pair.server);
	ck_assert_ok(rdma_disconnect(pair.server));
	ck_assert_ptr_eq(cm_await(pair.channel, RDMA_CM_EVENT_DISCONNECTED), pair.server);
	ck_assert_ok(rdma_disconnect(pair.server));
	ck_assert_ptr_eq(cm_await(pair.channel, RDMA_CM_EVENT_DISCONNECTED), pair.client);
	cm_expect_none(pair.channel);
	cm_pair_end(&pair);
}
END_TEST

/* --- ids that go
 * ------------------------------------------------------------------------------------------ */

START_TEST(what_nobody_read_goes_with_the_id)
{
	struct rdma_event_channel *channel = cm_channel();
	unsigned type;

	for (type = 0; type <= LAST_EVENT; type++) {
		struct rdma_cm_id *id = cm_id(channel, RDMA_PS_TCP);

		ck_assert_int_eq(fake_inject(id, type, 0), 0);
		ck_assert_ok(rdma_destroy_id(id));
		cm_expect_none(channel);
	}
	rdma_destroy_event_channel(channel);
}
END_TEST

START_TEST(an_event_of_an_id_that_is_gone_is_not_seen)
{
	struct rdma_event_channel *channel = cm_channel();
	struct evr_ucma_resp_event stale = { .uid = 0 };

	for (stale.event = 0; stale.event <= LAST_EVENT; stale.event++) {
		struct rdma_cm_id *id = cm_id(channel, RDMA_PS_TCP);

		stale.uid = (uintptr_t)id;
		ck_assert_ok(rdma_destroy_id(id));
		ck_assert_int_eq(fake_inject_stray(channel->fd, &stale), 0);
		cm_expect_none(channel);
	}
	rdma_destroy_event_channel(channel);
}
END_TEST

struct leaving {
	int (*leave)(struct cm_subject *s);
	struct cm_subject s;
	const char *command;
	atomic_bool done;
	int ret;
};

static int destroy(struct cm_subject *s)
{
	struct rdma_cm_id *id = s->client;

	s->client = NULL;
	rdma_destroy_qp(id);
	return rdma_destroy_id(id);
}

static int move_out(struct cm_subject *s)
{
	return rdma_migrate_id(s->client, NULL);
}

static void *leave(void *arg)
{
	struct leaving *l = arg;

	l->ret = l->leave(&l->s);
	atomic_store(&l->done, true);
	return NULL;
}

/* The kernel has done its part, and the library waits for the event that was read. */
static void leave_with_an_event_out(struct leaving *l, unsigned type)
{
	struct rdma_cm_event *event;
	pthread_t thread;
	unsigned before;

	cm_subject_reach(&l->s, cm_connecting, true, false);
	before = fake_calls(l->command);
	fake_inject(l->s.id, type, 0);
	CM_MUST(rdma_get_cm_event(l->s.channel, &event));
	CM_MUST(pthread_create(&thread, NULL, leave, l));
	while (fake_calls(l->command) == before)
		sched_yield();
	cm_must(!atomic_load(&l->done), "it does not wait");
	rdma_ack_cm_event(event);
	CM_MUST(pthread_join(thread, NULL));
	CM_MUST(l->ret);
	cm_subject_end(&l->s);
}

START_TEST(who_leaves_waits_for_the_event_that_was_read)
{
	unsigned i;

	for (i = 0; i < KINDS; i++) {
		struct leaving gone = { .leave = destroy, .command = "DESTROY_ID" };
		struct leaving moved = { .leave = move_out, .command = "MIGRATE_ID" };

		leave_with_an_event_out(&gone, kinds[i]);
		leave_with_an_event_out(&moved, kinds[i]);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cm_event_order");
	TCase *tcase = tcase_create("order");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, cm_set_up, cm_tear_down);
	tcase_set_timeout(tcase, LIMIT_S);
	tcase_add_loop_test(tcase, events_in_every_order_are_seen_and_the_id_goes, 0, 4);
	tcase_add_loop_test(tcase, the_kernels_own_events_may_change_places, 0, ORDERS);
	tcase_add_test(tcase, a_disconnect_told_twice_is_seen_twice);
	tcase_add_test(tcase, what_nobody_read_goes_with_the_id);
	tcase_add_test(tcase, an_event_of_an_id_that_is_gone_is_not_seen);
	tcase_add_test(tcase, who_leaves_waits_for_the_event_that_was_read);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
