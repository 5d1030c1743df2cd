/*
 * The suites on the fake, on each of its devices, and on TCP beside it. EVR_DEVICES=one in the
 * environment: on the first device alone.
 */
#include "rs/bases.h"
#include "rs/bytes.h"
#include "rs/descriptor.h"
#include "rs/edges.h"
#include "rs/goodbyes.h"
#include "rs/limits.h"
#include "rs/options.h"
#include "rs/seen.h"
#include "rs/selects.h"
#include "rs/states.h"

#include "unit/cm_unit.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MANY = 20 };

#define TCP_IP "127.0.0.1"

/* One that comes after the disconnect is as good as none. */
static void lose_rtus(bool lose)
{
	if (lose)
		fake_hold(FAKE_RTU);
	else
		fake_release(FAKE_RTU);
}

static void use(const struct rs_calls *calls, const char *ip)
{
	pair_place = (struct pair_place){ .calls = calls, .ip = ip, .many = MANY };
	if (!calls->is_rs)
		return;
	fake_install();
	pair_place.lose_confirmations = lose_rtus;
}

static void use_tcp(void)
{
	use(&rs_calls_tcp, TCP_IP);
}

static void use_tcp6(void)
{
	use(&rs_calls_tcp, "::1");
}

static void use_rs(void)
{
	use(&rs_calls_rs, FAKE_ROCE_IP);
}

static void use_rs6(void)
{
	use(&rs_calls_rs, FAKE_ROCE_IP6);
}

static void use_iwarp(void)
{
	use(&rs_calls_rs, FAKE_IWARP_IP);
	fake_device_add(FAKE_IWARP);
}

/* The library's thread closes what lingers, with the devices. */
static void leave_rs(void)
{
	while (fake_expect_clean())
		usleep(1000);
	fake_reset();
}

static void leave(void)
{
	if (call()->is_rs)
		leave_rs();
}

static void add(Suite *suite, const char *name, bool is_rs, void (*use_it)(void))
{
	TCase *cases[] = {
		descriptor_case(name, is_rs),
		bytes_case(name),
		states_case(name),
		seen_case(name),
		edges_case(name),
		goodbyes_case(name),
		limits_case(name),
		selects_case(name, is_rs),
		bases_case(name),
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		tcase_add_checked_fixture(cases[i], use_it, leave);
		suite_add_tcase(suite, cases[i]);
	}
}

static bool has_ipv6(void)
{
	struct sockaddr_in6 addr = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int fd = socket(AF_INET6, SOCK_STREAM, 0);
	bool has = fd >= 0 && !bind(fd, (struct sockaddr *)&addr, sizeof(addr));

	if (fd >= 0)
		close(fd);
	return has;
}

static void add_options(Suite *suite)
{
	TCase *cases = options_rs_case(FAKE_ROCE_IP);

	tcase_add_checked_fixture(cases, fake_install, leave_rs);
	suite_add_tcase(suite, cases);
}

static void add_tcp(Suite *suite)
{
	add(suite, "tcp", false, use_tcp);
	if (has_ipv6())
		add(suite, "tcp6", false, use_tcp6);
	else
		printf("# skipped: TCP on IPv6, for there is no ::1\n");
	suite_add_tcase(suite, options_tcp_case(TCP_IP));
}

static void add_other_devices(Suite *suite)
{
	const char *devices = getenv("EVR_DEVICES");

	if (devices && !strcmp(devices, "one"))
		return;
	add(suite, "rs6", true, use_rs6);
	add(suite, "iwarp", true, use_iwarp);
}

/* TCP is the same whatever the device is. */
int main(void)
{
	Suite *suite = suite_create("sockets");
	SRunner *runner;
	int failed;

	if (!getenv("EVR_FAKE_PROFILE"))
		add_tcp(suite);
	add(suite, "rs", true, use_rs);
	add_other_devices(suite);
	add_options(suite);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
