/*
 * What a message costs an rsocket in calls of the kernel, its own thread and that of the library.
 * The calls of the C library that rsockets wait with are taken here and counted. The other
 * end speaks only when this one sleeps, so that the counts do not depend on how fast anybody is.
 */
#define _GNU_SOURCE
#include "unit/rs_unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { WARM_UP = 5, ROUNDS = 50, BYTES = 64, MANY = 1000, QUIET_MS = 50 };
/* The library's thread looks as often as it takes; it is not the one who waits. */
enum { EACH_TICK = 1000000 };

/* --- counting -------------------------------------------------------------------------------- */

enum call { POLL, READ, WRITE, SEND, RECV, EPOLL_CTL, TIMER, PID, CLOCK, ARM, CALLS };

static const char *const names[CALLS] = { "poll", "read", "write", "send", "recv", "epoll_ctl",
	"timerfd_settime", "getpid", "clock_gettime", "ibv_req_notify_cq" };

/* Who calls: the library's own thread says nothing about itself. */
enum role { HELPER, USER, ROLES, OTHER_END = ROLES };

static _Thread_local enum role role;
static atomic_uint calls[ROLES][CALLS];
static sem_t sleeps;

static void count(enum call call)
{
	if (role < ROLES)
		atomic_fetch_add(&calls[role][call], 1);
}

int poll(struct pollfd *fds, nfds_t num, int timeout_ms)
{
	count(POLL);
	if (role == USER && timeout_ms)
		sem_post(&sleeps);
	return (int)syscall(SYS_poll, fds, num, timeout_ms);
}

ssize_t read(int fd, void *bytes, size_t len)
{
	count(READ);
	return syscall(SYS_read, fd, bytes, len);
}

ssize_t write(int fd, const void *bytes, size_t len)
{
	count(WRITE);
	return syscall(SYS_write, fd, bytes, len);
}

ssize_t send(int fd, const void *bytes, size_t len, int flags)
{
	count(SEND);
	return syscall(SYS_sendto, fd, bytes, len, flags, NULL, 0);
}

ssize_t recv(int fd, void *bytes, size_t len, int flags)
{
	count(RECV);
	return syscall(SYS_recvfrom, fd, bytes, len, flags, NULL, NULL);
}

int epoll_ctl(int epoll_fd, int op, int fd, struct epoll_event *event)
{
	count(EPOLL_CTL);
	return (int)syscall(SYS_epoll_ctl, epoll_fd, op, fd, event);
}

int timerfd_settime(int fd, int flags, const struct itimerspec *when, struct itimerspec *before)
{
	count(TIMER);
	return (int)syscall(SYS_timerfd_settime, fd, flags, when, before);
}

pid_t getpid(void)
{
	count(PID);
	return (pid_t)syscall(SYS_getpid);
}

/* The user's time goes on by a second with each reading: the second one ends a spin anywhere. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
	static atomic_long readings;
	int ret = (int)syscall(SYS_clock_gettime, clock, now);

	count(CLOCK);
	if (clock == CLOCK_MONOTONIC)
		now->tv_sec += role == USER ? atomic_fetch_add(&readings, 1) : readings;
	return ret;
}

/* --- an end that sends back what comes ------------------------------------------------------- */

typedef int wait_fn(struct pollfd *fds, nfds_t num, int timeout_ms);

struct echo {
	int fd;
	wait_fn *wait; /* NULL: it blocks */
};

static ssize_t receive(const struct echo *echo, char *bytes)
{
	struct pollfd pfd = { .fd = echo->fd, .events = POLLIN };
	ssize_t ret;

	do {
		ret = rrecv(echo->fd, bytes, BYTES, 0);
	} while (ret < 0 && errno == EAGAIN && echo->wait(&pfd, 1, -1) == 1);
	return ret;
}

static void *run_echo(void *arg)
{
	const struct echo *echo = arg;
	char bytes[BYTES];

	role = USER;
	while (receive(echo, bytes) == BYTES)
		ck_assert_int_eq(rsend(echo->fd, bytes, BYTES, 0), BYTES);
	return NULL;
}

/* --- the other end --------------------------------------------------------------------------- */

static void until_it_sleeps(void)
{
	while (sem_wait(&sleeps))
		ck_assert_int_eq(errno, EINTR);
}

static void pass(int fd)
{
	char bytes[BYTES] = { 0 };
	size_t got = 0;
	ssize_t ret;

	ck_assert_int_eq(rsend(fd, bytes, BYTES, 0), BYTES);
	until_it_sleeps();
	while (got < BYTES) {
		ret = rrecv(fd, bytes, BYTES - got, MSG_DONTWAIT);
		ck_assert(ret > 0 || errno == EAGAIN);
		got += ret > 0 ? (size_t)ret : 0;
	}
}

/* What a message costs each; of the arming nobody knows who did it. */
struct cost {
	unsigned call[ROLES][CALLS];
};

static struct cost so_far(void)
{
	struct cost cost;
	int i, j;

	for (i = 0; i < ROLES; i++)
		for (j = 0; j < CALLS; j++)
			cost.call[i][j] = atomic_load(&calls[i][j]);
	cost.call[USER][ARM] = fake_calls("ibv_req_notify_cq");
	return cost;
}

static void pass_many(int fd, int num)
{
	while (num--)
		pass(fd);
}

/* To the nearest whole: a connection has a few to itself, whatever it does. */
static unsigned each(unsigned after, unsigned before)
{
	return (after - before + ROUNDS / 2) / ROUNDS;
}

static struct cost cost_of(int fd)
{
	struct cost before, cost;
	int i, j;

	until_it_sleeps();
	pass_many(fd, WARM_UP);
	before = so_far();
	pass_many(fd, ROUNDS);
	cost = so_far();
	for (i = 0; i < ROLES; i++)
		for (j = 0; j < CALLS; j++)
			cost.call[i][j] = each(cost.call[i][j], before.call[i][j]);
	return cost;
}

static struct cost measure(wait_fn *wait)
{
	struct rs_pair pair = rs_connect();
	struct echo echo = { pair.server, wait };
	struct cost cost;
	pthread_t thread;

	role = OTHER_END;
	ck_assert_int_eq(sem_init(&sleeps, 0, 0), 0);
	ck_assert_ok(rfcntl(pair.client, F_SETFL, O_RDWR));
	if (!wait)
		ck_assert_ok(rfcntl(pair.server, F_SETFL, O_RDWR));
	ck_assert_int_eq(pthread_create(&thread, NULL, run_echo, &echo), 0);
	cost = cost_of(pair.client);
	ck_assert_ok(rclose(pair.client));
	pair.client = -1;
	pthread_join(thread, NULL);
	rs_close(&pair);
	return cost;
}

static void costs_at_most(const struct cost *cost, const struct cost *most)
{
	int i, j;

	for (i = 0; i < ROLES; i++)
		for (j = 0; j < CALLS; j++)
			ck_assert_msg(cost->call[i][j] <= most->call[i][j],
				"a message takes %u of %s in the %s's thread, not %u",
				cost->call[i][j], names[j], i == USER ? "user" : "library",
				most->call[i][j]);
	ck_assert_uint_eq(cost->call[USER][POLL], 1);
}

/* --- the tests ------------------------------------------------------------------------------- */

START_TEST(a_blocking_call_that_sleeps_arms_polls_and_reads_the_event)
{
	const struct cost most = { .call[USER] = { [ARM] = 1, [POLL] = 1,
					 [READ] = 1, [CLOCK] = 2 } };
	struct cost cost = measure(NULL);

	costs_at_most(&cost, &most);
}
END_TEST

/* The timer is for those who do not come back, and set where messages are far apart. */
START_TEST(one_in_rpoll_costs_the_same_and_at_most_a_timer)
{
	const struct cost most = {
		.call[USER] = { [ARM] = 1, [POLL] = 1, [READ] = 1, [TIMER] = 1, [CLOCK] = 2 },
		.call[HELPER] = { [READ] = 1, [CLOCK] = EACH_TICK },
	};
	struct cost cost = measure(rpoll);

	costs_at_most(&cost, &most);
}
END_TEST

/* The library's thread reads the event, and arms again at once. */
START_TEST(by_the_number_a_byte_is_sent_and_taken_back)
{
	const struct cost most = {
		.call[USER] = { [ARM] = 1, [POLL] = 1, [RECV] = 1 },
		.call[HELPER] = { [READ] = 1, [SEND] = 1, [CLOCK] = EACH_TICK },
	};
	struct cost cost = measure(poll);

	costs_at_most(&cost, &most);
}
END_TEST

/* --- two that wait on one -------------------------------------------------------------------- */

static void *run_receiver(void *arg)
{
	char byte;

	role = USER;
	while (rrecv(*(int *)arg, &byte, 1, 0) == 1)
		;
	return NULL;
}

static void *run_sender(void *arg)
{
	char bytes[BYTES] = { 0 };

	role = USER;
	while (rsend(*(int *)arg, bytes, BYTES, 0) > 0)
		;
	return NULL;
}

/* Those that are awake may sleep once or twice more, and then say nothing. */
static bool somebody_sleeps_again(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += QUIET_MS * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	return !sem_timedwait(&sleeps, &until);
}

START_TEST(two_that_wait_do_not_wake_each_other_for_ever)
{
	struct rs_pair pair = rs_connect();
	pthread_t receiver, sender;
	int num = 0;

	role = OTHER_END;
	ck_assert_int_eq(sem_init(&sleeps, 0, 0), 0);
	ck_assert_ok(rfcntl(pair.server, F_SETFL, O_RDWR));
	ck_assert_int_eq(pthread_create(&receiver, NULL, run_receiver, &pair.server), 0);
	ck_assert_int_eq(pthread_create(&sender, NULL, run_sender, &pair.server), 0);
	until_it_sleeps();
	until_it_sleeps();
	ck_assert_int_eq(rsend(pair.client, "x", 1, 0), 1);
	while (num < MANY && somebody_sleeps_again())
		num++;
	ck_assert_int_lt(num, MANY);
	ck_assert_ok(rclose(pair.client));
	pair.client = -1;
	pthread_join(receiver, NULL);
	pthread_join(sender, NULL);
	rs_close(&pair);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		a_blocking_call_that_sleeps_arms_polls_and_reads_the_event,
		one_in_rpoll_costs_the_same_and_at_most_a_timer,
		by_the_number_a_byte_is_sent_and_taken_back,
		two_that_wait_do_not_wake_each_other_for_ever,
	};

	return cm_main("rs_calls", tests, sizeof(tests) / sizeof(tests[0]));
}
