/* rping, udaddy, cmtime, rdma_client and its family on the fake: pairs, and those that do not fit.
 */
#include "unit/fake_main.h"
#include "unit/tools_unit.h"

#include <string.h>

#include "examples/tools/cmtime.h"
#include "examples/tools/rping.h"
#include "examples/tools/simple.h"
#include "examples/tools/udaddy.h"

/* One of the tools. */
union tool_test {
	struct rping rping;
	struct udaddy udaddy;
	struct cmtime cmtime;
	struct simple simple;
};

struct program {
	int (*read_options)(union tool_test *test, int argc, char **argv);
	void (*start)(union tool_test *test);
	int (*finish)(void *test);
};

struct end {
	struct tools_args args;
	union tool_test test;
};

static void start(struct end *end, const struct program *program, const char *text)
{
	memset(end, 0, sizeof(*end));
	tools_args_set(&end->args, text);
	ck_assert_int_eq(program->read_options(&end->test, end->args.argc, end->args.argv), 0);
	program->start(&end->test);
}

/* Both listening and asking happen in start(), so that the client finds the server. */
static void pair_of(const struct program *server_program, const char *server_args,
	const struct program *client_program, const char *client_args, int status)
{
	struct end server, client;
	pthread_t threads[2];

	start(&server, server_program, server_args);
	start(&client, client_program, client_args);
	tools_thread_start(&threads[0], server_program->finish, &server.test);
	tools_thread_start(&threads[1], client_program->finish, &client.test);
	ck_assert_int_eq(tools_thread_join(threads[1]), status);
	ck_assert_int_eq(tools_thread_join(threads[0]), status);
}

static void pair(const struct program *program, const char *server_args, const char *client_args)
{
	pair_of(program, server_args, program, client_args, 0);
}

static void bad_pair(
	const struct program *program, const char *server_args, const char *client_args)
{
	pair_of(program, server_args, program, client_args, 1);
}

static void fails(const struct program *program, const char *text)
{
	struct end end;

	start(&end, program, text);
	ck_assert_int_eq(program->finish(&end.test), 1);
}

/* --- rping ---------------------------------------------------------------------------------- */

static int read_rping(union tool_test *test, int argc, char **argv)
{
	return rping_read_options(&test->rping.options, argc, argv);
}

static void start_rping(union tool_test *test)
{
	rping_start(&test->rping);
}

static int finish_rping(void *test)
{
	return rping_finish(test);
}

static const struct program rping = { read_rping, start_rping, finish_rping };

START_TEST(pings_come_back_as_they_were_sent)
{
	pair(&rping, "rping -s -V", "rping -c -V -C 5 -a " FAKE_ROCE_IP);
	pair(&rping, "rping -s -V -S 65535 -a " FAKE_ROCE_IP6,
		"rping -c -V -C 2 -S 65535 -a " FAKE_ROCE_IP6);
}
END_TEST

START_TEST(pings_go_over_iwarp)
{
	fake_device_add(FAKE_IWARP);
	pair(&rping, "rping -s -V -a " FAKE_IWARP_IP, "rping -c -V -C 5 -a " FAKE_IWARP_IP);
}
END_TEST

START_TEST(pings_go_over_queue_pairs_of_our_own)
{
	pair(&rping, "rping -s -q -V", "rping -c -q -V -C 5 -a " FAKE_ROCE_IP);
	pair(&rping, "rping -s -V", "rping -c -q -V -C 5 -a " FAKE_ROCE_IP);
	pair(&rping, "rping -s -q -V", "rping -c -V -C 5 -a " FAKE_ROCE_IP);
}
END_TEST

START_TEST(iwarp_has_no_queue_pairs_of_our_own)
{
	fake_device_add(FAKE_IWARP);
	fails(&rping, "rping -c -q -a " FAKE_IWARP_IP);
}
END_TEST

START_TEST(a_text_that_is_too_large_is_not_read)
{
	bad_pair(&rping, "rping -s -S 64", "rping -c -C 5 -S 65 -a " FAKE_ROCE_IP);
	bad_pair(&rping, "rping -s -q -S 64", "rping -c -C 5 -S 65 -a " FAKE_ROCE_IP);
}
END_TEST

START_TEST(a_smaller_text_is_read_as_far_as_it_goes)
{
	pair(&rping, "rping -s -V -S 64", "rping -c -V -C 5 -S 30 -a " FAKE_ROCE_IP);
}
END_TEST

START_TEST(a_ping_without_a_server_fails)
{
	fails(&rping, "rping -c -a " FAKE_ROCE_IP);
	fails(&rping, "rping -c -q -a " FAKE_ROCE_IP);
	fails(&rping, "rping -c -T 1 -a " FAKE_ROCE_SILENT_IP);
	fails(&rping, "rping -c -q -T 1 -a " FAKE_ROCE_SILENT_IP);
}
END_TEST

START_TEST(the_text_of_a_ping_is_the_stock_tools)
{
	char text[80];

	rping_fill_text(text, sizeof(text), 0);
	ck_assert_str_eq(text, "rdma-ping-0: ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`"
			       "abcdefghijklmnopqrstuvwxyzABCDEFGH");
	rping_fill_text(text, 24, 57);
	ck_assert_str_eq(text, "rdma-ping-57: zABCDEFGH");
	rping_fill_text(text, 23, 58);
	ck_assert_str_eq(text, "rdma-ping-58: ABCDEFGH");
	ck_assert_int_eq(rping_is_text(text, 23, 58), 1);
	ck_assert_int_eq(rping_is_text(text, 23, 57), 0);
}
END_TEST

/* --- udaddy --------------------------------------------------------------------------------- */

static int read_udaddy(union tool_test *test, int argc, char **argv)
{
	return udaddy_read_options(&test->udaddy.options, argc, argv);
}

static void start_udaddy(union tool_test *test)
{
	udaddy_start(&test->udaddy);
}

static int finish_udaddy(void *test)
{
	return udaddy_finish(test);
}

static const struct program udaddy = { read_udaddy, start_udaddy, finish_udaddy };

START_TEST(datagrams_come_back_on_every_endpoint)
{
	pair(&udaddy, "udaddy -c 3", "udaddy -c 3 -s " FAKE_ROCE_IP);
	pair(&udaddy, "udaddy -S 1 -b " FAKE_ROCE_IP, "udaddy -S 1 -s " FAKE_ROCE_IP);
	pair(&udaddy, "udaddy -C 200 -S 1000", "udaddy -C 200 -S 1000 -s " FAKE_ROCE_IP);
}
END_TEST

START_TEST(endpoints_are_found_though_nothing_is_sent)
{
	pair(&udaddy, "udaddy -C 0", "udaddy -C 0 -s " FAKE_ROCE_IP);
}
END_TEST

START_TEST(datagrams_that_cannot_be_are_refused)
{
	fails(&udaddy, "udaddy -s " FAKE_ROCE_IP);
	fails(&udaddy, "udaddy -S 5000 -s " FAKE_ROCE_IP);
	fails(&udaddy, "udaddy -P ipoib");
}
END_TEST

START_TEST(iwarp_has_no_datagrams)
{
	fake_device_add(FAKE_IWARP);
	fails(&udaddy, "udaddy -s " FAKE_IWARP_IP);
	fake_device_remove(FAKE_ROCE);
	fails(&udaddy, "udaddy");
}
END_TEST

/* --- cmtime --------------------------------------------------------------------------------- */

static int read_cmtime(union tool_test *test, int argc, char **argv)
{
	return cmtime_read_options(&test->cmtime.options, argc, argv);
}

static void start_cmtime(union tool_test *test)
{
	cmtime_start(&test->cmtime);
}

static int finish_cmtime(void *test)
{
	return cmtime_finish(test);
}

static const struct program cmtime = { read_cmtime, start_cmtime, finish_cmtime };

static void stop(struct evrdma_base *base, void *arg)
{
	tool_stop(arg);
}

/* Its server stays until it is stopped. */
static void time_connections(const char *server_args, const char *client_args)
{
	struct end server, client;
	struct cmtime *test = &server.test.cmtime;
	pthread_t thread;

	start(&server, &cmtime, server_args);
	start(&client, &cmtime, client_args);
	tools_thread_start(&thread, finish_cmtime, test);
	ck_assert_int_eq(cmtime_finish(&client.test.cmtime), 0);
	ck_assert_int_eq(evrdma_base_run_in_loop(test->base, stop, &test->tool), 0);
	ck_assert_int_eq(tools_thread_join(thread), 0);
	ck_assert_int_eq(test->served, client.test.cmtime.options.connections);
}

START_TEST(every_step_of_every_connection_is_timed)
{
	time_connections("cmtime", "cmtime -c 10 -s " FAKE_ROCE_IP);
	time_connections(
		"cmtime -b " FAKE_ROCE_IP, "cmtime -c 1 -s " FAKE_ROCE_IP " -b " FAKE_ROCE_IP);
}
END_TEST

START_TEST(no_queue_pair_is_needed_on_either_side)
{
	time_connections("cmtime", "cmtime -m 0 -q 3000 -c 10 -s " FAKE_ROCE_IP);
	time_connections("cmtime -m 0", "cmtime -c 10 -s " FAKE_ROCE_IP);
	time_connections("cmtime -m 2000 -q 0x800", "cmtime -m 1000 -c 10 -s " FAKE_ROCE_IP);
}
END_TEST

START_TEST(a_queue_pair_that_is_not_made_takes_its_time)
{
	struct end server, client;
	const struct cmtime_node *node;
	pthread_t thread;

	start(&server, &cmtime, "cmtime");
	start(&client, &cmtime, "cmtime -m 3000 -c 2 -s " FAKE_ROCE_IP);
	tools_thread_start(&thread, finish_cmtime, &server.test.cmtime);
	ck_assert_int_eq(tool_run(&client.test.cmtime.tool), 0);
	node = &client.test.cmtime.nodes[1];
	ck_assert_double_ge(
		node->spans[CMTIME_CREATE_QP].end_us - node->spans[CMTIME_CREATE_QP].begin_us,
		3000);
	ck_assert_uint_eq(node->qpn, 1001);
	ck_assert_int_eq(cmtime_finish(&client.test.cmtime), 0);
	ck_assert_int_eq(
		evrdma_base_run_in_loop(server.test.cmtime.base, stop, &server.test.cmtime.tool),
		0);
	ck_assert_int_eq(tools_thread_join(thread), 0);
}
END_TEST

START_TEST(iwarp_has_no_queue_pairs_that_are_not_made)
{
	fake_device_add(FAKE_IWARP);
	fails(&cmtime, "cmtime -m 0 -b " FAKE_IWARP_IP);
	fails(&cmtime, "cmtime -m 0 -c 2 -n 2 -s " FAKE_IWARP_IP);
}
END_TEST

/* More threads than connections, too. */
START_TEST(threads_take_the_steps_together)
{
	time_connections("cmtime", "cmtime -n 3 -c 10 -s " FAKE_ROCE_IP);
	time_connections("cmtime -n 3", "cmtime -c 10 -s " FAKE_ROCE_IP);
	time_connections("cmtime -n 2 -m 0 -q 3000", "cmtime -n 4 -c 3 -m 0 -s " FAKE_ROCE_IP);
}
END_TEST

START_TEST(connections_to_nobody_are_not_timed)
{
	fails(&cmtime, "cmtime -c 2 -s " FAKE_ROCE_IP);
	fails(&cmtime, "cmtime -c 2 -n 2 -s " FAKE_ROCE_IP);
	fails(&cmtime, "cmtime -c 2 -T 1 -s " FAKE_ROCE_SILENT_IP);
}
END_TEST

/* --- rdma_client and its family ------------------------------------------------------------- */

static void start_simple(union tool_test *test)
{
	simple_start(&test->simple);
}

static int finish_simple(void *test)
{
	return simple_finish(test);
}

static int read_simple(union tool_test *test, const struct simple_kind *kind, int argc, char **argv)
{
	test->simple.kind = kind;
	return simple_read_options(&test->simple, argc, argv);
}

static int read_client(union tool_test *test, int argc, char **argv)
{
	static const struct simple_kind kind = {
		.name = "rdma_client", .is_client = 1, .has_reply = 1
	};

	return read_simple(test, &kind, argc, argv);
}

static int read_server(union tool_test *test, int argc, char **argv)
{
	static const struct simple_kind kind = { .name = "rdma_server", .has_reply = 1 };

	return read_simple(test, &kind, argc, argv);
}

static int read_xclient(union tool_test *test, int argc, char **argv)
{
	static const struct simple_kind kind = {
		.name = "rdma_xclient", .is_client = 1, .has_xrc = 1
	};

	return read_simple(test, &kind, argc, argv);
}

static int read_xserver(union tool_test *test, int argc, char **argv)
{
	static const struct simple_kind kind = { .name = "rdma_xserver", .has_xrc = 1 };

	return read_simple(test, &kind, argc, argv);
}

static const struct program client = { read_client, start_simple, finish_simple };
static const struct program server = { read_server, start_simple, finish_simple };
static const struct program xclient = { read_xclient, start_simple, finish_simple };
static const struct program xserver = { read_xserver, start_simple, finish_simple };

START_TEST(one_message_goes_there_and_one_comes_back)
{
	pair_of(&server, "rdma_server", &client, "rdma_client -s " FAKE_ROCE_IP, 0);
	fake_device_add(FAKE_IWARP);
	pair_of(&server, "rdma_server -s " FAKE_IWARP_IP, &client, "rdma_client -s " FAKE_IWARP_IP,
		0);
}
END_TEST

START_TEST(one_message_goes_there)
{
	pair_of(&xserver, "rdma_xserver", &xclient, "rdma_xclient -c r -s " FAKE_ROCE_IP, 0);
}
END_TEST

START_TEST(what_is_not_there_is_refused)
{
	fails(&client, "rdma_client -s " FAKE_ROCE_IP);
	fails(&xclient, "rdma_xclient -c x -s " FAKE_ROCE_IP);
	fails(&xserver, "rdma_xserver -c x");
}
END_TEST

int main(void)
{
	const TTest *tests[] = {
		pings_come_back_as_they_were_sent,
		pings_go_over_iwarp,
		pings_go_over_queue_pairs_of_our_own,
		iwarp_has_no_queue_pairs_of_our_own,
		a_text_that_is_too_large_is_not_read,
		a_smaller_text_is_read_as_far_as_it_goes,
		a_ping_without_a_server_fails,
		the_text_of_a_ping_is_the_stock_tools,
		datagrams_come_back_on_every_endpoint,
		endpoints_are_found_though_nothing_is_sent,
		datagrams_that_cannot_be_are_refused,
		iwarp_has_no_datagrams,
		every_step_of_every_connection_is_timed,
		no_queue_pair_is_needed_on_either_side,
		a_queue_pair_that_is_not_made_takes_its_time,
		iwarp_has_no_queue_pairs_that_are_not_made,
		threads_take_the_steps_together,
		connections_to_nobody_are_not_timed,
		one_message_goes_there_and_one_comes_back,
		one_message_goes_there,
		what_is_not_there_is_refused,
	};

	return fake_main("tools_cm", tests, sizeof(tests) / sizeof(tests[0]));
}
