/* What the calls that wait with a mask of signals are told under the preload module. */
#include "config.h"

#include "preload/places.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

#include "unit/cm_unit.h"

static const struct timespec patience = { .tv_sec = PLACES_PATIENCE_MS / 1000 }, no_time;

/* Who waits for reading and for writing; each leaves what it is told of. */
static int wait_by_ppoll(int fd, const struct timespec *time, const sigset_t *mask, short *events)
{
	struct pollfd pfd = { .fd = fd, .events = *events };
	int ret = ppoll(&pfd, 1, time, mask);

	*events = pfd.revents;
	return ret;
}

static int wait_by_pselect(int fd, const struct timespec *time, const sigset_t *mask, short *events)
{
	fd_set in, out;
	int ret;

	FD_ZERO(&in);
	FD_ZERO(&out);
	if (*events & POLLIN)
		FD_SET(fd, &in);
	if (*events & POLLOUT)
		FD_SET(fd, &out);
	ret = pselect(fd + 1, &in, &out, NULL, time, mask);
	*events = (short)((FD_ISSET(fd, &in) ? POLLIN : 0) | (FD_ISSET(fd, &out) ? POLLOUT : 0));
	return ret;
}

typedef int wait_call(int fd, const struct timespec *time, const sigset_t *mask, short *events);
static wait_call *const masked_waits[] = { wait_by_ppoll, wait_by_pselect };
enum { MASKED_WAITS = sizeof(masked_waits) / sizeof(*masked_waits) };

/* Whether it shows that there is something to read, perhaps with the end behind it. */
static bool shows(wait_call *wait, int fd, const struct timespec *time)
{
	short events = POLLIN;
	int ret = wait(fd, time, NULL, &events);

	ck_assert_int_eq(ret, events != 0);
	return events & POLLIN;
}

START_TEST(a_wait_with_a_mask_shows_what_there_is)
{
	struct places_pair pair = places_pair(_i >= MASKED_WAITS ? SOCK_NONBLOCK : 0);
	wait_call *wait = masked_waits[_i % MASKED_WAITS];
	short events = POLLIN | POLLOUT;

	ck_assert(!shows(wait, pair.server, &no_time));
	places_say(pair.client, "x");
	ck_assert(shows(wait, pair.server, &patience));
	places_hear(pair.server, "x");
	ck_assert(!shows(wait, pair.server, &no_time));
	ck_assert_int_ge(wait(pair.server, &no_time, NULL, &events), 1);
	ck_assert_int_eq(events, POLLOUT);
	ck_assert_ok(close(pair.client));
	pair.client = -1;
	ck_assert(shows(wait, pair.server, &patience));
	places_close(&pair);
}
END_TEST

static volatile sig_atomic_t signals;

static void count_signal(int number)
{
	signals += number == SIGUSR1;
}

/* The signal is there already, and blocked: only the mask of the call lets it in. */
START_TEST(a_wait_with_a_mask_ends_by_its_signal)
{
	const struct sigaction action = { .sa_handler = count_signal, .sa_flags = SA_RESTART };
	struct places_pair pair = places_pair(0);
	short events = POLLIN;
	sigset_t usr1, before;

	signals = 0;
	ck_assert_ok(sigaction(SIGUSR1, &action, NULL));
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	ck_assert_ok(pthread_sigmask(SIG_BLOCK, &usr1, &before));
	ck_assert_ok(pthread_kill(pthread_self(), SIGUSR1));
	ck_assert(!shows(masked_waits[_i], pair.server, &no_time));
	ck_assert_int_eq(signals, 0);
	ck_assert_fails(masked_waits[_i](pair.server, &patience, &before, &events), EINTR);
	ck_assert_int_eq(signals, 1);
	places_say(pair.client, "x");
	places_hear(pair.server, "x");
	ck_assert_ok(pthread_sigmask(SIG_SETMASK, &before, NULL));
	places_close(&pair);
}
END_TEST

int main(void)
{
	TCase *cases = places_cases("waits", NULL, 0);

	tcase_add_loop_test(cases, a_wait_with_a_mask_shows_what_there_is, 0, 2 * MASKED_WAITS);
	tcase_add_loop_test(cases, a_wait_with_a_mask_ends_by_its_signal, 0, MASKED_WAITS);
	return places_main(cases);
}
