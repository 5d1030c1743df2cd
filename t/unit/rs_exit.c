/*
 * The end of a process that has rsockets: what was sent arrives, whoever is connected is told the
 * end, and none of it holds up the process for long. Each test ends by exit(); the library's end
 * follows, and then the look at the peer, which that end was to leave alone.
 */
#include "unit/rs_unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rs/rs.h"
#include "unit/fake_main.h"
#include "util/clock.h"
#include "util/thread.h"

enum { EXIT_US = 500000, TICK_US = 1000, MOMENT_NS = 100000 };
enum { BYTES = 3000, PAIRS = 3, CHILD_S = 60 };

/* What a test ends with; 0 is what is expected. */
enum { GOOD, BYTES_MISSING, BYTES_WRONG, NO_END, TOO_LONG, SPOKE };

/* --- time that passes only by sleeping, and what the network does meanwhile ------------------ */

static atomic_uint slept_us;
static _Atomic uint64_t end_began_us; /* 0: not yet */
static unsigned int steps;	      /* of the network, for each sleep */

/* A thread of the library's may have a lock meanwhile: it goes on. */
int usleep(useconds_t us)
{
	const struct timespec moment = { .tv_nsec = MOMENT_NS };

	nanosleep(&moment, NULL);
	slept_us += us;
	fake_step(steps);
	return 0;
}

uint64_t evr_clock_now_us(void)
{
	struct timespec now;

	if (end_began_us)
		return end_began_us + slept_us;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* --- the peer, which is another process' as far as the library knows ------------------------- */

static struct rs_pair pairs[PAIRS];
static struct evr_rs *peers[PAIRS];
static char sent[BYTES];

static void connect_pair(int i)
{
	pairs[i] = i ? rs_connect_to(pairs[0].listener) : rs_connect();
	ck_assert_ok(rfcntl(pairs[i].server, F_SETFL, O_RDWR));
	peers[i] = evr_rs_table_remove(pairs[i].server);
	ck_assert_ptr_nonnull(peers[i]);
}

/* Nothing of it leaves before the process ends. */
static void send_all(int i)
{
	size_t at;

	for (at = 0; at < sizeof(sent); at++)
		sent[at] = (char)(at * 31 + at / 251);
	fake_work_by_hand(true);
	ck_assert_int_eq(rsend(pairs[i].client, sent, sizeof(sent), 0), sizeof(sent));
}

static void find_peer(int i)
{
	struct evr_rs *stale;

	evr_rs_table_add(pairs[i].server, peers[i], &stale);
	rfcntl(pairs[i].server, F_SETFL, O_RDWR | O_NONBLOCK);
}

/* All bytes of the other end's, and its end. */
static int look_at_peer(int i)
{
	char got[BYTES];
	size_t len = 0;
	ssize_t ret;

	find_peer(i);
	do {
		ret = rrecv(pairs[i].server, got + len, sizeof(got) - len, 0);
		len += ret > 0 ? (size_t)ret : 0;
	} while (ret > 0 && len < sizeof(got));
	if (len < sizeof(got))
		return BYTES_MISSING;
	if (memcmp(got, sent, sizeof(got)))
		return BYTES_WRONG;
	return rrecv(pairs[i].server, got, 1, 0) == 0 ? GOOD : NO_END;
}

/* --- the end --------------------------------------------------------------------------------- */

static int (*verdict)(void);

/* After the library's own, which has no priority. */
__attribute__((destructor(101))) static void finish(void)
{
	if (verdict)
		_exit(verdict());
}

static _Noreturn void end_with(int (*look)(void))
{
	verdict = look;
	end_began_us = evr_clock_now_us();
	exit(SPOKE);
}

static int first_peer_knows_all(void)
{
	return look_at_peer(0);
}

static int time_is_kept(void)
{
	return slept_us > EXIT_US + TICK_US ? TOO_LONG : GOOD;
}

static int time_is_left(void)
{
	return slept_us < EXIT_US ? GOOD : TOO_LONG;
}

/* --- what is open ---------------------------------------------------------------------------- */

START_TEST(what_was_sent_arrives_and_the_end_is_told)
{
	connect_pair(0);
	ck_assert_ok(rfcntl(pairs[0].client, F_SETFL, _i ? O_RDWR : O_RDWR | O_NONBLOCK));
	send_all(0);
	steps = 1;
	end_with(first_peer_knows_all);
}
END_TEST

START_TEST(what_was_shut_down_without_waiting_arrives)
{
	static const int ways[] = { SHUT_RD, SHUT_WR, SHUT_RDWR };

	connect_pair(0);
	send_all(0);
	ck_assert_ok(rshutdown(pairs[0].client, ways[_i]));
	steps = 1;
	end_with(first_peer_knows_all);
}
END_TEST

static int peer_is_told_nothing(void)
{
	char byte;

	find_peer(0);
	return rrecv(pairs[0].server, &byte, 1, 0) ? GOOD : SPOKE;
}

/* Of a time of 0 the peer is told by a reset, as the kernel ends the queue pair. */
START_TEST(one_that_is_not_to_linger_says_nothing)
{
	const struct linger none = { .l_onoff = 1 };

	connect_pair(0);
	ck_assert_ok(rsetsockopt(pairs[0].client, SOL_SOCKET, SO_LINGER, &none, sizeof(none)));
	end_with(peer_is_told_nothing);
}
END_TEST

/* --- how long it takes ----------------------------------------------------------------------- */

START_TEST(peers_that_take_nothing_share_one_short_time)
{
	int i;

	for (i = 0; i < PAIRS; i++)
		connect_pair(i);
	for (i = 0; i < PAIRS; i++)
		send_all(i);
	end_with(time_is_kept);
}
END_TEST

START_TEST(who_has_nothing_left_to_say_is_not_waited_for)
{
	int fd = rsocket(AF_INET, SOCK_STREAM, 0);

	connect_pair(0);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_ge(rsocket(AF_INET, SOCK_DGRAM, 0), 0);
	ck_assert_fails(rconnect(fd, cm_addr(FAKE_ROCE_IP, 1), sizeof(struct sockaddr_in)),
		ECONNREFUSED);
	fake_hold(FAKE_REQ);
	ck_assert_int_ge(rs_client(), 0);
	end_with(time_is_left);
}
END_TEST

/* --- other threads --------------------------------------------------------------------------- */

static atomic_bool is_held; /* a lock, or a thread in a call */

static void *hold(void *rs)
{
	pthread_mutex_lock(&((struct evr_rs *)rs)->lock);
	is_held = true;
	for (;;)
		pause();
	return NULL;
}

static int time_is_kept_and_first_peer_knows_all(void)
{
	return time_is_kept() ? TOO_LONG : look_at_peer(0);
}

START_TEST(one_whose_lock_is_never_free_holds_up_nobody)
{
	connect_pair(0);
	connect_pair(1);
	send_all(0);
	ck_assert_int_eq(evr_thread_start(hold, evr_rs_get(pairs[1].client)), 0);
	while (!is_held)
		sched_yield();
	steps = 1;
	end_with(time_is_kept_and_first_peer_knows_all);
}
END_TEST

static void *run_rclose(void *arg)
{
	rclose(pairs[0].client);
	return arg;
}

/* In another thread, which has come as far as to take the number. */
static void close_first(void)
{
	struct evr_rs *rs;

	ck_assert_int_eq(evr_thread_start(run_rclose, NULL), 0);
	while ((rs = evr_rs_get(pairs[0].client)))
		evr_rs_put(rs);
}

/* It waits by itself, and would go on if the process did. */
START_TEST(one_that_another_thread_is_closing_is_waited_for)
{
	connect_pair(0);
	ck_assert_ok(rfcntl(pairs[0].client, F_SETFL, O_RDWR));
	send_all(0);
	close_first();
	steps = 1;
	end_with(first_peer_knows_all);
}
END_TEST

static void *receive(void *arg)
{
	char byte;

	rrecv(pairs[0].client, &byte, 1, 0);
	is_held = false;
	return arg;
}

static int nobody_sleeps(void)
{
	while (is_held)
		sched_yield();
	return GOOD;
}

START_TEST(who_waits_in_a_call_leaves_it)
{
	connect_pair(0);
	ck_assert_ok(rfcntl(pairs[0].client, F_SETFL, O_RDWR));
	is_held = true;
	ck_assert_int_eq(evr_thread_start(receive, NULL), 0);
	end_with(nobody_sleeps);
}
END_TEST

/* --- children -------------------------------------------------------------------------------- */

static unsigned int posted;

static int nothing_is_said(void)
{
	return fake_calls("ibv_post_send") == posted && !slept_us ? GOOD : SPOKE;
}

static _Noreturn void await_child(pid_t pid)
{
	int status = -1;

	waitpid(pid, &status, 0);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : TOO_LONG);
}

/* A thread of the parent's is in rclose() meanwhile, and waits for its lock. */
START_TEST(a_child_says_nothing_for_its_parent)
{
	struct evr_rs *rs;
	pid_t pid;

	connect_pair(0);
	connect_pair(1);
	rs = evr_rs_get(pairs[0].client);
	pthread_mutex_lock(&rs->lock);
	close_first();
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid)
		await_child(pid);
	alarm(CHILD_S);
	posted = fake_calls("ibv_post_send");
	end_with(nothing_is_said);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("rs_exit");
	TCase *cases = tcase_create("rs_exit");

	tcase_add_checked_fixture(cases, cm_set_up, NULL);
	tcase_add_loop_exit_test(cases, what_was_sent_arrives_and_the_end_is_told, GOOD, 0, 2);
	tcase_add_loop_exit_test(cases, what_was_shut_down_without_waiting_arrives, GOOD, 0, 3);
	tcase_add_exit_test(cases, one_that_is_not_to_linger_says_nothing, GOOD);
	tcase_add_exit_test(cases, peers_that_take_nothing_share_one_short_time, GOOD);
	tcase_add_exit_test(cases, who_has_nothing_left_to_say_is_not_waited_for, GOOD);
	tcase_add_exit_test(cases, one_whose_lock_is_never_free_holds_up_nobody, GOOD);
	tcase_add_exit_test(cases, one_that_another_thread_is_closing_is_waited_for, GOOD);
	tcase_add_exit_test(cases, who_waits_in_a_call_leaves_it, GOOD);
	tcase_add_exit_test(cases, a_child_says_nothing_for_its_parent, GOOD);
	suite_add_tcase(suite, cases);
	return fake_run(suite);
}
