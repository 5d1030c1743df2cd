/* mckey on the fake, with what only InfiniBand has; and what it makes of datagrams. */
#include "unit/fake_main.h"
#include "unit/tools_unit.h"

#include <stdlib.h>
#include <string.h>

#include "examples/tools/mckey.h"
#include "examples/tools/pattern.h"

enum { SRC_QP = 17, SIZE_MAX_BYTES = 100 };

struct end {
	struct tools_args args;
	struct mckey test;
};

static void start(struct end *end, const char *text)
{
	memset(end, 0, sizeof(*end));
	tools_args_set(&end->args, text);
	ck_assert_int_eq(mckey_read_options(&end->test.options, end->args.argc, end->args.argv), 0);
	end->test.options.pause_s = 0;
	mckey_start(&end->test);
}

static int finish(void *test)
{
	return mckey_finish(test);
}

/* The sender begins when all endpoints of the receiver are attached to the group. */
static void pair(const char *receiver_args, const char *sender_args)
{
	struct end receiver, sender;
	pthread_t threads[2];

	start(&receiver, receiver_args);
	tools_thread_start(&threads[0], finish, &receiver.test);
	ck_assert(tools_wait_live(FAKE_ATTACHMENT, (unsigned)receiver.test.options.connections));
	start(&sender, sender_args);
	tools_thread_start(&threads[1], finish, &sender.test);
	ck_assert_int_eq(tools_thread_join(threads[1]), 0);
	ck_assert_int_eq(tools_thread_join(threads[0]), 0);
}

static void alone(const char *text, int status)
{
	struct end end;

	start(&end, text);
	ck_assert_int_eq(mckey_finish(&end.test), status);
}

/* --- groups --------------------------------------------------------------------------------- */

START_TEST(datagrams_arrive_at_every_receiver)
{
	pair("mckey -m 239.0.0.1 -b " FAKE_ROCE_IP " -c 3",
		"mckey -m 239.0.0.1 -b " FAKE_ROCE_IP " -s");
	pair("mckey -m 239.0.0.1 -b " FAKE_ROCE_IP " -S 1",
		"mckey -m 239.0.0.1 -b " FAKE_ROCE_IP " -S 1 -s");
	pair("mckey -m 239.0.0.1 -b " FAKE_ROCE_IP " -S 1024 -C 200",
		"mckey -m 239.0.0.1 -b " FAKE_ROCE_IP " -S 1024 -C 200 -s");
}
END_TEST

START_TEST(a_member_that_only_sends_is_not_attached)
{
	pair("mckey -m 239.0.0.1 -b " FAKE_ROCE_IP, "mckey -m 239.0.0.1 -b " FAKE_ROCE_IP " -s -o");
	ck_assert_uint_eq(fake_calls("ibv_attach_mcast"), 1);
}
END_TEST

START_TEST(infiniband_joins_ipv6_groups)
{
	fake_device_add(FAKE_IB);
	pair("mckey -m ff12::1 -b " FAKE_IB_IP6, "mckey -m ff12::1 -b " FAKE_IB_IP6 " -s");
}
END_TEST

START_TEST(infiniband_joins_a_group_by_its_gid)
{
	fake_device_add(FAKE_IB);
	pair("mckey -M ff12:401b::17 -b " FAKE_IB_IP,
		"mckey -M ff12:401b::17 -b " FAKE_IB_IP " -s");
}
END_TEST

START_TEST(infiniband_has_the_ipoib_port_space)
{
	fake_device_add(FAKE_IB);
	pair("mckey -m 239.0.0.1 -p 0x0002 -b " FAKE_IB_IP,
		"mckey -m 239.0.0.1 -p 2 -b " FAKE_IB_IP " -s");
}
END_TEST

START_TEST(infiniband_assigns_groups)
{
	fake_device_add(FAKE_IB);
	alone("mckey -M 0 -s -b " FAKE_IB_IP, 0);
	alone("mckey -m 0.0.0.0 -s -b " FAKE_IB_IP, 0);
}
END_TEST

START_TEST(infiniband_blocks_the_loop_back)
{
	fake_device_add(FAKE_IB);
	alone("mckey -m 239.0.0.1 -l -s -b " FAKE_IB_IP, 0);
}
END_TEST

START_TEST(other_devices_have_none_of_that)
{
	alone("mckey -m ff12::1 -b " FAKE_ROCE_IP6, 1);
	alone("mckey -M ff12:401b::17 -b " FAKE_ROCE_IP, 1);
	alone("mckey -M 0 -b " FAKE_ROCE_IP, 1);
	alone("mckey -m 0.0.0.0 -b " FAKE_ROCE_IP, 1);
	alone("mckey -m 239.0.0.1 -p 2 -b " FAKE_ROCE_IP, 1);
	alone("mckey -m 239.0.0.1 -l -b " FAKE_ROCE_IP, 1);
	fake_device_add(FAKE_IWARP);
	alone("mckey -m 239.0.0.1 -b " FAKE_IWARP_IP, 1);
}
END_TEST

START_TEST(a_message_larger_than_the_mtu_is_refused)
{
	alone("mckey -m 239.0.0.1 -S 5000 -b " FAKE_ROCE_IP, 1);
}
END_TEST

/* --- datagrams ------------------------------------------------------------------------------ */

struct receiver {
	struct mckey test;
	struct mckey_node node;
	struct mckey_record records[4];
	char data[SIZE_MAX_BYTES];
	struct evrdma_recv recv;
};

static void drop_interrupt(void *arg)
{
}

static void receiver_init(struct receiver *receiver, long size_bytes)
{
	memset(receiver, 0, sizeof(*receiver));
	ck_assert_int_eq(tool_init(&receiver->test.tool, MCKEY, drop_interrupt, NULL), 0);
	receiver->test.options.size_bytes = size_bytes;
	receiver->node.test = &receiver->test;
	receiver->node.records = receiver->records;
	receiver->recv = (struct evrdma_recv){ .data = receiver->data,
		.len = (size_t)size_bytes,
		.has_imm = 1,
		.imm = SRC_QP,
		.src_qp = SRC_QP };
}

/* A message as ev-mckey(1) describes it: the mark, and what is made from it. */
static void mark(struct receiver *receiver, uint8_t index)
{
	static const uint8_t head[24] = { 'E', 'V', 'M', 'C', 'K', 'E', 'Y', 1, 0, 0, 0, 0, 0, 0, 0,
		5, 0, 0, 0, SRC_QP };
	size_t rest = receiver->recv.len - sizeof(head);

	memcpy(receiver->data, head, sizeof(head));
	receiver->data[23] = (char)index;
	pattern_fill(receiver->data + sizeof(head), rest,
		pattern_seed(pattern_seed(0, 5, SRC_QP), index, 0));
}

static int receive(struct receiver *receiver)
{
	int ret = mckey_check_message(&receiver->node, &receiver->recv);

	if (!ret)
		receiver->node.received++;
	return ret;
}

static int judge(struct receiver *receiver)
{
	int ret = mckey_check_records(&receiver->node);

	tool_fini(&receiver->test.tool);
	return ret;
}

START_TEST(what_a_stock_sender_repeats_is_taken)
{
	struct receiver receiver;

	receiver_init(&receiver, 100);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(receive(&receiver), 0);
	ck_assert_int_eq(judge(&receiver), 0);
}
END_TEST

START_TEST(marked_datagrams_are_taken_in_any_order)
{
	struct receiver receiver;

	receiver_init(&receiver, 100);
	for (uint8_t i = 0; i < 3; i++) {
		mark(&receiver, 2 - i);
		ck_assert_int_eq(receive(&receiver), 0);
	}
	ck_assert_int_eq(judge(&receiver), 0);
}
END_TEST

/* Returns whether a datagram with that byte changed is found, after one that is right. */
static int finds_change(int byte)
{
	struct receiver receiver;
	int ret;

	receiver_init(&receiver, SIZE_MAX_BYTES);
	mark(&receiver, 0);
	ck_assert_int_eq(receive(&receiver), 0);
	mark(&receiver, 1);
	receiver.data[byte] ^= 0x40;
	ret = receive(&receiver);
	return judge(&receiver) || ret;
}

START_TEST(a_changed_byte_is_found_wherever_it_is)
{
	for (int i = 0; i < SIZE_MAX_BYTES; i++)
		ck_assert_msg(finds_change(i), "byte %d", i);
}
END_TEST

START_TEST(a_datagram_that_came_twice_is_found)
{
	struct receiver receiver;

	receiver_init(&receiver, 100);
	mark(&receiver, 1);
	ck_assert_int_eq(receive(&receiver), 0);
	ck_assert_int_eq(receive(&receiver), 0);
	ck_assert_int_ne(judge(&receiver), 0);
}
END_TEST

START_TEST(short_datagrams_of_a_sender_are_all_right_or_all_another_s)
{
	struct receiver receiver;

	receiver_init(&receiver, 4);
	pattern_fill(receiver.data, 4, pattern_seed(SRC_QP, 0, 0));
	ck_assert_int_eq(receive(&receiver), 0);
	ck_assert_int_eq(receive(&receiver), 0);
	ck_assert_int_eq(mckey_check_records(&receiver.node), 0);
	receiver.data[3] ^= 1;
	ck_assert_int_eq(receive(&receiver), 0);
	ck_assert_int_ne(judge(&receiver), 0);
}
END_TEST

START_TEST(another_length_or_immediate_is_refused)
{
	struct receiver receiver;

	receiver_init(&receiver, 50);
	receiver.recv.len = 49;
	ck_assert_int_ne(receive(&receiver), 0);
	receiver.recv.len = 50;
	receiver.recv.imm = SRC_QP + 1;
	ck_assert_int_ne(receive(&receiver), 0);
	receiver.recv.has_imm = 0;
	ck_assert_int_ne(receive(&receiver), 0);
	tool_fini(&receiver.test.tool);
}
END_TEST

int main(void)
{
	const TTest *tests[] = {
		datagrams_arrive_at_every_receiver,
		a_member_that_only_sends_is_not_attached,
		infiniband_joins_ipv6_groups,
		infiniband_joins_a_group_by_its_gid,
		infiniband_has_the_ipoib_port_space,
		infiniband_assigns_groups,
		infiniband_blocks_the_loop_back,
		other_devices_have_none_of_that,
		a_message_larger_than_the_mtu_is_refused,
		what_a_stock_sender_repeats_is_taken,
		marked_datagrams_are_taken_in_any_order,
		a_changed_byte_is_found_wherever_it_is,
		a_datagram_that_came_twice_is_found,
		short_datagrams_of_a_sender_are_all_right_or_all_another_s,
		another_length_or_immediate_is_refused,
	};

	return fake_main("tools_mckey", tests, sizeof(tests) / sizeof(tests[0]));
}
