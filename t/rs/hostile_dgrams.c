#include "rs/hostile_dgrams.h"
#include "rs/hostile_objects.h"

#include <errno.h>
#include <poll.h>
#include <rdma/rsocket.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/dgram.h"

enum { PATIENCE_MS = 60000, ROUNDS = 8, SIZE = 900 };

struct hostile_dgrams hostile_dgrams;

static unsigned int objects;

/* --- rsockets -------------------------------------------------------------------------------- */

static int open_one(struct sockaddr_in *addr)
{
	int fd = rsocket(AF_INET, SOCK_DGRAM, 0);
	int half = HOSTILE_DGRAMS_ROOM * EVR_DGRAM_MAX / 2;
	socklen_t len = sizeof(*addr);

	*addr = hostile_dgram_addr(hostile_dgram_ip, 0);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(rsetsockopt(fd, SOL_SOCKET, SO_RCVBUF, &half, sizeof(half)), 0);
	ck_assert_int_eq(rbind(fd, (struct sockaddr *)addr, sizeof(*addr)), 0);
	ck_assert_int_eq(rgetsockname(fd, (struct sockaddr *)addr, &len), 0);
	return fd;
}

static size_t receive(int fd, void *bytes, size_t room, struct sockaddr_in *from)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	socklen_t len = sizeof(*from);
	ssize_t ret;

	ck_assert_int_eq(rpoll(&pfd, 1, PATIENCE_MS), 1);
	ret = rrecvfrom(fd, bytes, room, 0, (struct sockaddr *)from, &len);
	ck_assert_int_ge(ret, 0);
	ck_assert_uint_eq(len, sizeof(*from));
	return (size_t)ret;
}

size_t hostile_dgrams_hear(void *bytes, size_t room, struct sockaddr_in *from)
{
	return receive(hostile_dgrams.victim, bytes, room, from);
}

/* --- the honest one -------------------------------------------------------------------------- */

static void pass(int from, int to, const struct sockaddr_in *from_addr,
	const struct sockaddr_in *to_addr, int turn)
{
	unsigned char sent[SIZE], got[SIZE + 1];
	struct sockaddr_in addr;
	size_t i;

	for (i = 0; i < SIZE; i++)
		sent[i] = (unsigned char)(i * 7 + i / 253 + (size_t)turn);
	ck_assert_int_eq(
		rsendto(from, sent, SIZE, 0, (const struct sockaddr *)to_addr, sizeof(*to_addr)),
		SIZE);
	ck_assert_uint_eq(receive(to, got, sizeof(got), &addr), SIZE);
	ck_assert_mem_eq(sent, got, SIZE);
	ck_assert_mem_eq(&addr, from_addr, sizeof(addr));
}

void hostile_dgrams_honest_pass(void)
{
	const struct hostile_dgrams *all = &hostile_dgrams;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		pass(all->honest, all->victim, &all->honest_addr, &all->victim_addr, i);
		pass(all->victim, all->honest, &all->victim_addr, &all->honest_addr, i);
	}
}

/* --- last words ------------------------------------------------------------------------------ */

static void say_last(bool by_qp)
{
	static const uint8_t by_udp[] = "\x55\x55\x55\x55\x04\0\x10\0\0\0\0\0\0\0\0\0last";
	struct hostile_dgram *hostile = &hostile_dgrams.hostile;
	struct evr_dgram_header header = {
		.version = 4,
		.port = ntohs(hostile->own.sin_port),
	};
	uint8_t bytes[EVR_DGRAM_LEN4 + 4];

	if (!by_qp) {
		hostile_dgram_say_by_udp(hostile, by_udp, sizeof(by_udp) - 1);
		return;
	}
	memcpy(header.addr, &hostile->own.sin_addr, 4);
	evr_dgram_encode(&header, bytes, sizeof(bytes));
	memcpy(bytes + EVR_DGRAM_LEN4, "last", 4);
	hostile_dgram_say_by_qp(hostile, &(struct hostile_dgram_way){ 0 }, bytes, sizeof(bytes));
}

/* What cannot be sent, there where it says it is, is nobody's loss. */
static void send_answer(const struct sockaddr_in *to)
{
	rsendto(hostile_dgrams.victim, "answer", 6, MSG_DONTWAIT, (const struct sockaddr *)to,
		sizeof(*to));
}

unsigned hostile_dgrams_hear_until_last(bool by_qp, bool answer)
{
	unsigned num = 0;
	struct sockaddr_in from;
	char bytes[HOSTILE_DGRAM_MOST];

	say_last(by_qp);
	while (hostile_dgrams_hear(bytes, sizeof(bytes), &from) != 4 || memcmp(bytes, "last", 4)) {
		num++;
		if (answer)
			send_answer(&from);
	}
	return num;
}

/* --- the whole ------------------------------------------------------------------------------- */

void hostile_dgrams_begin(void)
{
	struct hostile_dgrams *all = &hostile_dgrams;
	struct sockaddr_in from;
	char byte;

	objects = hostile_objects();
	all->victim = open_one(&all->victim_addr);
	all->honest = open_one(&all->honest_addr);
	hostile_dgrams_honest_pass();
	hostile_dgram_open(&all->hostile, &all->victim_addr);
	hostile_dgram_ask(&all->hostile);
	ck_assert_uint_eq(hostile_dgrams_hear(&byte, 1, &from), 1);
	ck_assert_mem_eq(&from, &all->hostile.own, sizeof(from));
	hostile_dgram_take_answer(&all->hostile);
}

void hostile_dgrams_end(void)
{
	hostile_dgrams_honest_pass();
	ck_assert_int_eq(rclose(hostile_dgrams.honest), 0);
	ck_assert_int_eq(rclose(hostile_dgrams.victim), 0);
	hostile_dgram_close(&hostile_dgrams.hostile);
	ck_assert_uint_eq(hostile_objects(), objects);
}

static void add(Suite *suite, TCase *tcase, void (*set_up)(void), void (*tear_down)(void))
{
	tcase_set_timeout(tcase, 600);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_checked_fixture(tcase, hostile_dgrams_begin, hostile_dgrams_end);
	suite_add_tcase(suite, tcase);
}

int hostile_dgrams_run(void (*set_up)(void), void (*tear_down)(void))
{
	Suite *suite = suite_create("hostile_dgrams");
	SRunner *runner;
	int failed;

	add(suite, hostile_dgrams_words_case(), set_up, tear_down);
	add(suite, hostile_dgrams_floods_case(), set_up, tear_down);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
