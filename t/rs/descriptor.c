#include "config.h"

#include "rs/descriptor.h"
#include "rs/uring.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 200 };

/* --- states ---------------------------------------------------------------------------------- */

START_TEST(a_listener_is_readable_while_a_connection_waits)
{
	uint16_t port;
	int listener = listen_on(&port, 4), client, server;

	expect_events(listener, 0);
	ck_assert_int_eq(call()->accept(listener, NULL, NULL), -1);
	ck_assert_int_eq(errno, EAGAIN);
	client = connect_to(port);
	expect_events(listener, POLLIN);
	server = accept_from(listener);
	expect_events(listener, 0);
	expect_events(client, POLLOUT);
	expect_events(server, POLLOUT);
	end_pair(&(struct pair){ listener, client, server });
}
END_TEST

START_TEST(a_refused_one_has_an_error_until_it_is_told)
{
	int fd = connect_to(1), error = 0;
	socklen_t len = sizeof(error);

	expect_events(fd, POLLIN | POLLOUT | POLLERR | POLLHUP | POLLRDHUP);
	ck_assert_int_eq(call()->getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len), 0);
	ck_assert_int_eq(error, ECONNREFUSED);
	expect_events(fd, POLLIN | POLLOUT | POLLHUP | POLLRDHUP);
	ck_assert_int_eq(call()->close(fd), 0);
}
END_TEST

START_TEST(it_is_readable_as_long_as_bytes_are_there)
{
	struct pair pair = make_pair();

	expect_events(pair.server, POLLOUT);
	send_bytes(pair.client, 10);
	expect_events(pair.server, POLLIN | POLLOUT);
	receive_bytes(pair.server, 4);
	expect_events(pair.server, POLLIN | POLLOUT);
	receive_bytes(pair.server, 6);
	expect_events(pair.server, POLLOUT);
	expect_nothing(pair.server);
	expect_events(pair.server, POLLOUT);
	end_pair(&pair);
}
END_TEST

START_TEST(a_full_one_is_not_writable_until_it_is_read)
{
	struct pair pair = make_pair();
	size_t sent = fill_up(pair.client);

	expect_events(pair.client, 0);
	empty(pair.server, sent, 0);
	expect_events(pair.client, POLLOUT);
	send_bytes(pair.server, 1);
	expect_events(pair.client, POLLIN | POLLOUT);
	end_pair(&pair);
}
END_TEST

START_TEST(the_end_of_the_peers_bytes_is_rdhup_and_readable)
{
	struct pair pair = make_pair();
	char byte;

	send_bytes(pair.client, 1);
	expect_events(pair.server, POLLIN | POLLOUT);
	ck_assert_int_eq(call()->shutdown(pair.client, SHUT_WR), 0);
	expect_events(pair.server, POLLIN | POLLOUT | POLLRDHUP);
	receive_bytes(pair.server, 1);
	ck_assert_int_eq(call()->recv(pair.server, &byte, 1, 0), 0);
	expect_events(pair.server, POLLIN | POLLOUT | POLLRDHUP);
	send_bytes(pair.server, 3);
	expect_events(pair.client, POLLIN | POLLOUT);
	end_pair(&pair);
}
END_TEST

START_TEST(both_ends_shut_down_are_a_hangup)
{
	struct pair pair = make_pair();

	ck_assert_int_eq(call()->shutdown(pair.client, SHUT_WR), 0);
	ck_assert_int_eq(call()->shutdown(pair.server, SHUT_WR), 0);
	expect_events(pair.server, POLLIN | POLLOUT | POLLRDHUP | POLLHUP);
	expect_events(pair.client, POLLIN | POLLOUT | POLLRDHUP | POLLHUP);
	end_pair(&pair);
}
END_TEST

/* Listed as a difference: an rsocket says that it closes, where TCP only says that it sends no
 * more. */
START_TEST(a_peer_that_closes_is_the_end)
{
	struct pair pair = make_pair();
	char byte;

	ck_assert_int_eq(call()->close(pair.server), 0);
	pair.server = -1;
	expect_events(pair.client, POLLIN | POLLOUT | POLLRDHUP | (call()->is_rs ? POLLHUP : 0));
	ck_assert_int_eq(call()->recv(pair.client, &byte, 1, 0), 0);
	end_pair(&pair);
}
END_TEST

START_TEST(a_peer_that_resets_is_an_error_until_it_is_told)
{
	struct pair pair = make_pair();
	char byte;

	reset(pair.server);
	pair.server = -1;
	expect_events(pair.client, POLLIN | POLLOUT | POLLERR | POLLHUP | POLLRDHUP);
	ck_assert_int_eq(call()->recv(pair.client, &byte, 1, 0), -1);
	ck_assert_int_eq(errno, ECONNRESET);
	expect_events(pair.client, POLLIN | POLLOUT | POLLHUP | POLLRDHUP);
	end_pair(&pair);
}
END_TEST

/* The listener has one place, which another has: the client waits until that is accepted. */
static struct pair make_waiting_pair(int *other)
{
	uint16_t port;
	struct pair pair = { .listener = listen_on(&port, 0), .server = -1 };

	*other = connect_to(port);
	wait_for(pair.listener, POLLIN);
	pair.client = connect_to(port);
	return pair;
}

START_TEST(one_that_connects_is_writable_when_it_has)
{
	int other, accepted;
	struct pair pair = make_waiting_pair(&other);

	expect_events(pair.client, 0);
	accepted = accept_from(pair.listener);
	pair.server = accept_from(pair.listener);
	expect_events(pair.client, POLLOUT);
	ck_assert_int_eq(call()->close(accepted), 0);
	ck_assert_int_eq(call()->close(other), 0);
	end_pair(&pair);
}
END_TEST

START_TEST(one_that_connects_in_vain_has_an_error)
{
	int other;
	struct pair pair = make_waiting_pair(&other);

	expect_events(pair.client, 0);
	ck_assert_int_eq(call()->close(pair.listener), 0);
	expect_events(pair.client, POLLIN | POLLOUT | POLLERR | POLLHUP | POLLRDHUP);
	ck_assert_int_eq(call()->close(other), 0);
	ck_assert_int_eq(call()->close(pair.client), 0);
}
END_TEST

/* --- epoll ----------------------------------------------------------------------------------- */

/* Each of these tests runs with the calls of the kernel, and those of rsockets with their own. */
static const struct rs_calls *pollers(int which)
{
	return which ? call() : &rs_calls_tcp;
}

struct instance {
	const struct rs_calls *calls;
	int fd;
};

static struct instance make_instance(int which)
{
	struct instance instance = { .calls = pollers(which) };

	instance.fd = instance.calls->epoll_create(EPOLL_CLOEXEC);
	ck_assert_int_ge(instance.fd, 0);
	return instance;
}

static void end_instance(struct instance *instance)
{
	ck_assert_int_eq(instance->calls->close(instance->fd), 0);
}

static int watch(const struct instance *instance, int op, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	return instance->calls->epoll_ctl(instance->fd, op, fd, &event);
}

/* How many events there are within the time. */
static int events_within(const struct instance *instance, int timeout_ms)
{
	struct epoll_event event;

	return instance->calls->epoll_wait(instance->fd, &event, 1, timeout_ms);
}

START_TEST(an_edge_is_told_once)
{
	struct pair pair = make_pair();
	struct instance instance = make_instance(_i);
	int i;

	ck_assert_int_eq(watch(&instance, EPOLL_CTL_ADD, pair.server, EPOLLIN | EPOLLET), 0);
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(events_within(&instance, QUIET_MS), 0);
		send_bytes(pair.client, 5);
		ck_assert_int_eq(events_within(&instance, PATIENCE_MS), 1);
		ck_assert_int_eq(events_within(&instance, QUIET_MS), 0);
		receive_bytes(pair.server, 5);
		expect_nothing(pair.server);
	}
	end_instance(&instance);
	end_pair(&pair);
}
END_TEST

static void set_nonblocking(int fd, bool nonblocking)
{
	int flags = O_RDWR | (nonblocking ? O_NONBLOCK : 0);

	ck_assert_int_eq(call()->fcntl(fd, F_SETFL, flags), 0);
}

/* By the call that knows, whether the number shows it or not. */
static void await(int fd, short events)
{
	struct pollfd pfd = { .fd = fd, .events = events };

	ck_assert_int_eq(call()->poll(&pfd, 1, PATIENCE_MS), 1);
	ck_assert_int_eq(pfd.revents, events);
}

START_TEST(what_comes_while_it_is_blocking_is_an_edge)
{
	struct pair pair = make_pair();
	struct instance instance = make_instance(_i);

	ck_assert_int_eq(watch(&instance, EPOLL_CTL_ADD, pair.server, EPOLLIN | EPOLLET), 0);
	send_bytes(pair.client, 5);
	ck_assert_int_eq(events_within(&instance, PATIENCE_MS), 1);
	set_nonblocking(pair.server, false);
	receive_bytes(pair.server, 5);
	send_bytes(pair.client, 5);
	await(pair.server, POLLIN);
	set_nonblocking(pair.server, true);
	ck_assert_int_eq(events_within(&instance, PATIENCE_MS), 1);
	receive_bytes(pair.server, 5);
	ck_assert_int_eq(events_within(&instance, QUIET_MS), 0);
	end_instance(&instance);
	end_pair(&pair);
}
END_TEST

START_TEST(room_that_comes_while_it_is_blocking_is_an_edge)
{
	struct pair pair = make_pair();
	struct instance instance = make_instance(_i);
	char bytes[4096];
	size_t sent = 0;
	ssize_t ret;

	ck_assert_int_eq(watch(&instance, EPOLL_CTL_ADD, pair.client, EPOLLOUT | EPOLLET), 0);
	ck_assert_int_eq(events_within(&instance, PATIENCE_MS), 1);
	set_nonblocking(pair.client, false);
	do {
		fill(bytes, sizeof(bytes), sent);
		ret = call()->send(pair.client, bytes, sizeof(bytes), MSG_DONTWAIT);
		sent += ret > 0 ? (size_t)ret : 0;
	} while (ret > 0);
	ck_assert_int_eq(errno, EAGAIN);
	empty(pair.server, sent, 0);
	await(pair.client, POLLOUT);
	set_nonblocking(pair.client, true);
	ck_assert_int_eq(events_within(&instance, PATIENCE_MS), 1);
	end_instance(&instance);
	end_pair(&pair);
}
END_TEST

START_TEST(a_reset_is_an_edge)
{
	struct pair pair = make_pair();
	struct instance instance = make_instance(_i);
	struct epoll_event event;

	ck_assert_int_eq(watch(&instance, EPOLL_CTL_ADD, pair.client,
				 EPOLLIN | EPOLLRDHUP | EPOLLET), 0);
	ck_assert_int_eq(events_within(&instance, QUIET_MS), 0);
	reset(pair.server);
	pair.server = -1;
	ck_assert_int_eq(instance.calls->epoll_wait(instance.fd, &event, 1, PATIENCE_MS), 1);
	ck_assert_int_eq(event.events, EPOLLIN | EPOLLERR | EPOLLHUP | EPOLLRDHUP);
	ck_assert_int_eq(events_within(&instance, QUIET_MS), 0);
	end_instance(&instance);
	end_pair(&pair);
}
END_TEST

START_TEST(oneshot_is_told_once_until_it_is_asked_for_again)
{
	struct pair pair = make_pair();
	struct instance instance = make_instance(_i);

	ck_assert_int_eq(watch(&instance, EPOLL_CTL_ADD, pair.server, EPOLLIN | EPOLLONESHOT), 0);
	send_bytes(pair.client, 5);
	ck_assert_int_eq(events_within(&instance, PATIENCE_MS), 1);
	send_bytes(pair.client, 5);
	ck_assert_int_eq(events_within(&instance, QUIET_MS), 0);
	ck_assert_int_eq(watch(&instance, EPOLL_CTL_MOD, pair.server, EPOLLIN | EPOLLONESHOT), 0);
	ck_assert_int_eq(events_within(&instance, PATIENCE_MS), 1);
	end_instance(&instance);
	end_pair(&pair);
}
END_TEST

START_TEST(a_level_is_told_as_long_as_it_lasts)
{
	struct pair pair = make_pair();
	struct instance instance = make_instance(_i);
	int i;

	ck_assert_int_eq(watch(&instance, EPOLL_CTL_ADD, pair.server, EPOLLIN), 0);
	for (i = 0; i < ROUNDS; i++) {
		send_bytes(pair.client, 2);
		ck_assert_int_eq(events_within(&instance, PATIENCE_MS), 1);
		receive_bytes(pair.server, 1);
		ck_assert_int_eq(events_within(&instance, PATIENCE_MS), 1);
		receive_bytes(pair.server, 1);
		ck_assert_int_eq(events_within(&instance, 0), 0);
	}
	end_instance(&instance);
	end_pair(&pair);
}
END_TEST

START_TEST(one_that_is_closed_is_told_no_more)
{
	struct pair pair = make_pair();
	struct instance instance = make_instance(_i);

	ck_assert_int_eq(watch(&instance, EPOLL_CTL_ADD, pair.server, EPOLLIN | EPOLLOUT), 0);
	ck_assert_int_eq(events_within(&instance, PATIENCE_MS), 1);
	ck_assert_int_eq(call()->close(pair.server), 0);
	ck_assert_int_eq(events_within(&instance, QUIET_MS), 0);
	ck_assert_int_eq(watch(&instance, EPOLL_CTL_MOD, pair.server, EPOLLIN), -1);
	ck_assert_int_eq(errno, EBADF);
	pair.server = -1;
	end_instance(&instance);
	end_pair(&pair);
}
END_TEST

/* Listed as a difference: of an rsocket the number is another file by then. */
START_TEST(one_that_connects_again_is_added_again)
{
	uint16_t port;
	struct pair pair = { .listener = listen_on(&port, 1), .client = connect_to(1) };
	struct instance instance = make_instance(_i);
	struct sockaddr_storage addr = place(port);

	ck_assert_int_eq(watch(&instance, EPOLL_CTL_ADD, pair.client, EPOLLOUT), 0);
	ck_assert_int_eq(events_within(&instance, PATIENCE_MS), 1);
	ck_assert_int_eq(
		call()->connect(pair.client, (struct sockaddr *)&addr, place_len()), -1);
	ck_assert_int_eq(errno, ECONNREFUSED);
	ck_assert_int_eq(
		call()->connect(pair.client, (struct sockaddr *)&addr, place_len()), -1);
	ck_assert_int_eq(errno, EINPROGRESS);
	ck_assert_int_eq(watch(&instance, EPOLL_CTL_ADD, pair.client, EPOLLOUT),
		call()->is_rs ? 0 : -1);
	ck_assert_int_eq(events_within(&instance, PATIENCE_MS), 1);
	pair.server = accept_from(pair.listener);
	expect_events(pair.client, POLLOUT);
	end_instance(&instance);
	end_pair(&pair);
}
END_TEST

START_TEST(others_are_told_beside_it_and_within_another_instance)
{
	struct pair pair = make_pair();
	struct instance outer = make_instance(_i), inner = make_instance(_i);
	struct epoll_event event;
	int ends[2];

	ck_assert_int_eq(pipe(ends), 0);
	ck_assert_int_eq(watch(&outer, EPOLL_CTL_ADD, ends[0], EPOLLIN), 0);
	ck_assert_int_eq(watch(&outer, EPOLL_CTL_ADD, inner.fd, EPOLLIN), 0);
	ck_assert_int_eq(watch(&inner, EPOLL_CTL_ADD, pair.server, EPOLLIN), 0);
	ck_assert_int_eq(events_within(&outer, QUIET_MS), 0);
	send_bytes(pair.client, 5);
	ck_assert_int_eq(outer.calls->epoll_wait(outer.fd, &event, 1, PATIENCE_MS), 1);
	ck_assert_int_eq(event.data.fd, inner.fd);
	receive_bytes(pair.server, 5);
	ck_assert_int_eq(events_within(&outer, QUIET_MS), 0);
	ck_assert_int_eq(write(ends[1], "x", 1), 1);
	ck_assert_int_eq(outer.calls->epoll_wait(outer.fd, &event, 1, 0), 1);
	ck_assert_int_eq(event.data.fd, ends[0]);
	close(ends[0]);
	close(ends[1]);
	end_instance(&inner);
	end_instance(&outer);
	end_pair(&pair);
}
END_TEST

/* Of rsockets with their own calls only: to the kernel a blocking one shows nothing. */
START_TEST(blocking_ones_are_told_as_well)
{
	struct pair pair = make_pair();
	struct instance instance = make_instance(1);

	set_nonblocking(pair.server, false);
	ck_assert_int_eq(watch(&instance, EPOLL_CTL_ADD, pair.server, EPOLLIN), 0);
	ck_assert_int_eq(events_within(&instance, QUIET_MS), 0);
	send_bytes(pair.client, 5);
	ck_assert_int_eq(events_within(&instance, PATIENCE_MS), 1);
	receive_bytes(pair.server, 5);
	ck_assert_int_eq(events_within(&instance, QUIET_MS), 0);
	ck_assert_int_eq(call()->shutdown(pair.client, SHUT_WR), 0);
	ck_assert_int_eq(events_within(&instance, PATIENCE_MS), 1);
	end_instance(&instance);
	end_pair(&pair);
}
END_TEST

/* --- io_uring -------------------------------------------------------------------------------- */

START_TEST(io_uring_is_told_what_there_is_and_what_comes)
{
	struct pair pair = make_pair();
	struct uring *ring = uring_new();
	uint64_t of;
	int i;

	for (i = 0; i < 3; i++) {
		uring_poll(ring, pair.server, POLLIN | POLLRDHUP, 1);
		pause_ms(QUIET_MS);
		ck_assert(!uring_has(ring));
		uring_poll(ring, pair.server, POLLIN | POLLOUT, 2);
		ck_assert_int_eq(uring_wait(ring, &of), POLLOUT);
		ck_assert_uint_eq(of, 2);
		send_bytes(pair.client, 5);
		ck_assert_int_eq(uring_wait(ring, &of), POLLIN);
		ck_assert_uint_eq(of, 1);
		receive_bytes(pair.server, 5);
		expect_nothing(pair.server);
	}
	uring_free(ring);
	end_pair(&pair);
}
END_TEST

START_TEST(io_uring_is_told_of_room_and_of_the_end)
{
	struct pair pair = make_pair();
	struct uring *ring = uring_new();
	size_t sent = fill_up(pair.client);

	expect_events(pair.client, 0);
	uring_poll(ring, pair.client, POLLOUT, 0);
	pause_ms(QUIET_MS);
	ck_assert(!uring_has(ring));
	empty(pair.server, sent, 0);
	ck_assert_int_eq(uring_wait(ring, NULL), POLLOUT);
	uring_poll(ring, pair.server, POLLRDHUP, 0);
	ck_assert_int_eq(call()->shutdown(pair.client, SHUT_WR), 0);
	ck_assert_int_eq(uring_wait(ring, NULL), POLLRDHUP);
	uring_free(ring);
	end_pair(&pair);
}
END_TEST

/* --- many ------------------------------------------------------------------------------------ */

/* Both ends of each are watched; only one has something to tell. */
START_TEST(many_in_one_epoll_are_each_told)
{
	int many = pair_place.many, i, told = 0;
	struct instance instance = make_instance(_i);
	struct pair *pairs = calloc((size_t)many, sizeof(*pairs));
	uint16_t port;
	int listener = listen_on(&port, many);
	struct epoll_event event;

	for (i = 0; i < many; i++)
		pairs[i].client = connect_to(port);
	for (i = 0; i < many; i++) {
		pairs[i].server = accept_from(listener);
		watch(&instance, EPOLL_CTL_ADD, pairs[i].server, EPOLLIN);
		watch(&instance, EPOLL_CTL_ADD, pairs[i].client, EPOLLIN);
	}
	for (i = 0; i < many; i++) {
		wait_for(pairs[i].client, POLLOUT);
		send_bytes(pairs[i].client, 1);
	}
	while (told < many &&
		instance.calls->epoll_wait(instance.fd, &event, 1, PATIENCE_MS) == 1) {
		receive_bytes(event.data.fd, 1);
		told++;
	}
	ck_assert_int_eq(told, many);
	ck_assert_int_eq(events_within(&instance, QUIET_MS), 0);
	for (i = 0; i < many; i++) {
		call()->close(pairs[i].client);
		call()->close(pairs[i].server);
	}
	call()->close(listener);
	end_instance(&instance);
	free(pairs);
}
END_TEST

TCase *descriptor_case(const char *name, bool is_rs)
{
	TCase *cases = tcase_create(name);
	int num = is_rs ? 2 : 1;

	tcase_set_timeout(cases, 600);
	tcase_add_test(cases, a_listener_is_readable_while_a_connection_waits);
	tcase_add_test(cases, a_refused_one_has_an_error_until_it_is_told);
	tcase_add_test(cases, it_is_readable_as_long_as_bytes_are_there);
	tcase_add_test(cases, a_full_one_is_not_writable_until_it_is_read);
	tcase_add_test(cases, the_end_of_the_peers_bytes_is_rdhup_and_readable);
	tcase_add_test(cases, both_ends_shut_down_are_a_hangup);
	tcase_add_test(cases, a_peer_that_closes_is_the_end);
	tcase_add_test(cases, a_peer_that_resets_is_an_error_until_it_is_told);
	tcase_add_test(cases, one_that_connects_is_writable_when_it_has);
	tcase_add_test(cases, one_that_connects_in_vain_has_an_error);
	tcase_add_loop_test(cases, a_reset_is_an_edge, 0, num);
	tcase_add_loop_test(cases, an_edge_is_told_once, 0, num);
	tcase_add_loop_test(cases, what_comes_while_it_is_blocking_is_an_edge, 0, num);
	tcase_add_loop_test(cases, room_that_comes_while_it_is_blocking_is_an_edge, 0, num);
	tcase_add_loop_test(cases, oneshot_is_told_once_until_it_is_asked_for_again, 0, num);
	tcase_add_loop_test(cases, a_level_is_told_as_long_as_it_lasts, 0, num);
	tcase_add_loop_test(cases, one_that_is_closed_is_told_no_more, 0, num);
	tcase_add_loop_test(cases, one_that_connects_again_is_added_again, 0, num);
	tcase_add_loop_test(
		cases, others_are_told_beside_it_and_within_another_instance, 0, num);
	tcase_add_test(cases, blocking_ones_are_told_as_well);
	tcase_add_loop_test(cases, many_in_one_epoll_are_each_told, 0, num);
	if (uring_exists()) {
		tcase_add_test(cases, io_uring_is_told_what_there_is_and_what_comes);
		tcase_add_test(cases, io_uring_is_told_of_room_and_of_the_end);
	}
	return cases;
}
