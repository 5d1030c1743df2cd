/* What the operations of an id come to when the kernel says so, or nothing at all. */
#include "conform/fake.h"
#include "conform/fixture.h"
#include "conform/member.h"

#include <errno.h>
#include <rdma/rdma_cma.h>

struct result {
	unsigned done;
	int err;
	enum evrdma_step step;
};

static void on_done(struct evrdma_id *id, const struct evrdma_error *error,
	const struct rdma_cm_event *event, void *arg)
{
	struct result *result = arg;

	result->done++;
	result->err = error ? error->err : 0;
	result->step = error ? error->step : EVRDMA_STEP_NONE;
}

static bool is_done(struct fixture *f)
{
	return ((struct result *)f->tag)->done;
}

/* Waits for the operation that the call began; gives what it came to. */
static int outcome(struct fixture *f, int ret)
{
	struct result *result = f->tag;

	ck_assert_int_eq(ret, 0);
	fixture_run_until(f, is_done, 10000);
	ck_assert_uint_eq(result->done, 1);
	result->done = 0;
	return result->err;
}

static void make_qp(struct evrdma_id *id)
{
	struct ibv_qp_init_attr init = { .cap = { 2, 2, 1, 1, 0 }, .qp_type = IBV_QPT_RC };

	ck_assert_int_eq(rdma_create_qp(evrdma_id_get_cm_id(id), NULL, &init), 0);
}

static struct evrdma_id *resolve_by_id(struct fixture *f, struct result *result)
{
	struct evrdma_id *id = evrdma_id_new(f->base, RDMA_PS_TCP, NULL, NULL);
	struct sockaddr_in sin;

	f->tag = result;
	fixture_address(&sin, testbed.ip, 9);
	ck_assert_int_eq(outcome(f, evrdma_id_resolve_addr(id, NULL, (struct sockaddr *)&sin, 2000,
					    on_done, result)),
		0);
	ck_assert_int_eq(outcome(f, evrdma_id_resolve_route(id, 2000, on_done, result)), 0);
	make_qp(id);
	return id;
}

START_TEST(the_deadline_ends_the_connect_of_an_id)
{
	struct result result = { 0 };
	struct fixture *f = fixture_new();
	struct evrdma_id *id = resolve_by_id(f, &result);

	fake_hold(FAKE_REQ);
	ck_assert_int_eq(outcome(f, evrdma_id_connect(id, NULL, 20, on_done, &result)), ETIMEDOUT);
	ck_assert_int_eq(result.step, EVRDMA_STEP_CONNECT);
	fake_release(FAKE_REQ);
	fixture_free(f);
	ck_assert_uint_eq(result.done, 0);
}
END_TEST

START_TEST(an_id_is_told_what_the_kernel_says_of_its_address_and_route)
{
	struct result result = { 0 };
	struct fixture *f = fixture_new();
	struct evrdma_id *id = evrdma_id_new(f->base, RDMA_PS_TCP, NULL, NULL);
	struct sockaddr_in sin;

	f->tag = &result;
	fixture_address(&sin, testbed.ip, 9);
	fake_answer(FAKE_ADDR, -EHOSTUNREACH);
	ck_assert_int_eq(outcome(f, evrdma_id_resolve_addr(id, NULL, (struct sockaddr *)&sin, 9,
					    on_done, &result)),
		EHOSTUNREACH);
	ck_assert_int_eq(outcome(f, evrdma_id_resolve_addr(id, NULL, (struct sockaddr *)&sin, 9,
					    on_done, &result)),
		0);
	fake_answer(FAKE_ROUTE, -EINVAL);
	ck_assert_int_eq(outcome(f, evrdma_id_resolve_route(id, 9, on_done, &result)), EINVAL);
	ck_assert_int_eq(result.step, EVRDMA_STEP_ROUTE);
	ck_assert_int_eq(outcome(f, evrdma_id_resolve_route(id, 9, on_done, &result)), 0);
	fixture_free(f);
}
END_TEST

START_TEST(the_kernels_own_not_supported_is_the_C_librarys)
{
	enum { KERNEL_ENOTSUPP = 524 };
	struct result result = { 0 };
	struct fixture *f = fixture_new();
	struct evrdma_id *id = evrdma_id_new(f->base, RDMA_PS_UDP, NULL, NULL);
	struct sockaddr_in sin;

	f->tag = &result;
	fixture_address(&sin, testbed.ip, 0);
	ck_assert_int_eq(evrdma_id_bind(id, (struct sockaddr *)&sin), 0);
	fixture_address(&sin, GROUP_A, 0);
	fake_fail_next("JOIN_MCAST", KERNEL_ENOTSUPP);
	ck_assert_int_eq(
		evrdma_id_join(id, (struct sockaddr *)&sin, 0, on_done, &result), -EOPNOTSUPP);
	fake_answer(FAKE_JOIN, -KERNEL_ENOTSUPP);
	ck_assert_int_eq(
		outcome(f, evrdma_id_join(id, (struct sockaddr *)&sin, 0, on_done, &result)),
		EOPNOTSUPP);
	ck_assert_int_eq(result.step, EVRDMA_STEP_JOIN);
	fixture_free(f);
}
END_TEST

/* --- a disconnect before there is a connection ---------------------------------------------- */

struct passive {
	struct result disconnect;
	struct fixture *f;
	struct evrdma_id *server;
};

static void adopt(struct evrdma_id *id, const struct rdma_cm_event *event, void *arg)
{
	struct passive *passive = arg;

	if (event && event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		passive->server = evrdma_id_adopt(passive->f->base, event->id, NULL, NULL);
}

static uint16_t listen_by_id(struct passive *passive)
{
	struct evrdma_id *id = evrdma_id_new(passive->f->base, RDMA_PS_TCP, adopt, passive);
	struct sockaddr_in sin;

	fixture_address(&sin, testbed.ip, 0);
	ck_assert_int_eq(evrdma_id_bind(id, (struct sockaddr *)&sin), 0);
	ck_assert_int_eq(evrdma_id_listen(id, 8), 0);
	return ntohs(rdma_get_src_port(evrdma_id_get_cm_id(id)));
}

static bool server_was_asked(struct fixture *f)
{
	return ((struct passive *)f->tag)->server;
}

static bool client_is_up(struct fixture *f)
{
	return f->client->connected;
}

START_TEST(who_disconnects_before_it_is_confirmed_does_when_it_is)
{
	struct result accept = { 0 };
	struct passive passive = { .f = fixture_new() };
	struct fixture *f = passive.f;

	f->tag = &passive;
	fake_hold(FAKE_RTU);
	fixture_connect_to(f, testbed.ip, listen_by_id(&passive));
	fixture_run_until(f, server_was_asked, 10000);
	make_qp(passive.server);
	ck_assert_int_eq(evrdma_id_accept(passive.server, NULL, 5000, on_done, &accept), 0);
	fixture_run_until(f, client_is_up, 10000);
	ck_assert_int_eq(
		evrdma_id_disconnect(passive.server, on_done, &passive.disconnect), 0);
	fixture_run_a_little(f);
	ck_assert_uint_eq(passive.disconnect.done, 0);
	fake_release(FAKE_RTU);
	fixture_run_until(f, is_done, 10000);
	ck_assert_int_eq(passive.disconnect.err, 0);
	ck_assert_uint_eq(accept.done, 1);
	fixture_free(f);
}
END_TEST

START_TEST(who_disconnects_what_never_comes_is_told)
{
	struct result result = { 0 }, disconnect = { 0 };
	struct fixture *f = fixture_new();
	struct evrdma_id *id = resolve_by_id(f, &result);

	fake_hold(FAKE_REQ);
	ck_assert_int_eq(evrdma_id_connect(id, NULL, 10000, on_done, &result), 0);
	ck_assert_int_eq(evrdma_id_disconnect(id, on_done, &disconnect), 0);
	fixture_run_a_little(f);
	ck_assert_uint_eq(fake_time_out(FAKE_REQ), 1);
	fixture_run_until(f, is_done, 10000);
	fixture_run_a_little(f);
	ck_assert_uint_eq(disconnect.done, 1);
	ck_assert_int_eq(disconnect.err, ETIMEDOUT);
	ck_assert_int_eq(disconnect.step, EVRDMA_STEP_DISCONNECT);
	fixture_free(f);
}
END_TEST

TCase *fake_id_case(void)
{
	TCase *tc = tcase_create("fake_id");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, the_deadline_ends_the_connect_of_an_id);
	tcase_add_test(tc, an_id_is_told_what_the_kernel_says_of_its_address_and_route);
	if (fake_testbed_kind == FAKE_IWARP)
		return tc;
	tcase_add_test(tc, the_kernels_own_not_supported_is_the_C_librarys);
	tcase_add_test(tc, who_disconnects_before_it_is_confirmed_does_when_it_is);
	tcase_add_test(tc, who_disconnects_what_never_comes_is_told);
	return tc;
}
