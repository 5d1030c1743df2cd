/* Programs that fork, under the preload module in the mode for them. */
#include "config.h"

#include "preload/places.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/real.h"
#include "unit/cm_unit.h"

static void end_well(pid_t pid)
{
	int status;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

static void hear_end(int fd)
{
	char byte;

	ck_assert_int_eq(recv(fd, &byte, 1, 0), 0);
}

/* In a child: nothing may be asserted there. */
static int answer(int fd)
{
	char buf[6] = "";

	if (recv(fd, buf, 5, MSG_WAITALL) != 5 || strcmp(buf, "hello"))
		return 1;
	return send(fd, "world", 5, 0) == 5 ? 0 : 2;
}

START_TEST(a_child_serves_a_connection)
{
	struct places_pair pair = places_pair(0);
	pid_t pid = fork();

	if (!pid)
		_exit(answer(pair.server));
	ck_assert_ok(close(pair.server));
	pair.server = -1;
	places_say(pair.client, "hello");
	places_hear(pair.client, "world");
	end_well(pid);
	hear_end(pair.client);
	places_close(&pair);
}
END_TEST

static int accept_and_answer(int listener)
{
	int fd = accept(listener, NULL, NULL);

	return fd < 0 ? 3 : answer(fd);
}

START_TEST(children_accept)
{
	struct sockaddr_in addr;
	int listener = places_listen(0, &addr), i;
	pid_t pid[2];

	for (i = 0; i < 2; i++) {
		pid[i] = fork();
		if (!pid[i])
			_exit(accept_and_answer(listener));
	}
	for (i = 0; i < 2; i++) {
		int client = places_socket(0);

		ck_assert_ok(places_connect(client, &addr));
		ck_assert(places_by_rdma(client));
		places_say(client, "hello");
		places_hear(client, "world");
		hear_end(client);
		close(client);
	}
	end_well(pid[0]);
	end_well(pid[1]);
	close(listener);
}
END_TEST

START_TEST(a_program_that_is_executed_has_the_connection)
{
	struct places_pair pair = places_pair(0);
	pid_t pid = fork();

	if (!pid) {
		dup2(pair.server, 0);
		dup2(pair.server, 1);
		execl("/bin/cat", "cat", (char *)NULL);
		_exit(1);
	}
	ck_assert_ok(close(pair.server));
	pair.server = -1;
	places_say(pair.client, "echo");
	ck_assert_ok(shutdown(pair.client, SHUT_WR));
	places_hear(pair.client, "echo");
	hear_end(pair.client);
	end_well(pid);
	places_close(&pair);
}
END_TEST

START_TEST(a_listener_takes_tcp_as_well)
{
	struct sockaddr_in addr, peer;
	int listener = places_listen(SOCK_NONBLOCK, &addr), server;
	int client = evr_pre_real()->socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(peer);

	ck_assert_fails(accept(listener, NULL, NULL), EAGAIN);
	ck_assert_ok(evr_pre_real()->connect(client, (struct sockaddr *)&addr, sizeof(addr)));
	places_await(listener, POLLIN);
	server = accept4(listener, (struct sockaddr *)&peer, &len, SOCK_NONBLOCK);
	ck_assert_int_ge(server, 0);
	ck_assert(!places_by_rdma(server));
	ck_assert_int_eq(peer.sin_family, AF_INET);
	ck_assert(fcntl(server, F_GETFL) & O_NONBLOCK);
	close(server);
	close(client);
	close(listener);
}
END_TEST

START_TEST(it_looks_like_tcp)
{
	struct places_pair pair = places_pair(0);
	struct sockaddr_in own, peer;
	socklen_t len = sizeof(own);
	int value = 1;

	ck_assert_ok(getsockname(pair.client, (struct sockaddr *)&own, &len));
	ck_assert_ok(getpeername(pair.server, (struct sockaddr *)&peer, &len));
	ck_assert_int_eq(own.sin_port, peer.sin_port);
	ck_assert_int_eq(own.sin_addr.s_addr, peer.sin_addr.s_addr);
	ck_assert_ok(setsockopt(pair.client, IPPROTO_TCP, TCP_NODELAY, &value, sizeof(value)));
	ck_assert_ok(setsockopt(pair.client, SOL_SOCKET, SO_KEEPALIVE, &value, sizeof(value)));
	len = sizeof(value);
	ck_assert_ok(getsockopt(pair.client, SOL_SOCKET, SO_DOMAIN, &value, &len));
	ck_assert_int_eq(value, AF_INET);
	ck_assert_fails(places_connect(pair.client, &own), EISCONN);
	places_close(&pair);
}
END_TEST

enum { MUCH = 1 << 20, MANY = 1000, QUIET_MS = 20 };

/* More than any buffer on the way holds. */
START_TEST(much_goes_through)
{
	struct places_pair pair = places_pair(0);
	char *buf = calloc(1, MUCH);
	pid_t pid = fork();

	if (!pid)
		_exit(send(pair.server, buf, MUCH, 0) == MUCH ? 0 : 1);
	ck_assert_int_eq(recv(pair.client, buf, MUCH, MSG_WAITALL), MUCH);
	end_well(pid);
	free(buf);
	places_close(&pair);
}
END_TEST

START_TEST(a_peer_that_is_gone_is_seen)
{
	struct places_pair pair = places_pair(0);

	ck_assert_ok(close(pair.client));
	pair.client = -1;
	hear_end(pair.server);
	while (send(pair.server, "x", 1, MSG_NOSIGNAL) == 1)
		;
	ck_assert_int_eq(errno, EPIPE);
	places_close(&pair);
}
END_TEST

static atomic_int talker, going;
static atomic_bool is_let_go;

/* What comes just when the thread lets the end go is never read. */
static int shut_down_late(int fd, int how)
{
	int from = how == SHUT_RD ? atomic_exchange(&talker, -1) : -1;

	if (from >= 0) {
		places_real()->send(from, "late", 4, MSG_DONTWAIT | MSG_NOSIGNAL);
		going = fd;
	}
	return places_real()->shutdown(fd, how);
}

static int let_go(int fd)
{
	bool is_it = fd == going;
	int ret = places_real()->close(fd);

	is_let_go = is_let_go || is_it;
	return ret;
}

/* TCP says so to whoever has read the end, whatever was on its way. */
START_TEST(what_is_on_its_way_to_a_peer_that_is_gone_is_no_reset)
{
	struct places_pair pair;

	talker = going = -1;
	evr_pre_real()->shutdown = shut_down_late;
	evr_pre_real()->close = let_go;
	pair = places_pair(0);
	talker = pair.server;
	ck_assert_ok(close(pair.client));
	pair.client = -1;
	hear_end(pair.server);
	while (send(pair.server, "x", 1, MSG_NOSIGNAL) == 1)
		;
	ck_assert_int_eq(errno, EPIPE);
	while (!is_let_go)
		poll(NULL, 0, 1);
	hear_end(pair.server);
	places_close(&pair);
}
END_TEST

START_TEST(a_listener_that_is_shut_down_takes_no_more)
{
	struct sockaddr_in addr;
	int listener = places_listen(0, &addr);
	int client = evr_pre_real()->socket(AF_INET, SOCK_STREAM, 0);

	ck_assert_ok(shutdown(listener, _i ? SHUT_RDWR : SHUT_RD));
	ck_assert_fails(accept(listener, NULL, NULL), EINVAL);
	ck_assert_fails(evr_pre_real()->connect(client, (struct sockaddr *)&addr, sizeof(addr)),
		ECONNREFUSED);
	close(client);
	close(listener);
}
END_TEST

/* All that the process may have from now on it has, whatever a thread of the module's closes. */
static void allow_no_more(struct rlimit *before)
{
	struct rlimit limit;

	ck_assert_int_ge(fcntl(0, F_GETFD), 0);
	ck_assert_ok(getrlimit(RLIMIT_NOFILE, before));
	limit = *before;
	limit.rlim_cur = 1;
	ck_assert_ok(setrlimit(RLIMIT_NOFILE, &limit));
}

START_TEST(who_has_no_number_left_accepts_later)
{
	struct sockaddr_in addr;
	int listener = places_listen(0, &addr), client = places_socket(0), server;
	struct rlimit limit;

	ck_assert_ok(places_connect(client, &addr));
	places_await(listener, POLLIN);
	allow_no_more(&limit);
	ck_assert_fails(accept(listener, NULL, NULL), EMFILE);
	ck_assert_ok(setrlimit(RLIMIT_NOFILE, &limit));
	server = accept(listener, NULL, NULL);
	ck_assert_int_ge(server, 0);
	places_say(client, "still");
	places_hear(server, "still");
	close(server);
	close(client);
	close(listener);
}
END_TEST

/* --- what is short --------------------------------------------------------------------------- */

static atomic_int refusals, refusal;
static atomic_uint shortages;

static ssize_t refuse_to_hand_on(int fd, const struct msghdr *msg, int flags)
{
	if (refusals-- <= 0)
		return places_real()->sendmsg(fd, msg, flags);
	errno = refusal;
	return -1;
}

START_TEST(a_connection_that_cannot_be_handed_on_yet_waits)
{
	static const int errors[] = { EAGAIN, ENOBUFS, ENOMEM, ETOOMANYREFS };
	struct sockaddr_in addr;
	int listener, client = places_socket(0), server;

	refusal = errors[_i];
	refusals = 3;
	evr_pre_real()->sendmsg = refuse_to_hand_on;
	listener = places_listen(0, &addr);
	ck_assert_ok(places_connect(client, &addr));
	places_await(listener, POLLIN);
	server = accept(listener, NULL, NULL);
	ck_assert(places_by_rdma(server));
	ck_assert_int_lt(refusals, 0);
	places_say(client, "still");
	places_hear(server, "still");
	close(server);
	close(client);
	close(listener);
}
END_TEST

static atomic_uint pairs_made, pair_refused;

/* The library's, which are made of the C library's call. */
int socketpair(int domain, int type, int protocol, int ends[2])
{
	if (++pairs_made != pair_refused)
		return (int)syscall(SYS_socketpair, domain, type, protocol, ends);
	errno = EMFILE;
	return -1;
}

/* One that a client gave up ends at once. */
static int accept_one_that_speaks(int listener)
{
	int fd = accept(listener, NULL, NULL);
	char byte;

	ck_assert_int_ge(fd, 0);
	if (recv(fd, &byte, 1, MSG_PEEK) == 1)
		return fd;
	close(fd);
	return accept_one_that_speaks(listener);
}

/* Whichever is refused, a connect fails at once, and can be tried again, or ends in an accept. */
START_TEST(a_connection_that_has_no_pair_yet_waits)
{
	struct sockaddr_in addr;
	int listener = places_listen(0, &addr), client, server;

	pairs_made = 0;
	pair_refused = (unsigned)_i;
	do {
		client = places_socket(0);
	} while (places_connect(client, &addr) && !close(client));
	places_say(client, "still");
	server = accept_one_that_speaks(listener);
	places_hear(server, "still");
	ck_assert_uint_ge(pairs_made, pair_refused);
	pair_refused = 0;
	close(server);
	close(client);
	close(listener);
}
END_TEST

static atomic_bool is_short;

static int accept_nobody(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	if (!is_short)
		return places_real()->accept4(fd, addr, len, flags);
	shortages++;
	errno = EMFILE;
	return -1;
}

static void there_and_back(const struct places_pair *pair)
{
	places_say(pair->client, "there");
	places_hear(pair->server, "there");
	places_say(pair->server, "back");
	places_hear(pair->client, "back");
}

/* Between two looks at the listener, each end of the connection would have one turn at most. */
START_TEST(a_connection_does_not_wait_for_a_listener_that_is_short)
{
	struct places_pair pair;
	struct sockaddr_in addr;
	int listener, client, i;
	unsigned int before;

	evr_pre_real()->accept4 = accept_nobody;
	pair = places_pair(0);
	listener = places_listen(0, &addr);
	is_short = true;
	client = evr_pre_real()->socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_ok(evr_pre_real()->connect(client, (struct sockaddr *)&addr, sizeof(addr)));
	while (!shortages)
		poll(NULL, 0, 1);
	do {
		before = shortages;
		ck_assert_uint_lt(before, MANY);
		for (i = 0; i < 3; i++)
			there_and_back(&pair);
	} while (shortages != before);
	is_short = false;
	close(accept(listener, NULL, NULL));
	close(client);
	close(listener);
	places_close(&pair);
}
END_TEST

enum { NO_PLACE = 1 << 30 };
static atomic_int given, closed;

/* The number is beyond those that there is a place for. */
static ssize_t receive_far_number(int fd, struct msghdr *msg, int flags)
{
	ssize_t ret = places_real()->recvmsg(fd, msg, flags);
	struct cmsghdr *control = ret > 0 ? CMSG_FIRSTHDR(msg) : NULL;
	int number = NO_PLACE;

	if (!control)
		return ret;
	memcpy((void *)&given, CMSG_DATA(control), sizeof(number));
	memcpy(CMSG_DATA(control), &number, sizeof(number));
	return ret;
}

static int close_far_number(int fd)
{
	if (fd == NO_PLACE)
		closed++;
	return places_real()->close(fd == NO_PLACE ? given : fd);
}

START_TEST(a_connection_without_a_place_is_not_accepted)
{
	struct sockaddr_in addr;
	int listener, client = places_socket(0);

	evr_pre_real()->recvmsg = receive_far_number;
	evr_pre_real()->close = close_far_number;
	listener = places_listen(0, &addr);
	ck_assert_ok(places_connect(client, &addr));
	ck_assert_fails(accept(listener, NULL, NULL), EMFILE);
	ck_assert_int_eq(closed, 1);
	hear_end(client);
	close(client);
	close(listener);
}
END_TEST

/* --- what the thread does not wait for ------------------------------------------------------- */

static atomic_uint asked;

static int ask(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	asked++;
	return places_real()->accept4(fd, addr, len, flags);
}

/* Nobody comes meanwhile: once it has looked, there is nothing to ask for. */
static void asks_no_more(void)
{
	unsigned int before;

	do {
		before = asked;
		ck_assert_uint_lt(before, MANY);
		poll(NULL, 0, QUIET_MS);
	} while (asked != before);
}

static void takes_tcp(int listener, const struct sockaddr_in *addr)
{
	int client = evr_pre_real()->socket(AF_INET, SOCK_STREAM, 0), server;

	ck_assert_ok(evr_pre_real()->connect(client, (struct sockaddr *)addr, sizeof(*addr)));
	server = accept(listener, NULL, NULL);
	ck_assert_int_ge(server, 0);
	ck_assert(!places_by_rdma(server));
	close(server);
	close(client);
}

START_TEST(a_listener_whose_device_goes_keeps_tcp)
{
	struct sockaddr_in addr;
	int listener;

	evr_pre_real()->accept4 = ask;
	listener = places_listen(0, &addr);
	fake_device_remove(FAKE_ROCE);
	takes_tcp(listener, &addr);
	asks_no_more();
	takes_tcp(listener, &addr);
	close(listener);
}
END_TEST

/* As a device in software does whose ports are TCP's. */
START_TEST(a_listener_without_tcp_waits_for_rdma_alone)
{
	struct sockaddr_in addr;
	socklen_t len = sizeof(addr);
	int listener = places_bound(), client = places_socket(0), server;

	evr_pre_real()->accept4 = ask;
	fake_fail_next("LISTEN", EADDRINUSE);
	ck_assert_ok(listen(listener, 5));
	ck_assert_ok(getsockname(listener, (struct sockaddr *)&addr, &len));
	ck_assert_ok(places_connect(client, &addr));
	server = accept(listener, NULL, NULL);
	ck_assert(places_by_rdma(server));
	asks_no_more();
	close(server);
	close(client);
	close(listener);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		a_child_serves_a_connection,
		children_accept,
		a_program_that_is_executed_has_the_connection,
		a_listener_takes_tcp_as_well,
		it_looks_like_tcp,
		much_goes_through,
		a_peer_that_is_gone_is_seen,
		what_is_on_its_way_to_a_peer_that_is_gone_is_no_reset,
		a_connection_does_not_wait_for_a_listener_that_is_short,
		a_connection_without_a_place_is_not_accepted,
		who_has_no_number_left_accepts_later,
		a_listener_whose_device_goes_keeps_tcp,
		a_listener_without_tcp_waits_for_rdma_alone,
	};

	TCase *cases = places_cases("fork", tests, sizeof(tests) / sizeof(*tests));

	setenv("RDMAV_FORK_SAFE", "1", 1);
	tcase_add_loop_test(cases, a_listener_that_is_shut_down_takes_no_more, 0, 2);
	tcase_add_loop_test(cases, a_connection_that_cannot_be_handed_on_yet_waits, 0, 4);
	tcase_add_loop_test(cases, a_connection_that_has_no_pair_yet_waits, 1, 6);
	return places_main(cases);
}
