/* The rsockets that meet a hostile peer: nonblocking, looked at by their numbers alone. */
#include "rs/hostile_suite.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <rdma/rsocket.h>
#include <string.h>
#include <unistd.h>

enum { PATIENCE_MS = 60000, BACKLOG = 4, CHUNK = 100000 };

static struct sockaddr_in place(uint16_t port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(port) };

	inet_pton(AF_INET, hostile_place.ip, &addr.sin_addr);
	return addr;
}

int hostile_rlisten(uint16_t *port)
{
	struct sockaddr_in addr = place(0);
	socklen_t len = sizeof(addr);
	int fd = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(rbind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	ck_assert_int_eq(rlisten(fd, BACKLOG), 0);
	ck_assert_int_eq(rgetsockname(fd, (struct sockaddr *)&addr, &len), 0);
	*port = ntohs(addr.sin_port);
	return fd;
}

int hostile_rconnect(uint16_t port)
{
	struct sockaddr_in addr = place(port);
	int fd = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(rconnect(fd, (struct sockaddr *)&addr, sizeof(addr)), -1);
	ck_assert_int_eq(errno, EINPROGRESS);
	return fd;
}

void hostile_wait_for(int fd, short events)
{
	struct pollfd pfd = { .fd = fd, .events = events };

	ck_assert_int_eq(poll(&pfd, 1, PATIENCE_MS), 1);
}

short hostile_events(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN | POLLOUT };

	ck_assert_int_ge(poll(&pfd, 1, 0), 0);
	return pfd.revents;
}

int hostile_error(int fd)
{
	int error = 0;
	socklen_t len = sizeof(error);

	ck_assert_int_eq(rgetsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len), 0);
	return error;
}

int hostile_raccept(int listener)
{
	int fd;

	hostile_wait_for(listener, POLLIN);
	fd = raccept(listener, NULL, NULL);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(rfcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK), 0);
	return fd;
}

ssize_t hostile_rsend(int fd, const void *bytes, size_t len)
{
	return rsend(fd, bytes, len, 0);
}

ssize_t hostile_rrecv(int fd, void *bytes, size_t len)
{
	return rrecv(fd, bytes, len, 0);
}

int hostile_rclose(int fd)
{
	return rclose(fd);
}

/* --- what is asked of them alone ------------------------------------------------------------- */

/* Its window is full, and stays so; what it never took is given up in time. */
START_TEST(it_reads_nothing)
{
	static char bytes[CHUNK];
	struct hostile_victim victim;
	size_t sent = 0;
	ssize_t ret;

	hostile_meet(&victim, (enum hostile_role)_i);
	do {
		ret = rsend(victim.fd, bytes, CHUNK, 0);
		sent += ret > 0 ? (size_t)ret : 0;
	} while (sent < HOSTILE_RING - 1);
	ck_assert_uint_eq(sent, HOSTILE_RING - 1);
	ck_assert_int_eq(rsend(victim.fd, bytes, CHUNK, 0), -1);
	ck_assert_int_eq(errno, EAGAIN);
	ck_assert_int_eq(hostile_events(victim.fd) & POLLOUT, 0);
	ck_assert_int_eq(rclose(victim.fd), 0);
	victim.fd = -1;
	hostile_bytes_pass();
	hostile_part(&victim);
}
END_TEST

static void set_option(int fd, int level, int name, int value)
{
	ck_assert_int_eq(rsetsockopt(fd, level, name, &value, sizeof(value)), 0);
}

/* Where what waits for a peer can be given up at once. */
START_TEST(a_keepalive_finds_that_it_has_gone)
{
	struct hostile_victim victim;
	int error;

	hostile_meet(&victim, (enum hostile_role)_i);
	set_option(victim.fd, IPPROTO_TCP, TCP_KEEPIDLE, 1);
	set_option(victim.fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	rdma_destroy_qp(victim.hostile.id);
	while (!(hostile_events(victim.fd) & POLLERR)) {
		hostile_place.give_up();
		usleep(1000);
	}
	error = hostile_error(victim.fd);
	ck_assert_msg(error == ETIMEDOUT || (victim.hostile.iwarp && error), "%s", strerror(error));
	hostile_part(&victim);
}
END_TEST

/* A blocking rsocket waits for an answer to its goodbye as long as it was told. */
START_TEST(a_blocking_close_waits_no_longer_than_it_lingers)
{
	const struct linger linger = { .l_onoff = 1, .l_linger = 1 };
	struct hostile_victim victim;

	hostile_meet(&victim, (enum hostile_role)_i);
	ck_assert_int_eq(rfcntl(victim.fd, F_SETFL, O_RDWR), 0);
	ck_assert_int_eq(
		rsetsockopt(victim.fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	ck_assert_int_eq(rclose(victim.fd), 0);
	victim.fd = -1;
	hostile_part(&victim);
}
END_TEST

static TCase *own_case(void)
{
	TCase *tcase = tcase_create("silence of rsockets");

	tcase_add_loop_test(tcase, it_reads_nothing, 0, HOSTILE_ROLES);
	if (hostile_place.give_up)
		tcase_add_loop_test(tcase, a_keepalive_finds_that_it_has_gone, 0, HOSTILE_ROLES);
	tcase_add_loop_test(
		tcase, a_blocking_close_waits_no_longer_than_it_lingers, 0, HOSTILE_ROLES);
	return tcase;
}

static void nothing(void)
{
}

const struct hostile_kind hostile_kind = {
	.name = "hostile",
	.waits_to_be_spoken_to = true,
	.begin = nothing,
	.end = nothing,
	.own_case = own_case,
};
