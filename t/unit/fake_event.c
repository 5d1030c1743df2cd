/* The events that a test invents, and the order and number of those that wait. */
#include "unit/fake_raw.h"

#include "kern/ucma_abi.h"

#include <errno.h>
#include <string.h>

enum { LAST_EVENT = 19, UID = 77, OTHER = 78 };

static void *uid(uintptr_t number)
{
	return (void *)number;
}

static struct rdma_ucm_event_resp next(int fd)
{
	struct rdma_ucm_event_resp event;

	ck_assert_int_eq(raw_event(fd, &event), 0);
	return event;
}

START_TEST(every_event_comes_with_every_status)
{
	const int statuses[] = { -ETIMEDOUT, -1, 0, 1, 28 };
	int fd = raw_open();
	uint32_t id = raw_create(fd, UID, RDMA_PS_TCP);
	struct rdma_ucm_event_resp event;
	unsigned type, i;

	for (type = 0; type <= LAST_EVENT; type++)
		for (i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
			ck_assert_int_eq(fake_inject(uid(UID), type, statuses[i]), 0);
			event = next(fd);
			ck_assert_uint_eq(event.event, type);
			ck_assert_int_eq((int)event.status, statuses[i]);
			ck_assert_uint_eq(event.uid, UID);
		}
	ck_assert_int_eq(raw_destroy(fd, id), 5 * (LAST_EVENT + 1));
	raw_close(fd);
}
END_TEST

START_TEST(an_invented_request_has_a_child_that_can_be_accepted)
{
	int fd = raw_open();
	uint32_t listener = raw_listener(fd, RDMA_PS_TCP, FAKE_ROCE_IP), child;

	ck_assert_int_eq(fake_inject(uid(1), RAW_CONNECT_REQUEST, 0), 0);
	child = raw_expect(fd, RAW_CONNECT_REQUEST).id;
	ck_assert_uint_ne(child, listener);
	ck_assert_int_eq(raw_accept(fd, child, 2, 17, NULL, 0), 0);
	ck_assert_int_eq(raw_destroy(fd, child), 0);
	ck_assert_int_eq(raw_destroy(fd, listener), 1);
	raw_close(fd);
}
END_TEST

START_TEST(an_invented_request_that_nobody_reads_dies_with_its_listener)
{
	int fd = raw_open();
	uint32_t listener = raw_listener(fd, RDMA_PS_UDP, FAKE_ROCE_IP);

	ck_assert_int_eq(fake_inject(uid(1), RAW_CONNECT_REQUEST, 0), 0);
	ck_assert_int_eq(fake_inject(NULL, RAW_ESTABLISHED, 0), 0);
	ck_assert_uint_eq(fake_live(FAKE_ID), 2);
	ck_assert_int_eq(raw_destroy(fd, listener), 0);
	ck_assert_uint_eq(fake_live(FAKE_ID), 0);
	ck_assert_uint_eq(fake_unread(fd), 0);
	raw_close(fd);
}
END_TEST

START_TEST(a_child_not_accepted_has_events_without_a_uid)
{
	int fd = raw_open();
	uint32_t listener = raw_listener(fd, RDMA_PS_TCP, FAKE_ROCE_IP), child;
	struct rdma_ucm_event_resp event;

	ck_assert_int_eq(fake_inject(NULL, RAW_ESTABLISHED, 0), -ENOENT);
	ck_assert_int_eq(fake_inject(uid(1), RAW_CONNECT_REQUEST, 0), 0);
	child = raw_expect(fd, RAW_CONNECT_REQUEST).id;
	ck_assert_int_eq(fake_inject(NULL, RAW_ESTABLISHED, 0), 0);
	event = raw_expect(fd, RAW_ESTABLISHED);
	ck_assert_uint_eq(event.uid, 0);
	ck_assert_uint_eq(event.id, child);
	ck_assert_int_eq(raw_destroy(fd, child), 1);
	ck_assert_int_eq(raw_destroy(fd, listener), 1);
	raw_close(fd);
}
END_TEST

START_TEST(parameters_and_ece_come_as_they_were_given)
{
	struct evr_ucma_resp_event given = { .event = RAW_ESTABLISHED,
		.param.ud = { .qp_num = 5, .qkey = 6, .ah_attr.dlid = 7 },
		.ece = { .vendor_id = 8, .attr_mod = 9 } };
	int fd = raw_open();
	uint32_t id = raw_create(fd, UID, RDMA_PS_UDP);
	struct rdma_ucm_event_resp event;

	ck_assert_int_eq(fake_inject_event(uid(UID), 0, &given), 0);
	event = raw_expect(fd, RAW_ESTABLISHED);
	ck_assert_uint_eq(event.id, id);
	ck_assert_uint_eq(event.param.ud.qp_num, 5);
	ck_assert_uint_eq(event.param.ud.qkey, 6);
	ck_assert_uint_eq(event.param.ud.ah_attr.dlid, 7);
	ck_assert_uint_eq(event.ece.vendor_id, 8);
	ck_assert_uint_eq(event.ece.attr_mod, 9);
	ck_assert_int_eq(fake_inject_event(uid(OTHER), 0, &given), -ENOENT);
	raw_close(fd);
}
END_TEST

static uint32_t join(int fd, uint32_t id, uint64_t group)
{
	struct rdma_ucm_create_id_resp resp = { 0 };
	struct rdma_ucm_join_mcast cmd = {
		.response = (uintptr_t)&resp, .uid = group, .id = id, .addr_size = 16
	};
	const uint8_t addr[4] = { 239, 1, 2, (uint8_t)group };

	cmd.addr.ss_family = AF_INET;
	memcpy((char *)&cmd.addr + 4, addr, sizeof(addr));
	ck_assert_int_eq(
		raw_command(fd, RDMA_USER_CM_CMD_JOIN_MCAST, &cmd, sizeof(cmd), sizeof(resp)), 0);
	raw_expect(fd, RAW_MULTICAST_JOIN);
	return resp.id;
}

START_TEST(a_membership_has_events_of_its_own)
{
	struct evr_ucma_resp_event given = { .event = RAW_MULTICAST_ERROR,
		.status = (uint32_t)-ENETRESET };
	int fd = raw_open();
	uint32_t id = raw_create(fd, UID, RDMA_PS_UDP), group;
	struct rdma_ucm_event_resp event;

	ck_assert_int_eq(raw_bind(fd, id, FAKE_ROCE_IP, 0), 0);
	join(fd, id, 101);
	group = join(fd, id, 102);
	ck_assert_int_eq(fake_inject_event(uid(UID), 2, &given), 0);
	event = raw_expect(fd, RAW_MULTICAST_ERROR);
	ck_assert_uint_eq(event.uid, 102);
	ck_assert_uint_eq(event.id, group);
	ck_assert_int_eq((int)event.status, -ENETRESET);
	ck_assert_int_eq(fake_inject_event(uid(UID), 3, &given), -ENOENT);
	ck_assert_int_eq(raw_destroy(fd, id), 3);
	raw_close(fd);
}
END_TEST

START_TEST(a_stray_event_is_nobodys)
{
	const struct evr_ucma_resp_event given = { .uid = 0xdead, .handle = 4711, .event = 99 };
	int fd = raw_open();
	uint32_t id = raw_create(fd, UID, RDMA_PS_TCP);
	struct rdma_ucm_event_resp event;

	ck_assert_int_eq(fake_inject_stray(-1, &given), -EBADF);
	ck_assert_int_eq(fake_inject_stray(fd, &given), 0);
	event = next(fd);
	ck_assert(event.uid == 0xdead && event.id == 4711 && event.event == 99);
	ck_assert_int_eq(raw_destroy(fd, id), 0);
	ck_assert_int_eq(fake_inject_stray(fd, &given), 0);
	raw_close(fd);
}
END_TEST

START_TEST(waiting_events_change_places_and_come_twice)
{
	int fd = raw_open();
	uint32_t id = raw_create(fd, UID, RDMA_PS_TCP);

	fake_inject(uid(UID), RAW_ESTABLISHED, 0);
	fake_inject(uid(UID), RAW_DISCONNECTED, 0);
	ck_assert_uint_eq(fake_unread(fd), 2);
	ck_assert_int_eq(fake_bring_forward(fd, 2), 0);
	ck_assert_int_eq(fake_repeat(fd, 1), 0);
	ck_assert_uint_eq(fake_unread(fd), 3);
	raw_expect(fd, RAW_DISCONNECTED);
	raw_expect(fd, RAW_ESTABLISHED);
	raw_expect(fd, RAW_DISCONNECTED);
	ck_assert_int_eq(fake_bring_forward(fd, 1), -ENOENT);
	ck_assert_int_eq(fake_repeat(fd, 1), -ENOENT);
	ck_assert_int_eq(raw_destroy(fd, id), 3);
	raw_close(fd);
}
END_TEST

START_TEST(a_request_comes_once)
{
	int fd = raw_open();
	uint32_t listener = raw_listener(fd, RDMA_PS_TCP, FAKE_ROCE_IP);

	ck_assert_int_eq(fake_inject(uid(1), RAW_CONNECT_REQUEST, 0), 0);
	ck_assert_int_eq(fake_repeat(fd, 1), -EINVAL);
	ck_assert_int_eq(raw_destroy(fd, listener), 0);
	raw_close(fd);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		every_event_comes_with_every_status,
		an_invented_request_has_a_child_that_can_be_accepted,
		an_invented_request_that_nobody_reads_dies_with_its_listener,
		a_child_not_accepted_has_events_without_a_uid,
		parameters_and_ece_come_as_they_were_given,
		a_membership_has_events_of_its_own,
		a_stray_event_is_nobodys,
		waiting_events_change_places_and_come_twice,
		a_request_comes_once,
	};

	return fake_main("fake_event", tests, sizeof(tests) / sizeof(tests[0]));
}
