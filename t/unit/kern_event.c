/* The decoder of events, and what the commands make of odd answers. */
#include "unit/unit.h"

#include "kern/sys.h"
#include "kern/ucma.h"
#include "kern/ucma_event.h"

#include <errno.h>
#include <string.h>

static struct evr_ucma_resp_event answer;
static ssize_t write_result;
static struct evr_ucma_hdr seen;
static size_t seen_len;

/* A kernel of one answer: whatever is asked, the response buffer gets it. */
static ssize_t answering_write(int fd, const void *buf, size_t len)
{
	const struct evr_ucma_cmd_get_event *cmd = buf;

	memcpy(&seen, buf, sizeof(seen));
	seen_len = len;
	if (write_result)
		return write_result;
	if (seen.out_bytes <= sizeof(answer) && seen.out_bytes)
		memcpy((void *)(uintptr_t)cmd->response, &answer, seen.out_bytes);
	return (ssize_t)len;
}

static const struct evr_sys answering = { .write = answering_write };

static void set_up(void)
{
	memset(&answer, 0, sizeof(answer));
	write_result = 0;
	evr_sys = &answering;
}

START_TEST(an_event_is_read_field_by_field)
{
	struct evr_ucma_event event;

	answer.uid = UINT64_C(0x123456789abcdef0);
	answer.handle = 7;
	answer.event = 9;
	answer.status = (uint32_t)-ETIMEDOUT;
	answer.ece = (struct evr_ucma_ece){ 3, 4 };
	answer.param.conn.qp_num = 0x123456;
	answer.param.conn.retry_count = 5;
	ck_assert_int_eq(evr_ucma_event_read(3, &event), 0);
	ck_assert(event.uid == answer.uid && event.handle == 7 && event.type == 9);
	ck_assert_int_eq(event.status, -ETIMEDOUT);
	ck_assert(event.ece.vendor_id == 3 && event.ece.attr_mod == 4);
	ck_assert(event.param.conn.qp_num == 0x123456 && event.param.conn.retry_count == 5);
}
END_TEST

START_TEST(private_data_of_any_length_stays_inside_the_event)
{
	struct evr_ucma_event event;
	struct evr_ucma_event_data data;
	const uint8_t *end = (const uint8_t *)(&event + 1);
	int len;

	for (len = 0; len <= UINT8_MAX; len++) {
		answer.param.ud.private_data_len = (uint8_t)len;
		evr_ucma_event_decode(&answer, &event);
		data = evr_ucma_event_ud_data(&event);
		ck_assert(data.len == len && (len ? data.bytes + len <= end : !data.bytes));
		answer.param.conn.private_data_len = (uint8_t)len;
		evr_ucma_event_decode(&answer, &event);
		data = evr_ucma_event_conn_data(&event);
		ck_assert(data.len == len && (len ? data.bytes + len <= end : !data.bytes));
	}
}
END_TEST

START_TEST(the_argument_of_a_written_event_is_one_number)
{
	const uint64_t arg = UINT64_C(0x123456789abcdef0);
	struct evr_ucma_event event;

	memcpy(&answer.param, &arg, sizeof(arg));
	ck_assert_int_eq(evr_ucma_event_read(3, &event), 0);
	ck_assert(evr_ucma_event_arg(&event) == arg);
}
END_TEST

START_TEST(an_error_of_the_kernel_comes_back_and_leaves_the_event_alone)
{
	struct evr_ucma_event event = { .handle = 77 };

	write_result = -EAGAIN;
	ck_assert_int_eq(evr_ucma_event_read(3, &event), -EAGAIN);
	ck_assert_uint_eq(event.handle, 77);
}
END_TEST

START_TEST(a_command_that_was_taken_in_part_has_failed)
{
	write_result = 8;
	ck_assert_int_eq(evr_ucma_disconnect(3, 1), -ENODATA);
}
END_TEST

START_TEST(the_header_tells_both_lengths)
{
	uint32_t reported;

	ck_assert_int_eq(evr_ucma_destroy_id(3, 1, &reported), 0);
	ck_assert_uint_eq(seen.op, EVR_UCMA_DESTROY_ID);
	ck_assert_uint_eq(seen.in_bytes + sizeof(seen), seen_len);
	ck_assert_uint_eq(seen.out_bytes, sizeof(struct evr_ucma_resp_events));
}
END_TEST

START_TEST(addresses_longer_than_any_are_refused)
{
	struct sockaddr_storage addr = { .ss_family = AF_INET };

	ck_assert_int_eq(evr_ucma_bind(3, 1, (struct sockaddr *)&addr, sizeof(addr) + 1), -EINVAL);
	ck_assert_int_eq(
		evr_ucma_resolve_addr(3, 1, NULL, 0, (struct sockaddr *)&addr, sizeof(addr) + 1, 1),
		-EINVAL);
	ck_assert_int_eq(evr_ucma_resolve_addr(3, 1, (struct sockaddr *)&addr, sizeof(addr) + 1,
				 (struct sockaddr *)&addr, sizeof(addr), 1),
		-EINVAL);
}
END_TEST

/* What it says is longer than a socket address can be. */
static ssize_t boasting_write(int fd, const void *buf, size_t len)
{
	const struct evr_ucma_cmd_query *cmd = buf;
	struct evr_ucma_resp_addr *addr = (void *)(uintptr_t)cmd->response;
	struct evr_ucma_resp_path *path = (void *)(uintptr_t)cmd->response;

	if (cmd->option == EVR_UCMA_QUERY_PATH)
		path->num_paths = 1000;
	else
		addr->src_size = addr->dst_size = UINT16_MAX;
	return (ssize_t)len;
}

START_TEST(lengths_and_counts_in_answers_are_bounded)
{
	static const struct evr_sys boasting = { .write = boasting_write };
	struct evr_ucma_resp_path path;
	struct evr_ucma_addr addr;

	evr_sys = &boasting;
	ck_assert_int_eq(evr_ucma_query_addr(3, 1, &addr), 0);
	ck_assert_uint_eq(addr.src_len, sizeof(addr.src));
	ck_assert_uint_eq(addr.dst_len, sizeof(addr.dst));
	ck_assert_uint_eq(addr.ibdev_index, EVR_UCMA_NO_INDEX);
	ck_assert_int_eq(evr_ucma_query_path(3, 1, &path), 0);
	ck_assert_uint_eq(path.num_paths, EVR_UCMA_PATHS_MAX);
}
END_TEST

/* What a kernel says to a newer command: on any id, and on one that nobody has. */
static int error_of_any, error_of_none;

static ssize_t refusing_write(int fd, const void *buf, size_t len)
{
	const struct evr_ucma_cmd_disconnect *cmd = buf;

	return cmd->handle == EVR_UCMA_NO_HANDLE ? -error_of_none : -error_of_any;
}

static void check_newer(int any, int none, int expected)
{
	static const struct evr_sys refusing = { .write = refusing_write };
	const struct evr_ucma_service service = { .flags = EVR_UCMA_SERVICE_ID };

	evr_sys = &refusing;
	error_of_any = any;
	error_of_none = none;
	ck_assert_int_eq(evr_ucma_resolve_service(3, 1, &service), -expected);
	ck_assert_int_eq(evr_ucma_write_event(3, 1, 18, 0, 0), -expected);
}

START_TEST(a_missing_command_is_told_from_a_wrong_argument)
{
	check_newer(EINVAL, EINVAL, ENOSYS);
	check_newer(ENOSYS, ENOSYS, ENOSYS);
	check_newer(EINVAL, ENOENT, EINVAL);
	check_newer(EINVAL, EACCES, EINVAL);
	check_newer(EOPNOTSUPP, ENOENT, EOPNOTSUPP);
	check_newer(ENXIO, ENOENT, ENXIO);
}
END_TEST

START_TEST(room_beyond_any_answer_is_refused)
{
	struct evr_ucma_resp_service resp;

	ck_assert_int_eq(evr_ucma_query_service(3, 1, &resp, EVR_UCMA_SERVICES_MAX + 1), -EINVAL);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		an_event_is_read_field_by_field,
		private_data_of_any_length_stays_inside_the_event,
		the_argument_of_a_written_event_is_one_number,
		an_error_of_the_kernel_comes_back_and_leaves_the_event_alone,
		a_command_that_was_taken_in_part_has_failed,
		the_header_tells_both_lengths,
		addresses_longer_than_any_are_refused,
		lengths_and_counts_in_answers_are_bounded,
		a_missing_command_is_told_from_a_wrong_argument,
		room_beyond_any_answer_is_refused,
	};

	return unit_main("kern_event", tests, sizeof(tests) / sizeof(tests[0]), set_up, NULL);
}
