/*
 * The files under /etc/rdma/rsocket, seen by what a new rsocket says of itself. They are looked for
 * in a folder of the test's; each test is a process of its own, which reads them once.
 */
#define _GNU_SOURCE
#include "unit/rs_unit.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rs/settings.h"

#define FOLDER "/etc/rdma/rsocket/"
#define LEN(of) (sizeof(of) / sizeof((of)[0]))

/* --- the folder ------------------------------------------------------------------------------ */

static char folder[] = "/tmp/evr-rs-settings-XXXXXX";

static void path_of(const char *name, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/%s", folder, name);
}

int open(const char *path, int flags, ...)
{
	char own[PATH_MAX];

	if (!strncmp(path, FOLDER, strlen(FOLDER))) {
		path_of(path + strlen(FOLDER), own);
		path = own;
	}
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0600);
}

static void write_file(const char *name, const char *text)
{
	char path[PATH_MAX];
	FILE *file;

	path_of(name, path);
	file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	ck_assert_int_eq(fclose(file), 0);
}

/* --- what they say --------------------------------------------------------------------------- */

/* A file, what it is without one, and a number of its own. */
static const struct setting {
	const char *name;
	int level, option, without;
	const char *text;
	int with;
} settings[] = {
	{ "mem_default", SOL_SOCKET, SO_RCVBUF, 131072, "300000\n", 300000 },
	{ "wmem_default", SOL_SOCKET, SO_SNDBUF, 131072, "200000\n", 200000 },
	{ "sqsize_default", SOL_RDMA, RDMA_SQSIZE, 384, "100\n", 100 },
	{ "rqsize_default", SOL_RDMA, RDMA_RQSIZE, 384, "50", 50 },
	{ "inline_default", SOL_RDMA, RDMA_INLINE, 64, " 16 bytes\n", 16 },
	{ "iomap_size", SOL_RDMA, RDMA_IOMAPSIZE, 0, "8\n", 8 },
};

enum { POLLING_US = 10 };

static void set_up(void)
{
	cm_set_up();
	ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void tear_down(void)
{
	char path[PATH_MAX];
	size_t i;

	for (i = 0; i < LEN(settings); i++) {
		path_of(settings[i].name, path);
		remove(path);
	}
	path_of("polling_time", path);
	remove(path);
	ck_assert_int_eq(rmdir(folder), 0);
	cm_tear_down();
}

static int get(int fd, const struct setting *setting)
{
	int value = -1;
	socklen_t len = sizeof(value);

	ck_assert_ok(rgetsockopt(fd, setting->level, setting->option, &value, &len));
	return value;
}

/* Of a new one. */
static int value_of(const struct setting *setting)
{
	int fd = rsocket(AF_INET, SOCK_STREAM, 0), value;

	ck_assert_int_ge(fd, 0);
	value = get(fd, setting);
	ck_assert_ok(rclose(fd));
	return value;
}

static void write_all(const char *text)
{
	size_t i;

	for (i = 0; i < LEN(settings); i++)
		write_file(settings[i].name, text ? text : settings[i].text);
	write_file("polling_time", text ? text : "77\n");
}

static void expect_all(bool with)
{
	size_t i;

	for (i = 0; i < LEN(settings); i++) {
		const struct setting *setting = &settings[i];
		int expected = with ? setting->with : setting->without;

		ck_assert_msg(value_of(setting) == expected, "%s: %d, not %d", setting->name,
			value_of(setting), expected);
	}
	ck_assert_uint_eq(evr_rs_polling_time_us(), with ? 77 : POLLING_US);
}

/* --- the tests ------------------------------------------------------------------------------- */

START_TEST(each_file_has_the_number_to_begin_with)
{
	write_all(NULL);
	expect_all(true);
}
END_TEST

START_TEST(without_files_there_are_defaults)
{
	expect_all(false);
}
END_TEST

START_TEST(what_is_no_number_changes_nothing)
{
	write_all("many\n");
	expect_all(false);
}
END_TEST

START_TEST(a_file_without_anything_changes_nothing)
{
	write_all("");
	expect_all(false);
}
END_TEST

START_TEST(what_is_no_number_of_the_machine_changes_nothing)
{
	write_all("99999999999999999999\n");
	expect_all(false);
}
END_TEST

START_TEST(what_cannot_be_read_changes_nothing)
{
	char path[PATH_MAX];
	size_t i;

	for (i = 0; i < LEN(settings); i++) {
		path_of(settings[i].name, path);
		ck_assert_int_eq(mkdir(path, 0700), 0);
	}
	expect_all(false);
}
END_TEST

static void expect_in_turn(const int expected[])
{
	size_t i;

	for (i = 0; i < LEN(settings); i++)
		ck_assert_int_eq(value_of(&settings[i]), expected[i]);
}

START_TEST(what_is_too_little_is_the_least)
{
	const int least[LEN(settings)] = { 4096, 4096, 16, 16, 0, 0 };

	write_all("-5\n");
	expect_in_turn(least);
	ck_assert_uint_eq(evr_rs_polling_time_us(), 0);
}
END_TEST

START_TEST(what_is_too_much_is_the_most)
{
	const int most[] = { 1 << 30, 1 << 30, 65534, 65534, 65534 };
	size_t i;

	write_all("9000000000000\n");
	for (i = 0; i < LEN(most); i++)
		ck_assert_int_eq(value_of(&settings[i]), most[i]);
	ck_assert_uint_eq(evr_rs_polling_time_us(), INT32_MAX);
}
END_TEST

START_TEST(they_are_read_when_the_first_one_is_made)
{
	int fd = rsocket(AF_INET, SOCK_STREAM, 0);

	write_all(NULL);
	expect_all(false);
	ck_assert_ok(rclose(fd));
}
END_TEST

/* And a connection is made of what they say. */
START_TEST(what_the_program_sets_comes_after_them)
{
	const struct setting *setting = &settings[2];
	struct rs_pair pair;
	int fd, size = 200;
	char byte;

	write_all(NULL);
	fd = rsocket(AF_INET, SOCK_STREAM, 0);
	ck_assert_ok(rfcntl(fd, F_SETFD, FD_CLOEXEC));
	ck_assert_ok(rsetsockopt(fd, setting->level, setting->option, &size, sizeof(size)));
	ck_assert_int_eq(get(fd, setting), size);
	ck_assert_ok(rclose(fd));
	pair = rs_connect();
	ck_assert_int_eq(get(pair.client, setting), setting->with);
	ck_assert_int_eq(get(pair.server, setting), setting->with);
	rs_pass(pair.client, pair.server, 1000000);
	ck_assert_fails(rrecv(pair.server, &byte, 1, 0), EAGAIN);
	rs_close(&pair);
}
END_TEST

START_TEST(buffers_of_a_program_have_a_least_size)
{
	int fd = rsocket(AF_INET, SOCK_STREAM, 0), tiny, i;

	for (i = 0; i < 2; i++) {
		for (tiny = -1; tiny < 2048; tiny += 683) {
			ck_assert_ok(rsetsockopt(
				fd, SOL_SOCKET, settings[i].option, &tiny, sizeof(tiny)));
			ck_assert_int_eq(get(fd, &settings[i]), 4096);
		}
	}
	ck_assert_ok(rclose(fd));
}
END_TEST

static void set_queues(int fd, int size)
{
	ck_assert_ok(rsetsockopt(fd, SOL_RDMA, RDMA_SQSIZE, &size, sizeof(size)));
	ck_assert_ok(rsetsockopt(fd, SOL_RDMA, RDMA_RQSIZE, &size, sizeof(size)));
}

/* The default is more than the last of these devices has; the first has too few completions. */
START_TEST(queues_that_the_device_has_not_are_as_long_as_it_has)
{
	static const struct {
		int max_cqe, max_qp_wr, size;
	} devices[] = { { 32767, 65535, 65534 }, { 1 << 20, 16384, 65534 }, { 100, 16384, 384 } };
	struct rs_pair pair;
	size_t i;

	for (i = 0; i < LEN(devices); i++) {
		fake_device_attr(FAKE_ROCE)->max_cqe = devices[i].max_cqe;
		fake_device_attr(FAKE_ROCE)->max_qp_wr = devices[i].max_qp_wr;
		pair.listener = rs_listener();
		set_queues(pair.listener, devices[i].size);
		pair = rs_connect_to(pair.listener);
		rs_pass(pair.client, pair.server, 1000000);
		rs_close(&pair);
	}
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		each_file_has_the_number_to_begin_with,
		without_files_there_are_defaults,
		what_is_no_number_changes_nothing,
		a_file_without_anything_changes_nothing,
		what_is_no_number_of_the_machine_changes_nothing,
		what_cannot_be_read_changes_nothing,
		what_is_too_little_is_the_least,
		what_is_too_much_is_the_most,
		they_are_read_when_the_first_one_is_made,
		what_the_program_sets_comes_after_them,
		buffers_of_a_program_have_a_least_size,
		queues_that_the_device_has_not_are_as_long_as_it_has,
	};

	return unit_main("rs_settings", tests, LEN(tests), set_up, tear_down);
}
