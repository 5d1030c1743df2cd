/* A peer that says nothing more, at each step: nobody waits for it, and nothing of it is kept. */
#include "rs/hostile_suite.h"

#include <errno.h>
#include <poll.h>
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
	ck_assert_int_eq(hostile_rclose(listener), 0);
	ck_assert_int_eq(hostile_rclose(client), 0);
	ck_assert_int_eq(hostile_rclose(server), 0);
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
	ck_assert_int_eq(hostile_rclose(fd), 0);
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
	ck_assert_int_eq(hostile_rclose(fd), 0);
	hostile_close(&hostile);
}
END_TEST

START_TEST(it_says_nothing)
{
	struct hostile_victim victim;
	char byte;

	hostile_meet(&victim, (enum hostile_role)_i);
	ck_assert_int_eq(hostile_rrecv(victim.fd, &byte, 1), -1);
	ck_assert_int_eq(errno, EAGAIN);
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
	ck_assert_int_eq(hostile_rrecv(victim.fd, &byte, 1), -1);
	ck_assert_int_eq(errno, EAGAIN);
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
	tcase_add_loop_test(tcase, it_ends_its_queue_pair, 0, HOSTILE_ROLES);
	tcase_add_loop_test(tcase, it_writes_and_says_nothing, 0, HOSTILE_ROLES);
	return tcase;
}
