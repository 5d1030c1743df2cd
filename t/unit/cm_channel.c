#include "unit/cm_unit.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

START_TEST(a_channel_is_closed_with_its_descriptor)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();

	ck_assert_ptr_nonnull(channel);
	ck_assert_int_ne(fcntl(channel->fd, F_GETFD), -1);
	ck_assert_uint_eq(fake_live(FAKE_FILE), 1);
	rdma_destroy_event_channel(channel);
}
END_TEST

START_TEST(without_a_device_everything_that_starts_says_enodev)
{
	struct rdma_addrinfo *res;
	struct rdma_cm_id *id;
	int num = -1;

	fake_device_remove(FAKE_ROCE);
	errno = 0;
	ck_assert_ptr_null(rdma_create_event_channel());
	ck_assert_int_eq(errno, ENODEV);
	ck_assert_fails(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), ENODEV);
	ck_assert_fails(rdma_getaddrinfo("127.0.0.1", NULL, NULL, &res), ENODEV);
	ck_assert_ptr_null(rdma_get_devices(&num));
	ck_assert_int_eq(num, 0);
	fake_device_add(FAKE_ROCE);
	rdma_destroy_event_channel(cm_channel());
}
END_TEST

START_TEST(a_device_node_that_cannot_be_opened_is_told)
{
	const int errors[][2] = { { -EACCES, EACCES }, { -EMFILE, EMFILE }, { -ENOENT, ENODEV },
		{ -ENXIO, ENODEV } };
	size_t i;

	for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		fake_fail_next("open", -errors[i][0]);
		errno = 0;
		ck_assert_ptr_null(rdma_create_event_channel());
		ck_assert_int_eq(errno, errors[i][1]);
	}
}
END_TEST

/* And is not taken for there being no device. */
START_TEST(devices_that_cannot_be_listed_are_told)
{
	const int errors[] = { EMFILE, ENFILE, ENOMEM };
	struct rdma_cm_id *id;
	int i;

	for (i = 0; i < 3; i++) {
		fake_fail_next("ibv_get_device_list", errors[i]);
		ck_assert_fails(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), errors[i]);
	}
	ck_assert_ok(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP));
	for (i = 0; i < 3; i++) {
		fake_fail_next("ibv_get_device_list", errors[i]);
		ck_assert_ptr_null(rdma_get_devices(NULL));
		ck_assert_int_eq(errno, errors[i]);
	}
	fake_fail_next("ibv_get_device_list", EMFILE);
	ck_assert_fails(rdma_bind_addr(id, cm_addr(FAKE_ROCE_IP, 0)), EMFILE);
	cm_destroy(id);
}
END_TEST

START_TEST(a_device_that_cannot_be_asked_for_its_driver_is_not_opened)
{
	struct rdma_cm_id *id = cm_id(NULL, RDMA_PS_TCP);

	fake_fail_next("find_driver_id", EMFILE);
	ck_assert_fails(rdma_bind_addr(id, cm_addr(FAKE_ROCE_IP, 0)), EMFILE);
	ck_assert_uint_eq(fake_live(FAKE_CONTEXT), 0);
	cm_destroy(id);
}
END_TEST

START_TEST(the_usual_path_serves_when_netlink_cannot_tell)
{
	fake_fail_next("find_cm_device", ENODEV);
	rdma_destroy_event_channel(cm_channel());
}
END_TEST

START_TEST(no_channel_is_not_an_event_nor_a_crash)
{
	struct rdma_event_channel *channel = cm_channel();
	struct rdma_cm_event *event;

	rdma_destroy_event_channel(NULL);
	ck_assert_fails(rdma_get_cm_event(NULL, &event), EINVAL);
	ck_assert_fails(rdma_get_cm_event(channel, NULL), EINVAL);
	ck_assert_fails(rdma_ack_cm_event(NULL), EINVAL);
	cm_expect_none(channel);
	rdma_destroy_event_channel(channel);
}
END_TEST

START_TEST(devices_are_listed_and_given_back)
{
	struct ibv_context **list;
	int num = 0;

	fake_device_add(FAKE_IWARP);
	list = rdma_get_devices(&num);
	ck_assert_ptr_nonnull(list);
	ck_assert_int_eq(num, 2);
	ck_assert(list[0] && list[1] && !list[2]);
	rdma_free_devices(list);
	rdma_free_devices(NULL);
}
END_TEST

START_TEST(every_event_has_its_name)
{
	ck_assert_str_eq(
		rdma_event_str(RDMA_CM_EVENT_ADDR_RESOLVED), "RDMA_CM_EVENT_ADDR_RESOLVED");
	ck_assert_str_eq(
		rdma_event_str(RDMA_CM_EVENT_TIMEWAIT_EXIT), "RDMA_CM_EVENT_TIMEWAIT_EXIT");
	ck_assert_str_eq(rdma_event_str(RDMA_CM_EVENT_ADDRINFO_RESOLVED),
		"RDMA_CM_EVENT_ADDRINFO_RESOLVED");
	ck_assert_str_eq(
		rdma_event_str(RDMA_CM_EVENT_ADDRINFO_ERROR), "RDMA_CM_EVENT_ADDRINFO_ERROR");
	ck_assert_str_eq(rdma_event_str(RDMA_CM_EVENT_USER), "UNKNOWN EVENT");
	ck_assert_str_eq(rdma_event_str(RDMA_CM_EVENT_INTERNAL), "UNKNOWN EVENT");
	ck_assert_str_eq(rdma_event_str((enum rdma_cm_event_type)20), "UNKNOWN EVENT");
	ck_assert_str_eq(rdma_event_str((enum rdma_cm_event_type) - 1), "UNKNOWN EVENT");
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		a_channel_is_closed_with_its_descriptor,
		without_a_device_everything_that_starts_says_enodev,
		a_device_node_that_cannot_be_opened_is_told,
		devices_that_cannot_be_listed_are_told,
		a_device_that_cannot_be_asked_for_its_driver_is_not_opened,
		the_usual_path_serves_when_netlink_cannot_tell,
		no_channel_is_not_an_event_nor_a_crash,
		devices_are_listed_and_given_back,
		every_event_has_its_name,
	};

	return cm_main("cm_channel", tests, sizeof(tests) / sizeof(tests[0]));
}
