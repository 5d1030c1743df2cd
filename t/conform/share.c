/* What connections share, and what they do not: receive buffers, protection domains. */
#include "conform/suite.h"
#include "conform/fixture.h"

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

static void check_message(struct endpoint *endpoint, const struct evrdma_recv *recv)
{
	struct shared *shared = endpoint->fixture->tag;
	unsigned message[2];

	ck_assert_int_eq(recv->err, 0);
	ck_assert_uint_eq(recv->len, sizeof(message));
	memcpy(message, recv->data, sizeof(message));
	ck_assert_uint_lt(message[0], PAIRS);
	ck_assert_uint_eq(message[1], shared->next[message[0]]++);
	/* All of one sender come on one connection. */
	if (!endpoint->tag)
		endpoint->tag = &shared->next[message[0]];
	ck_assert_ptr_eq(endpoint->tag, &shared->next[message[0]]);
	shared->received++;
}

static bool all_received(struct fixture *f)
{
	struct shared *shared = f->tag;
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
	struct fixture *f = fixture_new();
	struct evrdma_pool *pool = evrdma_pool_new(f->base, 64, SHARED);
	struct evrdma_srq *srq = evrdma_srq_new(f->base, pool, SHARED);
	unsigned i;

	ck_assert_ptr_nonnull(srq);
	f->tag = &shared;
	f->on_recv = check_message;
	f->options.recv_pool = NULL;
	f->options.srq = srq;
	f->options.inline_bytes = 16;
	/* iWARP has no way to tell a sender to wait for a buffer: it has as many as it needs. */
	f->options.send_depth = testbed.is_iwarp ? 1 : 16;
	for (i = 0; i < PAIRS; i++) {
		f->client = f->server = NULL;
		fixture_connect_pair(f);
		shared.clients[i] = f->client->conn;
	}
	evrdma_srq_free(srq);
	evrdma_pool_free(pool);
	fixture_run_until(f, all_received, 20000);
	fixture_free(f);
}
END_TEST

START_TEST(a_shared_queue_wants_a_pool_and_a_depth)
{
	struct fixture *f = fixture_new();
	struct evrdma_srq *srq = evrdma_srq_new(f->base, f->pool, 4);
	struct evrdma_buf *buf = evrdma_pool_get(f->pool);

	ck_assert(!evrdma_srq_new(f->base, NULL, 4) && errno == EINVAL);
	ck_assert(!evrdma_srq_new(f->base, f->pool, 0) && errno == EINVAL);
	ck_assert(!evrdma_srq_new(f->base, f->pool, 65537) && errno == EINVAL);
	f->options.srq = srq;
	ck_assert(!evrdma_conn_new(f->base, &f->options) && errno == EINVAL);
	f->options.recv_pool = NULL;
	ck_assert_int_eq(evrdma_conn_recv(fixture_endpoint_new(f, true)->conn, buf), -EINVAL);
	evrdma_buf_unref(buf);
	evrdma_srq_free(NULL);
	/* What is not given up goes with the base. */
	fixture_free(f);
}
END_TEST

/* --- protection domains --------------------------------------------------------------------- */

static const char text[] = "where it should not be";

struct intruder {
	char *memory;
	unsigned done;
	int error;
};

static void keep_error(struct evrdma_conn *conn, const struct evrdma_error *error, void *arg)
{
	struct intruder *intruder = arg;

	intruder->done++;
	intruder->error = error ? error->err : 0;
}

static bool intruder_is_done(struct fixture *f)
{
	return ((struct intruder *)f->tag)->done;
}

/* A second pair, whose server is in a domain or not, writes where the first one may. */
static void write_with_key_of_another(struct fixture *f, struct evrdma_domain *domain)
{
	struct intruder *intruder = f->tag;
	struct evrdma_buf *exposed = evrdma_buf_new_reference(
		intruder->memory, MEMORY, EVRDMA_BUF_OPT_REMOTE_WRITE, NULL, NULL);
	struct evrdma_work work = {
		.op = EVRDMA_OP_WRITE, .inline_data = text, .inline_len = sizeof(text)
	};

	fixture_connect_pair(f);
	ck_assert_int_eq(evrdma_conn_expose(f->server->conn, exposed, &work.remote), 0);
	f->client = f->server = NULL;
	f->options.domain = domain;
	fixture_connect_pair(f);
	ck_assert_int_eq(evrdma_conn_submit(f->client->conn, &work, keep_error, intruder), 0);
	fixture_run_until(f, intruder_is_done, 20000);
	evrdma_buf_unref(exposed);
}

static bool text_has_come(struct fixture *f)
{
	return !strcmp(((struct intruder *)f->tag)->memory, text);
}

/* On iWARP a write is done when TCP has it, and then it is placed, or ends the connection. */
static void try_key(bool in_domain)
{
	struct intruder intruder = { .memory = calloc(1, MEMORY) };
	struct fixture *f = fixture_new();
	struct evrdma_domain *domain = in_domain ? evrdma_domain_new(f->base) : NULL;

	f->tag = &intruder;
	f->options.inline_bytes = 32;
	write_with_key_of_another(f, domain);
	evrdma_domain_free(domain);
	fixture_run_until(f, in_domain ? fixture_client_is_closed : text_has_come, 20000);
	if (!in_domain)
		ck_assert_int_eq(intruder.error, 0);
	ck_assert_str_eq(intruder.memory, in_domain ? "" : text);
	fixture_free(f);
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
	struct fixture *f = fixture_new();
	struct evrdma_conn_options conn;
	struct evrdma_dgram_options dgram;

	fixture_add_other(f);
	evrdma_conn_options_init(&conn);
	evrdma_dgram_options_init(&dgram);
	conn.recv_pool = dgram.recv_pool = f->other_pool;
	ck_assert(!evrdma_conn_new(f->base, &conn) && errno == EINVAL);
	ck_assert(!evrdma_dgram_new(f->base, &dgram) && errno == EINVAL);
	ck_assert(!evrdma_srq_new(f->base, f->other_pool, 1) && errno == EINVAL);
	conn.recv_pool = NULL;
	conn.srq = evrdma_srq_new(f->other, f->other_pool, 1);
	ck_assert(conn.srq && !evrdma_conn_new(f->base, &conn) && errno == EINVAL);
	conn.srq = NULL;
	conn.domain = evrdma_domain_new(f->other);
	ck_assert(conn.domain && !evrdma_conn_new(f->base, &conn) && errno == EINVAL);
	fixture_close_other(f);
	fixture_free(f);
}
END_TEST

TCase *share_case(void)
{
	TCase *tc = tcase_create("share");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	if (testbed_has(TESTBED_SRQS))
		tcase_add_test(tc, connections_share_receive_buffers);
	tcase_add_test(tc, a_shared_queue_wants_a_pool_and_a_depth);
	tcase_add_test(tc, a_key_is_worth_nothing_in_another_domain);
	tcase_add_test(tc, a_key_is_good_for_all_without_a_domain);
	tcase_add_test(tc, what_belongs_to_another_base_is_refused);
	return tc;
}
