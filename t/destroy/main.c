/*
 * Everything that the library gives out is ended in every callback that it makes: first what takes
 * part, at each point of each scenario; then, in each kind of callback, a bystander in each state
 * that it can be in. With EVR_DESTROY_EVERY=N in the environment only each Nth of these runs is
 * made, for what is slow.
 */
#include "destroy/main.h"
#include "destroy/fixture.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static enum fake_kind kind;
static unsigned long every = 1;

/* How much was done, across the processes of the tests. */
static struct {
	unsigned turns, runs, points;
	bool objects[TYPES];
	unsigned scenario_of[ROWS]; /* the first that has it, from 1 */
} * tally;

/* They are on FAKE_ROCE, whatever the connections are on. */
static bool lacks_datagrams(void)
{
	return fake_lacks(FAKE_ROCE) & (FAKE_DATAGRAMS | FAKE_GROUPS);
}

static unsigned num_scenarios(void)
{
	return num_conn_scenarios + (lacks_datagrams() ? 0 : num_dgram_scenarios);
}

static const struct scenario *scenario_at(unsigned i)
{
	return i < num_conn_scenarios ? &conn_scenarios[i]
				      : &dgram_scenarios[i - num_conn_scenarios];
}

static bool can_play(const struct scenario *scenario)
{
	return !(fake_lacks(kind) & scenario->needs);
}

static unsigned num_states(void)
{
	return num_conn_states + num_id_states + num_more_states;
}

static const struct state *state_at(unsigned i)
{
	if (i < num_conn_states)
		return &conn_states[i];
	i -= num_conn_states;
	return i < num_id_states ? &id_states[i] : &more_states[i - num_id_states];
}

/* --- crashes -------------------------------------------------------------------------------- */

/* AddressSanitizer calls it. */
void __asan_on_error(void);

void __asan_on_error(void)
{
	fprintf(stderr, "# %s\n", running);
}

static void start(void)
{
	fake_install();
	if (kind != FAKE_ROCE)
		fake_device_add(kind);
	fake_device_add(FAKE_IB);
}

/* --- those who take part -------------------------------------------------------------------- */

static bool can_be(const struct state *state)
{
	bool datagrams = state->type == DGRAM || state->type == MCAST || state->type == PEER;

	if (kind == FAKE_IWARP && state->not_on_iwarp)
		return false;
	return !(fake_lacks(kind) & state->needs) && !(datagrams && lacks_datagrams());
}

/* A device may lack what others are tested with. */
static bool lacks_something(void)
{
	return lacks_datagrams() || fake_lacks(kind) & FAKE_SRQS;
}

static bool makes_sense(const struct action *action, enum type type)
{
	static const bool goes_at_once[TYPES] = {
		[REQUEST] = true, [POOL] = true, [SRQ] = true, [DOMAIN] = true, [BUF] = true
	};

	switch (action->of) {
	case OF_THOSE_THAT_STAY:
		return !goes_at_once[type];
	case OF_THOSE_ON_A_BASE:
		return type != BASE;
	case OF_BASES:
		return type == BASE;
	default:
		return true;
	}
}

static void run(const struct plan *plan, enum type type)
{
	static struct fixture fixture;

	if (tally->turns++ % every)
		return;
	fixture_run(&fixture, kind, plan);
	tally->runs++;
	tally->objects[type] = true;
}

static void end_each(const struct fixture *seen, const struct plan *at)
{
	struct plan plan = *at;
	unsigned i;

	for (plan.object = 0; plan.object < MAX_OBJECTS; plan.object++)
		for (i = 0; i < num_actions && seen->points[at->point].alive[plan.object]; i++) {
			enum type type = seen->objects[plan.object].type;

			plan.action = &actions[i];
			if (makes_sense(plan.action, type))
				run(&plan, type);
		}
}

static void note_rows(const struct fixture *seen, unsigned scenario)
{
	unsigned n;

	for (n = 0; n < seen->num_points; n++)
		if (!tally->scenario_of[seen->points[n].row])
			tally->scenario_of[seen->points[n].row] = scenario + 1;
}

START_TEST(all_is_ended_at_every_point_of_a_scenario)
{
	static struct fixture seen;
	struct plan plan = { .scenario = scenario_at((unsigned)_i) };

	if (!can_play(plan.scenario))
		return;
	fixture_run(&seen, kind, &plan);
	note_rows(&seen, (unsigned)_i);
	for (plan.point = 0; plan.point < seen.num_points; plan.point++) {
		tally->points++;
		end_each(&seen, &plan);
	}
	printf("# %s: %u callbacks\n", plan.scenario->name, seen.num_points);
}
END_TEST

/* --- bystanders ----------------------------------------------------------------------------- */

/* The tests of the scenarios have looked at all of them, unless they were left out of this run. */
static const struct scenario *scenario_with(enum row row)
{
	static struct fixture seen;
	unsigned i;

	for (i = 0; i < num_scenarios() && !tally->scenario_of[row]; i++) {
		struct plan plan = { .scenario = scenario_at(i) };

		if (!can_play(plan.scenario))
			continue;
		fixture_run(&seen, kind, &plan);
		note_rows(&seen, i);
	}
	if (tally->scenario_of[row])
		return scenario_at(tally->scenario_of[row] - 1);
	MUST(lacks_something(), "no scenario has %s", row_infos[row].what);
	return NULL;
}

START_TEST(whatever_is_around_is_ended_in_every_callback)
{
	struct plan plan = { .row = (enum row)_i };
	unsigned i, n;

	plan.scenario = scenario_with(plan.row);
	for (i = 0; plan.scenario && i < num_states(); i++)
		for (n = 0; n < num_actions; n++) {
			plan.state = state_at(i);
			plan.action = &actions[n];
			if (can_be(plan.state) && makes_sense(plan.action, plan.state->type))
				run(&plan, plan.state->type);
		}
}
END_TEST

/* --- all of it ------------------------------------------------------------------------------ */

static unsigned count(const bool *which, unsigned n)
{
	unsigned i, sum = 0;

	for (i = 0; i < n; i++)
		sum += which[i];
	return sum;
}

static void print_tally(void)
{
	unsigned i, states = 0, rows = 0;

	for (i = 0; i < num_states(); i++)
		states += can_be(state_at(i));
	for (i = 0; i < ROWS; i++)
		rows += !!tally->scenario_of[i];
	printf("# %u callbacks x %u objects x %u states, and %u moments = %u runs\n",
		rows, count(tally->objects, TYPES), states, tally->points, tally->runs);
}

START_TEST(every_callback_and_every_object_was_there)
{
	unsigned i;

	for (i = 0; i < ROWS && !lacks_something(); i++)
		MUST(tally->scenario_of[i], "no scenario has %s", row_infos[i].what);
	if (!lacks_something())
		ck_assert_uint_eq(count(tally->objects, TYPES), TYPES);
	print_tally();
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("destroy");
	TCase *scenarios = tcase_create("scenarios"), *callbacks = tcase_create("callbacks");
	TCase *whole = tcase_create("whole");

	tcase_add_checked_fixture(scenarios, start, fake_reset);
	tcase_add_checked_fixture(callbacks, start, fake_reset);
	tcase_set_timeout(scenarios, 300);
	tcase_set_timeout(callbacks, 300);
	tcase_add_loop_test(
		scenarios, all_is_ended_at_every_point_of_a_scenario, 0, (int)num_scenarios());
	tcase_add_loop_test(callbacks, whatever_is_around_is_ended_in_every_callback, 0, ROWS);
	tcase_add_test(whole, every_callback_and_every_object_was_there);
	suite_add_tcase(suite, scenarios);
	suite_add_tcase(suite, callbacks);
	suite_add_tcase(suite, whole);
	return suite;
}

int destroy_main(enum fake_kind wanted)
{
	const char *n = getenv("EVR_DESTROY_EVERY");
	SRunner *runner;
	int failed;

	kind = fake_kind_to_test(wanted);
	if (n && strtoul(n, NULL, 10))
		every = strtoul(n, NULL, 10);
	tally = mmap(
		NULL, sizeof(*tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (tally == MAP_FAILED)
		return EXIT_FAILURE;
	runner = srunner_create(make_suite());
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
