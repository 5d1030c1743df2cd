/* What the reader of events makes of what no good kernel sends. */
#include "unit/cm_unit.h"

#include "kern/sys.h"
#include "kern/ucma_abi.h"

#include <string.h>

static struct rdma_event_channel *channel;
static struct rdma_cm_id *id;
static const struct evr_sys *fake_sys;
static struct evr_ucma_resp_event forged;

static void set_up(void)
{
	cm_set_up();
	fake_sys = evr_sys;
	channel = cm_channel();
	id = cm_id(channel, RDMA_PS_TCP);
}

static void tear_down(void)
{
	cm_destroy(id);
	rdma_destroy_event_channel(channel);
	cm_tear_down();
}

/* The next GET_EVENT gives the forged event, all else goes to the fake kernel. */
static ssize_t forging_write(int fd, const void *buf, size_t len)
{
	const struct evr_ucma_cmd_get_event *cmd = buf;

	if (cmd->hdr.op != EVR_UCMA_GET_EVENT)
		return fake_sys->write(fd, buf, len);
	memcpy((void *)(uintptr_t)cmd->response, &forged, sizeof(forged));
	evr_sys = fake_sys;
	return (ssize_t)len;
}

static void forge(uint64_t uid, uint32_t handle, enum rdma_cm_event_type type)
{
	static struct evr_sys forging;

	forged = (struct evr_ucma_resp_event){ .uid = uid, .handle = handle, .event = type };
	forging = *fake_sys;
	forging.write = forging_write;
	evr_sys = &forging;
}

START_TEST(an_event_of_nobody_is_dropped)
{
	enum rdma_cm_event_type type;

	for (type = RDMA_CM_EVENT_ADDR_RESOLVED; type <= RDMA_CM_EVENT_TIMEWAIT_EXIT; type++) {
		forge(0xdeadbeef, 1, type);
		cm_expect_none(channel);
		forge(0, 12345, type);
		cm_expect_none(channel);
	}
}
END_TEST

START_TEST(an_id_is_no_membership)
{
	ck_assert_int_eq(fake_inject(id, RDMA_CM_EVENT_MULTICAST_JOIN, 0), 0);
	cm_expect_none(channel);
}
END_TEST

START_TEST(an_event_of_a_kind_unknown_is_passed_on)
{
	struct rdma_cm_event *event;

	ck_assert_int_eq(fake_inject(id, 99, -5), 0);
	ck_assert_ok(rdma_get_cm_event(channel, &event));
	ck_assert(event->id == id && (int)event->event == 99 && event->status == -5);
	ck_assert_ok(rdma_ack_cm_event(event));
}
END_TEST

START_TEST(events_without_work_of_ours_are_passed_on)
{
	const enum rdma_cm_event_type types[] = { RDMA_CM_EVENT_ADDR_ERROR,
		RDMA_CM_EVENT_ROUTE_ERROR, RDMA_CM_EVENT_CONNECT_ERROR, RDMA_CM_EVENT_UNREACHABLE,
		RDMA_CM_EVENT_DEVICE_REMOVAL, RDMA_CM_EVENT_ADDR_CHANGE,
		RDMA_CM_EVENT_TIMEWAIT_EXIT };
	struct rdma_cm_event *event;
	size_t i;

	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		ck_assert_int_eq(fake_inject(id, types[i], -ETIMEDOUT), 0);
		event = cm_expect(channel, types[i]);
		ck_assert(event->id == id && event->status == -ETIMEDOUT);
		ck_assert_ok(rdma_ack_cm_event(event));
	}
}
END_TEST

/* Out of order, on an id that has neither device nor queue pair. */
START_TEST(events_at_the_wrong_time_do_no_harm)
{
	enum rdma_cm_event_type type;
	struct rdma_cm_event *event;

	for (type = RDMA_CM_EVENT_ADDR_RESOLVED; type <= RDMA_CM_EVENT_TIMEWAIT_EXIT; type++) {
		if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
			continue;
		if (fake_inject(id, type, 0))
			continue;
		if (!rdma_get_cm_event(channel, &event))
			ck_assert_ok(rdma_ack_cm_event(event));
	}
	cm_expect_none(channel);
}
END_TEST

START_TEST(the_longest_private_data_arrives_whole)
{
	uint8_t data[255];
	struct rdma_cm_event *event;

	memset(data, 0x5a, sizeof(data));
	ck_assert_int_eq(fake_inject_data(id, RDMA_CM_EVENT_ESTABLISHED, 0, data, sizeof(data)), 0);
	event = cm_expect(channel, RDMA_CM_EVENT_ESTABLISHED);
	ck_assert_uint_eq(event->param.conn.private_data_len, sizeof(data));
	ck_assert_mem_eq(event->param.conn.private_data, data, sizeof(data));
	ck_assert_ok(rdma_ack_cm_event(event));
}
END_TEST

START_TEST(errors_of_the_kernel_are_errors_of_the_call)
{
	struct rdma_cm_event *event;

	fake_fail_next("GET_EVENT", EINTR);
	ck_assert_fails(rdma_get_cm_event(channel, &event), EINTR);
	cm_expect_none(channel);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		an_event_of_nobody_is_dropped,
		an_id_is_no_membership,
		an_event_of_a_kind_unknown_is_passed_on,
		events_without_work_of_ours_are_passed_on,
		events_at_the_wrong_time_do_no_harm,
		the_longest_private_data_arrives_whole,
		errors_of_the_kernel_are_errors_of_the_call,
	};

	return unit_main("cm_event", tests, sizeof(tests) / sizeof(tests[0]), set_up, tear_down);
}
