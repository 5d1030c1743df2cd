#include "unit/rs_unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

enum { BACKLOG = 4, PATIENCE_MS = 60000 };

static int rs_open(void)
{
	int fd = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	return fd;
}

static int listener_at(const char *ip)
{
	int fd = rs_open();

	ck_assert_ok(rbind(fd, cm_addr(ip, CM_PORT), sizeof(struct sockaddr_in)));
	ck_assert_ok(rlisten(fd, BACKLOG));
	return fd;
}

int rs_listener(void)
{
	return listener_at(FAKE_ROCE_IP);
}

int rs_client_of(const char *ip)
{
	int fd = rs_open();

	ck_assert_fails(
		rconnect(fd, cm_addr(ip, CM_PORT), sizeof(struct sockaddr_in)), EINPROGRESS);
	return fd;
}

int rs_client(void)
{
	return rs_client_of(FAKE_ROCE_IP);
}

static short poll_for(int fd, short events, int timeout_ms)
{
	struct pollfd pfd = { .fd = fd, .events = events };

	ck_assert_int_ge(rpoll(&pfd, 1, timeout_ms), 0);
	return pfd.revents;
}

short rs_events(int fd, short events)
{
	return poll_for(fd, events, 0);
}

short rs_await(int fd, short events)
{
	return poll_for(fd, events, PATIENCE_MS);
}

static struct rs_pair finish_connecting(int listener, int client)
{
	struct rs_pair pair = { .listener = listener, .client = client };
	int turns = 0;

	while (!rs_events(pair.client, POLLOUT)) {
		rs_events(pair.listener, POLLIN);
		ck_assert_int_lt(turns++, 10);
	}
	while (!rs_events(pair.listener, POLLIN))
		ck_assert_int_lt(turns++, 10);
	pair.server = raccept(pair.listener, NULL, NULL);
	ck_assert_int_ge(pair.server, 0);
	ck_assert_ok(rfcntl(pair.server, F_SETFL, O_RDWR | O_NONBLOCK));
	return pair;
}

struct rs_pair rs_connect(void)
{
	return rs_connect_to(rs_listener());
}

struct rs_pair rs_connect_to(int listener)
{
	return finish_connecting(listener, rs_client());
}

struct rs_pair rs_connect_at(const char *ip)
{
	int listener = listener_at(ip);

	return finish_connecting(listener, rs_client_of(ip));
}

struct rs_pair rs_connect_to_show(void)
{
	int listener = rs_listener(), client = rs_open(), one = 1;

	ck_assert_ok(rsetsockopt(client, SOL_RDMA, RDMA_IOMAPSIZE, &one, sizeof(one)));
	ck_assert_fails(
		rconnect(client, cm_addr(FAKE_ROCE_IP, CM_PORT), sizeof(struct sockaddr_in)),
		EINPROGRESS);
	return finish_connecting(listener, client);
}

void rs_close(struct rs_pair *pair)
{
	if (pair->client >= 0)
		ck_assert_ok(rclose(pair->client));
	if (pair->server >= 0)
		ck_assert_ok(rclose(pair->server));
	ck_assert_ok(rclose(pair->listener));
}

void rs_pass(int from, int to, size_t len)
{
	char *sent = malloc(len), *got = malloc(len);
	size_t out = 0, in = 0, i;
	ssize_t ret;

	for (i = 0; i < len; i++)
		sent[i] = (char)(i * 31 + i / 251);
	while (in < len) {
		ret = out < len ? rsend(from, sent + out, len - out, 0) : 0;
		ck_assert(ret >= 0 || errno == EAGAIN);
		out += ret > 0 ? (size_t)ret : 0;
		ret = rrecv(to, got + in, len - in, 0);
		ck_assert(ret > 0 || errno == EAGAIN);
		in += ret > 0 ? (size_t)ret : 0;
	}
	ck_assert_mem_eq(sent, got, len);
	free(sent);
	free(got);
}
