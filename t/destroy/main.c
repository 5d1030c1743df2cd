/*
 * Everything that the library gives out is ended in every callback that it makes: first what takes
 * part, at each moment of each scene; then, in each kind of callback, a bystander in each state
 * that it can be in. With EVR_DESTROY_EVERY=N in the environment only each Nth of these runs is
 * made, for what is slow.
 */
#include "destroy/main.h"
#include "destroy/stage.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static enum fake_kind kind;
static unsigned long every = 1;

/* How much was done, across the processes of the tests. */
static struct {
	unsigned turns, runs, moments;
	bool rows[ROWS];
	bool objects[OBJECTS];
} * tally;

/* They are on FAKE_ROCE, whatever the connections are on. */
static bool lacks_datagrams(void)
{
	return fake_lacks(FAKE_ROCE) & (FAKE_DATAGRAMS | FAKE_GROUPS);
}

static unsigned num_scenes(void)
{
	return num_conn_scenes + (lacks_datagrams() ? 0 : num_dgram_scenes);
}

static const struct scene *scene_at(unsigned i)
{
	return i < num_conn_scenes ? &conn_scenes[i] : &dgram_scenes[i - num_conn_scenes];
}

static bool can_play(const struct scene *scene)
{
	return !(fake_lacks(kind) & scene->needs);
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
	bool datagrams =
		state->object == DGRAM || state->object == MCAST || state->object == PEER;

	if (kind == FAKE_IWARP && state->not_on_iwarp)
		return false;
	return !(fake_lacks(kind) & state->needs) && !(datagrams && lacks_datagrams());
}

/* A device may lack what others are tested with. */
static bool lacks_something(void)
{
	return lacks_datagrams() || fake_lacks(kind) & FAKE_SRQS;
}

static bool makes_sense(const struct act *act, enum object object)
{
	static const bool goes_at_once[OBJECTS] = {
		[REQUEST] = true, [POOL] = true, [SRQ] = true, [DOMAIN] = true, [BUF] = true
	};

	switch (act->of) {
	case OF_THOSE_THAT_STAY:
		return !goes_at_once[object];
	case OF_THOSE_ON_A_BASE:
		return object != BASE;
	case OF_BASES:
		return object == BASE;
	default:
		return true;
	}
}

static void run(const struct plan *plan, enum object object)
{
	static struct stage stage;

	if (tally->turns++ % every)
		return;
	stage_run(&stage, kind, plan);
	tally->runs++;
	tally->objects[object] = true;
}

static void end_each(const struct stage *seen, const struct plan *at)
{
	struct plan plan = *at;
	unsigned i;

	for (plan.actor = 0; plan.actor < MAX_ACTORS; plan.actor++)
		for (i = 0; i < num_acts && seen->moments[at->moment].alive[plan.actor]; i++) {
			enum object object = seen->actors[plan.actor].object;

			plan.act = &acts[i];
			if (makes_sense(plan.act, object))
				run(&plan, object);
		}
}

START_TEST(all_is_ended_at_every_moment_of_a_scene)
{
	static struct stage seen;
	struct plan plan = { .scene = scene_at((unsigned)_i) };

	if (!can_play(plan.scene))
		return;
	stage_run(&seen, kind, &plan);
	for (plan.moment = 0; plan.moment < seen.num_moments; plan.moment++) {
		tally->rows[seen.moments[plan.moment].row] = true;
		tally->moments++;
		end_each(&seen, &plan);
	}
	printf("# %s: %u callbacks\n", plan.scene->name, seen.num_moments);
}
END_TEST

/* --- bystanders ----------------------------------------------------------------------------- */

static const struct scene *scene_with(enum row row)
{
	static struct stage seen;
	unsigned i, n;

	for (i = 0; i < num_scenes(); i++) {
		struct plan plan = { .scene = scene_at(i) };

		if (!can_play(plan.scene))
			continue;
		stage_run(&seen, kind, &plan);
		for (n = 0; n < seen.num_moments; n++)
			if (seen.moments[n].row == row)
				return plan.scene;
	}
	ck_assert_msg(lacks_something(), "no scene has %s", row_infos[row].what);
	return NULL;
}

START_TEST(whatever_is_around_is_ended_in_every_callback)
{
	struct plan plan = { .row = (enum row)_i };
	unsigned i, n;

	plan.scene = scene_with(plan.row);
	for (i = 0; plan.scene && i < num_states(); i++)
		for (n = 0; n < num_acts; n++) {
			plan.state = state_at(i);
			plan.act = &acts[n];
			if (can_be(plan.state) && makes_sense(plan.act, plan.state->object))
				run(&plan, plan.state->object);
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
	unsigned i, states = 0;

	for (i = 0; i < num_states(); i++)
		states += can_be(state_at(i));
	printf("# %u callbacks x %u objects x %u states, and %u moments = %u runs\n",
		count(tally->rows, ROWS), count(tally->objects, OBJECTS), states, tally->moments,
		tally->runs);
}

START_TEST(every_callback_and_every_object_was_there)
{
	unsigned i;

	for (i = 0; i < ROWS && !lacks_something(); i++)
		ck_assert_msg(tally->rows[i], "no scene has %s", row_infos[i].what);
	if (!lacks_something())
		ck_assert_uint_eq(count(tally->objects, OBJECTS), OBJECTS);
	print_tally();
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("destroy");
	TCase *scenes = tcase_create("scenes"), *callbacks = tcase_create("callbacks");
	TCase *whole = tcase_create("whole");

	tcase_add_checked_fixture(scenes, start, fake_reset);
	tcase_add_checked_fixture(callbacks, start, fake_reset);
	tcase_set_timeout(scenes, 300);
	tcase_set_timeout(callbacks, 300);
	tcase_add_loop_test(scenes, all_is_ended_at_every_moment_of_a_scene, 0, (int)num_scenes());
	tcase_add_loop_test(callbacks, whatever_is_around_is_ended_in_every_callback, 0, ROWS);
	tcase_add_test(whole, every_callback_and_every_object_was_there);
	suite_add_tcase(suite, scenes);
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
