#include "interop/http_ask.h"

#include <arpa/inet.h>
#include <rdma/rsocket.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "interop/http.h"

enum { BUF_BYTES = 65536, HEAD_MOST = 1024 };

static struct sockaddr_in peer;

void ask_die(const char *what)
{
	fprintf(stderr, "http_rsocket: ");
	perror(what);
	_exit(1);
}

void ask_init(const char *ip, const char *port)
{
	if (inet_pton(AF_INET, ip, &peer.sin_addr) != 1)
		ask_die(ip);
	peer.sin_family = AF_INET;
	peer.sin_port = htons((uint16_t)atoi(port));
	http_pattern_fill();
}

int ask_dial(void)
{
	int fd = rsocket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || rconnect(fd, (struct sockaddr *)&peer, sizeof(peer)))
		ask_die("cannot connect");
	return fd;
}

/* --- what is sent --------------------------------------------------------------------------- */

void ask_send(int fd, const void *bytes, size_t len)
{
	const uint8_t *next = bytes;
	ssize_t n;

	for (; len; len -= (size_t)n, next += n) {
		n = rsend(fd, next, len, 0);
		if (n <= 0)
			ask_die("send");
	}
}

void ask_send_text(int fd, const char *format, ...)
{
	char text[HEAD_MOST];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	ask_send(fd, text, (size_t)len);
}

void ask_send_pattern(int fd, size_t at, size_t len)
{
	size_t n;

	for (; len; len -= n, at += n) {
		n = http_piece(at, len);
		ask_send(fd, http_pattern + at % HTTP_PATTERN, n);
	}
}

ssize_t ask_try_send(int fd, size_t at, size_t len)
{
	return rsend(fd, http_pattern + at % HTTP_PATTERN, http_piece(at, len), 0);
}

void ask_get(int fd, size_t len)
{
	ask_send_text(fd, "GET /bytes/%zu HTTP/1.1\r\nHost: test\r\n\r\n", len);
}

void ask_post(int fd, size_t len)
{
	ask_send_text(fd, "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: %zu\r\n\r\n", len);
	ask_send_pattern(fd, 0, len);
}

/* --- what is answered ----------------------------------------------------------------------- */

ssize_t ask_try(int fd, void *to, size_t len)
{
	return rrecv(fd, to, len, 0);
}

bool ask_is_pattern(const void *bytes, size_t len, size_t at)
{
	return http_is_pattern(bytes, len, at);
}

static size_t receive(int fd, void *to, size_t len)
{
	ssize_t n = ask_try(fd, to, len);

	if (n <= 0)
		ask_die("receive");
	return (size_t)n;
}

static void read_until(int fd, const char *end, char *text, size_t size)
{
	size_t len = 0, end_len = strlen(end);

	while (len < end_len || memcmp(text + len - end_len, end, end_len)) {
		if (len == size - 1)
			ask_die("it is too long");
		len += receive(fd, text + len, 1);
	}
	text[len] = 0;
}

void ask_read_line(int fd, char *line, size_t size)
{
	read_until(fd, "\r\n", line, size);
}

void ask_read_head(int fd, char *head, size_t size)
{
	read_until(fd, "\r\n\r\n", head, size);
}

size_t ask_read_length(int fd)
{
	char head[HEAD_MOST], *found;

	ask_read_head(fd, head, sizeof(head));
	found = strstr(head, "\r\nContent-Length: ");
	if (strncmp(head, "HTTP/1.1 200 ", 13) || !found)
		ask_die("the answer is an error");
	return strtoul(found + 18, NULL, 10);
}

void ask_read_pattern(int fd, size_t at, size_t len)
{
	static uint8_t buf[BUF_BYTES];
	size_t n;

	for (; len; len -= n, at += n) {
		n = receive(fd, buf, len < BUF_BYTES ? len : BUF_BYTES);
		if (!http_is_pattern(buf, n, at))
			ask_die("a byte is another");
	}
}

void ask_read_answer(int fd, size_t len)
{
	if (ask_read_length(fd) != len)
		ask_die("the body has another length");
	ask_read_pattern(fd, 0, len);
}
