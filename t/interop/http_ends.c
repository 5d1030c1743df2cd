/* Connections that end early, on either side: another one goes on. */
#include "interop/http_ends.h"

#include <errno.h>
#include <rdma/rsocket.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "interop/http_ask.h"

enum { BYSTANDER_BYTES = 10000, BUF_BYTES = 65536, CUT_BYTES = 64 << 20 };

/* --- the client leaves ---------------------------------------------------------------------- */

static void ask_half(int fd, size_t len)
{
	ask_send_text(fd, "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: %zu\r\n\r\n", len);
	ask_send_pattern(fd, 0, len / 2);
}

static void begin_to_read(int fd, size_t len)
{
	ask_get(fd, len);
	if (ask_read_length(fd) != len)
		ask_die("the body has another length");
	ask_read_pattern(fd, 0, 1);
}

static void (*const places[])(int fd, size_t len) = { ask_half, ask_get, begin_to_read };
enum { PLACES = sizeof(places) / sizeof(places[0]) };

static void in_order(int fd)
{
	if (rshutdown(fd, SHUT_RDWR) && errno != ENOTCONN && errno != ECONNRESET)
		ask_die("shutdown");
	rclose(fd);
}

static void at_once(int fd)
{
	struct linger linger = { .l_onoff = 1 };

	if (rsetsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)))
		ask_die("linger");
	rclose(fd);
}

static void by_close(int fd)
{
	rclose(fd);
}

static void (*const ways[])(int fd) = { by_close, in_order, at_once };
enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

static void go_on(int bystander)
{
	ask_get(bystander, BYSTANDER_BYTES);
	ask_read_answer(bystander, BYSTANDER_BYTES);
	ask_post(bystander, BYSTANDER_BYTES);
	ask_read_answer(bystander, BYSTANDER_BYTES);
}

void http_leave(int bystander, size_t len)
{
	unsigned int place, way;

	for (place = 0; place < PLACES; place++)
		for (way = 0; way < WAYS; way++) {
			int fd = ask_dial();

			places[place](fd, len);
			ways[way](fd);
			go_on(bystander);
		}
}

/* The process ends, and says nothing to anybody. */
void http_vanish(int bystander, size_t len)
{
	unsigned int place;

	for (place = 0; place < PLACES; place++)
		places[place](ask_dial(), len);
	go_on(bystander);
	_exit(0);
}

/* --- the server leaves ---------------------------------------------------------------------- */

/* Reads to the end. How much; that it is an end in order is asked for. */
static size_t read_rest(int fd)
{
	static uint8_t buf[BUF_BYTES];
	size_t at = 0;
	ssize_t n;

	while ((n = ask_try(fd, buf, sizeof(buf))) > 0) {
		if (!ask_is_pattern(buf, (size_t)n, at))
			ask_die("a byte is another");
		at += (size_t)n;
	}
	if (n < 0)
		ask_die("the end is no end");
	return at;
}

static void read_to_end(const char *path, size_t len, size_t wanted)
{
	int fd = ask_dial();

	ask_send_text(fd, "GET /%s/%zu HTTP/1.1\r\nHost: test\r\n\r\n", path, len);
	if (ask_read_length(fd) != len)
		ask_die("the body has another length");
	if (read_rest(fd) != wanted)
		ask_die("what was written is not all there");
	rclose(fd);
}

void http_closed(int bystander, size_t len)
{
	read_to_end("close", len, len);
	go_on(bystander);
	read_to_end("broken", len, len / 2);
	go_on(bystander);
}

/* What it is told: an error when it sends, or an end or an error when it reads. Not an answer. */
static void post_in_vain(int fd, size_t len)
{
	uint8_t byte;
	size_t at;
	ssize_t n = 1;

	ask_send_text(fd, "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: %zu\r\n\r\n", len);
	for (at = 0; at < len && n > 0; at += (size_t)n)
		n = ask_try_send(fd, at, len - at);
	if (n < 0 && errno != EPIPE && errno != ECONNRESET && errno != ENOTCONN)
		ask_die("send");
	if (ask_try(fd, &byte, 1) > 0)
		ask_die("it was answered");
}

void http_killed(int bystander, size_t pid)
{
	int fd = ask_dial();
	uint8_t buf[BUF_BYTES];
	size_t at;
	ssize_t n;

	begin_to_read(fd, CUT_BYTES);
	if (kill((pid_t)pid, SIGKILL))
		ask_die("kill");
	for (at = 1; (n = ask_try(fd, buf, sizeof(buf))) > 0; at += (size_t)n)
		if (!ask_is_pattern(buf, (size_t)n, at))
			ask_die("a byte is another");
	if (at >= CUT_BYTES)
		ask_die("all of it came");
	rclose(fd);
	if (ask_try(bystander, buf, 1) > 0)
		ask_die("who was killed said something");
}

void http_refused(int bystander, size_t len)
{
	int fd = ask_dial();

	ask_send_text(fd, "GET /leaves/%zu HTTP/1.1\r\nHost: test\r\n\r\n", len / 2);
	ask_read_answer(fd, 0);
	post_in_vain(fd, len);
	rclose(fd);
	go_on(bystander);
}

/* --- a server that sends back what it gets -------------------------------------------------- */

void http_echo(int fd, size_t len)
{
	ask_send_pattern(fd, 0, len);
	ask_read_pattern(fd, 0, len);
}

/*
 * It reads after it has sent all, which the server takes and throws away, or may not: then come an
 * end or an error, and never all.
 */
void http_cut(int bystander, size_t len)
{
	int fd = ask_dial();
	uint8_t buf[BUF_BYTES];
	size_t at;
	ssize_t n = 1;

	for (at = 0; at < len && n > 0; at += (size_t)n)
		n = ask_try_send(fd, at, len - at);
	for (at = 0; (n = ask_try(fd, buf, sizeof(buf))) > 0; at += (size_t)n)
		if (!ask_is_pattern(buf, (size_t)n, at))
			ask_die("a byte is another");
	if (at >= len)
		ask_die("all of it came back");
	rclose(fd);
	http_echo(bystander, BYSTANDER_BYTES);
}
