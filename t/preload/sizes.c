/* The sizes that the environment gives to the connections of a program. */
#include "preload/places.h"

#include <rdma/rsocket.h>
#include <stdlib.h>
#include <unistd.h>

#include "unit/cm_unit.h"

/* The defaults of rsockets; a test is a process of its own, which reads the environment once. */
enum { SQ = 384, RQ = 384, INLINE = 64 };

static void give(const char *sq, const char *rq, const char *inl)
{
	setenv("RS_SQ_SIZE", sq, 1);
	setenv("RS_RQ_SIZE", rq, 1);
	setenv("RS_INLINE", inl, 1);
}

static void expect(int fd, int name, int wanted)
{
	int value = -1;
	socklen_t len = sizeof(value);

	ck_assert_ok(getsockopt(fd, SOL_RDMA, name, &value, &len));
	ck_assert_int_eq(value, wanted);
}

/* Of both ends, which pass bytes with them. */
static void expect_sizes(int sq, int rq, int inl)
{
	struct places_pair pair = places_pair(0);

	expect(pair.client, RDMA_SQSIZE, sq);
	expect(pair.client, RDMA_RQSIZE, rq);
	expect(pair.client, RDMA_INLINE, inl);
	expect(pair.server, RDMA_SQSIZE, sq);
	expect(pair.server, RDMA_RQSIZE, rq);
	expect(pair.server, RDMA_INLINE, inl);
	places_say(pair.client, "there");
	places_hear(pair.server, "there");
	places_close(&pair);
}

START_TEST(each_variable_is_a_size)
{
	give("100", "50", "16");
	expect_sizes(100, 50, 16);
}
END_TEST

START_TEST(without_variables_there_are_defaults)
{
	unsetenv("RS_SQ_SIZE");
	unsetenv("RS_RQ_SIZE");
	unsetenv("RS_INLINE");
	expect_sizes(SQ, RQ, INLINE);
}
END_TEST

START_TEST(what_is_no_size_changes_nothing)
{
	give("many", "", "-1");
	expect_sizes(SQ, RQ, INLINE);
}
END_TEST

START_TEST(what_is_more_than_a_number_changes_nothing)
{
	give("100x", "50 60", "16k");
	expect_sizes(SQ, RQ, INLINE);
}
END_TEST

START_TEST(what_is_no_number_of_the_machine_changes_nothing)
{
	give("99999999999999999999", "-99999999999999999999", "18446744073709551617");
	expect_sizes(SQ, RQ, INLINE);
}
END_TEST

START_TEST(what_is_out_of_its_range_is_brought_into_it)
{
	give("99999999999", "1", "4294967297");
	expect_sizes(65534, 16, 65534);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		each_variable_is_a_size,
		without_variables_there_are_defaults,
		what_is_no_size_changes_nothing,
		what_is_more_than_a_number_changes_nothing,
		what_is_no_number_of_the_machine_changes_nothing,
		what_is_out_of_its_range_is_brought_into_it,
	};

	return places_main(places_cases("sizes", tests, sizeof(tests) / sizeof(*tests)));
}
