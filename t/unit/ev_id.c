/* The thin layer: operations on one id, beside each other. */
#include "unit/ev_loop.h"

#include <rdma/rdma_cma.h>

#define GROUP "239.1.2.3"
#define OTHER_GROUP "239.1.2.4"

struct outcome {
	bool over;
	int err;
};

static void on_done(struct evrdma_id *id, const struct evrdma_error *error,
	const struct rdma_cm_event *event, void *arg)
{
	struct outcome *outcome = arg;

	ck_assert(!outcome->over);
	*outcome = (struct outcome){ .over = true, .err = error ? error->err : 0 };
}

static struct evrdma_id *bound_id(void)
{
	struct evrdma_id *id = evrdma_id_new(ev_base, RDMA_PS_UDP, NULL, NULL);

	ck_assert_ptr_nonnull(id);
	ck_assert_int_eq(evrdma_id_bind(id, ev_addr(FAKE_ROCE_IP, 0)), 0);
	return id;
}

static void join(struct evrdma_id *id, const char *group, struct outcome *outcome)
{
	ck_assert_int_eq(evrdma_id_join(id, ev_addr(group, 0), 0, on_done, outcome), 0);
}

START_TEST(leaving_one_group_lets_the_join_of_another_go_on)
{
	struct outcome first = { false }, second = { false };
	struct evrdma_id *id = bound_id();

	join(id, GROUP, &first);
	ev_run_until(&first.over);
	fake_hold(FAKE_JOIN);
	join(id, OTHER_GROUP, &second);
	ck_assert_int_eq(evrdma_id_leave(id, ev_addr(GROUP, 0)), 0);
	ev_run_now();
	ck_assert(!second.over);
	fake_release(FAKE_JOIN);
	ev_run_until(&second.over);
	ck_assert_int_eq(second.err, 0);
}
END_TEST

START_TEST(leaving_the_group_that_is_being_joined_cancels_the_join)
{
	struct outcome outcome = { false };
	struct evrdma_id *id = bound_id();

	fake_hold(FAKE_JOIN);
	join(id, GROUP, &outcome);
	ck_assert_int_eq(evrdma_id_leave(id, ev_addr(GROUP, 0)), 0);
	ck_assert(!outcome.over);
	ev_run_until(&outcome.over);
	ck_assert_int_eq(outcome.err, ECANCELED);
	fake_release(FAKE_JOIN);
	ev_run_now();
}
END_TEST

START_TEST(one_join_at_a_time_is_taken)
{
	struct outcome first = { false }, second = { false };
	struct evrdma_id *id = bound_id();
	int ret;

	join(id, GROUP, &first);
	ret = evrdma_id_join(id, ev_addr(OTHER_GROUP, 0), 0, on_done, &second);
	ck_assert_int_eq(ret, -EBUSY);
	ev_run_until(&first.over);
	ck_assert_int_eq(first.err, 0);
	ck_assert(!second.over);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		leaving_one_group_lets_the_join_of_another_go_on,
		leaving_the_group_that_is_being_joined_cancels_the_join,
		one_join_at_a_time_is_taken,
	};

	return ev_main("ev_id", tests, sizeof(tests) / sizeof(tests[0]));
}
