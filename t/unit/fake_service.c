/* The fake as a newer kernel: services, and events that programs write. */
#include "unit/fake_raw.h"

#include "kern/ucma_abi.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

enum { RAW_ADDRINFO_RESOLVED = 16, RAW_ADDRINFO_ERROR, RAW_USER, RAW_INTERNAL };

/* A command with the header that raw_command puts before it. */
#define RUN(fd, op, cmd) raw_command((fd), (op), &(cmd).handle, sizeof(cmd) - sizeof((cmd).hdr), 0)

static int resolve(int fd, uint32_t id, const char *name, uint64_t number)
{
	struct evr_ucma_cmd_resolve_service cmd = { .handle = id, .service.id = number };

	cmd.service.flags = name ? EVR_UCMA_SERVICE_NAME : EVR_UCMA_SERVICE_ID;
	if (name)
		strcpy(cmd.service.name, name);
	return RUN(fd, EVR_UCMA_RESOLVE_SERVICE, cmd);
}

static int write_event(int fd, uint32_t id, uint32_t event, uint64_t arg)
{
	struct evr_ucma_cmd_write_event cmd = {
		.handle = id, .event = event, .status = 5, .arg = arg
	};

	return RUN(fd, EVR_UCMA_WRITE_EVENT, cmd);
}

struct answer {
	struct evr_ucma_resp_service head;
	struct evr_ucma_service_rec rec[3];
};

static int query(int fd, uint32_t id, struct answer *answer, size_t out_len)
{
	struct rdma_ucm_query cmd = {
		.response = (uintptr_t)answer, .id = id, .option = EVR_UCMA_QUERY_SERVICE
	};

	memset(answer, 0, sizeof(*answer));
	return raw_command(fd, RDMA_USER_CM_CMD_QUERY, &cmd, sizeof(cmd), out_len);
}

static uint32_t on_infiniband(int fd)
{
	uint32_t id = raw_create(fd, 1, RDMA_PS_TCP);

	fake_device_add(FAKE_IB);
	fake_newer_kernel(true);
	ck_assert_int_eq(raw_bind(fd, id, FAKE_IB_IP, 0), 0);
	return id;
}

START_TEST(an_old_kernel_knows_none_of_it)
{
	int fd = raw_open();
	uint32_t id = on_infiniband(fd);
	struct answer answer;

	fake_newer_kernel(false);
	ck_assert_int_eq(resolve(fd, id, "a", 0), -EINVAL);
	ck_assert_int_eq(resolve(fd, 12345, "a", 0), -EINVAL);
	ck_assert_int_eq(write_event(fd, 12345, RAW_USER, 0), -EINVAL);
	ck_assert_int_eq(query(fd, id, &answer, sizeof(answer)), -ENOSYS);
	raw_close(fd);
}
END_TEST

START_TEST(the_administrator_is_asked_once_and_only_on_infiniband)
{
	int fd = raw_open();
	uint32_t id = on_infiniband(fd), roce = raw_create(fd, 2, RDMA_PS_TCP);

	fake_service_add(7, "a", FAKE_IB_GID);
	ck_assert_int_eq(resolve(fd, 12345, "a", 0), -ENOENT);
	ck_assert_int_eq(resolve(fd, roce, "a", 0), -EINVAL);
	ck_assert_int_eq(raw_bind(fd, roce, FAKE_ROCE_IP, 0), 0);
	ck_assert_int_eq(resolve(fd, roce, "a", 0), -EOPNOTSUPP);
	ck_assert_int_eq(resolve(fd, id, "b", 0), 0);
	ck_assert_int_eq((int)raw_expect(fd, (enum raw_event)RAW_ADDRINFO_ERROR).status, -ENOENT);
	ck_assert_int_eq(resolve(fd, id, NULL, 7), 0);
	raw_expect(fd, (enum raw_event)RAW_ADDRINFO_RESOLVED);
	ck_assert_int_eq(resolve(fd, id, "a", 0), -EINVAL);
	ck_assert_int_eq(raw_route(fd, id), 0);
	raw_expect(fd, RAW_ROUTE_RESOLVED);
	raw_close(fd);
}
END_TEST

START_TEST(records_are_given_as_far_as_there_is_room)
{
	int fd = raw_open();
	uint32_t id = on_infiniband(fd);
	struct answer answer;

	fake_service_add(7, "a", FAKE_IB_GID);
	fake_service_add(8, "a", FAKE_IB_GID);
	fake_service_add(9, "b", FAKE_IB_GID);
	ck_assert_int_eq(query(fd, id, &answer, sizeof(answer)), -ENODATA);
	ck_assert_int_eq(resolve(fd, id, "a", 0), 0);
	raw_expect(fd, (enum raw_event)RAW_ADDRINFO_RESOLVED);
	ck_assert_int_eq(query(fd, id, &answer, 4), -ENOSPC);
	ck_assert_int_eq(query(fd, id, &answer, sizeof(answer.head)), 0);
	ck_assert_uint_eq(answer.head.num, 0);
	ck_assert_int_eq(query(fd, id, &answer, sizeof(answer.head) + sizeof(answer.rec[0])), 0);
	ck_assert(answer.head.num == 2 && !answer.rec[1].id);
	ck_assert_int_eq(query(fd, id, &answer, sizeof(answer)), 0);
	ck_assert(be64toh(answer.rec[0].id) == 7 && be64toh(answer.rec[1].id) == 8);
	ck_assert(!strcmp(answer.rec[1].name, "a") && !answer.rec[2].id);
	raw_close(fd);
}
END_TEST

START_TEST(an_event_can_be_written_to_any_id)
{
	int fd = raw_open();
	uint32_t id = raw_create(fd, 1, RDMA_PS_TCP);
	struct rdma_ucm_event_resp event;
	uint64_t arg;

	fake_newer_kernel(true);
	ck_assert_int_eq(write_event(fd, 12345, RAW_USER, 0), -ENOENT);
	ck_assert_int_eq(write_event(fd, id, RAW_ADDRINFO_ERROR, 0), -EINVAL);
	ck_assert_int_eq(write_event(fd, id, RAW_USER, UINT64_C(0x123456789abcdef0)), 0);
	event = raw_expect(fd, (enum raw_event)RAW_USER);
	memcpy(&arg, &event.param, sizeof(arg));
	ck_assert(event.uid == 1 && event.id == id && event.status == 5);
	ck_assert(arg == UINT64_C(0x123456789abcdef0));
	ck_assert_int_eq(write_event(fd, id, RAW_INTERNAL, 0), 0);
	ck_assert(raw_readable(fd));
	ck_assert_int_eq(raw_destroy(fd, id), 1);
	ck_assert(!raw_readable(fd));
	raw_close(fd);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		an_old_kernel_knows_none_of_it,
		the_administrator_is_asked_once_and_only_on_infiniband,
		records_are_given_as_far_as_there_is_room,
		an_event_can_be_written_to_any_id,
	};

	return fake_main("fake_service", tests, sizeof(tests) / sizeof(tests[0]));
}
