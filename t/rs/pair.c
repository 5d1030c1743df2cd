#include "config.h"

#include "rs/pair.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <time.h>

enum { BIG = 100000, PRIME = 251 };

struct pair_place pair_place;

/* --- addresses ------------------------------------------------------------------------------- */

int family(void)
{
	return strchr(pair_place.ip, ':') ? AF_INET6 : AF_INET;
}

socklen_t place_len(void)
{
	return family() == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

struct sockaddr_storage place(uint16_t port)
{
	struct sockaddr_storage addr = { .ss_family = (sa_family_t)family() };
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&addr;
	struct sockaddr_in *in = (struct sockaddr_in *)&addr;

	if (family() == AF_INET6) {
		in6->sin6_port = htons(port);
		inet_pton(AF_INET6, pair_place.ip, &in6->sin6_addr);
	} else {
		in->sin_port = htons(port);
		inet_pton(AF_INET, pair_place.ip, &in->sin_addr);
	}
	return addr;
}

uint16_t port_of(const struct sockaddr_storage *addr)
{
	if (addr->ss_family == AF_INET6)
		return ntohs(((const struct sockaddr_in6 *)addr)->sin6_port);
	return ntohs(((const struct sockaddr_in *)addr)->sin_port);
}

/* --- ends ------------------------------------------------------------------------------------ */

int open_one(void)
{
	int fd = call()->socket(family(), SOCK_STREAM | SOCK_NONBLOCK, 0);

	ck_assert_int_ge(fd, 0);
	return fd;
}

int listen_on(uint16_t *port, int backlog)
{
	struct sockaddr_storage addr = place(0);
	socklen_t len = sizeof(addr);
	int fd = open_one();

	ck_assert_int_eq(call()->bind(fd, (struct sockaddr *)&addr, place_len()), 0);
	ck_assert_int_eq(call()->listen(fd, backlog), 0);
	ck_assert_int_eq(call()->getsockname(fd, (struct sockaddr *)&addr, &len), 0);
	*port = port_of(&addr);
	return fd;
}

int connect_to(uint16_t port)
{
	struct sockaddr_storage addr = place(port);
	int fd = open_one();

	ck_assert_int_eq(call()->connect(fd, (struct sockaddr *)&addr, place_len()), -1);
	ck_assert_int_eq(errno, EINPROGRESS);
	return fd;
}

int accept_from(int listener)
{
	int fd;

	wait_for(listener, POLLIN);
	fd = call()->accept(listener, NULL, NULL);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(call()->fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK), 0);
	return fd;
}

struct pair make_pair(void)
{
	uint16_t port;
	struct pair pair = { .listener = listen_on(&port, 4) };

	pair.client = connect_to(port);
	pair.server = accept_from(pair.listener);
	wait_for(pair.client, POLLOUT);
	wait_for(pair.server, POLLOUT);
	return pair;
}

/* One that is -1 was closed before. */
void end_pair(const struct pair *pair)
{
	if (pair->client >= 0)
		ck_assert_int_eq(call()->close(pair->client), 0);
	if (pair->server >= 0)
		ck_assert_int_eq(call()->close(pair->server), 0);
	ck_assert_int_eq(call()->close(pair->listener), 0);
}

void set_blocking(int fd)
{
	ck_assert_int_eq(call()->fcntl(fd, F_SETFL, O_RDWR), 0);
}

void reset(int fd)
{
	const struct linger linger = { .l_onoff = 1 };

	ck_assert_int_eq(call()->setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	ck_assert_int_eq(call()->close(fd), 0);
}

/* --- what they show -------------------------------------------------------------------------- */

int events_of(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN | POLLOUT | POLLRDHUP };

	ck_assert_int_ge(poll(&pfd, 1, 0), 0);
	return pfd.revents;
}

int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void pause_ms(int ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000L }, NULL);
}

void lose_confirmations(bool lose)
{
	if (pair_place.lose_confirmations)
		pair_place.lose_confirmations(lose);
}

bool shows(int fd, int wanted)
{
	int waited;

	for (waited = 0; events_of(fd) != wanted && waited < PATIENCE_MS; waited++)
		pause_ms(1);
	if (events_of(fd) != wanted)
		return false;
	pause_ms(QUIET_MS);
	return events_of(fd) == wanted;
}

void expect_events(int fd, int wanted)
{
	ck_assert_msg(shows(fd, wanted), "%x, not %x", events_of(fd), wanted);
}

/*
 * Of what ends by an error the kernel shows POLLHUP or POLLERR alone for a moment, as unix_poll()
 * reads the one and then the other, without a lock.
 */
void wait_for(int fd, short events)
{
	struct pollfd pfd = { .fd = fd, .events = events };
	int64_t until = now_ms() + PATIENCE_MS;

	do
		ck_assert_int_eq(poll(&pfd, 1, PATIENCE_MS), 1);
	while (!(pfd.revents & events) && now_ms() < until);
	ck_assert_int_ne(pfd.revents & events, 0);
}

/* --- bytes ----------------------------------------------------------------------------------- */

void fill(char *bytes, size_t len, size_t offset)
{
	size_t i;

	for (i = 0; i < len; i++)
		bytes[i] = (char)((offset + i) % PRIME);
}

void send_bytes(int fd, size_t len)
{
	static const char bytes[64];

	ck_assert_int_eq(call()->send(fd, bytes, len, 0), (int)len);
}

void receive_bytes(int fd, size_t len)
{
	char bytes[64];

	ck_assert_int_eq(call()->recv(fd, bytes, len, 0), (int)len);
}

void expect_nothing(int fd)
{
	char byte;

	ck_assert_int_eq(call()->recv(fd, &byte, 1, 0), -1);
	ck_assert_int_eq(errno, EAGAIN);
}

void expect_end(int fd)
{
	char byte;

	wait_for(fd, POLLIN);
	ck_assert_int_eq(call()->recv(fd, &byte, 1, 0), 0);
}

size_t fill_up(int fd)
{
	static char bytes[BIG];
	size_t sent = 0;
	ssize_t ret;
	int tries;

	/* A kernel may take some more a moment later. */
	for (tries = 0; tries < 10; tries++) {
		do {
			fill(bytes, sizeof(bytes), sent);
			ret = call()->send(fd, bytes, sizeof(bytes), 0);
			sent += ret > 0 ? (size_t)ret : 0;
		} while (ret > 0);
		ck_assert_int_eq(errno, EAGAIN);
		pause_ms(2);
	}
	return sent;
}

void empty(int fd, size_t len, size_t offset)
{
	static char bytes[BIG], expected[BIG];
	ssize_t ret;

	while (len) {
		wait_for(fd, POLLIN);
		ret = call()->recv(fd, bytes, len < BIG ? len : BIG, 0);
		ck_assert_int_gt(ret, 0);
		fill(expected, (size_t)ret, offset);
		ck_assert(!memcmp(bytes, expected, (size_t)ret));
		offset += (size_t)ret;
		len -= (size_t)ret;
	}
}
