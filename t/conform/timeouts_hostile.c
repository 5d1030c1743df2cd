/* 20,000 connections of peers that go without a word, or with EVR_BRIEF in the environment 2,000.
 */
#include "conform/hostile.h"
#include "conform/timeouts.h"

#include <stdlib.h>

enum { EACH = 5000, EACH_IN_BRIEF = 500, ONE_FAILS_OF = 100 };

/*
 * A timer of 1 ms would go on: see how run_until() and finish() look at the loop. That a call of
 * rdma_notify() would have kept it, as conn_setup.c says, takes more than the one processor here:
 * see fifo.c.
 */
START_TEST(peers_that_go_without_a_word_keep_nobody)
{
	const char *brief = getenv("EVR_BRIEF");
	unsigned each = brief && *brief ? EACH_IN_BRIEF : EACH;
	struct fixture *f;

	hostile_start(each);
	f = closing_fixture();
	f->options.recv_depth = 4;
	fixture_listen(f);
	hostile_let_go(f);
	begin();
	run_until(f, hostile_are_gone);
	ck_assert_uint_ge(f->established, HOSTILE_PEERS * (each - each / ONE_FAILS_OF));
	finish(f);
}
END_TEST

TCase *timeouts_hostile_case(void)
{
	TCase *tc = new_case("hostile");

	tcase_add_test(tc, peers_that_go_without_a_word_keep_nobody);
	return tc;
}
