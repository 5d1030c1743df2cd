/* What a call of the program's does while completions of others wait: nobody is told inside it. */
#include "conform/fake.h"
#include "conform/fixture.h"

#include <string.h>

enum { PATIENCE_MS = 20000, LEN = 64, SHARED = 8 };

static void leave_open(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
}

static bool both_are_closed(struct fixture *f)
{
	return f->closed == 2;
}

/* A pair that shares, and is closed: what it shared is only the program's now. */
static void share_and_close(struct fixture *f, struct evrdma_srq *srq, struct evrdma_domain *domain)
{
	f->options.srq = srq;
	f->options.recv_pool = srq ? NULL : f->pool;
	f->options.domain = domain;
	fixture_connect_pair(f);
	evrdma_conn_close(f->client->conn);
	evrdma_conn_close(f->server->conn);
	fixture_run_until(f, both_are_closed, PATIENCE_MS);
	f->options.srq = NULL;
	f->options.recv_pool = f->pool;
	f->options.domain = NULL;
}

/* Another pair, of whose work some is complete and not yet told. */
static void leave_completions(struct fixture *f)
{
	f->client = f->server = NULL;
	fixture_connect_pair(f);
	fake_work_by_hand(true);
	endpoint_send(f->client, 4, LEN);
	fixture_run_a_little(f);
	ck_assert_uint_eq(fake_step(4), 4);
	ck_assert_uint_gt(fake_unpolled(), 0);
}

static bool server_has_received(struct fixture *f)
{
	return f->server->received == 4;
}

static void expect_completions(struct fixture *f)
{
	ck_assert_uint_eq(f->server->received, 0);
	fake_work_by_hand(false);
	fixture_run_until(f, server_has_received, PATIENCE_MS);
	fixture_free(f);
}

START_TEST(giving_up_a_shared_queue_tells_nobody_of_anything)
{
	struct fixture *f = fixture_new();
	struct evrdma_srq *srq = evrdma_srq_new(f->base, f->pool, SHARED);

	f->on_event = leave_open;
	share_and_close(f, srq, NULL);
	leave_completions(f);
	f->in_call = true;
	evrdma_srq_free(srq);
	f->in_call = false;
	expect_completions(f);
}
END_TEST

START_TEST(giving_up_a_domain_tells_nobody_of_anything)
{
	struct fixture *f = fixture_new();
	struct evrdma_srq *srq = evrdma_srq_new(f->base, f->pool, SHARED);
	struct evrdma_domain *domain = evrdma_domain_new(f->base);

	f->on_event = leave_open;
	share_and_close(f, srq, domain);
	leave_completions(f);
	f->in_call = true;
	evrdma_domain_free(domain);
	f->in_call = false;
	expect_completions(f);
}
END_TEST

/* --- a request that holds what is shared ---------------------------------------------------- */

struct kept {
	struct evrdma_request *request;
	bool arrived;
};

static void on_shared_request(
	struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	struct fixture *f = arg;
	struct kept *kept = f->tag;

	if (f->server)
		kept->request = request;
	else
		endpoint_accept(fixture_endpoint_new(f, false), request);
}

static bool is_kept(struct fixture *f)
{
	return ((struct kept *)f->tag)->request;
}

static bool has_arrived(struct fixture *f)
{
	return ((struct kept *)f->tag)->arrived;
}

static void on_arrived(struct evrdma_request *request, void *arg)
{
	struct fixture *f = arg;

	ck_assert(!f->in_call);
	((struct kept *)f->tag)->arrived = true;
	ck_assert_int_eq(evrdma_request_reject(request, NULL, 0), 0);
}

static void listen_with(struct fixture *f, struct evrdma_srq *srq, struct evrdma_domain *domain)
{
	struct evrdma_listener_options options;
	struct sockaddr_in sin;

	evrdma_listener_options_init(&options);
	options.srq = srq;
	options.domain = domain;
	fixture_address(&sin, testbed.ip, 0);
	f->listener = evrdma_listener_new(
		f->base, (struct sockaddr *)&sin, &options, on_shared_request, f);
	ck_assert_ptr_nonnull(f->listener);
}

static bool client_is_up(struct fixture *f)
{
	return f->server && f->server->connected && f->client->connected;
}

/* The first made the verbs' part of what is shared; the second alone still holds it. */
static void leave_all_to_a_request(struct fixture *f)
{
	struct evrdma_srq *srq = evrdma_srq_new(f->base, f->pool, SHARED);
	struct evrdma_domain *domain = evrdma_domain_new(f->base);

	listen_with(f, srq, domain);
	f->options.recv_depth = 0;
	f->options.recv_pool = NULL;
	fixture_connect(f);
	fixture_run_until(f, client_is_up, PATIENCE_MS);
	fixture_connect(f);
	fixture_run_until(f, is_kept, PATIENCE_MS);
	evrdma_conn_close(f->server->conn);
	fixture_run_a_little(f);
	evrdma_listener_close(f->listener);
	f->listener = NULL;
	fixture_run_a_little(f);
	evrdma_srq_free(srq);
	evrdma_domain_free(domain);
}

START_TEST(a_request_that_moves_lets_go_of_what_is_shared_under_no_lock)
{
	struct kept kept = { 0 };
	struct fixture *f = fixture_new();

	f->tag = &kept;
	f->on_event = leave_open;
	fixture_add_other(f);
	leave_all_to_a_request(f);
	f->in_call = true;
	ck_assert_int_eq(evrdma_request_move(kept.request, f->other, on_arrived, f), 0);
	f->in_call = false;
	fixture_run_until(f, has_arrived, PATIENCE_MS);
	fixture_close_other(f);
	fixture_free(f);
}
END_TEST

TCase *calls_case(void)
{
	TCase *tc = tcase_create("calls");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	if (testbed_has(TESTBED_SRQS)) {
		tcase_add_test(tc, giving_up_a_shared_queue_tells_nobody_of_anything);
		tcase_add_test(tc, giving_up_a_domain_tells_nobody_of_anything);
		tcase_add_test(tc, a_request_that_moves_lets_go_of_what_is_shared_under_no_lock);
	}
	return tc;
}
