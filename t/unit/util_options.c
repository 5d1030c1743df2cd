#include "unit/unit.h"

#include "util/options.h"

#include <errno.h>
#include <string.h>

struct options {
	size_t size;
	int first;
	int second;
};

/* A newer program's. */
struct newer {
	struct options known;
	int third;
};

static const struct options defaults = { sizeof(defaults), 1, 2 };

static int load(struct options *ours, const void *callers)
{
	*ours = defaults;
	return evr_options_load(ours, sizeof(*ours), callers);
}

START_TEST(no_options_are_the_defaults)
{
	struct options ours;

	ck_assert_int_eq(load(&ours, NULL), 0);
	ck_assert_int_eq(ours.first, 1);
	ck_assert_int_eq(ours.second, 2);
}
END_TEST

START_TEST(an_older_struct_changes_only_what_it_has)
{
	struct options older, ours;

	evr_options_init(
		&older, offsetof(struct options, second), &defaults, sizeof(defaults));
	older.first = 7;
	older.second = 8;
	ck_assert_int_eq(load(&ours, &older), 0);
	ck_assert_uint_eq(ours.size, sizeof(ours));
	ck_assert_int_eq(ours.first, 7);
	ck_assert_int_eq(ours.second, 2);
}
END_TEST

START_TEST(a_newer_struct_is_taken_as_long_as_the_rest_is_zero)
{
	struct newer newer;
	struct options ours;

	evr_options_init(&newer, sizeof(newer), &defaults, sizeof(defaults));
	newer.known.second = 8;
	ck_assert_int_eq(load(&ours, &newer), 0);
	ck_assert_int_eq(ours.second, 8);
	newer.third = 1;
	ck_assert_int_eq(load(&ours, &newer), -EINVAL);
}
END_TEST

START_TEST(what_nobody_has_initialised_is_refused)
{
	static const size_t sizes[] = { 0, sizeof(size_t) - 1, sizeof(struct options),
		sizeof(struct options) + 1, SIZE_MAX };
	struct options none, ours;
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		none = (struct options){ sizes[i], 7, 8 };
		ck_assert_int_eq(load(&ours, &none), -EINVAL);
	}
	evr_options_init(&none, sizeof(none), &defaults, sizeof(defaults));
	none.size -= sizeof(none) - sizeof(size_t) + 1;
	ck_assert_int_eq(load(&ours, &none), -EINVAL);
}
END_TEST

START_TEST(storing_fills_what_the_caller_has_and_no_more)
{
	struct newer newer;
	struct options older;

	memset(&newer, 0xff, sizeof(newer));
	evr_options_store(&newer, sizeof(newer), &defaults, sizeof(defaults));
	ck_assert_uint_eq(newer.known.size, sizeof(newer));
	ck_assert_int_eq(newer.known.second, 2);
	ck_assert_int_eq(newer.third, 0);
	older.second = 77;
	evr_options_store(
		&older, offsetof(struct options, second), &defaults, sizeof(defaults));
	ck_assert_uint_eq(older.size, offsetof(struct options, second));
	ck_assert_int_eq(older.first, 1);
	ck_assert_int_eq(older.second, 77);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		no_options_are_the_defaults,
		an_older_struct_changes_only_what_it_has,
		a_newer_struct_is_taken_as_long_as_the_rest_is_zero,
		what_nobody_has_initialised_is_refused,
		storing_fills_what_the_caller_has_and_no_more,
	};

	return unit_main("util_options", tests, sizeof(tests) / sizeof(tests[0]), NULL, NULL);
}
