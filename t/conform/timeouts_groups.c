/* Many groups that are joined and left, again and again. */
#include <stdio.h>

#include "conform/member.h"
#include "conform/timeouts.h"

enum { GROUPS = 20, ROUNDS = 50 };

static unsigned joined, closed;

static void count(struct evrdma_mcast *group, enum evrdma_mcast_event event,
	const struct evrdma_error *error, void *arg)
{
	ck_assert_int_ne(event, EVRDMA_MCAST_ERROR);
	joined += event == EVRDMA_MCAST_JOINED;
	closed += event == EVRDMA_MCAST_CLOSED;
}

static bool all_are_joined(struct fixture *f)
{
	return joined == GROUPS;
}

static bool all_are_closed(struct fixture *f)
{
	return closed == GROUPS;
}

static struct evrdma_mcast *join(struct evrdma_dgram *dgram, unsigned number)
{
	struct evrdma_mcast *group;
	struct sockaddr_in sin;
	char text[INET_ADDRSTRLEN];

	snprintf(text, sizeof(text), "239.7.9.%u", number + 1);
	fixture_address(&sin, text, 0);
	group = evrdma_mcast_join(dgram, (struct sockaddr *)&sin, 0, count, NULL);
	ck_assert_ptr_nonnull(group);
	return group;
}

/* Every other time the groups are left before anybody has answered. */
static void join_and_leave(struct fixture *f, struct evrdma_dgram *dgram, unsigned round)
{
	struct evrdma_mcast *groups[GROUPS];
	unsigned i;

	joined = closed = 0;
	for (i = 0; i < GROUPS; i++)
		groups[i] = join(dgram, i);
	if (round % 2)
		run_until(f, all_are_joined);
	for (i = 0; i < GROUPS; i++)
		evrdma_mcast_close(groups[i]);
	run_until(f, all_are_closed);
}

START_TEST(groups_that_are_joined_and_left_keep_nobody)
{
	struct fixture *f = fixture_new();
	struct member m;
	unsigned round;

	member_init(&m, f, 0);
	member_open(&m);
	member_run_until_ready(&m);
	begin();
	for (round = 0; round < ROUNDS; round++)
		join_and_leave(f, m.dgram, round);
	evrdma_dgram_close(m.dgram);
	member_run_until_closed(&m);
	finish(f);
}
END_TEST

TCase *timeouts_groups_case(void)
{
	TCase *tc = new_case("groups");

	tcase_add_test(tc, groups_that_are_joined_and_left_keep_nobody);
	return tc;
}
