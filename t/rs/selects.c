#include "config.h"

#include "rs/selects.h"
#include "rs/state.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/select.h>
#include <time.h>

#define LEN(of) (sizeof(of) / sizeof((of)[0]))

enum { READ = 1, WRITE = 2, EXCEPT = 4, ALL = READ | WRITE | EXCEPT, MS_PER_S = 1000 };

/* --- ways ------------------------------------------------------------------------------------ */

static struct timeval timeval_of(int ms)
{
	return (struct timeval){ ms / MS_PER_S, ms % MS_PER_S * 1000L };
}

static int by_select(int num, fd_set sets[3], int ms)
{
	struct timeval most = timeval_of(ms);

	return select(num, &sets[0], &sets[1], &sets[2], &most);
}

static int by_pselect(int num, fd_set sets[3], int ms)
{
	struct timespec most = { ms / MS_PER_S, ms % MS_PER_S * 1000000L };

	return pselect(num, &sets[0], &sets[1], &sets[2], &most, NULL);
}

/* rselect() comes last: it is of rsockets only. */
static int by_its_own(int num, fd_set sets[3], int ms)
{
	struct timeval most = timeval_of(ms);

	return call()->select(num, &sets[0], &sets[1], &sets[2], &most);
}

static int (*const ways[])(int num, fd_set sets[3], int ms) = { by_select, by_pselect, by_its_own };

/* In which of the sets that are wanted it stays, or -1. */
static int selected(int which, int fd, int wanted, int ms)
{
	fd_set sets[3];
	int i, found = 0, ret;

	for (i = 0; i < 3; i++) {
		FD_ZERO(&sets[i]);
		if (wanted & 1 << i)
			FD_SET(fd, &sets[i]);
	}
	ret = ways[which](fd + 1, sets, ms);
	if (ret < 0)
		return -1;
	for (i = 0; i < 3; i++)
		found |= FD_ISSET(fd, &sets[i]) ? 1 << i : 0;
	ck_assert_int_eq(ret, __builtin_popcount((unsigned int)found));
	return found;
}

/* --- in each state --------------------------------------------------------------------------- */

static void has_bytes(struct pair *pair)
{
	send_bytes(pair->server, 1);
	wait_for(pair->client, POLLIN);
}

static void is_full(struct pair *pair)
{
	fill_up(pair->client);
}

static void is_full_and_has_bytes(struct pair *pair)
{
	is_full(pair);
	has_bytes(pair);
}

/* One that may be accepted. */
static void has_one(struct pair *pair)
{
	struct sockaddr_storage addr;
	socklen_t len = sizeof(addr);

	listens(pair);
	ck_assert_int_eq(call()->getsockname(pair->client, (struct sockaddr *)&addr, &len), 0);
	ck_assert_int_eq(call()->close(pair->server), 0);
	pair->server = connect_to(port_of(&addr));
	wait_for(pair->client, POLLIN);
}

/*
 * Where an rsocket is not the same, rsocket(7) lists it as a difference: a listener that was shut
 * down is readable.
 */
static const struct choice {
	const char *name;
	void (*state)(struct pair *pair);
	int tcp, rs;
} choices[] = {
	{ "new", be_new, READ | WRITE, WRITE },
	{ "a listener", listens, 0, 0 },
	{ "a listener that has one", has_one, READ, READ },
	{ "a listener that was shut down", listens_no_more, READ | WRITE, READ | WRITE },
	{ "connecting", connects, 0, 0 },
	{ "refused", was_refused, READ | WRITE, READ | WRITE },
	{ "connected", be_connected, WRITE, WRITE },
	{ "with bytes", has_bytes, READ | WRITE, READ | WRITE },
	{ "full", is_full, 0, 0 },
	{ "full with bytes", is_full_and_has_bytes, READ, READ },
	{ "sends no more", sends_no_more, WRITE, WRITE },
	{ "reads no more", reads_no_more, READ | WRITE, READ | WRITE },
	{ "at the end", has_met_the_end, READ | WRITE, READ | WRITE },
	{ "both ended", has_ended, READ | WRITE, READ | WRITE },
	{ "reset", was_reset, READ | WRITE, READ | WRITE },
	{ "reset and told", was_reset_and_told, READ | WRITE, READ | WRITE },
};

static void expect_choice(const struct choice *choice, int which, int fd)
{
	int expected = call()->is_rs && which < 2 ? choice->rs : choice->tcp;
	int found = selected(which, fd, ALL, 0), i;

	ck_assert_msg(found == expected, "%s: %d by way %d", choice->name, found, which);
	for (i = READ; i <= EXCEPT; i <<= 1)
		ck_assert_int_eq(selected(which, fd, i, 0), expected & i);
}

START_TEST(each_state_is_in_its_sets)
{
	const struct choice *choice = &choices[_i];
	struct pair pair = make_pair();
	int which;

	choice->state(&pair);
	pause_ms(QUIET_MS);
	for (which = 0; which < 2 + call()->is_rs; which++)
		expect_choice(choice, which, pair.client);
	end_pair(&pair);
}
END_TEST

/* --- what is exceptional --------------------------------------------------------------------- */

/* Listed as a difference: there is nothing urgent, so that nothing is ever an exception. */
START_TEST(only_what_is_urgent_is_an_exception)
{
	struct pair pair = make_pair();
	bool is_rs = call()->is_rs;

	ck_assert_int_eq(call()->send(pair.client, "u", 1, MSG_OOB), is_rs ? -1 : 1);
	ck_assert(!is_rs || errno == EOPNOTSUPP);
	ck_assert_int_eq(selected(_i, pair.server, EXCEPT, is_rs ? QUIET_MS : PATIENCE_MS),
		is_rs ? 0 : EXCEPT);
	ck_assert_int_eq(call()->close(pair.client), 0);
	pair.client = -1;
	ck_assert_int_eq(selected(_i, pair.server, READ, PATIENCE_MS), READ);
	end_pair(&pair);
}
END_TEST

/* --- waiting --------------------------------------------------------------------------------- */

static void *send_later(void *arg)
{
	pause_ms(QUIET_MS);
	send_bytes(*(int *)arg, 1);
	return NULL;
}

static void *read_later(void *arg)
{
	const struct pair *pair = arg;
	struct pollfd pfd = { .fd = pair->client, .events = POLLOUT };
	char bytes[4096];

	pause_ms(QUIET_MS);
	while (!poll(&pfd, 1, 0))
		call()->recv(pair->server, bytes, sizeof(bytes), MSG_DONTWAIT);
	return NULL;
}

START_TEST(select_wakes_up_for_bytes)
{
	struct pair pair = make_pair();
	pthread_t thread;

	ck_assert_int_eq(selected(_i, pair.server, READ | EXCEPT, QUIET_MS), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, send_later, &pair.client), 0);
	ck_assert_int_eq(selected(_i, pair.server, READ | EXCEPT, PATIENCE_MS), READ);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	end_pair(&pair);
}
END_TEST

START_TEST(select_wakes_up_for_room)
{
	struct pair pair = make_pair();
	pthread_t thread;

	fill_up(pair.client);
	ck_assert_int_eq(selected(_i, pair.client, ALL, QUIET_MS), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, read_later, &pair), 0);
	ck_assert_int_eq(selected(_i, pair.client, ALL, PATIENCE_MS), WRITE);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	end_pair(&pair);
}
END_TEST

static void ignore(int number)
{
	(void)number;
}

/* The signal is let in only while it waits. */
START_TEST(pselect_lets_a_signal_in)
{
	struct sigaction action = { .sa_handler = ignore };
	struct pair pair = make_pair();
	sigset_t set, before;
	fd_set read;

	sigaction(SIGUSR1, &action, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, &before);
	pthread_kill(pthread_self(), SIGUSR1);
	FD_ZERO(&read);
	FD_SET(pair.server, &read);
	ck_assert_int_eq(pselect(pair.server + 1, &read, NULL, NULL, NULL, &before), -1);
	ck_assert_int_eq(errno, EINTR);
	send_bytes(pair.client, 1);
	ck_assert_int_eq(pselect(pair.server + 1, &read, NULL, NULL, NULL, &before), 1);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	end_pair(&pair);
}
END_TEST

TCase *selects_case(const char *name, bool is_rs)
{
	TCase *cases = tcase_create(name);
	int num = is_rs ? 3 : 2;

	tcase_set_timeout(cases, 600);
	tcase_add_loop_test(cases, each_state_is_in_its_sets, 0, LEN(choices));
	tcase_add_loop_test(cases, only_what_is_urgent_is_an_exception, 0, num);
	tcase_add_loop_test(cases, select_wakes_up_for_bytes, 0, num);
	tcase_add_loop_test(cases, select_wakes_up_for_room, 0, num);
	tcase_add_test(cases, pselect_lets_a_signal_in);
	return cases;
}
