/* Whom a datagram rsocket knows: by which address, for how long, and who cannot make it forget. */
#include "unit/rs_dgram_unit.h"
#include "unit/rs_flood.h"

#include <stdio.h>

enum { STRANGERS = 1200, TURNS = 8 };

/* --- strangers ------------------------------------------------------------------------------- */

/*
 * Who has been silent for a second is asked by UDP first, and hearing all the strangers may take
 * that long. Who was forgotten meanwhile has no address handle when it is heard again, and is sent
 * to by UDP.
 */
static unsigned pass_once_it_was_heard(const struct dgram_two *two)
{
	dgram_pass(two->b, two->a, &two->a_addr, 10);
	return dgram_pass(two->a, two->b, &two->b_addr, 10);
}

/* Messages from as many addresses, each of which tells a queue pair. */
static void hear_strangers(int fd, const struct sockaddr_in *to, bool answer)
{
	uint8_t message[] = { 0x55, 0x55, 0x55, 0x55, 4, 0, 16, 0, 0, 0, 0, 17, 127, 0, 0, 1, 'x' };
	struct sockaddr_in from;
	char ip[32];
	int i;

	for (i = 0; i < STRANGERS; i++) {
		snprintf(ip, sizeof(ip), "127.0.%d.%d", 1 + i / 200, 1 + i % 200);
		dgram_send_plain(ip, message, sizeof(message), to);
		dgram_expect_text(fd, "x", &from);
		if (answer)
			dgram_send_text(fd, "answer", &from);
	}
}

START_TEST(who_only_sends_takes_no_place_of_whom_we_sent_to)
{
	struct dgram_two two = dgram_make_two(0);

	dgram_meet(&two);
	hear_strangers(two.a, &two.a_addr, false);
	ck_assert_uint_eq(pass_once_it_was_heard(&two), 1);
	ck_assert_uint_eq(fake_live(FAKE_AH), 2);
	dgram_close_two(&two);
}
END_TEST

START_TEST(who_is_answered_takes_no_place_of_whom_we_heard_by_the_device)
{
	enum { MOST = 1024 };
	struct dgram_two two = dgram_make_two(0);

	dgram_meet(&two);
	hear_strangers(two.a, &two.a_addr, true);
	ck_assert_uint_eq(pass_once_it_was_heard(&two), 1);
	ck_assert_uint_le(fake_live(FAKE_AH), MOST + 2);
	dgram_close_two(&two);
}
END_TEST

START_TEST(who_comes_after_the_strangers_is_met_like_any_other)
{
	struct dgram_two two = dgram_make_two(0);

	hear_strangers(two.a, &two.a_addr, false);
	dgram_meet(&two);
	ck_assert_uint_eq(dgram_pass(two.a, two.b, &two.b_addr, 10), 1);
	dgram_close_two(&two);
}
END_TEST

/* While it looks at some the next ones are there. */
START_TEST(whose_messages_are_dropped_keeps_no_call_for_ever)
{
	struct dgram_two two = dgram_make_two(SOCK_NONBLOCK);
	struct dgram_two strange = { .a = two.a, .b = dgram_open_one(0), .a_addr = two.a_addr };
	struct epoll_event event = { .events = EPOLLIN };
	int epoll_fd = repoll_create(0);
	char byte;

	strange.b_addr = dgram_bind_to(strange.b, DGRAM_HOST);
	dgram_meet(&strange);
	ck_assert_ok(rconnect(two.a, (struct sockaddr *)&two.b_addr, sizeof(two.b_addr)));
	/* It is not left to rpoll() any more. */
	ck_assert_ok(repoll_ctl(epoll_fd, EPOLL_CTL_ADD, two.a, &event));
	rs_flood_from(strange.b, &two.a_addr);
	ck_assert_fails(rrecv(two.a, &byte, 1, 0), EAGAIN);
	fake_meanwhile(NULL);
	ck_assert_ok(rclose(epoll_fd));
	ck_assert_ok(rclose(strange.b));
	dgram_close_two(&two);
}
END_TEST

/* Whenever it looks into the queue some are there. */
START_TEST(who_sends_by_udp_is_heard_while_another_never_pauses)
{
	uint8_t message[] = { 0x55, 0x55, 0x55, 0x55, 4, 0, 16, 0, 0, 0, 0, 0, 127, 0, 0, 2, 'u' };
	struct dgram_two two = dgram_make_two(0);
	char byte;

	dgram_meet(&two);
	rs_flood_from(two.b, &two.a_addr);
	dgram_send_plain("127.0.0.2", message, sizeof(message), &two.a_addr);
	do
		ck_assert_int_eq(rrecv(two.a, &byte, 1, 0), 1);
	while (byte != 'u');
	fake_meanwhile(NULL);
	dgram_close_two(&two);
}
END_TEST

/* --- names ----------------------------------------------------------------------------------- */

static struct sockaddr_in6 bind_to_loopback6(int fd)
{
	struct sockaddr_in6 addr = { .sin6_family = AF_INET6, .sin6_addr = in6addr_loopback };
	socklen_t len = sizeof(addr);

	ck_assert_ok(rbind(fd, (struct sockaddr *)&addr, sizeof(addr)));
	ck_assert_ok(rgetsockname(fd, (struct sockaddr *)&addr, &len));
	return addr;
}

static void pass_connected(int from, int to)
{
	char byte = 'x';

	ck_assert_int_eq(rsend(from, &byte, 1, 0), 1);
	dgram_await(to);
	ck_assert_int_eq(rrecv(to, &byte, 1, 0), 1);
}

START_TEST(a_scope_says_nothing_of_an_address_that_has_none)
{
	int a = rsocket(AF_INET6, SOCK_DGRAM, 0), b = rsocket(AF_INET6, SOCK_DGRAM, 0), i;
	struct sockaddr_in6 a_addr = bind_to_loopback6(a), b_addr = bind_to_loopback6(b);
	unsigned before;

	b_addr.sin6_scope_id = 1;
	ck_assert_ok(rconnect(a, (struct sockaddr *)&b_addr, sizeof(b_addr)));
	ck_assert_ok(rconnect(b, (struct sockaddr *)&a_addr, sizeof(a_addr)));
	for (i = 0; i < TURNS; i++) {
		pass_connected(a, b);
		pass_connected(b, a);
	}
	before = fake_calls("ibv_post_send");
	pass_connected(a, b);
	pass_connected(b, a);
	ck_assert_uint_eq(fake_calls("ibv_post_send") - before, 2);
	ck_assert_ok(rclose(a));
	ck_assert_ok(rclose(b));
}
END_TEST

START_TEST(a_connect_that_fails_leaves_the_peer_that_there_was)
{
	struct dgram_two two = dgram_make_two(0);
	struct sockaddr_in6 other = { .sin6_family = AF_INET6, .sin6_addr = in6addr_loopback };
	int fd = dgram_open_one(0);

	ck_assert_fails(rconnect(fd, (struct sockaddr *)&other, sizeof(other)), EAFNOSUPPORT);
	ck_assert_fails(rsend(fd, "x", 1, 0), EDESTADDRREQ);
	ck_assert_fails(rconnect(fd, NULL, sizeof(two.a_addr)), EFAULT);
	ck_assert_ok(rconnect(fd, (struct sockaddr *)&two.a_addr, sizeof(two.a_addr)));
	ck_assert_fails(rconnect(fd, (struct sockaddr *)&other, sizeof(other)), EAFNOSUPPORT);
	ck_assert_fails(rconnect(fd, (struct sockaddr *)&two.b_addr, 4), EINVAL);
	ck_assert_int_eq(rsend(fd, "still", 5, 0), 5);
	dgram_expect_text(two.a, "still", NULL);
	ck_assert_ok(rclose(fd));
	dgram_close_two(&two);
}
END_TEST

START_TEST(one_that_has_left_its_peer_is_answered_at_its_new_port)
{
	struct dgram_two two = dgram_make_two(0);
	struct sockaddr nobody = { .sa_family = AF_UNSPEC };
	int fd = dgram_open_one(0), i;
	struct sockaddr_in own, from;
	socklen_t len = sizeof(own);

	ck_assert_ok(rconnect(fd, (struct sockaddr *)&two.a_addr, sizeof(two.a_addr)));
	ck_assert_ok(rconnect(fd, &nobody, sizeof(nobody)));
	ck_assert_fails(rsend(fd, "x", 1, 0), EDESTADDRREQ);
	for (i = 0; i < TURNS; i++) {
		dgram_send_text(fd, "ask", &two.b_addr);
		dgram_expect_text(two.b, "ask", &from);
		dgram_send_text(two.b, "answer", &from);
		dgram_expect_text(fd, "answer", NULL);
	}
	ck_assert_ok(rgetsockname(fd, (struct sockaddr *)&own, &len));
	ck_assert_int_eq(from.sin_port, own.sin_port);
	ck_assert_uint_eq(fake_live(FAKE_AH), 2);
	ck_assert_ok(rclose(fd));
	dgram_close_two(&two);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		who_only_sends_takes_no_place_of_whom_we_sent_to,
		who_is_answered_takes_no_place_of_whom_we_heard_by_the_device,
		who_comes_after_the_strangers_is_met_like_any_other,
		whose_messages_are_dropped_keeps_no_call_for_ever,
		who_sends_by_udp_is_heard_while_another_never_pauses,
		a_scope_says_nothing_of_an_address_that_has_none,
		a_connect_that_fails_leaves_the_peer_that_there_was,
		one_that_has_left_its_peer_is_answered_at_its_new_port,
	};

	return cm_main("rs_dgram_peers", tests, sizeof(tests) / sizeof(tests[0]));
}
