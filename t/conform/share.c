/* What connections share, and what they do not: receive buffers, protection domains. */
#include "conform/suite.h"
#include "conform/world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PAIRS = 4, EACH = 30, SHARED = 8, MEMORY = 4096 };

struct shared {
	struct evrdma_conn *clients[PAIRS];
	unsigned next[PAIRS]; /* the number of the message that the server wants of each */
	unsigned sent[PAIRS];
	unsigned received;
};

/* --- receive buffers ------------------------------------------------------------------------ */

static void check_message(struct side *side, const struct evrdma_recv *recv)
{
	struct shared *shared = side->world->tag;
	unsigned message[2];

	ck_assert_int_eq(recv->err, 0);
	ck_assert_uint_eq(recv->len, sizeof(message));
	memcpy(message, recv->data, sizeof(message));
	ck_assert_uint_lt(message[0], PAIRS);
	ck_assert_uint_eq(message[1], shared->next[message[0]]++);
	/* All of one sender come on one connection. */
	if (!side->tag)
		side->tag = &shared->next[message[0]];
	ck_assert_ptr_eq(side->tag, &shared->next[message[0]]);
	shared->received++;
}

static bool all_received(struct world *w)
{
	struct shared *shared = w->tag;
	unsigned i;

	for (i = 0; i < PAIRS; i++) {
		while (shared->sent[i] < EACH && evrdma_conn_send_space(shared->clients[i])) {
			unsigned message[2] = { i, shared->sent[i]++ };
			const struct evrdma_work work = { .op = EVRDMA_OP_SEND,
				.inline_data = message,
				.inline_len = sizeof(message) };

			ck_assert_int_eq(
				evrdma_conn_submit(shared->clients[i], &work, NULL, NULL), 0);
		}
	}
	return shared->received == PAIRS * EACH;
}

START_TEST(connections_share_receive_buffers)
{
	struct shared shared = { 0 };
	struct world *w = world_new();
	struct evrdma_pool *pool = evrdma_pool_new(w->base, 64, SHARED);
	struct evrdma_srq *srq = evrdma_srq_new(w->base, pool, SHARED);
	unsigned i;

	ck_assert_ptr_nonnull(srq);
	w->tag = &shared;
	w->on_recv = check_message;
	w->options.recv_pool = NULL;
	w->options.srq = srq;
	w->options.inline_bytes = 16;
	/* iWARP has no way to tell a sender to wait for a buffer: it has as many as it needs. */
	w->options.send_depth = place.is_iwarp ? 1 : 16;
	for (i = 0; i < PAIRS; i++) {
		w->client = w->server = NULL;
		world_connect_pair(w);
		shared.clients[i] = w->client->conn;
	}
	evrdma_srq_free(srq);
	evrdma_pool_free(pool);
	world_run_until(w, all_received, 20000);
	world_free(w);
}
END_TEST

START_TEST(a_shared_queue_wants_a_pool_and_a_depth)
{
	struct world *w = world_new();
	struct evrdma_srq *srq = evrdma_srq_new(w->base, w->pool, 4);
	struct evrdma_buf *buf = evrdma_pool_get(w->pool);

	ck_assert(!evrdma_srq_new(w->base, NULL, 4) && errno == EINVAL);
	ck_assert(!evrdma_srq_new(w->base, w->pool, 0) && errno == EINVAL);
	ck_assert(!evrdma_srq_new(w->base, w->pool, 65537) && errno == EINVAL);
	w->options.srq = srq;
	ck_assert(!evrdma_conn_new(w->base, &w->options) && errno == EINVAL);
	w->options.recv_pool = NULL;
	ck_assert_int_eq(evrdma_conn_recv(world_side_new(w, true)->conn, buf), -EINVAL);
	evrdma_buf_unref(buf);
	evrdma_srq_free(NULL);
	/* What is not given up goes with the base. */
	world_free(w);
}
END_TEST

/* --- protection domains --------------------------------------------------------------------- */

struct intruder {
	unsigned char *memory;
	unsigned done;
	int error;
};

static void keep_error(struct evrdma_conn *conn, const struct evrdma_error *error, void *arg)
{
	struct intruder *intruder = arg;

	intruder->done++;
	intruder->error = error ? error->err : 0;
}

static bool intruder_is_done(struct world *w)
{
	return ((struct intruder *)w->tag)->done;
}

/* A second pair, whose server is in a domain or not, writes where the first one may. */
static void write_with_key_of_another(struct world *w, struct evrdma_domain *domain)
{
	struct intruder *intruder = w->tag;
	struct evrdma_buf *exposed = evrdma_buf_new_reference(
		intruder->memory, MEMORY, EVRDMA_BUF_OPT_REMOTE_WRITE, NULL, NULL);
	const char text[] = "where it should not be";
	struct evrdma_work work = {
		.op = EVRDMA_OP_WRITE, .inline_data = text, .inline_len = sizeof(text)
	};

	world_connect_pair(w);
	ck_assert_int_eq(evrdma_conn_expose(w->server->conn, exposed, &work.remote), 0);
	w->client = w->server = NULL;
	w->options.domain = domain;
	world_connect_pair(w);
	ck_assert_int_eq(evrdma_conn_submit(w->client->conn, &work, keep_error, intruder), 0);
	world_run_until(w, intruder_is_done, 20000);
	evrdma_buf_unref(exposed);
}

static void try_key(bool in_domain)
{
	struct intruder intruder = { .memory = calloc(1, MEMORY) };
	struct world *w = world_new();
	struct evrdma_domain *domain = in_domain ? evrdma_domain_new(w->base) : NULL;

	w->tag = &intruder;
	w->options.inline_bytes = 32;
	write_with_key_of_another(w, domain);
	evrdma_domain_free(domain);
	if (!in_domain)
		ck_assert_int_eq(intruder.error, 0);
	ck_assert_str_eq((char *)intruder.memory, in_domain ? "" : "where it should not be");
	world_free(w);
	free(intruder.memory);
}

START_TEST(a_key_is_worth_nothing_in_another_domain)
{
	try_key(true);
}
END_TEST

START_TEST(a_key_is_good_for_all_without_a_domain)
{
	try_key(false);
}
END_TEST

/* Each goes with its base. */
START_TEST(what_belongs_to_another_base_is_refused)
{
	struct world *w = world_new();
	struct evrdma_conn_options conn;
	struct evrdma_dgram_options dgram;

	world_add_other(w);
	evrdma_conn_options_init(&conn);
	evrdma_dgram_options_init(&dgram);
	conn.recv_pool = dgram.recv_pool = w->other_pool;
	ck_assert(!evrdma_conn_new(w->base, &conn) && errno == EINVAL);
	ck_assert(!evrdma_dgram_new(w->base, &dgram) && errno == EINVAL);
	ck_assert(!evrdma_srq_new(w->base, w->other_pool, 1) && errno == EINVAL);
	conn.recv_pool = NULL;
	conn.srq = evrdma_srq_new(w->other, w->other_pool, 1);
	ck_assert(conn.srq && !evrdma_conn_new(w->base, &conn) && errno == EINVAL);
	conn.srq = NULL;
	conn.domain = evrdma_domain_new(w->other);
	ck_assert(conn.domain && !evrdma_conn_new(w->base, &conn) && errno == EINVAL);
	world_close_other(w);
	world_free(w);
}
END_TEST

TCase *share_case(void)
{
	TCase *tc = tcase_create("share");

	tcase_add_checked_fixture(tc, place.start, place.stop);
	tcase_set_timeout(tc, 60);
	if (place_has(PLACE_SRQS))
		tcase_add_test(tc, connections_share_receive_buffers);
	tcase_add_test(tc, a_shared_queue_wants_a_pool_and_a_depth);
	tcase_add_test(tc, a_key_is_worth_nothing_in_another_domain);
	tcase_add_test(tc, a_key_is_good_for_all_without_a_domain);
	tcase_add_test(tc, what_belongs_to_another_base_is_refused);
	return tc;
}
