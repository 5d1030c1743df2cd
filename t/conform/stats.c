/* What is counted, what is told as text, and what goes to the log. */
#include "conform/member.h"
#include "conform/suite.h"
#include "conform/fixture.h"

#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <string.h>

enum { MESSAGES = 10, LEN = 100 };

static bool all_sent(struct fixture *f)
{
	return f->client->sends_ok == MESSAGES && f->server->received == MESSAGES;
}

static struct fixture *fixture_with_traffic(void)
{
	struct fixture *f = fixture_new();

	fixture_connect_pair(f);
	endpoint_send(f->client, MESSAGES, LEN);
	fixture_run_until(f, all_sent, 20000);
	return f;
}

/* --- counters ------------------------------------------------------------------------------- */

START_TEST(a_connection_counts_what_went_through_it)
{
	struct fixture *f = fixture_with_traffic();
	struct evrdma_traffic_stats client, server, both;

	evrdma_conn_get_stats(f->client->conn, &client);
	evrdma_conn_get_stats(f->server->conn, &server);
	evrdma_base_get_traffic_stats(f->base, &both);
	ck_assert_uint_eq(client.size, sizeof(client));
	ck_assert_uint_eq(client.sends, MESSAGES);
	ck_assert_uint_eq(client.bytes_sent, MESSAGES * LEN);
	ck_assert_uint_eq(client.work_done, MESSAGES);
	ck_assert_uint_eq(client.work_failed + client.work_cancelled, 0);
	ck_assert_uint_ge(client.send_chains, 1);
	ck_assert_uint_lt(client.send_chains, MESSAGES);
	ck_assert_uint_eq(server.messages_received, MESSAGES);
	ck_assert_uint_eq(server.bytes_received, MESSAGES * LEN);
	ck_assert_uint_ge(server.receive_chains, 1);
	ck_assert_uint_eq(both.sends, client.sends);
	ck_assert_uint_eq(both.messages_received, server.messages_received);
	fixture_free(f);
}
END_TEST

START_TEST(work_is_counted_by_its_kind)
{
	struct fixture *f = fixture_new();
	struct evrdma_traffic_stats stats;
	unsigned char memory[64] = { 0 };
	struct evrdma_work work = { .op = EVRDMA_OP_WRITE };
	struct evrdma_buf *theirs = evrdma_buf_new_reference(memory, sizeof(memory),
		EVRDMA_BUF_OPT_REMOTE_READ | EVRDMA_BUF_OPT_REMOTE_WRITE, NULL, NULL);
	struct evrdma_buf *ours = evrdma_pool_get(f->pool);
	struct evrdma_seg seg = { .buf = ours, .len = 16 };

	fixture_connect_pair(f);
	ck_assert_int_eq(evrdma_conn_expose(f->server->conn, theirs, &work.remote), 0);
	work.segs = &seg;
	work.seg_count = 1;
	ck_assert_int_eq(evrdma_conn_submit(f->client->conn, &work, NULL, NULL), 0);
	work.op = EVRDMA_OP_READ;
	seg.len = 24;
	ck_assert_int_eq(evrdma_conn_submit(f->client->conn, &work, NULL, NULL), 0);
	evrdma_conn_get_stats(f->client->conn, &stats);
	ck_assert_uint_eq(stats.sends, 0);
	ck_assert_uint_eq(stats.writes, 1);
	ck_assert_uint_eq(stats.bytes_written, 16);
	ck_assert_uint_eq(stats.reads, 1);
	ck_assert_uint_eq(stats.bytes_read, 24);
	evrdma_buf_unref(ours);
	evrdma_conn_disconnect(f->client->conn);
	fixture_run_until(f, fixture_none_live, 20000);
	evrdma_buf_unref(theirs);
	fixture_free(f);
}
END_TEST

START_TEST(a_full_queue_and_its_end_are_counted)
{
	struct fixture *f = fixture_new();
	struct evrdma_traffic_stats stats;

	f->options.send_depth = 4;
	fixture_connect_pair(f);
	endpoint_send(f->client, MESSAGES, LEN);
	evrdma_conn_get_stats(f->client->conn, &stats);
	ck_assert_uint_eq(stats.sends, 4);
	ck_assert_uint_eq(stats.eagains, 1);
	evrdma_conn_close(f->client->conn);
	fixture_run_until(f, fixture_none_live, 20000);
	evrdma_base_get_traffic_stats(f->base, &stats);
	ck_assert_uint_eq(stats.work_done + stats.work_failed + stats.work_cancelled, 4);
	fixture_free(f);
}
END_TEST

START_TEST(a_base_counts_its_connections_and_its_turns)
{
	struct fixture *f = fixture_with_traffic();
	struct evrdma_base_stats stats;

	evrdma_base_get_stats(f->base, &stats);
	ck_assert_uint_eq(stats.size, sizeof(stats));
	ck_assert_uint_eq(stats.connections, 2);
	ck_assert_uint_eq(stats.connections_connected, 1);
	ck_assert_uint_eq(stats.connections_accepted, 1);
	ck_assert_uint_eq(stats.connections_failed, 0);
	ck_assert_uint_eq(stats.requests_accepted, 1);
	ck_assert_uint_eq(stats.requests_pending, 0);
	ck_assert_uint_ge(stats.completions, 2);
	ck_assert_uint_ge(stats.polls, stats.arms);
	ck_assert_uint_ge(stats.cq_events, 1);
	ck_assert_uint_ge(stats.cm_events, 5);
	ck_assert_uint_ge(stats.tasks, 4);
	ck_assert_uint_ge(stats.turns, 4);
	ck_assert_uint_ge(stats.registrations_now, 1);
	ck_assert_uint_ge(stats.bytes_pinned, MESSAGES * LEN);
	evrdma_conn_close(f->client->conn);
	evrdma_conn_close(f->server->conn);
	fixture_run_until(f, fixture_none_live, 20000);
	evrdma_base_get_stats(f->base, &stats);
	ck_assert_uint_eq(stats.connections, 0);
	ck_assert_uint_eq(stats.connections_accepted, 1);
	fixture_free(f);
}
END_TEST

START_TEST(an_endpoint_counts_what_went_through_it)
{
	struct fixture *f = fixture_new();
	struct evrdma_traffic_stats sent, received;
	struct evrdma_base_stats stats;
	struct member sender, receiver;

	member_join(&receiver, f, 0, GROUP_A, 0);
	member_join(&sender, f, 0, GROUP_A, EVRDMA_MCAST_OPT_SENDONLY);
	ck_assert_int_eq(member_send(&sender, 200, NULL), 0);
	member_run_until_received(&receiver, 1);
	evrdma_dgram_get_stats(sender.dgram, &sent);
	evrdma_dgram_get_stats(receiver.dgram, &received);
	evrdma_base_get_stats(f->base, &stats);
	ck_assert_uint_eq(sent.sends, 1);
	ck_assert_uint_eq(sent.bytes_sent, 200);
	ck_assert_uint_eq(received.messages_received, 1);
	ck_assert_uint_eq(received.bytes_received, 200);
	ck_assert_uint_eq(stats.endpoints, 2);
	ck_assert_uint_eq(stats.address_handles, 2);
	fixture_free(f);
}
END_TEST

START_TEST(a_connection_that_fails_is_counted)
{
	struct fixture *f = fixture_new();
	struct evrdma_base_stats stats;

	fixture_connect_to(f, testbed.ip, 9);
	fixture_run_until(f, fixture_none_live, 20000);
	evrdma_base_get_stats(f->base, &stats);
	ck_assert_uint_eq(stats.connections_failed, 1);
	ck_assert_uint_eq(stats.connections_connected, 0);
	fixture_free(f);
}
END_TEST

/* --- the structures grow -------------------------------------------------------------------- */

START_TEST(a_program_of_another_age_gets_what_it_knows)
{
	struct fixture *f = fixture_with_traffic();
	struct {
		struct evrdma_traffic_stats known;
		uint64_t more[2];
	} newer;
	struct evrdma_traffic_stats older;
	size_t size = offsetof(struct evrdma_traffic_stats, writes);

	memset(&newer, 0xff, sizeof(newer));
	evrdma_conn_get_stats_sized(f->client->conn, &newer.known, sizeof(newer));
	ck_assert_uint_eq(newer.known.sends, MESSAGES);
	ck_assert_uint_eq(newer.more[0] | newer.more[1], 0);
	memset(&older, 0xff, sizeof(older));
	evrdma_conn_get_stats_sized(f->client->conn, &older, size);
	ck_assert_uint_eq(older.size, size);
	ck_assert_uint_eq(older.sends, MESSAGES);
	ck_assert_uint_eq(older.writes, UINT64_MAX);
	fixture_free(f);
}
END_TEST

/* --- as text -------------------------------------------------------------------------------- */

struct lines {
	unsigned count, zeroes;
	bool base, traffic, listener, pool, conn;
};

static void on_line(const char *text, void *arg)
{
	struct lines *lines = arg;

	lines->count++;
	ck_assert_ptr_null(strchr(text, '\n'));
	lines->zeroes += !strcmp(strrchr(text, ' '), " 0");
	lines->base |= !strcmp(text, "base: connections 2");
	lines->traffic |= !strcmp(text, "base: bytes_sent 1000");
	lines->pool |= !strncmp(text, "pool of 4096: bufs_out_max ", 27);
	lines->listener |= !strncmp(text, "listener ", 9) && strstr(text, ": accepted 1");
	lines->conn |= !strncmp(text, "connection ", 11) && strstr(text, testbed.ip) &&
		       strstr(text, ": bytes_sent 1000");
}

START_TEST(a_dump_tells_of_every_object)
{
	struct fixture *f = fixture_with_traffic();
	struct lines lines = { 0 };

	evrdma_base_dump(f->base, on_line, &lines);
	ck_assert_uint_gt(lines.count, 10);
	ck_assert_uint_eq(lines.zeroes, 0);
	ck_assert(lines.base && lines.traffic && lines.pool && lines.listener && lines.conn);
	fixture_free(f);
}
END_TEST

/* --- pools ---------------------------------------------------------------------------------- */

START_TEST(a_pool_counts_its_buffers_and_remembers_the_most)
{
	struct fixture *f = fixture_new();
	struct evrdma_pool *pool = evrdma_pool_new(f->base, 100, 2);
	struct evrdma_buf *a = evrdma_pool_get(pool), *b = evrdma_pool_get(pool);
	struct evrdma_pool_stats stats;

	ck_assert_ptr_null(evrdma_pool_get(pool));
	evrdma_buf_unref(a);
	evrdma_pool_get_stats(pool, &stats);
	ck_assert_uint_eq(stats.bufs, 2);
	ck_assert_uint_eq(stats.bufs_out, 1);
	ck_assert_uint_eq(stats.bufs_out_max, 2);
	ck_assert_uint_eq(stats.gets, 2);
	ck_assert_uint_eq(stats.get_errors, 1);
	ck_assert_uint_eq(stats.slabs, 1);
	ck_assert_uint_ge(stats.bytes, 200);
	evrdma_buf_unref(b);
	evrdma_pool_free(pool);
	fixture_free(f);
}
END_TEST

/* --- versions and the log ------------------------------------------------------------------- */

START_TEST(the_version_of_the_library_is_that_of_its_headers)
{
	uint32_t number = evrdma_version_number();
	char text[32];

	snprintf(text, sizeof(text), "%u.%u.%u", number >> 24, number >> 16 & 0xff,
		number >> 8 & 0xff);
	ck_assert_str_eq(evrdma_version(), EVRDMA_VERSION);
	ck_assert_uint_eq(number, EVRDMA_VERSION_NUMBER);
	ck_assert_str_eq(text, EVRDMA_VERSION);
}
END_TEST

struct log {
	unsigned count;
	enum evrdma_log_level level;
	char text[256];
};

static void on_log(enum evrdma_log_level level, const char *text, void *arg)
{
	struct log *log = arg;

	log->count++;
	log->level = level;
	snprintf(log->text, sizeof(log->text), "%s", text);
}

/* An id on the channel that belongs to no object, whose event nobody wants. */
START_TEST(an_event_for_nobody_is_logged)
{
	struct fixture *f = fixture_new();
	struct log log = { 0 };
	struct rdma_cm_id *id;
	struct sockaddr_in sin;

	evrdma_set_log_cb(on_log, &log);
	fixture_address(&sin, testbed.ip, 0);
	ck_assert_int_eq(
		rdma_create_id(evrdma_base_get_channel(f->base), &id, NULL, RDMA_PS_TCP), 0);
	ck_assert_int_eq(rdma_resolve_addr(id, NULL, (struct sockaddr *)&sin, 2000), 0);
	while (!log.count)
		event_base_loop(f->loop, EVLOOP_ONCE);
	evrdma_set_log_cb(NULL, NULL);
	ck_assert_int_eq(log.level, EVRDMA_LOG_DEBUG);
	ck_assert_ptr_nonnull(strstr(log.text, "RDMA_CM_EVENT_ADDR_RESOLVED"));
	rdma_destroy_id(id);
	fixture_free(f);
}
END_TEST

TCase *stats_case(void)
{
	TCase *tc = tcase_create("stats");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, a_connection_counts_what_went_through_it);
	tcase_add_test(tc, work_is_counted_by_its_kind);
	tcase_add_test(tc, a_full_queue_and_its_end_are_counted);
	tcase_add_test(tc, a_base_counts_its_connections_and_its_turns);
	if (testbed_has(TESTBED_DATAGRAMS | TESTBED_GROUPS))
		tcase_add_test(tc, an_endpoint_counts_what_went_through_it);
	tcase_add_test(tc, a_connection_that_fails_is_counted);
	tcase_add_test(tc, a_program_of_another_age_gets_what_it_knows);
	tcase_add_test(tc, a_dump_tells_of_every_object);
	tcase_add_test(tc, a_pool_counts_its_buffers_and_remembers_the_most);
	tcase_add_test(tc, the_version_of_the_library_is_that_of_its_headers);
	tcase_add_test(tc, an_event_for_nobody_is_logged);
	return tc;
}
