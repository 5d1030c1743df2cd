/*
 * A client of t/interop/http.sh that knows rsockets and nothing of evrdma: it gets or posts bodies,
 * one after the other on one connection, and compares every byte.
 *
 *   http_rsocket ADDRESS PORT get|post|leave BYTES...
 *
 * With "leave" it goes after the first byte of each body.
 */
#include <arpa/inet.h>
#include <rdma/rsocket.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "interop/http.h"

enum { BUF_BYTES = 65536 };

static uint8_t buf[BUF_BYTES];
static struct sockaddr_in peer;

static void die(const char *what)
{
	perror(what);
	_exit(1);
}

static int dial(void)
{
	int fd = rsocket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || rconnect(fd, (struct sockaddr *)&peer, sizeof(peer)))
		die("http_rsocket: cannot connect");
	return fd;
}

static void send_all(int fd, const void *bytes, size_t len)
{
	const uint8_t *next = bytes;
	ssize_t n;

	for (; len; len -= (size_t)n, next += n) {
		n = rsend(fd, next, len, 0);
		if (n <= 0)
			die("http_rsocket: send");
	}
}

static size_t receive(int fd, void *to, size_t len)
{
	ssize_t n = rrecv(fd, to, len, 0);

	if (n <= 0)
		die("http_rsocket: receive");
	return (size_t)n;
}

/* The length that the answer's head tells. */
static size_t read_head(int fd)
{
	char head[1024] = "", *found;
	size_t len = 0;

	while (!strstr(head, "\r\n\r\n") && len < sizeof(head) - 1)
		len += receive(fd, head + len, 1);
	found = strstr(head, "\r\nContent-Length: ");
	if (strncmp(head, "HTTP/1.1 200 ", 13) || !found)
		die("http_rsocket: the answer is an error");
	return strtoul(found + 18, NULL, 10);
}

static void read_body(int fd, size_t len)
{
	size_t at, n;

	for (at = 0; at < len; at += n) {
		n = receive(fd, buf, len - at < BUF_BYTES ? len - at : BUF_BYTES);
		if (!http_is_pattern(buf, n, at))
			die("http_rsocket: a byte is another");
	}
}

static void post(int fd, size_t len)
{
	char head[128];
	size_t at, n;
	int head_len = snprintf(head, sizeof(head),
		"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: %zu\r\n\r\n", len);

	send_all(fd, head, (size_t)head_len);
	for (at = 0; at < len; at += n) {
		n = http_piece(at, len - at);
		send_all(fd, http_pattern + at % HTTP_PATTERN, n);
	}
}

static void get(int fd, size_t len)
{
	char head[128];
	int n = snprintf(
		head, sizeof(head), "GET /bytes/%zu HTTP/1.1\r\nHost: test\r\n\r\n", len);

	send_all(fd, head, (size_t)n);
}

static void leave(size_t len)
{
	int fd = dial();

	get(fd, len);
	read_head(fd);
	receive(fd, buf, 1);
	rclose(fd);
}

int main(int argc, char **argv)
{
	int fd, i;

	if (argc < 5 || inet_pton(AF_INET, argv[1], &peer.sin_addr) != 1)
		return 1;
	peer.sin_family = AF_INET;
	peer.sin_port = htons((uint16_t)atoi(argv[2]));
	http_pattern_fill();
	fd = dial();
	for (i = 4; i < argc; i++) {
		size_t len = strtoul(argv[i], NULL, 10);

		if (!strcmp(argv[3], "leave")) {
			leave(len);
			continue;
		}
		(strcmp(argv[3], "post") ? get : post)(fd, len);
		if (read_head(fd) != len)
			die("http_rsocket: the body has another length");
		read_body(fd, len);
	}
	return rclose(fd) ? 1 : 0;
}
