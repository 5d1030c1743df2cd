/* A peer that says nothing more, at each step: nobody waits for it, and nothing of it is kept. */
#include "rs/hostile_suite.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <rdma/rsocket.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = 100000 };

/* As the side that asks: the reply is there, and it does not look. */
START_TEST(it_withholds_its_last_message)
{
	uint8_t data[HOSTILE_DATA_MAX];
	struct hostile hostile;
	uint16_t port;
	int listener = hostile_rlisten(&port), client, server;

	hostile_open(&hostile);
	hostile_resolve(&hostile, port);
	hostile_request(&hostile, data, hostile_encode(&hostile, data));
	client = hostile_rconnect(port);
	server = hostile_raccept(listener);
	hostile_wait_for(client, POLLOUT);
	ck_assert_int_eq(rclose(listener), 0);
	ck_assert_int_eq(rclose(client), 0);
	ck_assert_int_eq(rclose(server), 0);
	hostile_close(&hostile);
}
END_TEST

/* As the side that is asked. */
START_TEST(it_never_answers)
{
	struct hostile hostile;
	int fd;

	hostile_open(&hostile);
	fd = hostile_rconnect(hostile_listen(&hostile));
	hostile_take_request(&hostile);
	ck_assert_int_eq(hostile_events(fd), 0);
	ck_assert_int_eq(rclose(fd), 0);
	hostile_bytes_pass();
	hostile_close(&hostile);
}
END_TEST

START_TEST(it_refuses_without_a_reason)
{
	struct hostile hostile;
	int fd;

	hostile_open(&hostile);
	fd = hostile_rconnect(hostile_listen(&hostile));
	hostile_take_request(&hostile);
	ck_assert_int_eq(rdma_reject(hostile.id, NULL, 0), 0);
	hostile_wait_for(fd, POLLOUT);
	ck_assert_int_eq(hostile_error(fd), ECONNREFUSED);
	ck_assert_int_eq(rclose(fd), 0);
	hostile_close(&hostile);
}
END_TEST

START_TEST(it_says_nothing)
{
	struct hostile_victim victim;
	char byte;

	hostile_meet(&victim, (enum hostile_role)_i);
	ck_assert_int_eq(rrecv(victim.fd, &byte, 1, 0), -1);
	ck_assert_int_eq(errno, EAGAIN);
	hostile_part(&victim);
}
END_TEST

/* Its window is full, and stays so; what it never took is given up in time. */
START_TEST(it_reads_nothing)
{
	static char bytes[CHUNK];
	struct hostile_victim victim;
	size_t sent = 0;
	ssize_t ret;

	hostile_meet(&victim, (enum hostile_role)_i);
	do {
		ret = rsend(victim.fd, bytes, CHUNK, 0);
		sent += ret > 0 ? (size_t)ret : 0;
	} while (sent < HOSTILE_RING - 1);
	ck_assert_uint_eq(sent, HOSTILE_RING - 1);
	ck_assert_int_eq(rsend(victim.fd, bytes, CHUNK, 0), -1);
	ck_assert_int_eq(errno, EAGAIN);
	ck_assert_int_eq(hostile_events(victim.fd) & POLLOUT, 0);
	ck_assert_int_eq(rclose(victim.fd), 0);
	victim.fd = -1;
	hostile_bytes_pass();
	hostile_part(&victim);
}
END_TEST

/* Nothing tells the victim, which has nothing to say. */
START_TEST(it_ends_its_queue_pair)
{
	struct hostile_victim victim;

	hostile_meet(&victim, (enum hostile_role)_i);
	rdma_destroy_qp(victim.hostile.id);
	hostile_bytes_pass();
	hostile_part(&victim);
}
END_TEST

static void set_option(int fd, int level, int name, int value)
{
	ck_assert_int_eq(rsetsockopt(fd, level, name, &value, sizeof(value)), 0);
}

/* Where what waits for a peer can be given up at once. */
START_TEST(a_keepalive_finds_that_it_has_gone)
{
	struct hostile_victim victim;
	int error;

	hostile_meet(&victim, (enum hostile_role)_i);
	set_option(victim.fd, IPPROTO_TCP, TCP_KEEPIDLE, 1);
	set_option(victim.fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	rdma_destroy_qp(victim.hostile.id);
	while (!(hostile_events(victim.fd) & POLLERR)) {
		hostile_place.give_up();
		usleep(1000);
	}
	error = hostile_error(victim.fd);
	ck_assert_msg(error == ETIMEDOUT || (victim.hostile.iwarp && error), "%s", strerror(error));
	hostile_part(&victim);
}
END_TEST

/* Half of a message: what it wrote it never tells. */
START_TEST(it_writes_and_says_nothing)
{
	struct hostile_victim victim;
	struct hostile_write write = { .len = CHUNK / 100 };
	char byte;

	hostile_meet(&victim, (enum hostile_role)_i);
	write.addr = victim.hostile.theirs.data.addr;
	write.rkey = victim.hostile.theirs.data.rkey;
	hostile_write(&victim.hostile, &write);
	hostile_await_sent(&victim.hostile);
	ck_assert_int_eq(rrecv(victim.fd, &byte, 1, 0), -1);
	ck_assert_int_eq(errno, EAGAIN);
	hostile_part(&victim);
}
END_TEST

/* A blocking rsocket waits for an answer to its goodbye as long as it was told. */
START_TEST(a_blocking_close_waits_no_longer_than_it_lingers)
{
	const struct linger linger = { .l_onoff = 1, .l_linger = 1 };
	struct hostile_victim victim;

	hostile_meet(&victim, (enum hostile_role)_i);
	ck_assert_int_eq(rfcntl(victim.fd, F_SETFL, O_RDWR), 0);
	ck_assert_int_eq(
		rsetsockopt(victim.fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	ck_assert_int_eq(rclose(victim.fd), 0);
	victim.fd = -1;
	hostile_part(&victim);
}
END_TEST

TCase *hostile_silence_case(void)
{
	TCase *tcase = tcase_create("silence");

	tcase_add_test(tcase, it_withholds_its_last_message);
	tcase_add_test(tcase, it_never_answers);
	tcase_add_test(tcase, it_refuses_without_a_reason);
	tcase_add_loop_test(tcase, it_says_nothing, 0, HOSTILE_ROLES);
	tcase_add_loop_test(tcase, it_reads_nothing, 0, HOSTILE_ROLES);
	tcase_add_loop_test(tcase, it_ends_its_queue_pair, 0, HOSTILE_ROLES);
	if (hostile_place.give_up)
		tcase_add_loop_test(tcase, a_keepalive_finds_that_it_has_gone, 0, HOSTILE_ROLES);
	tcase_add_loop_test(tcase, it_writes_and_says_nothing, 0, HOSTILE_ROLES);
	tcase_add_loop_test(
		tcase, a_blocking_close_waits_no_longer_than_it_lingers, 0, HOSTILE_ROLES);
	return tcase;
}
