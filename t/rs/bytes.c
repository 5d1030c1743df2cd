#include "config.h"

#include "rs/bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MUCH = 4 << 20, SOME = 64, PIECES = 4 };

/* --- a call that waits ----------------------------------------------------------------------- */

struct waiting {
	int fd;
	ssize_t (*act)(struct waiting *waiting);
	char *bytes;
	size_t len;
	int flags;
	ssize_t ret;
	int error;
	pthread_t thread;
	atomic_int tid;
	bool ended;
};

static void *run(void *arg)
{
	struct waiting *waiting = arg;

	atomic_store(&waiting->tid, (int)syscall(SYS_gettid));
	waiting->ret = waiting->act(waiting);
	waiting->error = errno;
	return NULL;
}

static bool is_asleep(int tid)
{
	char path[64], state = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	file = fopen(path, "r");
	if (!file)
		return false;
	if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	fclose(file);
	return state == 'S';
}

/* Once it sleeps, it waits; one that has nothing to wait for ends instead. */
static void begin(struct waiting *waiting)
{
	ck_assert_int_eq(pthread_create(&waiting->thread, NULL, run, waiting), 0);
	while (!waiting->ended && !is_asleep(atomic_load(&waiting->tid)))
		waiting->ended = !pthread_tryjoin_np(waiting->thread, NULL);
}

static void expect_ret(struct waiting *waiting, ssize_t ret)
{
	if (!waiting->ended)
		ck_assert_int_eq(pthread_join(waiting->thread, NULL), 0);
	ck_assert_msg(waiting->ret == ret, "%zd instead of %zd: %s", waiting->ret, ret,
		waiting->ret < 0 ? strerror(waiting->error) : "");
}

static ssize_t do_recv(struct waiting *waiting)
{
	return call()->recv(waiting->fd, waiting->bytes, waiting->len, waiting->flags);
}

static ssize_t do_send(struct waiting *waiting)
{
	return call()->send(waiting->fd, waiting->bytes, waiting->len, waiting->flags);
}

/* --- flags ----------------------------------------------------------------------------------- */

START_TEST(who_looks_leaves_the_bytes)
{
	struct pair pair = make_pair();
	char bytes[SOME], sent[SOME];

	fill(sent, SOME, 1);
	ck_assert_int_eq(call()->recv(pair.server, bytes, SOME, MSG_PEEK), -1);
	ck_assert_int_eq(errno, EAGAIN);
	ck_assert_int_eq(call()->send(pair.client, sent, 10, 0), 10);
	wait_for(pair.server, POLLIN);
	ck_assert_int_eq(call()->recv(pair.server, bytes, 4, MSG_PEEK), 4);
	ck_assert_int_eq(call()->recv(pair.server, bytes, SOME, MSG_PEEK), 10);
	ck_assert_mem_eq(bytes, sent, 10);
	ck_assert_int_eq(call()->recv(pair.server, bytes, 3, 0), 3);
	ck_assert_int_eq(call()->recv(pair.server, bytes, SOME, MSG_PEEK), 7);
	ck_assert_mem_eq(bytes, sent + 3, 7);
	receive_bytes(pair.server, 7);
	expect_nothing(pair.server);
	end_pair(&pair);
}
END_TEST

static const int waitalls[] = { MSG_WAITALL, MSG_WAITALL | MSG_PEEK };

/* 0: it receives; 1: it only looks. */
START_TEST(who_wants_all_waits_for_all)
{
	struct pair pair = make_pair();
	char bytes[SOME], sent[SOME];
	struct waiting waiting = {
		.fd = pair.server,
		.act = do_recv,
		.bytes = bytes,
		.len = 10,
		.flags = waitalls[_i],
	};

	fill(sent, SOME, 1);
	set_blocking(pair.server);
	ck_assert_int_eq(call()->send(pair.client, sent, 4, 0), 4);
	begin(&waiting);
	ck_assert_int_eq(call()->send(pair.client, sent + 4, 3, 0), 3);
	ck_assert_int_eq(call()->send(pair.client, sent + 7, 5, 0), 5);
	expect_ret(&waiting, 10);
	ck_assert_mem_eq(bytes, sent, 10);
	ck_assert_int_eq(call()->recv(pair.server, bytes, _i ? 12 : 2, MSG_WAITALL), _i ? 12 : 2);
	ck_assert_mem_eq(bytes, _i ? sent : sent + 10, _i ? 12 : 2);
	end_pair(&pair);
}
END_TEST

START_TEST(who_wants_all_gets_what_there_is_at_the_end)
{
	struct pair pair = make_pair();
	char bytes[SOME];
	struct waiting waiting = {
		.fd = pair.server,
		.act = do_recv,
		.bytes = bytes,
		.len = 10,
		.flags = waitalls[_i],
	};

	set_blocking(pair.server);
	send_bytes(pair.client, 4);
	begin(&waiting);
	send_bytes(pair.client, 3);
	ck_assert_int_eq(call()->shutdown(pair.client, SHUT_WR), 0);
	expect_ret(&waiting, 7);
	if (_i)
		receive_bytes(pair.server, 7);
	ck_assert_int_eq(call()->recv(pair.server, bytes, 10, waitalls[_i]), 0);
	end_pair(&pair);
}
END_TEST

START_TEST(who_wants_all_and_does_not_wait_gets_what_there_is)
{
	struct pair pair = make_pair();
	char bytes[SOME];

	ck_assert_int_eq(call()->recv(pair.server, bytes, SOME, waitalls[_i]), -1);
	ck_assert_int_eq(errno, EAGAIN);
	send_bytes(pair.client, 4);
	wait_for(pair.server, POLLIN);
	ck_assert_int_eq(call()->recv(pair.server, bytes, SOME, waitalls[_i]), 4);
	end_pair(&pair);
}
END_TEST

START_TEST(dontwait_is_nonblocking_for_one_call)
{
	struct pair pair = make_pair();
	char *bytes = calloc(1, MUCH);
	ssize_t ret;

	set_blocking(pair.server);
	set_blocking(pair.client);
	ck_assert_int_eq(call()->recv(pair.server, bytes, 1, MSG_DONTWAIT), -1);
	ck_assert_int_eq(errno, EAGAIN);
	do {
		ret = call()->send(pair.client, bytes, MUCH, MSG_DONTWAIT);
		ck_assert_int_lt(ret, MUCH);
	} while (ret > 0);
	ck_assert_int_eq(errno, EAGAIN);
	ck_assert_int_eq(call()->fcntl(pair.server, F_GETFL) & O_NONBLOCK, 0);
	reset(pair.server);
	pair.server = -1;
	end_pair(&pair);
	free(bytes);
}
END_TEST

/* --- parts ----------------------------------------------------------------------------------- */

START_TEST(a_read_takes_what_there_is)
{
	struct pair pair = make_pair();
	char bytes[SOME];

	send_bytes(pair.client, 10);
	wait_for(pair.server, POLLIN);
	receive_bytes(pair.server, 4);
	set_blocking(pair.server);
	ck_assert_int_eq(call()->recv(pair.server, bytes, SOME, 0), 6);
	end_pair(&pair);
}
END_TEST

START_TEST(a_read_that_waits_takes_what_comes)
{
	struct pair pair = make_pair();
	char bytes[SOME];
	struct waiting waiting = { .fd = pair.server, .act = do_recv, .bytes = bytes, .len = SOME };

	set_blocking(pair.server);
	begin(&waiting);
	send_bytes(pair.client, 5);
	expect_ret(&waiting, 5);
	end_pair(&pair);
}
END_TEST

START_TEST(a_write_of_much_takes_what_has_room_and_the_rest_later)
{
	struct pair pair = make_pair();
	char *bytes = malloc(MUCH);
	size_t sent, now;
	ssize_t ret;

	fill(bytes, MUCH, 0);
	for (sent = 0; sent < MUCH; sent += now) {
		wait_for(pair.client, POLLOUT);
		ret = call()->write(pair.client, bytes + sent, MUCH - sent);
		ck_assert_int_gt(ret, 0);
		now = (size_t)ret;
		ck_assert_msg(sent || now < MUCH, "all at once");
		empty(pair.server, now, sent);
	}
	expect_nothing(pair.server);
	free(bytes);
	end_pair(&pair);
}
END_TEST

START_TEST(a_write_of_much_that_waits_takes_all)
{
	struct pair pair = make_pair();
	char *bytes = malloc(MUCH);
	struct waiting waiting = { .fd = pair.client, .act = do_send, .bytes = bytes, .len = MUCH };

	fill(bytes, MUCH, 0);
	set_blocking(pair.client);
	begin(&waiting);
	ck_assert(!waiting.ended);
	empty(pair.server, MUCH, 0);
	expect_ret(&waiting, MUCH);
	expect_nothing(pair.server);
	free(bytes);
	end_pair(&pair);
}
END_TEST

static ssize_t do_close(struct waiting *waiting)
{
	return call()->close(waiting->fd);
}

static const struct linger lingers[] = { { 0, 0 }, { 1, 30 } };

/* Whoever was told to linger waits for that. */
START_TEST(what_was_sent_before_a_close_arrives)
{
	struct pair pair = make_pair();
	struct waiting waiting = { .fd = pair.client, .act = do_close };
	size_t sent = fill_up(pair.client);

	ck_assert_int_eq(call()->setsockopt(pair.client, SOL_SOCKET, SO_LINGER, &lingers[_i],
				 sizeof(lingers[_i])),
		0);
	set_blocking(pair.client);
	begin(&waiting);
	empty(pair.server, sent, 0);
	expect_end(pair.server);
	expect_ret(&waiting, 0);
	pair.client = -1;
	end_pair(&pair);
}
END_TEST

/* --- pieces ---------------------------------------------------------------------------------- */

/* Nine bytes, and one piece that has none. */
static void cut(struct iovec pieces[PIECES], char *bytes)
{
	pieces[0] = (struct iovec){ bytes, 2 };
	pieces[1] = (struct iovec){ bytes + 2, 0 };
	pieces[2] = (struct iovec){ bytes + 2, 3 };
	pieces[3] = (struct iovec){ bytes + 5, 4 };
}

START_TEST(read_and_write_are_those_without_flags)
{
	struct pair pair = make_pair();
	char sent[SOME], bytes[SOME] = { 0 };
	struct iovec pieces[PIECES];

	fill(sent, SOME, 1);
	ck_assert_int_eq(call()->write(pair.client, sent, 9), 9);
	wait_for(pair.server, POLLIN);
	cut(pieces, bytes);
	ck_assert_int_eq(call()->readv(pair.server, pieces, PIECES), 9);
	ck_assert_mem_eq(bytes, sent, 9);
	cut(pieces, sent);
	ck_assert_int_eq(call()->writev(pair.client, pieces, PIECES), 9);
	wait_for(pair.server, POLLIN);
	memset(bytes, 0, SOME);
	ck_assert_int_eq(call()->read(pair.server, bytes, SOME), 9);
	ck_assert_mem_eq(bytes, sent, 9);
	end_pair(&pair);
}
END_TEST

START_TEST(a_message_of_pieces_is_their_bytes_in_turn)
{
	struct pair pair = make_pair();
	char sent[SOME], bytes[SOME] = { 0 };
	struct iovec pieces[PIECES];
	struct msghdr msg = { .msg_iov = pieces, .msg_iovlen = PIECES };

	fill(sent, SOME, 1);
	cut(pieces, sent);
	ck_assert_int_eq(call()->sendmsg(pair.client, &msg, 0), 9);
	wait_for(pair.server, POLLIN);
	cut(pieces, bytes);
	msg.msg_flags = -1;
	ck_assert_int_eq(call()->recvmsg(pair.server, &msg, MSG_PEEK), 9);
	ck_assert_mem_eq(bytes, sent, 9);
	ck_assert_int_eq(msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC | MSG_OOB | MSG_EOR), 0);
	msg.msg_iovlen = 1;
	ck_assert_int_eq(call()->recvmsg(pair.server, &msg, 0), 2);
	receive_bytes(pair.server, 7);
	expect_nothing(pair.server);
	end_pair(&pair);
}
END_TEST

/* --- nothing --------------------------------------------------------------------------------- */

/* A stream has no messages: to send nothing sends nothing. */
START_TEST(to_send_nothing_is_no_end)
{
	struct pair pair = make_pair();
	struct msghdr msg = { .msg_iovlen = 0 };

	ck_assert_int_eq(call()->write(pair.client, "", 0), 0);
	ck_assert_int_eq(call()->send(pair.client, "", 0, 0), 0);
	ck_assert_int_eq(call()->writev(pair.client, NULL, 0), 0);
	ck_assert_int_eq(call()->sendmsg(pair.client, &msg, 0), 0);
	expect_events(pair.server, POLLOUT);
	expect_nothing(pair.server);
	end_pair(&pair);
}
END_TEST

START_TEST(to_receive_nothing_takes_nothing)
{
	struct pair pair = make_pair();
	struct msghdr msg = { .msg_iovlen = 0 };
	char byte;

	ck_assert_int_eq(call()->read(pair.server, &byte, 0), 0);
	ck_assert_int_eq(call()->readv(pair.server, NULL, 0), 0);
	send_bytes(pair.client, 1);
	wait_for(pair.server, POLLIN);
	ck_assert_int_eq(call()->recv(pair.server, &byte, 0, 0), 0);
	ck_assert_int_eq(call()->recvmsg(pair.server, &msg, 0), 0);
	receive_bytes(pair.server, 1);
	end_pair(&pair);
}
END_TEST

/* Listed as a difference: TCP has nothing to receive before there is something. */
START_TEST(to_receive_nothing_of_nothing)
{
	struct pair pair = make_pair();
	char byte;

	errno = 0;
	ck_assert_int_eq(call()->recv(pair.server, &byte, 0, 0), call()->is_rs ? 0 : -1);
	ck_assert_int_eq(errno, call()->is_rs ? 0 : EAGAIN);
	end_pair(&pair);
}
END_TEST

/* --- addresses ------------------------------------------------------------------------------- */

START_TEST(a_stream_does_not_say_whom_it_is_from)
{
	struct pair pair = make_pair();
	struct sockaddr_storage addr = { .ss_family = AF_UNIX };
	socklen_t len = sizeof(addr);
	struct iovec piece = { &(char){ 0 }, 1 };
	struct msghdr msg = {
		.msg_iov = &piece, .msg_iovlen = 1, .msg_name = &addr, .msg_namelen = len
	};

	send_bytes(pair.client, 2);
	wait_for(pair.server, POLLIN);
	ck_assert_int_eq(
		call()->recvfrom(pair.server, piece.iov_base, 1, 0, (struct sockaddr *)&addr, &len),
		1);
	ck_assert_uint_eq(len, 0);
	ck_assert_int_eq(call()->recvmsg(pair.server, &msg, 0), 1);
	ck_assert_uint_eq(msg.msg_namelen, 0);
	ck_assert_int_eq(addr.ss_family, AF_UNIX);
	end_pair(&pair);
}
END_TEST

/* Listed as a difference: TCP overlooks the address. */
START_TEST(an_address_to_send_to_is_one_too_many)
{
	struct pair pair = make_pair();
	struct sockaddr_storage addr = place(1);
	ssize_t ret;

	ret = call()->sendto(pair.client, "x", 1, 0, (struct sockaddr *)&addr, place_len());
	ck_assert_int_eq(ret, call()->is_rs ? -1 : 1);
	ck_assert(!call()->is_rs || errno == EISCONN);
	ck_assert_int_eq(call()->sendto(pair.client, "x", 1, 0, NULL, 0), 1);
	end_pair(&pair);
}
END_TEST

/* --- select ---------------------------------------------------------------------------------- */

struct sets {
	fd_set read, write, except;
};

static int select_now(int fd, struct sets *sets)
{
	struct timeval now = { 0, 0 };

	FD_ZERO(&sets->read);
	FD_SET(fd, &sets->read);
	sets->write = sets->except = sets->read;
	return call()->select(fd + 1, &sets->read, &sets->write, &sets->except, &now);
}

static void expect_sets(int fd, bool read, bool write)
{
	struct sets sets;
	int ret = select_now(fd, &sets);

	ck_assert_int_eq(ret, read + write);
	ck_assert_int_eq(!!FD_ISSET(fd, &sets.read), read);
	ck_assert_int_eq(!!FD_ISSET(fd, &sets.write), write);
	ck_assert(!FD_ISSET(fd, &sets.except));
}

START_TEST(select_says_what_there_is)
{
	struct pair pair = make_pair();

	expect_sets(pair.listener, false, false);
	expect_sets(pair.server, false, true);
	send_bytes(pair.client, 1);
	wait_for(pair.server, POLLIN);
	expect_sets(pair.server, true, true);
	receive_bytes(pair.server, 1);
	fill_up(pair.client);
	expect_sets(pair.client, false, false);
	ck_assert_int_eq(call()->shutdown(pair.server, SHUT_WR), 0);
	wait_for(pair.client, POLLIN);
	expect_sets(pair.client, true, false);
	reset(pair.server);
	pair.server = -1;
	wait_for(pair.client, POLLHUP);
	expect_sets(pair.client, true, true);
	end_pair(&pair);
}
END_TEST

static ssize_t do_select(struct waiting *waiting)
{
	struct timeval most = { PATIENCE_MS / 1000, 0 };
	fd_set read;

	FD_ZERO(&read);
	FD_SET(waiting->fd, &read);
	return call()->select(waiting->fd + 1, &read, NULL, NULL, &most);
}

START_TEST(select_waits_for_bytes)
{
	struct pair pair = make_pair();
	struct waiting waiting = { .fd = pair.server, .act = do_select };

	begin(&waiting);
	send_bytes(pair.client, 1);
	expect_ret(&waiting, 1);
	end_pair(&pair);
}
END_TEST

START_TEST(select_ends_at_its_time)
{
	struct pair pair = make_pair();
	struct timeval most = { 0, 1000 };
	fd_set read;

	FD_ZERO(&read);
	FD_SET(pair.server, &read);
	ck_assert_int_eq(call()->select(pair.server + 1, &read, NULL, NULL, &most), 0);
	ck_assert(!FD_ISSET(pair.server, &read));
	most.tv_usec = -1;
	FD_SET(pair.server, &read);
	ck_assert_int_eq(call()->select(pair.server + 1, &read, NULL, NULL, &most), -1);
	ck_assert_int_eq(errno, EINVAL);
	end_pair(&pair);
}
END_TEST

TCase *bytes_case(const char *name)
{
	TCase *cases = tcase_create(name);

	tcase_set_timeout(cases, 600);
	tcase_add_test(cases, who_looks_leaves_the_bytes);
	tcase_add_loop_test(cases, who_wants_all_waits_for_all, 0, 2);
	tcase_add_loop_test(cases, who_wants_all_gets_what_there_is_at_the_end, 0, 2);
	tcase_add_loop_test(cases, who_wants_all_and_does_not_wait_gets_what_there_is, 0, 2);
	tcase_add_test(cases, dontwait_is_nonblocking_for_one_call);
	tcase_add_test(cases, a_read_takes_what_there_is);
	tcase_add_test(cases, a_read_that_waits_takes_what_comes);
	tcase_add_test(cases, a_write_of_much_takes_what_has_room_and_the_rest_later);
	tcase_add_test(cases, a_write_of_much_that_waits_takes_all);
	tcase_add_loop_test(cases, what_was_sent_before_a_close_arrives, 0, 2);
	tcase_add_test(cases, read_and_write_are_those_without_flags);
	tcase_add_test(cases, a_message_of_pieces_is_their_bytes_in_turn);
	tcase_add_test(cases, to_send_nothing_is_no_end);
	tcase_add_test(cases, to_receive_nothing_takes_nothing);
	tcase_add_test(cases, to_receive_nothing_of_nothing);
	tcase_add_test(cases, a_stream_does_not_say_whom_it_is_from);
	tcase_add_test(cases, an_address_to_send_to_is_one_too_many);
	tcase_add_test(cases, select_says_what_there_is);
	tcase_add_test(cases, select_waits_for_bytes);
	tcase_add_test(cases, select_ends_at_its_time);
	return cases;
}
