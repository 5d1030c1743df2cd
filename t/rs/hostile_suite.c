#include "rs/hostile_suite.h"
#include "rs/hostile_objects.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATIENCE_MS = 60000, BYTES = 50000, NAMES = 256 };

static struct {
	int listener, one, other;
	unsigned int objects;
} beside;

/* --- the pair beside it ---------------------------------------------------------------------- */

void hostile_begin(void)
{
	uint16_t port;

	beside.objects = hostile_objects();
	hostile_kind.begin();
	beside.listener = hostile_rlisten(&port);
	beside.one = hostile_rconnect(port);
	beside.other = hostile_raccept(beside.listener);
	hostile_wait_for(beside.one, POLLOUT);
	hostile_bytes_pass();
}

static size_t moved(ssize_t ret)
{
	ck_assert(ret > 0 || (ret < 0 && errno == EAGAIN));
	return ret > 0 ? (size_t)ret : 0;
}

static void pass(int from, int to)
{
	static unsigned char sent[BYTES], got[BYTES];
	size_t out = 0, in = 0, i;

	for (i = 0; i < BYTES; i++)
		sent[i] = (unsigned char)(i * 7 + i / 253);
	while (in < BYTES) {
		if (out < BYTES)
			out += moved(hostile_rsend(from, sent + out, BYTES - out));
		hostile_wait_for(to, POLLIN);
		in += moved(hostile_rrecv(to, got + in, BYTES - in));
	}
	ck_assert_int_eq(memcmp(sent, got, BYTES), 0);
}

void hostile_bytes_pass(void)
{
	pass(beside.one, beside.other);
	pass(beside.other, beside.one);
}

/* The numbers are free at once; what is left of them ends by itself. */
void hostile_end(void)
{
	int waited;

	hostile_bytes_pass();
	ck_assert_int_eq(hostile_rclose(beside.one), 0);
	ck_assert_int_eq(hostile_rclose(beside.other), 0);
	ck_assert_int_eq(hostile_rclose(beside.listener), 0);
	hostile_kind.end();
	for (waited = 0; hostile_objects() > beside.objects; waited++) {
		ck_assert_msg(waited < PATIENCE_MS, "%u objects are left, of %u",
			hostile_objects(), beside.objects);
		usleep(1000);
	}
}

/* --- the victim ------------------------------------------------------------------------------ */

/* On iWARP the side that asked speaks first. */
static void be_asked(struct hostile_victim *victim)
{
	uint8_t data[HOSTILE_DATA_MAX];
	uint16_t port;

	victim->listener = hostile_rlisten(&port);
	hostile_resolve(&victim->hostile, port);
	hostile_request(&victim->hostile, data, hostile_encode(&victim->hostile, data));
	hostile_await_type(&victim->hostile, RDMA_CM_EVENT_ESTABLISHED);
	victim->fd = hostile_raccept(victim->listener);
	if (victim->hostile.iwarp) {
		if (hostile_kind.waits_to_be_spoken_to)
			ck_assert_int_eq(hostile_events(victim->fd) & POLLOUT, 0);
		hostile_say(&victim->hostile, evr_imm(EVR_IMM_SGL, HOSTILE_CREDITS));
	}
	hostile_wait_for(victim->fd, POLLOUT);
}

static void ask(struct hostile_victim *victim)
{
	uint8_t data[HOSTILE_DATA_MAX];

	victim->listener = -1;
	victim->fd = hostile_rconnect(hostile_listen(&victim->hostile));
	hostile_take_request(&victim->hostile);
	hostile_accept(&victim->hostile, data, hostile_encode(&victim->hostile, data));
	hostile_await_type(&victim->hostile, RDMA_CM_EVENT_ESTABLISHED);
	hostile_wait_for(victim->fd, POLLOUT);
}

void hostile_meet(struct hostile_victim *victim, enum hostile_role role)
{
	victim->role = role;
	hostile_open(&victim->hostile);
	if (role == HOSTILE_CLIENT)
		be_asked(victim);
	else
		ask(victim);
	ck_assert_int_eq(hostile_rsend(victim->fd, "x", 1), 1);
	hostile_await_messages(&victim->hostile, 1);
}

void hostile_part(struct hostile_victim *victim)
{
	if (victim->fd >= 0)
		ck_assert_int_eq(hostile_rclose(victim->fd), 0);
	if (victim->listener >= 0)
		ck_assert_int_eq(hostile_rclose(victim->listener), 0);
	hostile_close(&victim->hostile);
}

/* --- the whole ------------------------------------------------------------------------------- */

void hostile_add(TCase *tcase, const TTest *test, const char *name, int i)
{
	static TTest named[NAMES];
	static int num;

	if (num == NAMES)
		abort();
	named[num] = *test;
	named[num].name = name;
	tcase_add_loop_test(tcase, &named[num], i, i + 1);
	num++;
}

static void add(Suite *suite, TCase *tcase, void (*set_up)(void), void (*tear_down)(void))
{
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_checked_fixture(tcase, hostile_begin, hostile_end);
	suite_add_tcase(suite, tcase);
}

int hostile_run(void (*set_up)(void), void (*tear_down)(void))
{
	Suite *suite = suite_create(hostile_kind.name);
	SRunner *runner;
	int role, failed;

	for (role = 0; role < HOSTILE_ROLES; role++) {
		add(suite, hostile_words_case((enum hostile_role)role), set_up, tear_down);
		add(suite, hostile_greetings_case((enum hostile_role)role), set_up, tear_down);
	}
	add(suite, hostile_silence_case(), set_up, tear_down);
	add(suite, hostile_kind.own_case(), set_up, tear_down);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
