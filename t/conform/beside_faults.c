/* What breaks, and what the others have of it. */
#include <errno.h>
#include <event2/dns.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conform/beside.h"
#include "conform/strangers.h"

enum {
	FEW = 10,
	A_WHILE_S = 2,
	LEN = 512,
	CROWD = 500,
	IWARP_CROWD = 100,
	KEEPALIVE_MS = 1000,
	IDLE_MS = 1000,
	SOME = 20,
	DEPTH_FILLED = 4, /* messages, as many as are taken at once */
	DEADLINE_MS = 2000,
	MPA_PATIENCE_S = 12, /* more than the driver's MPAREQ_TIMEOUT */
	FLOOD = 5000,
	FLOODS = 3,	    /* the last only if the tables still grew with the second */
	FLOOD_AGAIN = 1000, /* finds the tables large, and would leave as much */
	BACKLOG = 16,
	OFTEN = 5, /* three times if there were room for all: the loop is kept */
	KEPT_US = 1000000,
	LOOK_US = 1000,
	HANDSHAKES = 200,
	REQ_PRIVATE = 56,
	REP_PRIVATE = 196,
	WRONG_KEY = 0x5eed,
};

static void be_used(struct fixture *f, unsigned n)
{
	victims_ask(f, n, LEN);
	run_until(f, victims_are_answered);
}

/* All of them, up and used. */
static void connect_some(struct fixture *f, unsigned n)
{
	victims_connect(f, n);
	run_until(f, victims_are_up);
	be_used(f, 1);
}

static void end_all(struct fixture *f)
{
	victims_close();
	run_until(f, victims_are_gone);
}

/* --- the device ------------------------------------------------------------------------------ */

static bool is_removed(struct fixture *f)
{
	return !access("/tmp/removed", F_OK);
}

static void take_away(const char *device)
{
	char command[128];

	unlink("/tmp/removed");
	snprintf(command, sizeof(command), "(rdma link delete %s; : >/tmp/removed) &", device);
	ck_assert_int_eq(system(command), 0);
}

static void plug_in(struct fixture *f, const char *device, const char *netdev)
{
	char command[128];

	snprintf(command, sizeof(command), "rdma link add %s type %s netdev %s", device,
		getenv("EVR_KIND"), netdev);
	ck_assert_int_eq(system(command), 0);
	snprintf(command, sizeof(command), "rdma link show %s/1 | grep -q 'state ACTIVE'", device);
	while (system(command))
		run_for(f, 1);
}

/* Of its two ends each device has one: the clients', and the servers' with their listener. */
static const char *const places[][2] = { { "EVR_DEV_A", "EVR_NETDEV_A" },
	{ "EVR_DEV_B", "EVR_NETDEV_B" } };
static int place;

static unsigned crowd(void)
{
	return testbed.is_iwarp ? IWARP_CROWD : CROWD;
}

static void remove_and_add(struct fixture *f)
{
	const char *device = getenv(places[place][0]);

	victims_ask(f, 2, LEN);
	take_away(device);
	run_until(f, victims_are_gone);
	ck_assert_uint_eq(victims.told, victims.made);
	run_until(f, is_removed);
	plug_in(f, device, getenv(places[place][1]));
	run_until(f, victims_listen);
	victims_start_over();
}

static void crowd_on_a_device(struct fixture *f, bool strikes)
{
	connect_some(f, crowd());
	if (strikes) {
		remove_and_add(f);
		connect_some(f, crowd());
	}
	run_for(f, A_WHILE_S);
	end_all(f);
}

START_TEST(a_device_is_removed_and_added_beneath_a_crowd)
{
	const struct trial trial = { crowd_on_a_device, .off_the_wire = true };

	place = _i;
	beside(&trial);
}
END_TEST

/* --- frames ---------------------------------------------------------------------------------- */

/* siw makes its TCP connection inside the call, which keeps the loop when a frame of that is lost.
 */
static void connect_in(struct fixture *f, const struct weather *around)
{
	if (!testbed.is_iwarp)
		wire_set(around);
	victims_connect(f, SOME);
	run_until(f, victims_are_settled);
	wire_set(around);
}

static const struct weather rough[] = {
	{ .seed = 1, .loss = 10 },
	{ .seed = 2, .delay_us = 500, .jitter_us = 1000 },
	{ .seed = 3, .loss = 10, .delay_us = 500, .jitter_us = 1000 },
};
static const struct weather fair = { .seed = 1 };
static const struct weather *weather;

static void in_rough_weather(struct fixture *f, bool strikes)
{
	connect_in(f, strikes ? weather : &fair);
	ck_assert_uint_eq(victims.up, SOME);
	be_used(f, DEPTH_FILLED);
	run_for(f, A_WHILE_S);
	calm();
	end_all(f);
}

START_TEST(what_is_lost_or_late_arrives_all_the_same)
{
	const struct trial trial = { in_rough_weather, .off_the_wire = true };

	weather = &rough[_i];
	beside(&trial);
}
END_TEST

/* Of the kernel, of one message; see timeouts_traffic.c. On iWARP they are TCP's. */
static void assert_in_time(void)
{
	enum { RETRIES_MS = 7 * 2147, MESSAGES = 2 * DEPTH_FILLED };

	if (!testbed.is_iwarp)
		ck_assert_uint_le(passed_ms(), CONNECT_MS + MESSAGES * RETRIES_MS);
}

static void where_much_is_lost(struct fixture *f, bool strikes)
{
	static const struct weather storm = { .seed = 1, .loss = 100 };

	f->options.connect_timeout_ms = CONNECT_MS;
	connect_in(f, strikes ? &storm : &fair);
	victims_ask(f, DEPTH_FILLED, LEN);
	run_until(f, victims_are_served);
	assert_in_time();
	run_for(f, A_WHILE_S);
	calm();
	end_all(f);
}

START_TEST(where_much_is_lost_each_operation_ends)
{
	const struct trial trial = { where_much_is_lost, .off_the_wire = true };

	beside(&trial);
}
END_TEST

static const unsigned downs_s[] = { 5, 30 };
static unsigned seconds;

/* What TCP carries goes on; else the kernel says that the neighbour is not there. */
static void on_a_link_that_goes(struct fixture *f, bool strikes)
{
	f->options.keepalive_ms = testbed.is_iwarp ? 0 : KEEPALIVE_MS;
	connect_some(f, FEW);
	if (strikes) {
		victims_ask(f, 2, LEN);
		wire_set(&no_carrier);
	}
	run_for(f, seconds);
	calm();
	if (testbed.is_iwarp)
		run_until(f, victims_are_answered);
	else if (strikes)
		run_until(f, victims_are_gone);
	end_all(f);
}

START_TEST(a_link_is_down_and_comes_back)
{
	const struct trial trial = { on_a_link_that_goes, .off_the_wire = true };

	seconds = downs_s[_i];
	beside(&trial);
}
END_TEST

/* --- peers ----------------------------------------------------------------------------------- */

static struct stranger stranger, strangers[FLOODS];

static void connect_to_a_stranger(struct fixture *f)
{
	victims_connect_to(f, FEW, testbed.ip, stranger.port);
	run_until(f, victims_are_up);
}

static void to_a_silent_host(struct fixture *f, bool strikes)
{
	f->options.connect_timeout_ms = DEADLINE_MS;
	victims_connect_to(f, FEW, strikes ? "10.77.0.9" : testbed.ip, victims_port());
	run_until(f, victims_are_settled);
	assert_library_took(strikes ? passed_ms() : DEADLINE_MS, DEADLINE_MS);
	run_for(f, A_WHILE_S);
	end_all(f);
	ck_assert_int_eq(victims.error, strikes ? ETIMEDOUT : 0);
}

START_TEST(a_peer_that_is_silent_is_given_up_in_time)
{
	const struct trial trial = { to_a_silent_host };

	beside(&trial);
}
END_TEST

static void killed(struct fixture *f, bool strikes)
{
	connect_to_a_stranger(f);
	be_used(f, 1);
	run_for(f, A_WHILE_S);
	if (strikes) {
		victims_ask(f, 2, LEN);
		stranger_kill(&stranger);
		run_until(f, victims_are_gone);
		ck_assert_uint_eq(victims.told, victims.made);
	}
	end_all(f);
}

START_TEST(a_peer_is_killed)
{
	const struct trial trial = { killed };

	stranger_serve(&stranger, STRANGER_ECHO);
	beside(&trial);
}
END_TEST

static const unsigned stops_s[] = { 3, 15, 60 };

static void stopped(struct fixture *f, bool strikes)
{
	connect_to_a_stranger(f);
	be_used(f, 1);
	if (strikes)
		kill(stranger.pid, SIGSTOP);
	victims_ask(f, 2, LEN);
	run_for(f, seconds);
	ck_assert_int_eq(victims.answered == victims.asked, !strikes);
	kill(stranger.pid, SIGCONT);
	run_until(f, victims_are_answered);
	end_all(f);
}

START_TEST(a_peer_is_stopped_and_goes_on)
{
	const struct trial trial = { stopped };

	seconds = stops_s[_i];
	stranger_serve(&stranger, STRANGER_ECHO);
	beside(&trial);
	stranger_kill(&stranger);
}
END_TEST

/* iWARP ends what finds no buffer. */
static void unanswered(struct fixture *f, bool strikes)
{
	f->options.idle_timeout_ms = IDLE_MS;
	connect_to_a_stranger(f);
	if (strikes) {
		victims_ask(f, 1, LEN);
		run_until(f, victims_are_gone);
		ck_assert_uint_eq(victims.told, victims.made);
		ck_assert(testbed.is_iwarp || victims.error == ETIMEDOUT);
	}
	run_for(f, 1);
	end_all(f);
}

START_TEST(a_peer_takes_nothing_once_it_is_there)
{
	const struct trial trial = { unanswered };

	stranger_serve(&stranger, STRANGER_DEAF);
	beside(&trial);
	stranger_kill(&stranger);
}
END_TEST

static void unheard(struct fixture *f, bool strikes)
{
	f->options.keepalive_ms = KEEPALIVE_MS;
	connect_some(f, FEW);
	wire_set(strikes ? &no_frame : &fair);
	if (strikes)
		run_until(f, victims_are_gone);
	run_for(f, A_WHILE_S);
	calm();
	end_all(f);
	ck_assert_int_eq(victims.error, strikes ? ETIMEDOUT : 0);
}

START_TEST(a_peer_is_not_heard_of_once_it_is_there)
{
	const struct trial trial = { unheard, .off_the_wire = true };

	beside(&trial);
}
END_TEST

/* --- names ----------------------------------------------------------------------------------- */

/* The kernel takes what it is asked, and nobody reads it. */
static int silent_name_server(struct evdns_base *dns)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in sin;
	socklen_t len = sizeof(sin);

	fixture_address(&sin, "127.0.0.1", 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&sin, &len), 0);
	ck_assert_int_eq(
		evdns_base_nameserver_sockaddr_add(dns, (struct sockaddr *)&sin, len, 0), 0);
	return fd;
}

static void by_name(struct fixture *f, bool strikes)
{
	struct evdns_base *dns = evdns_base_new(f->loop, 0);
	const char *name = strikes ? "nowhere.invalid" : testbed.ip;
	int fd = silent_name_server(dns);
	struct endpoint *end;

	f->options.connect_timeout_ms = DEADLINE_MS;
	while (victims.made < FEW) {
		end = fixture_endpoint_new(f, true);
		victims_add(end);
		ck_assert_int_eq(
			evrdma_conn_connect_hostname(end->conn, dns, AF_INET, name, victims_port()),
			0);
	}
	run_until(f, victims_are_settled);
	assert_library_took(strikes ? passed_ms() : DEADLINE_MS, DEADLINE_MS);
	run_for(f, A_WHILE_S);
	end_all(f);
	ck_assert_int_eq(victims.error, strikes ? ETIMEDOUT : 0);
	evdns_base_free(dns, 0);
	close(fd);
}

START_TEST(a_name_server_does_not_answer)
{
	const struct trial trial = { by_name };

	beside(&trial);
}
END_TEST

/* --- requests -------------------------------------------------------------------------------- */

static bool stranger_has_gone(struct fixture *f)
{
	return stranger_is_gone(&stranger);
}

static bool stranger_is_prepared(struct fixture *f)
{
	return stranger_is_ready(&stranger);
}

static void let_it_ask(struct fixture *f)
{
	stranger_tell(&stranger, victims_port());
	run_until(f, stranger_is_prepared);
	stranger_tell(&stranger, victims_port());
}

/* The loop is kept while the first of them come: the backlog is too small by construction. */
static void pour(struct fixture *f)
{
	let_it_ask(f);
	while (!stranger_is_ready(&stranger))
		usleep(LOOK_US);
	usleep(KEPT_US);
	stranger_let_go(&stranger);
	run_until(f, stranger_has_gone);
	run_until(f, victims_are_gone);
}

static void flooded(struct fixture *f, bool strikes)
{
	static unsigned floods;

	f->options.connect_timeout_ms = CONNECT_MS;
	run_for(f, A_WHILE_S);
	if (!strikes)
		return;
	stranger = strangers[floods++];
	pour(f);
}

/*
 * How often the CM of any device here has asked again. What is beyond a backlog the kernel drops
 * without a word, for it to be asked again, as TCP does.
 */
static unsigned long asked_again(void)
{
	unsigned long all = 0, one;
	glob_t found;
	size_t i;
	FILE *file;

	ck_assert_int_eq(
		glob("/sys/class/infiniband/*/ports/1/cm_tx_retries/req", 0, NULL, &found), 0);
	for (i = 0; i < found.gl_pathc; i++) {
		file = fopen(found.gl_pathv[i], "re");
		ck_assert(file && fscanf(file, "%lu", &one) == 1);
		fclose(file);
		all += one;
	}
	globfree(&found);
	return all;
}

START_TEST(requests_come_by_thousands_beyond_the_backlog)
{
	const struct trial trial = { flooded, .backlog = BACKLOG, .again = FLOODS - 1 };
	unsigned long before = asked_again();
	int i;

	for (i = 0; i < FLOODS; i++)
		stranger_flood(&strangers[i], i ? FLOOD_AGAIN : FLOOD, true);
	beside(&trial);
	ck_assert_uint_gt(asked_again() - before, OFTEN * FLOOD);
}
END_TEST

static bool all_have_come(struct fixture *f)
{
	struct evrdma_listener_stats stats;

	victims_get_stats(&stats);
	return stats.requests >= HANDSHAKES;
}

/* Each is given up in its time, and whoever asked lives on. */
static void left_alone(struct fixture *f, bool strikes)
{
	f->options.connect_timeout_ms = CONNECT_MS;
	if (strikes) {
		let_it_ask(f);
		run_until(f, all_have_come);
		run_until(f, victims_are_gone);
		stranger_let_go(&stranger);
		run_until(f, stranger_has_gone);
	} else {
		connect_some(f, HANDSHAKES);
	}
	run_for(f, A_WHILE_S);
	end_all(f);
}

START_TEST(handshakes_are_begun_and_never_finished)
{
	const struct trial trial = { left_alone };

	stranger_flood(&stranger, HANDSHAKES, false);
	beside(&trial);
}
END_TEST

/* On iWARP who begins has a TCP connection. */
static void left_alone_by_tcp(struct fixture *f, bool strikes)
{
	int fds[HANDSHAKES];
	struct sockaddr_in sin;
	int i;

	fixture_address(&sin, testbed.ip, victims_port());
	for (i = 0; strikes && i < HANDSHAKES; i++) {
		fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		connect(fds[i], (struct sockaddr *)&sin, sizeof(sin));
	}
	run_for(f, MPA_PATIENCE_S);
	connect_some(f, FEW);
	for (i = 0; strikes && i < HANDSHAKES; i++)
		close(fds[i]);
	end_all(f);
}

START_TEST(handshakes_over_tcp_are_begun_and_never_finished)
{
	const struct trial trial = { left_alone_by_tcp };

	beside(&trial);
}
END_TEST

static uint8_t garbage[REP_PRIVATE];

static void accept_with_garbage(struct fixture *f, struct evrdma_request *request)
{
	f->options.private_data_len = REP_PRIVATE;
	victims_accept(f, request);
	f->options.private_data_len = REQ_PRIVATE;
}

static void with_garbage(struct fixture *f, bool strikes)
{
	unsigned i, seed = 1;

	for (i = 0; i < sizeof(garbage); i++)
		garbage[i] = (uint8_t)rand_r(&seed);
	f->options.private_data = strikes ? garbage : NULL;
	f->options.private_data_len = strikes ? REQ_PRIVATE : 0;
	victims_on_request = strikes ? accept_with_garbage : NULL;
	connect_some(f, FEW);
	run_for(f, A_WHILE_S);
	end_all(f);
}

START_TEST(private_data_is_garbage)
{
	const struct trial trial = { with_garbage };

	beside(&trial);
}
END_TEST

/* --- messages and memory --------------------------------------------------------------------- */

static void with_too_much(struct fixture *f, bool strikes)
{
	unsigned i;

	connect_some(f, FEW);
	run_for(f, A_WHILE_S);
	for (i = 0; strikes && i < FEW; i++)
		endpoint_send(victim(i), 2, 2 * LEN);
	if (strikes)
		run_until(f, victims_are_gone);
	ck_assert_uint_eq(victims.told, strikes ? FEW : 0);
	end_all(f);
}

START_TEST(messages_are_longer_than_the_buffers)
{
	const struct trial trial = { with_too_much };

	victims_recv_bytes = LEN;
	beside(&trial);
}
END_TEST

static unsigned done;

static void on_done(struct evrdma_conn *conn, const struct evrdma_error *error, void *arg)
{
	done += error != NULL;
}

static void write_nowhere(struct fixture *f, struct endpoint *end)
{
	struct evrdma_buf *buf = evrdma_pool_get(f->pool);
	struct evrdma_seg seg = { .buf = buf, .len = LEN };
	const struct evrdma_work work = { .op = EVRDMA_OP_WRITE,
		.segs = &seg,
		.seg_count = 1,
		.remote = { .addr = (uintptr_t)evrdma_buf_data(buf), .key = WRONG_KEY } };

	ck_assert_int_eq(evrdma_conn_submit(end->conn, &work, on_done, NULL), 0);
	evrdma_buf_unref(buf);
}

static void with_wrong_keys(struct fixture *f, bool strikes)
{
	unsigned i;

	done = 0;
	connect_some(f, FEW);
	run_for(f, A_WHILE_S);
	for (i = 0; strikes && i < FEW; i++)
		write_nowhere(f, victim(i));
	if (strikes)
		run_until(f, victims_are_gone);
	ck_assert_uint_eq(victims.told, strikes ? FEW : 0);
	end_all(f);
}

START_TEST(writes_have_wrong_keys)
{
	const struct trial trial = { with_wrong_keys };

	beside(&trial);
}
END_TEST

/* --- cases ----------------------------------------------------------------------------------- */

static TCase *add_case(Suite *suite, const char *name)
{
	TCase *tc = new_case(name);

	suite_add_tcase(suite, tc);
	return tc;
}

static void add_frames(TCase *tc)
{
	tcase_add_loop_test(tc, what_is_lost_or_late_arrives_all_the_same, 0, 3);
	tcase_add_test(tc, where_much_is_lost_each_operation_ends);
	tcase_add_loop_test(tc, a_link_is_down_and_comes_back, 0, 2);
}

/* siw's TCP connection to nobody is made inside the call, which keeps the loop. */
static void add_peers(TCase *tc)
{
	if (!testbed.is_iwarp)
		tcase_add_test(tc, a_peer_that_is_silent_is_given_up_in_time);
	tcase_add_test(tc, a_peer_is_killed);
	tcase_add_loop_test(tc, a_peer_is_stopped_and_goes_on, 0, 3);
	tcase_add_test(tc, a_peer_takes_nothing_once_it_is_there);
	tcase_add_test(tc, a_peer_is_not_heard_of_once_it_is_there);
	tcase_add_test(tc, a_name_server_does_not_answer);
}

static void add_requests(TCase *tc)
{
	if (testbed.is_iwarp) {
		tcase_add_test(tc, handshakes_over_tcp_are_begun_and_never_finished);
	} else {
		tcase_add_test(tc, requests_come_by_thousands_beyond_the_backlog);
		tcase_add_test(tc, handshakes_are_begun_and_never_finished);
	}
	tcase_add_test(tc, private_data_is_garbage);
}

static void add_messages(TCase *tc)
{
	tcase_add_test(tc, messages_are_longer_than_the_buffers);
	tcase_add_test(tc, writes_have_wrong_keys);
}

void beside_cases(Suite *suite)
{
	tcase_add_loop_test(add_case(suite, "beside a device"),
		a_device_is_removed_and_added_beneath_a_crowd, 0, 2);
	add_frames(add_case(suite, "beside frames"));
	add_peers(add_case(suite, "beside peers"));
	add_requests(add_case(suite, "beside requests"));
	add_messages(add_case(suite, "beside messages"));
}
