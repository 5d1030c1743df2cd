#include "config.h"

#include "rs/states.h"
#include "rs/state.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <string.h>
#include <unistd.h>

enum { SHORT = 4, TOO_MANY = IOV_MAX + 1 };

#define LEN(of) (sizeof(of) / sizeof((of)[0]))

/* --- calls that fail ------------------------------------------------------------------------- */

/* Each returns 0 or an errno. */
static int do_recv(int fd)
{
	return error_of(call()->recv(fd, &(char){ 0 }, 1, MSG_DONTWAIT));
}

static int do_peek(int fd)
{
	return error_of(call()->recv(fd, &(char){ 0 }, 1, MSG_DONTWAIT | MSG_PEEK));
}

static int do_urgent(int fd)
{
	return error_of(call()->recv(fd, &(char){ 0 }, 1, MSG_OOB));
}

static int do_read(int fd)
{
	return error_of(call()->read(fd, &(char){ 0 }, 1));
}

static int do_send(int fd)
{
	return error_of(call()->send(fd, "x", 1, 0));
}

static int do_sendto(int fd)
{
	struct sockaddr_storage addr = place(NOT_THERE);

	return error_of(call()->sendto(fd, "x", 1, 0, (struct sockaddr *)&addr, place_len()));
}

static int do_write(int fd)
{
	return error_of(call()->write(fd, "x", 1));
}

static int do_sendmsg(int fd)
{
	struct iovec piece = { &(char){ 1 }, 1 };
	struct msghdr msg = { .msg_iov = &piece, .msg_iovlen = 1 };

	return error_of(call()->sendmsg(fd, &msg, 0));
}

static int do_recvmsg(int fd)
{
	struct iovec piece = { &(char){ 0 }, 1 };
	struct msghdr msg = { .msg_iov = &piece, .msg_iovlen = 1 };

	return error_of(call()->recvmsg(fd, &msg, 0));
}

static struct iovec too_many[TOO_MANY];

static int do_readv_of_too_many(int fd)
{
	return error_of(call()->readv(fd, too_many, TOO_MANY));
}

static int do_writev_of_less_than_none(int fd)
{
	return error_of(call()->writev(fd, too_many, -1));
}

static int do_sendmsg_of_too_many(int fd)
{
	struct msghdr msg = { .msg_iov = too_many, .msg_iovlen = TOO_MANY };

	return error_of(call()->sendmsg(fd, &msg, 0));
}

static int do_recvmsg_of_too_many(int fd)
{
	struct msghdr msg = { .msg_iov = too_many, .msg_iovlen = TOO_MANY };

	return error_of(call()->recvmsg(fd, &msg, 0));
}

static int do_bind_short(int fd)
{
	struct sockaddr_storage addr = place(0);

	return error_of(call()->bind(fd, (struct sockaddr *)&addr, SHORT));
}

static int do_listen(int fd)
{
	return error_of(call()->listen(fd, 1));
}

static int do_accept(int fd)
{
	return error_of(call()->accept(fd, NULL, NULL));
}

static int do_connect(int fd)
{
	struct sockaddr_storage addr = place(NOT_THERE);

	return error_of(call()->connect(fd, (struct sockaddr *)&addr, place_len()));
}

static int do_connect_short(int fd)
{
	struct sockaddr_storage addr = place(NOT_THERE);

	return error_of(call()->connect(fd, (struct sockaddr *)&addr, SHORT));
}

static int do_connect_elsewhere(int fd)
{
	struct sockaddr_storage addr = { .ss_family = AF_UNIX };

	return error_of(call()->connect(fd, (struct sockaddr *)&addr, sizeof(addr)));
}

static int do_shutdown(int fd)
{
	return error_of(call()->shutdown(fd, SHUT_RDWR));
}

static int do_shutdown_nothing(int fd)
{
	return error_of(call()->shutdown(fd, 7));
}

static int do_getpeername(int fd)
{
	struct sockaddr_storage addr;
	socklen_t len = sizeof(addr);

	return error_of(call()->getpeername(fd, (struct sockaddr *)&addr, &len));
}

static int do_getsockname(int fd)
{
	struct sockaddr_storage addr;
	socklen_t len = sizeof(addr);

	return error_of(call()->getsockname(fd, (struct sockaddr *)&addr, &len));
}

static int do_getsockopt(int fd)
{
	int value;
	socklen_t len = sizeof(value);

	return error_of(call()->getsockopt(fd, SOL_SOCKET, SO_TYPE, &value, &len));
}

static int do_setsockopt(int fd)
{
	return error_of(call()->setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)));
}

static int do_close(int fd)
{
	return error_of(call()->close(fd));
}

/* --- in each state --------------------------------------------------------------------------- */

/*
 * What TCP says, and what an rsocket does; where they are not the same, rsocket(7) lists it as a
 * difference.
 */
static const struct failure {
	const char *name;
	void (*state)(struct pair *pair);
	int (*act)(int fd);
	int tcp, rs;
} failures[] = {
	{ "recv of a new one", be_new, do_recv, ENOTCONN, ENOTCONN },
	{ "read of a new one", be_new, do_read, ENOTCONN, ENOTCONN },
	{ "recvmsg of a new one", be_new, do_recvmsg, ENOTCONN, ENOTCONN },
	{ "send of a new one", be_new, do_send, EPIPE, ENOTCONN },
	{ "sendto of a new one", be_new, do_sendto, EPIPE, ENOTCONN },
	{ "sendmsg of a new one", be_new, do_sendmsg, EPIPE, ENOTCONN },
	{ "shutdown of a new one", be_new, do_shutdown, ENOTCONN, ENOTCONN },
	{ "getpeername of a new one", be_new, do_getpeername, ENOTCONN, ENOTCONN },
	{ "accept of a new one", be_new, do_accept, EINVAL, EINVAL },
	{ "bind to a short address", be_new, do_bind_short, EINVAL, EINVAL },
	{ "connect to a short address", be_new, do_connect_short, EINVAL, EINVAL },
	{ "connect to another family", be_new, do_connect_elsewhere, EAFNOSUPPORT, EAFNOSUPPORT },
	{ "bind of a bound one", be_bound, bind_one, EINVAL, EINVAL },
	{ "accept of a bound one", be_bound, do_accept, EINVAL, EINVAL },
	{ "getpeername of a bound one", be_bound, do_getpeername, ENOTCONN, ENOTCONN },
	{ "bind of a listener", listens, bind_one, EINVAL, EINVAL },
	{ "connect of a listener", listens, do_connect, EISCONN, EISCONN },
	{ "recv of a listener", listens, do_recv, ENOTCONN, ENOTCONN },
	{ "send of a listener", listens, do_send, EPIPE, ENOTCONN },
	{ "accept when nobody waits", listens, do_accept, EAGAIN, EAGAIN },
	{ "getpeername of a listener", listens, do_getpeername, ENOTCONN, ENOTCONN },
	{ "listen of a listener", listens, do_listen, 0, 0 },
	{ "bind of a connected one", be_connected, bind_one, EINVAL, EINVAL },
	{ "listen of a connected one", be_connected, do_listen, EINVAL, EINVAL },
	{ "accept of a connected one", be_connected, do_accept, EINVAL, EINVAL },
	{ "connect of one that has connected", be_connected, do_connect, 0, 0 },
	{ "recv of nothing", be_connected, do_recv, EAGAIN, EAGAIN },
	{ "recvmsg of nothing", be_connected, do_recvmsg, EAGAIN, EAGAIN },
	{ "recv of what is urgent", be_connected, do_urgent, EINVAL, EINVAL },
	{ "readv of too many pieces", be_connected, do_readv_of_too_many, EINVAL, EINVAL },
	{ "writev of -1 pieces", be_connected, do_writev_of_less_than_none, EINVAL, EINVAL },
	{ "sendmsg of too many", be_connected, do_sendmsg_of_too_many, EMSGSIZE, EMSGSIZE },
	{ "recvmsg of too many", be_connected, do_recvmsg_of_too_many, EMSGSIZE, EMSGSIZE },
	{ "shutdown of nothing", be_connected, do_shutdown_nothing, EINVAL, EINVAL },
	{ "send after shutdown", sends_no_more, do_send, EPIPE, EPIPE },
	{ "sendmsg after shutdown", sends_no_more, do_sendmsg, EPIPE, EPIPE },
	{ "recv after shutdown", sends_no_more, do_recv, EAGAIN, EAGAIN },
	{ "getpeername after shutdown", sends_no_more, do_getpeername, 0, 0 },
	{ "connect after shutdown", sends_no_more, do_connect, EISCONN, EISCONN },
	{ "recv at the end", has_met_the_end, do_recv, 0, 0 },
	{ "send behind the end", has_met_the_end, do_send, 0, 0 },
	{ "getpeername at the end", has_met_the_end, do_getpeername, 0, 0 },
	{ "recv of one that was reset", was_reset, do_recv, ECONNRESET, ECONNRESET },
	{ "send of one that was reset", was_reset, do_send, ECONNRESET, ECONNRESET },
	{ "getpeername of one that was reset", was_reset, do_getpeername, ENOTCONN, ENOTCONN },
	{ "getsockname of one that was reset", was_reset, do_getsockname, 0, 0 },
	{ "shutdown of one that was reset", was_reset, do_shutdown, ENOTCONN, ENOTCONN },
	{ "recv when that was told", was_reset_and_told, do_recv, 0, 0 },
	{ "peek when that was told", was_reset_and_told, do_peek, 0, 0 },
	{ "send when that was told", was_reset_and_told, do_send, EPIPE, EPIPE },
};

START_TEST(a_call_says_why_it_cannot_be)
{
	const struct failure *failure = &failures[_i];
	struct pair pair = make_pair();
	int error;

	failure->state(&pair);
	error = failure->act(pair.client);
	ck_assert_msg(error == (call()->is_rs ? failure->rs : failure->tcp), "%s: %s",
		failure->name, strerror(error));
	end_pair(&pair);
}
END_TEST

/* --- what is no socket ----------------------------------------------------------------------- */

static int (*const acts[])(int fd) = { do_recv, do_peek, do_recvmsg, do_send, do_sendto, do_sendmsg,
	bind_one, do_listen, do_accept, do_connect, do_shutdown, do_getpeername, do_getsockname,
	do_getsockopt, do_setsockopt };

START_TEST(what_is_closed_is_a_bad_descriptor)
{
	int fd = open_one();

	ck_assert_int_eq(call()->close(fd), 0);
	ck_assert_int_eq(acts[_i](fd), EBADF);
	ck_assert_int_eq(acts[_i](-1), EBADF);
	ck_assert_int_eq(acts[_i](INT_MAX), EBADF);
}
END_TEST

START_TEST(each_is_closed_once)
{
	int fd = open_one();

	ck_assert_int_eq(do_close(fd), 0);
	ck_assert_int_eq(do_close(fd), EBADF);
	ck_assert_int_eq(do_read(fd), EBADF);
	ck_assert_int_eq(do_write(fd), EBADF);
	ck_assert_int_eq(call()->fcntl(fd, F_GETFL), -1);
	ck_assert_int_eq(errno, EBADF);
}
END_TEST

/* Listed as a difference: to an rsocket's call anything else is no descriptor at all. */
START_TEST(what_is_no_socket_is_told)
{
	int ends[2];

	ck_assert_int_eq(pipe(ends), 0);
	ck_assert_int_eq(acts[_i](ends[0]), call()->is_rs ? EBADF : ENOTSOCK);
	close(ends[0]);
	close(ends[1]);
}
END_TEST

/* --- connecting ------------------------------------------------------------------------------ */

START_TEST(a_connect_that_waits_is_refused)
{
	int fd = open_one();

	set_blocking(fd);
	ck_assert_int_eq(do_connect(fd), ECONNREFUSED);
	ck_assert_int_eq(so_error(fd), 0);
	ck_assert_int_eq(do_recv(fd), ENOTCONN);
	ck_assert_int_eq(do_connect(fd), ECONNREFUSED);
	ck_assert_int_eq(do_close(fd), 0);
}
END_TEST

START_TEST(so_error_says_it_once)
{
	int fd = connect_to(NOT_THERE);

	wait_for(fd, POLLERR);
	ck_assert_int_eq(so_error(fd), ECONNREFUSED);
	ck_assert_int_eq(so_error(fd), 0);
	ck_assert_int_eq(do_getpeername(fd), ENOTCONN);
	ck_assert_int_eq(do_close(fd), 0);
}
END_TEST

START_TEST(another_connect_says_it_too)
{
	int fd = connect_to(NOT_THERE);

	wait_for(fd, POLLERR);
	ck_assert_int_eq(do_connect(fd), ECONNREFUSED);
	ck_assert_int_eq(so_error(fd), 0);
	ck_assert_int_eq(do_close(fd), 0);
}
END_TEST

START_TEST(so_error_says_a_reset_once)
{
	struct pair pair = make_pair();

	was_reset(&pair);
	ck_assert_int_eq(so_error(pair.client), ECONNRESET);
	ck_assert_int_eq(so_error(pair.client), 0);
	expect_end(pair.client);
	end_pair(&pair);
}
END_TEST

START_TEST(a_connect_that_waits_ends_connected)
{
	uint16_t port;
	struct pair pair = { .listener = listen_on(&port, 1), .client = open_one() };
	struct sockaddr_storage addr = place(port);

	set_blocking(pair.client);
	ck_assert_int_eq(call()->connect(pair.client, (struct sockaddr *)&addr, place_len()), 0);
	ck_assert_int_eq(so_error(pair.client), 0);
	pair.server = accept_from(pair.listener);
	send_bytes(pair.client, 1);
	wait_for(pair.server, POLLIN);
	receive_bytes(pair.server, 1);
	end_pair(&pair);
}
END_TEST

/* The listener has one place, and the first one has it. */
START_TEST(one_that_connects_is_neither)
{
	uint16_t port;
	struct pair pair = { .listener = listen_on(&port, 0) };
	int first = connect_to(port);

	wait_for(pair.listener, POLLIN);
	pair.client = connect_to(port);
	ck_assert_int_eq(do_connect(pair.client), EALREADY);
	ck_assert_int_eq(do_recv(pair.client), EAGAIN);
	ck_assert_int_eq(do_send(pair.client), EAGAIN);
	ck_assert_int_eq(do_getpeername(pair.client), ENOTCONN);
	ck_assert_int_eq(do_listen(pair.client), EINVAL);
	ck_assert_int_eq(so_error(pair.client), 0);
	ck_assert_int_eq(do_close(accept_from(pair.listener)), 0);
	pair.server = accept_from(pair.listener);
	wait_for(pair.client, POLLOUT);
	ck_assert_int_eq(do_connect(pair.client), 0);
	ck_assert_int_eq(do_connect(pair.client), EISCONN);
	ck_assert_int_eq(do_close(first), 0);
	end_pair(&pair);
}
END_TEST

/*
 * 0: SO_ERROR says why the first attempt failed, and it is listed as a difference that only TCP
 * says once more that it did; 1: another call to connect does.
 */
START_TEST(after_a_refusal_it_connects_elsewhere)
{
	uint16_t port;
	struct pair pair = { .listener = listen_on(&port, 0), .client = connect_to(NOT_THERE) };
	struct sockaddr_storage addr = place(port);
	int first = connect_to(port);

	wait_for(pair.listener, POLLIN);
	wait_for(pair.client, POLLERR);
	ck_assert_int_eq(_i ? do_connect(pair.client) : so_error(pair.client), ECONNREFUSED);
	if (!_i && !call()->is_rs)
		ck_assert_int_eq(do_connect(pair.client), ECONNABORTED);
	ck_assert_int_eq(
		call()->connect(pair.client, (struct sockaddr *)&addr, place_len()), -1);
	ck_assert_int_eq(errno, EINPROGRESS);
	expect_events(pair.client, 0);
	ck_assert_int_eq(do_close(accept_from(pair.listener)), 0);
	pair.server = accept_from(pair.listener);
	expect_events(pair.client, POLLOUT);
	send_bytes(pair.server, 1);
	expect_events(pair.client, POLLIN | POLLOUT);
	ck_assert_int_eq(do_close(first), 0);
	end_pair(&pair);
}
END_TEST

static void make_wildcard(struct sockaddr_storage *addr)
{
	if (family() == AF_INET)
		((struct sockaddr_in *)addr)->sin_addr.s_addr = INADDR_ANY;
	else
		((struct sockaddr_in6 *)addr)->sin6_addr = in6addr_any;
}

/* There is no port that is everybody's and somebody's. */
/* At another address a connection of TCP that has ended may have the port for a minute. */
START_TEST(an_address_in_use_is_told)
{
	uint16_t port;
	int listener = listen_on(&port, 1), fd = open_one();
	struct sockaddr_storage addr = place(port);

	if (_i)
		make_wildcard(&addr);
	ck_assert_int_eq(call()->bind(fd, (struct sockaddr *)&addr, place_len()), -1);
	ck_assert_int_eq(errno, _i && call()->is_rs ? EADDRNOTAVAIL : EADDRINUSE);
	ck_assert_int_eq(do_close(listener), 0);
	if (!call()->is_rs)
		addr = place(port);
	ck_assert_int_eq(call()->bind(fd, (struct sockaddr *)&addr, place_len()), 0);
	ck_assert_int_eq(do_close(fd), 0);
}
END_TEST

/* --- names ----------------------------------------------------------------------------------- */

static struct sockaddr_storage own_name(int fd)
{
	struct sockaddr_storage addr = { .ss_family = AF_UNSPEC };
	socklen_t len = sizeof(addr);

	ck_assert_int_eq(call()->getsockname(fd, (struct sockaddr *)&addr, &len), 0);
	ck_assert_uint_eq(len, place_len());
	return addr;
}

static struct sockaddr_storage peers_name(int fd)
{
	struct sockaddr_storage addr = { .ss_family = AF_UNSPEC };
	socklen_t len = sizeof(addr);

	ck_assert_int_eq(call()->getpeername(fd, (struct sockaddr *)&addr, &len), 0);
	ck_assert_uint_eq(len, place_len());
	return addr;
}

/* With a port; 0 is any. */
static void expect_here(const struct sockaddr_storage *addr, uint16_t port)
{
	struct sockaddr_storage here = place(port ? port : port_of(addr));

	ck_assert_uint_ne(port_of(addr), 0);
	ck_assert_mem_eq(addr, &here, place_len());
}

/* Bound to a port that is chosen, and it was asked to which. */
static int one_with_a_name(void)
{
	struct sockaddr_storage none = { .ss_family = (sa_family_t)family() }, name;
	int fd = open_one();

	name = own_name(fd);
	ck_assert_mem_eq(&name, &none, place_len());
	ck_assert_int_eq(bind_one(fd), 0);
	name = own_name(fd);
	expect_here(&name, 0);
	return fd;
}

/* As on iWARP: one that is chosen may be one that TCP has, as it has earlier ones for a minute. */
static bool ports_are_of_tcp(void)
{
	struct sockaddr_storage here = place(0);
	struct rdma_cm_id *id;
	bool are;

	if (!call()->is_rs || rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP))
		return false;
	are = !rdma_bind_addr(id, (struct sockaddr *)&here) && id->verbs &&
		id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
	rdma_destroy_id(id);
	return are;
}

/* The name is known, so that no other port is taken but by whoever asked. */
START_TEST(a_new_one_has_no_name)
{
	enum { PORTS = 8 };
	struct sockaddr_storage name;
	int fd = one_with_a_name(), error, i, ports = ports_are_of_tcp() ? PORTS : 1;

	for (i = 1; (error = do_listen(fd)) == EADDRINUSE && i < ports; i++) {
		ck_assert_int_eq(do_close(fd), 0);
		fd = one_with_a_name();
	}
	ck_assert_int_eq(error, 0);
	name = own_name(fd);
	expect_here(&name, 0);
	ck_assert_int_eq(do_close(fd), 0);
}
END_TEST

static void expect_names_of(const struct pair *pair)
{
	struct sockaddr_storage listener = own_name(pair->listener);
	struct sockaddr_storage client = own_name(pair->client);
	struct sockaddr_storage name = peers_name(pair->client);

	expect_here(&client, 0);
	expect_here(&name, port_of(&listener));
	name = own_name(pair->server);
	expect_here(&name, port_of(&listener));
	name = peers_name(pair->server);
	expect_here(&name, port_of(&client));
}

START_TEST(both_ends_know_their_names)
{
	struct pair pair = make_pair();

	expect_names_of(&pair);
	ck_assert_int_eq(call()->shutdown(pair.client, SHUT_WR), 0);
	wait_for(pair.server, POLLRDHUP);
	expect_names_of(&pair);
	end_pair(&pair);
}
END_TEST

START_TEST(accept_says_who_connected)
{
	uint16_t port;
	struct pair pair = { .listener = listen_on(&port, 1), .client = connect_to(port) };
	struct sockaddr_storage addr = { .ss_family = AF_UNSPEC }, client;
	socklen_t len = sizeof(addr);

	wait_for(pair.listener, POLLIN);
	pair.server = call()->accept(pair.listener, (struct sockaddr *)&addr, &len);
	ck_assert_int_ge(pair.server, 0);
	ck_assert_uint_eq(len, place_len());
	wait_for(pair.client, POLLOUT);
	client = own_name(pair.client);
	expect_here(&addr, port_of(&client));
	end_pair(&pair);
}
END_TEST

START_TEST(a_name_is_cut_to_its_room)
{
	struct pair pair = make_pair();
	struct sockaddr_storage addr = { .ss_family = AF_UNSPEC }, server = own_name(pair.server);
	socklen_t len = 4;

	ck_assert_int_eq(call()->getpeername(pair.client, (struct sockaddr *)&addr, &len), 0);
	ck_assert_uint_eq(len, place_len());
	ck_assert_mem_eq(&addr, &server, 4);
	ck_assert(!((char *)&addr)[4]);
	end_pair(&pair);
}
END_TEST

/* --- ends ------------------------------------------------------------------------------------ */

static void expect_bytes(int from, int to)
{
	send_bytes(from, 3);
	wait_for(to, POLLIN);
	receive_bytes(to, 3);
}

/* 0: the client is the first to send no more; 1: the server is. */
START_TEST(each_direction_ends_by_itself)
{
	struct pair pair = make_pair();
	int first = _i ? pair.server : pair.client, last = _i ? pair.client : pair.server;

	send_bytes(first, 2);
	ck_assert_int_eq(call()->shutdown(first, SHUT_WR), 0);
	wait_for(last, POLLRDHUP);
	receive_bytes(last, 2);
	expect_end(last);
	expect_end(last);
	ck_assert_int_eq(do_send(first), EPIPE);
	expect_bytes(last, first);
	expect_nothing(first);
	ck_assert_int_eq(call()->shutdown(first, SHUT_WR), 0);
	ck_assert_int_eq(call()->shutdown(last, SHUT_WR), 0);
	expect_end(first);
	ck_assert_int_eq(do_send(last), EPIPE);
	end_pair(&pair);
}
END_TEST

START_TEST(who_reads_no_more_is_at_the_end)
{
	struct pair pair = make_pair();

	ck_assert_int_eq(call()->shutdown(pair.client, SHUT_RD), 0);
	ck_assert_int_eq(do_recv(pair.client), 0);
	expect_bytes(pair.client, pair.server);
	ck_assert_int_eq(do_send(pair.server), 0);
	end_pair(&pair);
}
END_TEST

/* The bytes first, then why there are no more. */
START_TEST(a_reset_comes_behind_what_had_arrived)
{
	struct pair pair = make_pair();

	send_bytes(pair.server, 5);
	wait_for(pair.client, POLLIN);
	was_reset(&pair);
	receive_bytes(pair.client, 5);
	ck_assert_int_eq(do_recv(pair.client), ECONNRESET);
	ck_assert_int_eq(do_recv(pair.client), 0);
	end_pair(&pair);
}
END_TEST

START_TEST(a_peer_that_is_gone_takes_nothing_more)
{
	struct pair pair = make_pair();

	reset(pair.client);
	pair.client = -1;
	wait_for(pair.server, POLLHUP);
	ck_assert_int_eq(do_send(pair.server), ECONNRESET);
	ck_assert_int_eq(do_send(pair.server), EPIPE);
	ck_assert_int_eq(do_recv(pair.server), 0);
	end_pair(&pair);
}
END_TEST

TCase *states_case(const char *name)
{
	TCase *cases = tcase_create(name);

	tcase_set_timeout(cases, 600);
	tcase_add_loop_test(cases, a_call_says_why_it_cannot_be, 0, LEN(failures));
	tcase_add_loop_test(cases, what_is_closed_is_a_bad_descriptor, 0, LEN(acts));
	tcase_add_test(cases, each_is_closed_once);
	tcase_add_loop_test(cases, what_is_no_socket_is_told, 0, LEN(acts));
	tcase_add_test(cases, a_connect_that_waits_is_refused);
	tcase_add_test(cases, so_error_says_it_once);
	tcase_add_test(cases, another_connect_says_it_too);
	tcase_add_test(cases, so_error_says_a_reset_once);
	tcase_add_test(cases, one_that_connects_is_neither);
	tcase_add_loop_test(cases, after_a_refusal_it_connects_elsewhere, 0, 2);
	tcase_add_loop_test(cases, an_address_in_use_is_told, 0, 2);
	tcase_add_test(cases, a_new_one_has_no_name);
	tcase_add_test(cases, both_ends_know_their_names);
	tcase_add_test(cases, accept_says_who_connected);
	tcase_add_test(cases, a_name_is_cut_to_its_room);
	tcase_add_loop_test(cases, each_direction_ends_by_itself, 0, 2);
	tcase_add_test(cases, who_reads_no_more_is_at_the_end);
	tcase_add_test(cases, a_reset_comes_behind_what_had_arrived);
	tcase_add_test(cases, a_peer_that_is_gone_takes_nothing_more);
	tcase_add_test(cases, a_connect_that_waits_ends_connected);
	return cases;
}
