/*
 * A client of t/interop/http.sh that knows rsockets and nothing of evrdma. It does what it is told
 * to with bodies of each length in turn, and compares every byte.
 *
 *   http_rsocket ADDRESS PORT WHAT BYTES...
 *
 * On one connection: get, post, pipeline (many requests ahead of the first answer), chunked (both
 * ways), head, continue (the body waits until it is asked for), slow (reads nothing for a while).
 * Beside one that goes on: leave, vanish, closed, refused, and killed with the server's PID; see
 * http_ends.h. Of t/interop/echo_stream.sh: echo and cut.
 */
#include <rdma/rsocket.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "interop/http_ask.h"
#include "interop/http_ends.h"

enum { PIPELINED = 20, POSTED = 1000, LINE_MOST = 64, HEAD_MOST = 1024, PAUSE_S = 2 };

static void get(int fd, size_t len)
{
	ask_get(fd, len);
	ask_read_answer(fd, len);
}

static void post(int fd, size_t len)
{
	ask_post(fd, len);
	ask_read_answer(fd, len);
}

/* All that is asked fits into the window: who waits for room to ask in would read no answer. */
static void pipeline(int fd, size_t len)
{
	size_t i;

	for (i = 0; i < PIPELINED; i++) {
		ask_get(fd, len + i);
		ask_post(fd, POSTED + i);
	}
	for (i = 0; i < PIPELINED; i++) {
		ask_read_answer(fd, len + i);
		ask_read_answer(fd, POSTED + i);
	}
}

/* --- chunks --------------------------------------------------------------------------------- */

/* Each is three times as long as the one before it. */
static void send_chunks(int fd, size_t len)
{
	size_t at, n, most = 1;

	for (at = 0; at < len; at += n, most *= 3) {
		n = len - at < most ? len - at : most;
		ask_send_text(fd, "%zx\r\n", n);
		ask_send_pattern(fd, at, n);
		ask_send_text(fd, "\r\n");
	}
	ask_send_text(fd, "0\r\n\r\n");
}

static void read_chunks(int fd, size_t len)
{
	char line[LINE_MOST];
	size_t at = 0, n;

	do {
		ask_read_line(fd, line, sizeof(line));
		n = strtoul(line, NULL, 16);
		ask_read_pattern(fd, at, n);
		at += n;
		ask_read_line(fd, line, sizeof(line));
		if (strcmp(line, "\r\n"))
			ask_die("a chunk has no end");
	} while (n);
	if (at != len)
		ask_die("the chunks have another length");
}

static void chunked(int fd, size_t len)
{
	char head[HEAD_MOST];

	ask_send_text(fd, "POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n");
	send_chunks(fd, len);
	ask_read_answer(fd, len);
	ask_send_text(fd, "GET /chunked/%zu HTTP/1.1\r\nHost: test\r\n\r\n", len);
	ask_read_head(fd, head, sizeof(head));
	if (!strstr(head, "\r\nTransfer-Encoding: chunked\r\n"))
		ask_die("the answer has no chunks");
	read_chunks(fd, len);
}

/* --- the rest ------------------------------------------------------------------------------- */

/* What follows the head is the next answer. */
static void head(int fd, size_t len)
{
	ask_send_text(fd, "HEAD /bytes/%zu HTTP/1.1\r\nHost: test\r\n\r\n", len);
	if (ask_read_length(fd) != len)
		ask_die("the body has another length");
	get(fd, len);
}

static void wait_to_be_asked(int fd, size_t len)
{
	char answer[HEAD_MOST];

	ask_send_text(fd,
		"POST / HTTP/1.1\r\nHost: test\r\nExpect: 100-continue\r\n"
		"Content-Length: %zu\r\n\r\n",
		len);
	ask_read_head(fd, answer, sizeof(answer));
	if (strncmp(answer, "HTTP/1.1 100 ", 13))
		ask_die("the body is not asked for");
	ask_send_pattern(fd, 0, len);
	ask_read_answer(fd, len);
}

static void slow(int fd, size_t len)
{
	ask_get(fd, len);
	if (ask_read_length(fd) != len)
		ask_die("the body has another length");
	ask_read_pattern(fd, 0, len / 2);
	sleep(PAUSE_S);
	ask_read_pattern(fd, len / 2, len - len / 2);
}

static const struct {
	const char *name;
	void (*act)(int fd, size_t len);
} acts[] = {
	{ "get", get },
	{ "post", post },
	{ "pipeline", pipeline },
	{ "chunked", chunked },
	{ "head", head },
	{ "continue", wait_to_be_asked },
	{ "slow", slow },
	{ "leave", http_leave },
	{ "vanish", http_vanish },
	{ "closed", http_closed },
	{ "refused", http_refused },
	{ "killed", http_killed },
	{ "echo", http_echo },
	{ "cut", http_cut },
};

int main(int argc, char **argv)
{
	size_t act = 0;
	int fd, i;

	if (argc < 5)
		return 2;
	while (strcmp(argv[3], acts[act].name))
		if (++act == sizeof(acts) / sizeof(acts[0]))
			return 2;
	signal(SIGPIPE, SIG_IGN);
	ask_init(argv[1], argv[2]);
	fd = ask_dial();
	for (i = 4; i < argc; i++)
		acts[act].act(fd, strtoul(argv[i], NULL, 10));
	return rclose(fd) ? 1 : 0;
}
