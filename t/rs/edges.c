#include "config.h"

#include "rs/edges.h"
#include "rs/state.h"

#include <errno.h>
#include <fcntl.h>
#include <rdma/rsocket.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { THERE = 5, NO_FLAG = 0x800000 };

#define LEN(of) (sizeof(of) / sizeof((of)[0]))

/* The compiler shall not know what makes no sense. */
static char room[64], *volatile nowhere;
static volatile size_t too_much = SIZE_MAX, half = SIZE_MAX / 2 + 2;
static const socklen_t less_than_none = (socklen_t)-1;

/* Each call returns what it did, or -errno. */
static long result(ssize_t ret)
{
	return ret < 0 ? -errno : (long)ret;
}

static void has_bytes(struct pair *pair)
{
	send_bytes(pair->server, THERE);
	wait_for(pair->client, POLLIN);
}

/* --- no bytes, and more than there can be ---------------------------------------------------- */

static long send_nothing(int fd)
{
	return result(call()->send(fd, nowhere, 0, 0));
}

static long write_nothing(int fd)
{
	return result(call()->write(fd, nowhere, 0));
}

static long writev_nothing(int fd)
{
	return result(call()->writev(fd, NULL, 0));
}

static long send_from_nowhere(int fd)
{
	return result(call()->send(fd, nowhere, 1, 0));
}

static long recv_nothing(int fd)
{
	return result(call()->recv(fd, nowhere, 0, 0));
}

static long read_nothing(int fd)
{
	return result(call()->read(fd, nowhere, 0));
}

static long readv_nothing(int fd)
{
	return result(call()->readv(fd, NULL, 0));
}

static long recv_to_nowhere(int fd)
{
	return result(call()->recv(fd, nowhere, 1, 0));
}

static long recv_too_much(int fd)
{
	return result(call()->recv(fd, room, too_much, 0));
}

static long recv_half_of_all(int fd)
{
	return result(call()->recv(fd, room, half, 0));
}

static long read_too_much(int fd)
{
	return result(call()->read(fd, room, too_much));
}

static long readv_too_much(int fd)
{
	const struct iovec piece = { room, too_much };

	return result(call()->readv(fd, &piece, 1));
}

static long readv_of_too_much(int fd)
{
	const struct iovec pieces[] = { { room, 2 }, { room + 2, INT32_MAX } };

	return result(call()->readv(fd, pieces, 2));
}

static long recvmsg_of_none(int fd)
{
	return result(call()->recvmsg(fd, (void *)nowhere, 0));
}

static long sendmsg_of_none(int fd)
{
	return result(call()->sendmsg(fd, (void *)nowhere, 0));
}

static long recvmsg_with_control(int fd)
{
	struct iovec piece = { room, sizeof(room) };
	char control[64];
	struct msghdr msg = {
		.msg_iov = &piece,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};

	return result(call()->recvmsg(fd, &msg, 0));
}

/* --- flags ----------------------------------------------------------------------------------- */

static long recv_with(int fd, int flags)
{
	return result(call()->recv(fd, room, sizeof(room), flags));
}

static long send_with(int fd, int flags)
{
	return result(call()->send(fd, "x", 1, flags));
}

static long recv_with_no_flag(int fd)
{
	return recv_with(fd, NO_FLAG);
}

static long send_with_no_flag(int fd)
{
	return send_with(fd, NO_FLAG);
}

static long send_more(int fd)
{
	return send_with(fd, MSG_MORE | MSG_EOR | MSG_DONTROUTE | MSG_CONFIRM);
}

static long send_urgent(int fd)
{
	return send_with(fd, MSG_OOB);
}

static long send_zero_copy(int fd)
{
	return send_with(fd, MSG_ZEROCOPY);
}

static long recv_error_queue(int fd)
{
	return recv_with(fd, MSG_ERRQUEUE);
}

static long recv_truncated(int fd)
{
	return recv_with(fd, MSG_TRUNC);
}

/* --- names and options ----------------------------------------------------------------------- */

static long bind_with(int fd, const struct sockaddr_storage *addr, socklen_t len)
{
	return result(call()->bind(fd, (const struct sockaddr *)addr, len));
}

static long bind_to_nothing(int fd)
{
	return bind_with(fd, NULL, place_len());
}

static long bind_to_no_bytes(int fd)
{
	struct sockaddr_storage addr = place(0);

	return bind_with(fd, &addr, 0);
}

static long bind_to_too_many(int fd)
{
	struct sockaddr_storage addr[2] = { place(0) };

	return bind_with(fd, addr, sizeof(addr[0]) + 1);
}

static long bind_to_less_than_none(int fd)
{
	struct sockaddr_storage addr = place(0);

	return bind_with(fd, &addr, less_than_none);
}

static long connect_with(int fd, const struct sockaddr_storage *addr, socklen_t len)
{
	return result(call()->connect(fd, (const struct sockaddr *)addr, len));
}

static long connect_to_nothing(int fd)
{
	return connect_with(fd, NULL, place_len());
}

static long connect_to_too_many(int fd)
{
	struct sockaddr_storage addr[2] = { place(NOT_THERE) };

	return connect_with(fd, addr, sizeof(addr[0]) + 1);
}

static long connect_to_nobody(int fd)
{
	struct sockaddr_storage addr = place(NOT_THERE);

	return connect_with(fd, &addr, place_len());
}

static long connect_to_no_family(int fd)
{
	struct sockaddr_storage addr = { .ss_family = AF_UNSPEC };

	return connect_with(fd, &addr, sizeof(addr));
}

static long name_in(
	int (*get)(int fd, struct sockaddr *addr, socklen_t *len), int fd, socklen_t len)
{
	struct sockaddr_storage addr;

	return result(get(fd, (struct sockaddr *)&addr, &len));
}

static long name_in_less_than_none(int fd)
{
	return name_in(call()->getsockname, fd, less_than_none);
}

static long peers_name_in_less_than_none(int fd)
{
	return name_in(call()->getpeername, fd, less_than_none);
}

static long name_nowhere(int fd)
{
	socklen_t len = sizeof(struct sockaddr_storage);

	return result(call()->getsockname(fd, (void *)nowhere, &len));
}

static long name_without_length(int fd)
{
	struct sockaddr_storage addr;

	return result(call()->getsockname(fd, (struct sockaddr *)&addr, (void *)nowhere));
}

static long peers_name_nowhere(int fd)
{
	socklen_t len = sizeof(struct sockaddr_storage);

	return result(call()->getpeername(fd, (void *)nowhere, &len));
}

static long set_with(int fd, const void *value, socklen_t len)
{
	return result(call()->setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, value, len));
}

static long set_less_than_none(int fd)
{
	return set_with(fd, &(int){ 1 }, less_than_none);
}

static long get_with(int fd, void *value, socklen_t *len)
{
	return result(call()->getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, value, len));
}

static long get_less_than_none(int fd)
{
	socklen_t len = less_than_none;

	return get_with(fd, &(int){ 1 }, &len);
}

static long get_without_length(int fd)
{
	return get_with(fd, &(int){ 1 }, (void *)nowhere);
}

/* --- steps ----------------------------------------------------------------------------------- */

static long listen_to_less_than_none(int fd)
{
	return result(call()->listen(fd, -1));
}

static long listen_again(int fd)
{
	return result(call()->listen(fd, 1));
}

static long bind_again(int fd)
{
	return -bind_one(fd);
}

static long accept_again(int fd)
{
	return result(call()->accept(fd, NULL, NULL));
}

static long shut_both(int fd)
{
	return result(call()->shutdown(fd, SHUT_RDWR));
}

static long shut_reading(int fd)
{
	return result(call()->shutdown(fd, SHUT_RD));
}

static long shut_sending(int fd)
{
	return result(call()->shutdown(fd, SHUT_WR));
}

static long send_one(int fd)
{
	return send_with(fd, 0);
}

static long recv_one(int fd)
{
	return recv_with(fd, 0);
}

/*
 * What TCP does, and what an rsocket does; where they are not the same, rsocket(7) lists it as a
 * difference.
 */
static const struct edge {
	const char *name;
	void (*state)(struct pair *pair);
	long (*act)(int fd);
	long tcp, rs;
} edges[] = {
	{ "send of nothing", be_connected, send_nothing, 0, 0 },
	{ "write of nothing", be_connected, write_nothing, 0, 0 },
	{ "send of nothing of a new one", be_new, send_nothing, -EPIPE, -ENOTCONN },
	{ "send of nothing behind the end", sends_no_more, send_nothing, -EPIPE, -EPIPE },
	{ "write of nothing behind the end", sends_no_more, write_nothing, -EPIPE, -EPIPE },
	{ "writev of nothing behind the end", sends_no_more, writev_nothing, 0, 0 },
	{ "writev of nothing of a new one", be_new, writev_nothing, 0, 0 },
	{ "send of nothing after a reset", was_reset, send_nothing, -ECONNRESET, -ECONNRESET },
	{ "send of nothing once that is told", was_reset_and_told, send_nothing, -EPIPE, -EPIPE },
	{ "send from nowhere", be_connected, send_from_nowhere, -EFAULT, -EFAULT },
	{ "recv of nothing of what is there", has_bytes, recv_nothing, 0, 0 },
	{ "recv of nothing of a new one", be_new, recv_nothing, -ENOTCONN, -ENOTCONN },
	{ "recv of nothing of a listener", listens, recv_nothing, -ENOTCONN, -ENOTCONN },
	{ "recv of nothing after a reset", was_reset, recv_nothing, -ECONNRESET, -ECONNRESET },
	{ "recv of nothing once that is told", was_reset_and_told, recv_nothing, 0, 0 },
	{ "recv of nothing at the end", has_met_the_end, recv_nothing, 0, 0 },
	{ "read of nothing of a new one", be_new, read_nothing, 0, 0 },
	{ "readv of nothing of a new one", be_new, readv_nothing, 0, 0 },
	{ "read of nothing after a reset", was_reset, read_nothing, 0, 0 },
	{ "recv to nowhere", has_bytes, recv_to_nowhere, -EFAULT, -EFAULT },
	{ "recv of too much", has_bytes, recv_too_much, THERE, THERE },
	{ "recv of half of all", has_bytes, recv_half_of_all, THERE, THERE },
	{ "read of too much", has_bytes, read_too_much, -EFAULT, -EFAULT },
	{ "readv of one of too much", has_bytes, readv_too_much, -EINVAL, -EINVAL },
	{ "readv of more than a call moves", has_bytes, readv_of_too_much, THERE, THERE },
	{ "recvmsg of none", has_bytes, recvmsg_of_none, -EFAULT, -EFAULT },
	{ "sendmsg of none", be_connected, sendmsg_of_none, -EFAULT, -EFAULT },
	{ "recvmsg with control", has_bytes, recvmsg_with_control, THERE, -EOPNOTSUPP },
	{ "recv with no flag", has_bytes, recv_with_no_flag, THERE, THERE },
	{ "send with no flag", be_connected, send_with_no_flag, 1, 1 },
	{ "send with flags of no use", be_connected, send_more, 1, 1 },
	{ "send of what is urgent", be_connected, send_urgent, 1, -EOPNOTSUPP },
	{ "send without a copy", be_connected, send_zero_copy, 1, -EOPNOTSUPP },
	{ "recv of errors", has_bytes, recv_error_queue, -EAGAIN, -EOPNOTSUPP },
	{ "recv into nothing", has_bytes, recv_truncated, THERE, -EOPNOTSUPP },
	{ "bind to nothing", be_new, bind_to_nothing, -EFAULT, -EFAULT },
	{ "bind to no bytes", be_new, bind_to_no_bytes, -EINVAL, -EINVAL },
	{ "bind to too many", be_new, bind_to_too_many, -EINVAL, -EINVAL },
	{ "bind to less than none", be_new, bind_to_less_than_none, -EINVAL, -EINVAL },
	{ "connect to nothing", be_new, connect_to_nothing, -EFAULT, -EFAULT },
	{ "connect to too many", be_new, connect_to_too_many, -EINVAL, -EINVAL },
	{ "connect to no family", be_new, connect_to_no_family, 0, -EAFNOSUPPORT },
	{ "getsockname in less than none", be_connected, name_in_less_than_none, -EINVAL, -EINVAL },
	{ "getpeername in less than none", be_connected, peers_name_in_less_than_none, -EINVAL,
		-EINVAL },
	{ "getsockname nowhere", be_connected, name_nowhere, -EFAULT, -EFAULT },
	{ "getsockname without length", be_connected, name_without_length, -EFAULT, -EFAULT },
	{ "getpeername nowhere", be_connected, peers_name_nowhere, -EFAULT, -EFAULT },
	{ "setsockopt of less than none", be_new, set_less_than_none, -EINVAL, -EINVAL },
	{ "getsockopt in less than none", be_new, get_less_than_none, -EINVAL, -EINVAL },
	{ "getsockopt without length", be_new, get_without_length, -EFAULT, -EFAULT },
	{ "a backlog of less than none", be_bound, listen_to_less_than_none, 0, 0 },
	{ "listen of one that connects", connects, listen_again, -EINVAL, -EINVAL },
	{ "listen after a refusal", was_refused_and_told, listen_again, -EINVAL, -EINVAL },
	{ "bind after a refusal", was_refused_and_told, bind_again, 0, -EINVAL },
	{ "bind of one that connects", connects, bind_again, -EINVAL, -EINVAL },
	{ "accept of one that connects", connects, accept_again, -EINVAL, -EINVAL },
	{ "accept of a listener that was shut down", listens_no_more, accept_again, -EINVAL,
		-EINVAL },
	{ "listen of one that was shut down", listens_no_more, listen_again, 0, -EINVAL },
	{ "shutdown of one that was shut down", listens_no_more, shut_both, -ENOTCONN, -ENOTCONN },
	{ "connect of one that was shut down", listens_no_more, connect_to_nobody, -EINPROGRESS,
		-EINPROGRESS },
	{ "shutdown of sending of a listener", listens, shut_sending, 0, 0 },
	{ "shutdown of reading of a listener", listens, shut_reading, 0, 0 },
	{ "shutdown of a listener", listens, shut_both, 0, 0 },
	{ "shutdown of a bound one", be_bound, shut_both, -ENOTCONN, -ENOTCONN },
	{ "shutdown after a refusal", was_refused_and_told, shut_both, -ENOTCONN, -ENOTCONN },
	{ "shutdown of one that connects", connects, shut_both, 0, 0 },
	{ "shutdown of sending of one that connects", connects, shut_sending, 0, 0 },
	{ "a second shutdown", does_neither, shut_both, 0, 0 },
	{ "a second shutdown of sending", sends_no_more, shut_sending, 0, 0 },
	{ "a second shutdown of reading", reads_no_more, shut_reading, 0, 0 },
	{ "shutdown of the other direction", sends_no_more, shut_reading, 0, 0 },
	{ "shutdown when both ended", has_ended, shut_both, -ENOTCONN, -ENOTCONN },
	{ "shutdown when the peer has closed", peer_has_closed, shut_both, 0, 0 },
	{ "shutdown when the peer has closed too", peer_has_closed_too, shut_sending, -ENOTCONN,
		-ENOTCONN },
	{ "connect when both ended", has_ended, connect_to_nobody, -EISCONN, -EISCONN },
	{ "connect after a reset", was_reset, connect_to_nobody, -ECONNRESET, -ECONNRESET },
	{ "connect once that is told", was_reset_and_told, connect_to_nobody, -ECONNABORTED,
		-ECONNABORTED },
	{ "send when it does neither", does_neither, send_one, -EPIPE, -EPIPE },
	{ "send when both ended", has_ended, send_one, -EPIPE, -EPIPE },
	{ "send when the peer has closed too", peer_has_closed_too, send_one, -EPIPE, -EPIPE },
	{ "send after the end and a reset", ended_and_was_reset, send_one, -ECONNRESET,
		-ECONNRESET },
	{ "recv after a refusal", was_refused_and_told, recv_one, 0, -ENOTCONN },
	{ "send after a refusal", was_refused_and_told, send_one, -EPIPE, -ENOTCONN },
	{ "recv when it reads no more", reads_no_more, recv_one, 0, 0 },
	{ "recv when both ended", has_ended, recv_one, 0, 0 },
};

START_TEST(what_is_seldom_asked)
{
	const struct edge *edge = &edges[_i];
	struct pair pair = make_pair();
	long ret;

	signal(SIGPIPE, SIG_IGN);
	edge->state(&pair);
	ret = edge->act(pair.client);
	ck_assert_msg(ret == (call()->is_rs ? edge->rs : edge->tcp), "%s: %ld, %s", edge->name, ret,
		ret < 0 ? strerror((int)-ret) : "");
	end_pair(&pair);
}
END_TEST

/* --- accept ---------------------------------------------------------------------------------- */

/* Where the name of who connected cannot be written to. */
START_TEST(accept_wants_room_for_a_name)
{
	uint16_t port;
	struct pair pair = { .listener = listen_on(&port, 1), .client = connect_to(port) };
	struct sockaddr_storage addr;
	socklen_t len = less_than_none;

	wait_for(pair.listener, POLLIN);
	pair.server = call()->accept(
		pair.listener, (struct sockaddr *)&addr, _i ? (socklen_t *)(void *)nowhere : &len);
	ck_assert_int_eq(pair.server, -1);
	ck_assert_int_eq(errno, _i ? EFAULT : EINVAL);
	end_pair(&pair);
}
END_TEST

/* Listed as a difference: TCP has closed the connection then. */
START_TEST(accept_without_room_leaves_it)
{
	uint16_t port;
	struct pair pair = { .listener = listen_on(&port, 1), .client = connect_to(port) };
	struct sockaddr_storage addr;
	socklen_t len = less_than_none;

	wait_for(pair.listener, POLLIN);
	ck_assert_int_eq(call()->accept(pair.listener, (struct sockaddr *)&addr, &len), -1);
	expect_events(pair.listener, call()->is_rs ? POLLIN : 0);
	pair.server = call()->accept(pair.listener, NULL, &len);
	ck_assert_int_eq(pair.server >= 0, call()->is_rs);
	end_pair(&pair);
}
END_TEST

/* --- ends ------------------------------------------------------------------------------------ */

static bool has_signal(void)
{
	sigset_t pending;

	sigpending(&pending);
	return sigismember(&pending, SIGPIPE);
}

static ssize_t send_plainly(int fd, int flags)
{
	return call()->is_rs ? rsend(fd, "x", 1, flags) : send(fd, "x", 1, flags);
}

/* Listed as a difference: only TCP raises one, unless it is told not to. */
START_TEST(a_broken_pipe_is_a_signal)
{
	struct pair pair = make_pair();
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (_i)
		has_ended(&pair);
	else
		sends_no_more(&pair);
	ck_assert_int_eq(send_plainly(pair.client, MSG_NOSIGNAL), -1);
	ck_assert_int_eq(errno, EPIPE);
	ck_assert(!has_signal());
	ck_assert_int_eq(send_plainly(pair.client, 0), -1);
	ck_assert_int_eq(errno, EPIPE);
	ck_assert_int_eq(has_signal(), !call()->is_rs);
	sigtimedwait(&set, NULL, &(struct timespec){ 0, 0 });
	end_pair(&pair);
}
END_TEST

/* Listed as a difference: TCP takes what is sent before it is told that nobody is there. */
START_TEST(to_send_to_one_that_has_closed_fails)
{
	struct pair pair = make_pair();
	int i;

	peer_has_closed(&pair);
	ck_assert_int_eq(send_one(pair.client), call()->is_rs ? -ECONNRESET : 1);
	wait_for(pair.client, POLLHUP);
	for (i = 0; i < 2; i++)
		ck_assert_int_eq(send_one(pair.client), call()->is_rs ? -ECONNRESET : -EPIPE);
	end_pair(&pair);
}
END_TEST

/* Listed as a difference: TCP still has it read. */
START_TEST(what_comes_behind_the_end_of_reading)
{
	struct pair pair = make_pair();

	reads_no_more(&pair);
	send_bytes(pair.server, 1);
	pause_ms(QUIET_MS);
	ck_assert_int_eq(recv_one(pair.client), !call()->is_rs);
	ck_assert_int_eq(recv_one(pair.client), 0);
	ck_assert_int_eq(send_one(pair.client), 1);
	end_pair(&pair);
}
END_TEST

/* Who gives up an attempt meets that as its end. */
START_TEST(an_attempt_that_is_shut_down_has_ended)
{
	struct pair pair = make_pair();

	connects(&pair);
	ck_assert_int_eq(shut_both(pair.client), 0);
	wait_for(pair.client, POLLERR | POLLHUP);
	ck_assert_int_eq(so_error(pair.client), ECONNRESET);
	ck_assert_int_eq(so_error(pair.client), 0);
	ck_assert_int_eq(recv_one(pair.client), -ENOTCONN);
	ck_assert_int_eq(connect_to_nobody(pair.client), -EINPROGRESS);
	end_pair(&pair);
}
END_TEST

/* --- copies ---------------------------------------------------------------------------------- */

static int watch(int instance, int op, int fd)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP, .data.fd = fd };

	return epoll_ctl(instance, op, fd, &event);
}

/* Listed as a difference: the connection of an rsocket ends with its number, whatever copies there
 * are. */
START_TEST(a_copy_shows_the_same)
{
	struct pair pair = make_pair();
	int instance = epoll_create1(0), copy = dup(pair.client);
	struct epoll_event event;

	ck_assert_int_eq(watch(instance, EPOLL_CTL_ADD, copy), 0);
	expect_events(copy, POLLOUT);
	has_bytes(&pair);
	ck_assert_int_eq(epoll_wait(instance, &event, 1, PATIENCE_MS), 1);
	ck_assert_int_eq(event.data.fd, copy);
	receive_bytes(pair.client, THERE);
	expect_events(copy, POLLOUT);
	ck_assert_int_eq(epoll_wait(instance, &event, 1, 0), 0);
	ck_assert_int_eq(call()->close(pair.client), 0);
	pair.client = -1;
	if (call()->is_rs)
		wait_for(copy, POLLHUP);
	ck_assert_int_eq(epoll_wait(instance, &event, 1, QUIET_MS), call()->is_rs);
	ck_assert_int_eq(recv_with(copy, 0), call()->is_rs ? -EBADF : -EAGAIN);
	close(copy);
	close(instance);
	end_pair(&pair);
}
END_TEST

/* By edge: TCP tells of each segment, an rsocket of the first byte after all had been read. */
START_TEST(what_comes_behind_bytes_that_are_left)
{
	struct pair pair = make_pair();
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	int instance = call()->epoll_create(0);

	ck_assert_int_ge(instance, 0);
	ck_assert_int_eq(call()->epoll_ctl(instance, EPOLL_CTL_ADD, pair.client, &event), 0);
	send_bytes(pair.server, THERE);
	ck_assert_int_eq(call()->epoll_wait(instance, &event, 1, PATIENCE_MS), 1);
	receive_bytes(pair.client, THERE - 1);
	send_bytes(pair.server, THERE);
	ck_assert_int_eq(call()->epoll_wait(instance, &event, 1, QUIET_MS), !call()->is_rs);
	receive_bytes(pair.client, THERE + 1);
	send_bytes(pair.server, THERE);
	ck_assert_int_eq(call()->epoll_wait(instance, &event, 1, PATIENCE_MS), 1);
	call()->close(instance);
	end_pair(&pair);
}
END_TEST

TCase *edges_case(const char *name)
{
	TCase *cases = tcase_create(name);

	tcase_set_timeout(cases, 600);
	tcase_add_loop_test(cases, what_is_seldom_asked, 0, LEN(edges));
	tcase_add_loop_test(cases, accept_wants_room_for_a_name, 0, 2);
	tcase_add_test(cases, accept_without_room_leaves_it);
	tcase_add_loop_test(cases, a_broken_pipe_is_a_signal, 0, 2);
	tcase_add_test(cases, to_send_to_one_that_has_closed_fails);
	tcase_add_test(cases, what_comes_behind_the_end_of_reading);
	tcase_add_test(cases, an_attempt_that_is_shut_down_has_ended);
	tcase_add_test(cases, a_copy_shows_the_same);
	tcase_add_test(cases, what_comes_behind_bytes_that_are_left);
	return cases;
}
