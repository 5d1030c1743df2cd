/* How long the ways to strangers may keep a datagram rsocket, on a clock of the test's own. */
#include "unit/rs_dgram_unit.h"

#include "util/clock.h"

enum {
	READING_US = 2000, /* of the clock: longer than nobody looks at UDP */
	CALL_US = 300000,  /* of the device, while it is slow */
	LONG_US = 60000000,
	LOOKS = 8
};

static uint64_t now_us;

uint64_t evr_clock_now_us(void)
{
	return now_us += READING_US;
}

static void take_long(void)
{
	now_us += CALL_US;
}

/* One who tells a queue pair is heard and answered, and there is time to look for the way. */
static void hear_and_answer(int fd, const struct sockaddr_in *to, const char *ip)
{
	static const uint8_t message[] = {
		0x55, 0x55, 0x55, 0x55, 4, 0, 16, 0, 0, 0, 0, 17, 127, 0, 0, 1, 'x',
	};
	struct sockaddr_in from;
	int i;

	dgram_send_plain(ip, message, sizeof(message), to);
	dgram_expect_text(fd, "x", &from);
	dgram_send_text(fd, "answer", &from);
	for (i = 0; i < LOOKS; i++)
		ck_assert_int_eq(rs_events(fd, POLLIN), 0);
}

static void fail_slowly(int fd, const struct sockaddr_in *to, const char *ip)
{
	fake_each_call(take_long);
	fake_fail_next("ibv_create_ah", ETIMEDOUT);
	hear_and_answer(fd, to, ip);
	fake_each_call(NULL);
	ck_assert_uint_eq(fake_calls("ibv_create_ah"), 1);
}

START_TEST(who_was_waited_for_in_vain_spares_the_next_ones)
{
	int fd = dgram_open_one(0);
	struct sockaddr_in addr = dgram_bind_to(fd, DGRAM_HOST);

	fail_slowly(fd, &addr, "127.0.1.1");
	hear_and_answer(fd, &addr, "127.0.1.2");
	hear_and_answer(fd, &addr, "127.0.1.3");
	ck_assert_uint_eq(fake_calls("ibv_create_ah"), 1);
	now_us += LONG_US;
	hear_and_answer(fd, &addr, "127.0.1.4");
	ck_assert_uint_eq(fake_calls("ibv_create_ah"), 2);
	ck_assert_uint_eq(fake_live(FAKE_AH), 1);
	ck_assert_ok(rclose(fd));
}
END_TEST

START_TEST(those_whose_path_was_found_meanwhile_are_spared_too)
{
	int fd = dgram_open_one(0);
	struct sockaddr_in addr = dgram_bind_to(fd, DGRAM_HOST);

	fake_hold(FAKE_ROUTE);
	hear_and_answer(fd, &addr, "127.0.1.1");
	hear_and_answer(fd, &addr, "127.0.1.2");
	hear_and_answer(fd, &addr, "127.0.1.3");
	ck_assert_uint_eq(fake_held(FAKE_ROUTE), 3);
	ck_assert_uint_eq(fake_release(FAKE_ROUTE), 3);
	fail_slowly(fd, &addr, "127.0.1.4");
	ck_assert_uint_eq(fake_live(FAKE_AH), 0);
	ck_assert_ok(rclose(fd));
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		who_was_waited_for_in_vain_spares_the_next_ones,
		those_whose_path_was_found_meanwhile_are_spared_too,
	};

	return cm_main("rs_dgram_ways", tests, sizeof(tests) / sizeof(tests[0]));
}
