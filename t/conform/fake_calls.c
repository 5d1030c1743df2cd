/* What a call of the program's does while completions of others wait: nobody is told inside it. */
#include "conform/fake.h"
#include "conform/world.h"

#include <string.h>

enum { PATIENCE_MS = 20000, LEN = 64, SHARED = 8 };

static void leave_open(
	struct side *side, enum evrdma_conn_event event, const struct evrdma_error *error)
{
}

static bool both_are_closed(struct world *w)
{
	return w->closed == 2;
}

/* A pair that shares, and is closed: what it shared is only the program's now. */
static void share_and_close(
	struct world *w, struct evrdma_srq *srq, struct evrdma_domain *domain)
{
	w->options.srq = srq;
	w->options.recv_pool = srq ? NULL : w->pool;
	w->options.domain = domain;
	world_connect_pair(w);
	evrdma_conn_close(w->client->conn);
	evrdma_conn_close(w->server->conn);
	world_run_until(w, both_are_closed, PATIENCE_MS);
	w->options.srq = NULL;
	w->options.recv_pool = w->pool;
	w->options.domain = NULL;
}

/* Another pair, of whose work some is complete and not yet told. */
static void leave_completions(struct world *w)
{
	w->client = w->server = NULL;
	world_connect_pair(w);
	fake_work_by_hand(true);
	side_send(w->client, 4, LEN);
	world_run_a_little(w);
	ck_assert_uint_eq(fake_step(4), 4);
	ck_assert_uint_gt(fake_unpolled(), 0);
}

static bool server_has_received(struct world *w)
{
	return w->server->received == 4;
}

static void expect_completions(struct world *w)
{
	ck_assert_uint_eq(w->server->received, 0);
	fake_work_by_hand(false);
	world_run_until(w, server_has_received, PATIENCE_MS);
	world_free(w);
}

START_TEST(giving_up_a_shared_queue_tells_nobody_of_anything)
{
	struct world *w = world_new();
	struct evrdma_srq *srq = evrdma_srq_new(w->base, w->pool, SHARED);

	w->on_event = leave_open;
	share_and_close(w, srq, NULL);
	leave_completions(w);
	w->in_call = true;
	evrdma_srq_free(srq);
	w->in_call = false;
	expect_completions(w);
}
END_TEST

START_TEST(giving_up_a_domain_tells_nobody_of_anything)
{
	struct world *w = world_new();
	struct evrdma_srq *srq = evrdma_srq_new(w->base, w->pool, SHARED);
	struct evrdma_domain *domain = evrdma_domain_new(w->base);

	w->on_event = leave_open;
	share_and_close(w, srq, domain);
	leave_completions(w);
	w->in_call = true;
	evrdma_domain_free(domain);
	w->in_call = false;
	expect_completions(w);
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
	struct world *w = arg;
	struct kept *kept = w->tag;

	if (w->server)
		kept->request = request;
	else
		side_accept(world_side_new(w, false), request);
}

static bool is_kept(struct world *w)
{
	return ((struct kept *)w->tag)->request;
}

static bool has_arrived(struct world *w)
{
	return ((struct kept *)w->tag)->arrived;
}

static void on_arrived(struct evrdma_request *request, void *arg)
{
	struct world *w = arg;

	ck_assert(!w->in_call);
	((struct kept *)w->tag)->arrived = true;
	ck_assert_int_eq(evrdma_request_reject(request, NULL, 0), 0);
}

static void listen_with(struct world *w, struct evrdma_srq *srq, struct evrdma_domain *domain)
{
	struct evrdma_listener_options options;
	struct sockaddr_in sin;

	evrdma_listener_options_init(&options);
	options.srq = srq;
	options.domain = domain;
	world_address(&sin, place.ip, 0);
	w->listener = evrdma_listener_new(
		w->base, (struct sockaddr *)&sin, &options, on_shared_request, w);
	ck_assert_ptr_nonnull(w->listener);
}

static bool client_is_up(struct world *w)
{
	return w->server && w->server->connected && w->client->connected;
}

/* The first made the verbs' part of what is shared; the second alone still holds it. */
static void leave_all_to_a_request(struct world *w)
{
	struct evrdma_srq *srq = evrdma_srq_new(w->base, w->pool, SHARED);
	struct evrdma_domain *domain = evrdma_domain_new(w->base);

	listen_with(w, srq, domain);
	w->options.recv_depth = 0;
	w->options.recv_pool = NULL;
	world_connect(w);
	world_run_until(w, client_is_up, PATIENCE_MS);
	world_connect(w);
	world_run_until(w, is_kept, PATIENCE_MS);
	evrdma_conn_close(w->server->conn);
	world_run_a_little(w);
	evrdma_listener_close(w->listener);
	w->listener = NULL;
	world_run_a_little(w);
	evrdma_srq_free(srq);
	evrdma_domain_free(domain);
}

START_TEST(a_request_that_moves_lets_go_of_what_is_shared_under_no_lock)
{
	struct kept kept = { 0 };
	struct world *w = world_new();

	w->tag = &kept;
	w->on_event = leave_open;
	world_add_other(w);
	leave_all_to_a_request(w);
	w->in_call = true;
	ck_assert_int_eq(evrdma_request_move(kept.request, w->other, on_arrived, w), 0);
	w->in_call = false;
	world_run_until(w, has_arrived, PATIENCE_MS);
	world_close_other(w);
	world_free(w);
}
END_TEST

TCase *calls_case(void)
{
	TCase *tc = tcase_create("calls");

	tcase_add_checked_fixture(tc, place.start, place.stop);
	tcase_set_timeout(tc, 60);
	if (place_has(PLACE_SRQS)) {
		tcase_add_test(tc, giving_up_a_shared_queue_tells_nobody_of_anything);
		tcase_add_test(tc, giving_up_a_domain_tells_nobody_of_anything);
		tcase_add_test(
			tc, a_request_that_moves_lets_go_of_what_is_shared_under_no_lock);
	}
	return tc;
}
