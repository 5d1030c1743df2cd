/* ucmatose on the fake, with what only InfiniBand has. */
#include "unit/fake_main.h"
#include "unit/tools_unit.h"

#include <string.h>

#include "examples/tools/pattern.h"
#include "examples/tools/ucmatose.h"

struct end {
	struct tools_args args;
	struct ucmatose test;
};

static void start(struct end *end, const char *text)
{
	memset(end, 0, sizeof(*end));
	tools_args_set(&end->args, text);
	ck_assert_int_eq(
		ucmatose_read_options(&end->test.options, end->args.argc, end->args.argv), 0);
	ucmatose_start(&end->test);
}

static int finish(void *test)
{
	return ucmatose_finish(test);
}

static void expect_all_received(const struct ucmatose *test)
{
	ck_assert_int_eq(test->received, ucmatose_messages_wanted(test));
}

/* Both listening and asking happen in start(), so that the client finds the server. */
static void pair(const char *server_args, const char *client_args)
{
	struct end server, client;
	pthread_t threads[2];

	start(&server, server_args);
	start(&client, client_args);
	tools_thread_start(&threads[0], finish, &server.test);
	tools_thread_start(&threads[1], finish, &client.test);
	ck_assert_int_eq(tools_thread_join(threads[1]), 0);
	ck_assert_int_eq(tools_thread_join(threads[0]), 0);
	expect_all_received(&server.test);
	expect_all_received(&client.test);
}

static void fails(const char *text)
{
	struct end end;

	start(&end, text);
	ck_assert_int_eq(ucmatose_finish(&end.test), 1);
}

START_TEST(messages_arrive_both_ways_on_every_connection)
{
	pair("ucmatose -c 4", "ucmatose -c 4 -s " FAKE_ROCE_IP);
	pair("ucmatose -S 65536 -b " FAKE_ROCE_IP, "ucmatose -S 65536 -s " FAKE_ROCE_IP);
	pair("ucmatose -S 0 -b ::0", "ucmatose -S 0 -s " FAKE_ROCE_IP6);
}
END_TEST

START_TEST(messages_arrive_on_iwarp)
{
	fake_device_add(FAKE_IWARP);
	pair("ucmatose -c 4", "ucmatose -c 4 -s " FAKE_IWARP_IP);
}
END_TEST

START_TEST(more_messages_than_sends_at_once_arrive)
{
	pair("ucmatose -C 300", "ucmatose -C 300 -s " FAKE_ROCE_IP);
	pair("ucmatose -C 20 -S 300000", "ucmatose -C 20 -S 300000 -s " FAKE_ROCE_IP);
}
END_TEST

START_TEST(connections_move_to_another_channel_before_they_end)
{
	pair("ucmatose -m -c 4", "ucmatose -m -c 4 -s " FAKE_ROCE_IP);
	ck_assert_uint_eq(fake_calls("MIGRATE_ID"), 8);
}
END_TEST

START_TEST(gids_are_addresses_on_infiniband)
{
	fake_device_add(FAKE_IB);
	pair("ucmatose -f gid", "ucmatose -f gid -s " FAKE_IB_GID);
	pair("ucmatose -f gid -P ib -b " FAKE_IB_GID, "ucmatose -f gid -P ib -s " FAKE_IB_GID);
	pair("ucmatose -f gid -b " FAKE_IB_GID,
		"ucmatose -f gid -s " FAKE_IB_GID " -b " FAKE_IB_GID);
}
END_TEST

START_TEST(gids_are_no_addresses_elsewhere)
{
	fails("ucmatose -f gid");
	fails("ucmatose -f gid -s " FAKE_IB_GID);
}
END_TEST

START_TEST(the_ib_port_space_is_there_on_infiniband_and_roce)
{
	pair("ucmatose -P ib", "ucmatose -P ib -s " FAKE_ROCE_IP);
	fake_device_add(FAKE_IB);
	pair("ucmatose -P ib", "ucmatose -P ib -s " FAKE_IB_IP);
}
END_TEST

START_TEST(the_ib_port_space_is_missing_on_iwarp)
{
	fake_device_add(FAKE_IWARP);
	fails("ucmatose -P ib -b " FAKE_IWARP_IP);
	fake_device_remove(FAKE_ROCE);
	fails("ucmatose -P ib");
	fails("ucmatose -P ib -s " FAKE_IWARP_IP);
}
END_TEST

START_TEST(a_silent_peer_is_given_up_at_the_deadline)
{
	fails("ucmatose -T 1 -s " FAKE_ROCE_SILENT_IP);
}
END_TEST

START_TEST(a_pattern_finds_every_wrong_byte)
{
	uint32_t seed = pattern_seed(1, 0, 2);
	uint8_t bytes[300];

	pattern_fill(bytes, sizeof(bytes), seed);
	ck_assert_uint_eq(pattern_check(bytes, sizeof(bytes), seed), sizeof(bytes));
	for (size_t i = 0; i < sizeof(bytes); i++) {
		bytes[i] ^= 1;
		ck_assert_uint_eq(pattern_check(bytes, sizeof(bytes), seed), i);
		bytes[i] ^= 1;
	}
}
END_TEST

START_TEST(patterns_of_other_messages_differ)
{
	uint8_t bytes[32];

	pattern_fill(bytes, sizeof(bytes), pattern_seed(1, 0, 2));
	ck_assert_uint_lt(pattern_check(bytes, sizeof(bytes), pattern_seed(2, 0, 1)), 8);
	ck_assert_uint_lt(pattern_check(bytes, sizeof(bytes), pattern_seed(1, 1, 2)), 8);
	ck_assert_uint_lt(pattern_check(bytes, sizeof(bytes), pattern_seed(1, 0, 3)), 8);
}
END_TEST

int main(void)
{
	const TTest *tests[] = {
		messages_arrive_both_ways_on_every_connection,
		messages_arrive_on_iwarp,
		more_messages_than_sends_at_once_arrive,
		connections_move_to_another_channel_before_they_end,
		gids_are_addresses_on_infiniband,
		gids_are_no_addresses_elsewhere,
		the_ib_port_space_is_there_on_infiniband_and_roce,
		the_ib_port_space_is_missing_on_iwarp,
		a_silent_peer_is_given_up_at_the_deadline,
		a_pattern_finds_every_wrong_byte,
		patterns_of_other_messages_differ,
	};

	return fake_main("tools_ucmatose", tests, sizeof(tests) / sizeof(tests[0]));
}
