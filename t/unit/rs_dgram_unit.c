#include "unit/rs_dgram_unit.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATIENCE_MS = 60000, TURNS = 8 };

struct sockaddr_in dgram_place(const char *ip, uint16_t port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(port) };

	ck_assert_int_eq(inet_pton(AF_INET, ip, &addr.sin_addr), 1);
	return addr;
}

int dgram_open_one(int type)
{
	int fd = rsocket(AF_INET, SOCK_DGRAM | type, 0);

	ck_assert_int_ge(fd, 0);
	return fd;
}

struct sockaddr_in dgram_bind_to(int fd, const char *ip)
{
	struct sockaddr_in addr = dgram_place(ip, 0);
	socklen_t len = sizeof(addr);

	ck_assert_ok(rbind(fd, (struct sockaddr *)&addr, sizeof(addr)));
	ck_assert_ok(rgetsockname(fd, (struct sockaddr *)&addr, &len));
	ck_assert_int_ne(addr.sin_port, 0);
	return addr;
}

void dgram_send_text(int fd, const char *text, const struct sockaddr_in *to)
{
	ssize_t len = (ssize_t)strlen(text);

	ck_assert_int_eq(rsendto(fd, text, (size_t)len, 0, (const struct sockaddr *)to,
				 to ? sizeof(*to) : 0),
		len);
}

void dgram_await(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	ck_assert_int_eq(rpoll(&pfd, 1, PATIENCE_MS), 1);
	ck_assert_int_eq(pfd.revents, POLLIN);
}

void dgram_expect_text(int fd, const char *text, struct sockaddr_in *from)
{
	char got[64];
	socklen_t len = sizeof(*from);

	dgram_await(fd);
	ck_assert_int_eq(
		rrecvfrom(fd, got, sizeof(got), 0, (struct sockaddr *)from, from ? &len : NULL),
		(int)strlen(text));
	ck_assert_mem_eq(got, text, strlen(text));
	if (from)
		ck_assert_uint_eq(len, sizeof(*from));
}

/* What was sent to it before is there by now: it comes in order, and this is the last. */
void dgram_expect_none_until(int fd, int other, const struct sockaddr_in *to)
{
	dgram_send_text(other, "last", to);
	dgram_expect_text(fd, "last", NULL);
}

void dgram_expect_nothing(int fd)
{
	char byte;

	ck_assert_fails(rrecv(fd, &byte, 1, MSG_DONTWAIT), EAGAIN);
}

struct dgram_two dgram_make_two(int type)
{
	struct dgram_two two = { .a = dgram_open_one(type), .b = dgram_open_one(type) };

	two.a_addr = dgram_bind_to(two.a, DGRAM_HOST);
	two.b_addr = dgram_bind_to(two.b, DGRAM_HOST);
	return two;
}

void dgram_close_two(struct dgram_two *two)
{
	ck_assert_ok(rclose(two->a));
	ck_assert_ok(rclose(two->b));
}

/* Until both know each other's queue pair. */
void dgram_meet(struct dgram_two *two)
{
	int i;

	for (i = 0; i < TURNS; i++) {
		dgram_send_text(two->a, "to b", &two->b_addr);
		dgram_expect_text(two->b, "to b", NULL);
		dgram_send_text(two->b, "to a", &two->a_addr);
		dgram_expect_text(two->a, "to a", NULL);
	}
}

static unsigned sends(void)
{
	return fake_calls("ibv_post_send");
}

/* One message, and how many of the device's it was. */
unsigned dgram_pass(int from, int to, const struct sockaddr_in *addr, size_t len)
{
	unsigned before = sends();
	char *sent = malloc(len + 1), *got = malloc(len + 1);
	size_t i;

	for (i = 0; i < len; i++)
		sent[i] = (char)(i * 7 + len);
	ck_assert_int_eq(
		rsendto(from, sent, len, 0, (const struct sockaddr *)addr, sizeof(*addr)), len);
	dgram_await(to);
	ck_assert_int_eq(rrecv(to, got, len + 1, 0), (int)len);
	ck_assert_mem_eq(sent, got, len);
	free(sent);
	free(got);
	return sends() - before;
}

void dgram_send_plain(const char *ip, const void *bytes, size_t len, const struct sockaddr_in *to)
{
	struct sockaddr_in from = dgram_place(ip, 0);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	ck_assert_ok(bind(fd, (struct sockaddr *)&from, sizeof(from)));
	ck_assert_int_eq(
		sendto(fd, bytes, len, 0, (const struct sockaddr *)to, sizeof(*to)), (int)len);
	close(fd);
}
