/*
 * Rounds over one bufferevent: the client sends BYTES, and gets ANSWER bytes back. The code is the
 * same for a bufferevent over RDMA and one over TCP.
 *
 *	stream -l rdma|tcp ADDRESS:PORT BYTES ANSWER ROUNDS   the server, until its client ends
 *	stream rdma|tcp ADDRESS:PORT BYTES ANSWER ROUNDS      prints the microseconds of one
 */
#include <evrdma/evrdma.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <event2/util.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"

enum { BLOCK_BYTES = 65536, LIMIT_S = 100 };

static struct stream {
	struct event_base *loop;
	struct evrdma_base *base; /* NULL: over TCP */
	struct bufferevent *bev;
	int is_server;
	int turn;       /* whose it is to send: 0, the client's */
	size_t lens[2]; /* of what the client sends, and of the answer */
	size_t left;    /* of what is sent in this turn */
	long rounds, done;
	double began_us;
} stream;

static void pass_turn(void)
{
	stream.turn = !stream.turn;
	stream.left = stream.lens[stream.turn];
	if (!stream.turn && ++stream.done == stream.rounds && !stream.is_server)
		event_base_loopbreak(stream.loop);
}

static int is_to_send(void)
{
	return stream.turn == stream.is_server && stream.done < stream.rounds;
}

/* No more than is soon sent, or it would all be in memory. */
static void on_writable(struct bufferevent *bev, void *arg)
{
	static char block[BLOCK_BYTES];
	size_t len;

	while (is_to_send() && evbuffer_get_length(bufferevent_get_output(bev)) <= BLOCK_BYTES) {
		len = stream.left < BLOCK_BYTES ? stream.left : BLOCK_BYTES;
		bufferevent_write(bev, block, len);
		stream.left -= len;
		if (!stream.left)
			pass_turn();
	}
}

static void on_readable(struct bufferevent *bev, void *arg)
{
	struct evbuffer *input = bufferevent_get_input(bev);
	size_t len = evbuffer_get_length(input);

	evbuffer_drain(input, len);
	stream.left -= len;
	if (stream.left)
		return;
	pass_turn();
	on_writable(bev, NULL);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
	if (!(what & BEV_EVENT_CONNECTED)) {
		event_base_loopbreak(stream.loop);
	} else if (!stream.is_server) {
		stream.began_us = bench_now_us();
		on_writable(bev, NULL);
	}
}

static void use(struct bufferevent *bev)
{
	stream.bev = bev;
	stream.left = stream.lens[0];
	bufferevent_setcb(bev, on_readable, on_writable, on_event, NULL);
	bufferevent_setwatermark(bev, EV_WRITE, BLOCK_BYTES, 0);
	bufferevent_enable(bev, EV_READ | EV_WRITE);
}

/* --- over RDMA and over TCP ----------------------------------------------------------------- */

static void on_rdma(struct evrdma_listener *listener, struct bufferevent *bev,
	const struct sockaddr *peer, void *arg)
{
	use(bev);
}

static void on_tcp(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *peer,
	int len, void *arg)
{
	use(bufferevent_socket_new(stream.loop, fd, BEV_OPT_CLOSE_ON_FREE));
}

/* 0 or -1. */
static int serve(const struct sockaddr *addr, int len)
{
	unsigned flags = LEV_OPT_CLOSE_ON_FREE | LEV_OPT_REUSEABLE;

	if (stream.base)
		return evrdma_bufferevent_listen(stream.base, addr, NULL, NULL, 0, on_rdma, NULL)
			? 0
			: -1;
	return evconnlistener_new_bind(stream.loop, on_tcp, NULL, flags, 1, addr, len) ? 0 : -1;
}

static int ask_rdma(const struct sockaddr *addr)
{
	struct bufferevent *bev = evrdma_bufferevent_connect(stream.base, NULL, addr, NULL, 0);

	if (!bev)
		return -1;
	use(bev);
	return 0;
}

/* What ends a stream is not to wait for an acknowledgement: RDMA sends at once. */
static int ask_tcp(const struct sockaddr *addr, int len)
{
	struct bufferevent *bev = bufferevent_socket_new(stream.loop, -1, BEV_OPT_CLOSE_ON_FREE);
	int on = 1;

	if (!bev)
		return -1;
	use(bev);
	if (bufferevent_socket_connect(bev, addr, len))
		return -1;
	return setsockopt(bufferevent_getfd(bev), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static int ask(const struct sockaddr *addr, int len)
{
	return stream.base ? ask_rdma(addr) : ask_tcp(addr, len);
}

/* --- the program ---------------------------------------------------------------------------- */

/* The words after -l. 0 or -1. */
static int read_words(char **words, struct sockaddr *addr, int *len)
{
	stream.lens[0] = strtoul(words[2], NULL, 10);
	stream.lens[1] = strtoul(words[3], NULL, 10);
	stream.rounds = atol(words[4]);
	if (strcmp(words[0], "rdma") && strcmp(words[0], "tcp"))
		return -1;
	if (!stream.lens[0] || !stream.lens[1] || stream.rounds < 1)
		return -1;
	return evutil_parse_sockaddr_port(words[1], addr, len);
}

static int run(struct sockaddr *addr, int len)
{
	if ((stream.is_server ? serve : ask)(addr, len))
		return perror("stream: cannot start"), 1;
	event_base_dispatch(stream.loop);
	if (stream.done < stream.rounds)
		return fprintf(stderr, "stream: it ended early\n"), 1;
	if (!stream.is_server)
		printf("%.2f\n", (bench_now_us() - stream.began_us) / (double)stream.rounds);
	return 0;
}

int main(int argc, char **argv)
{
	struct sockaddr_storage addr;
	int len = sizeof(addr);

	stream.is_server = argc > 1 && !strcmp(argv[1], "-l");
	argv += stream.is_server + 1;
	if (argc != stream.is_server + 6 || read_words(argv, (struct sockaddr *)&addr, &len))
		return fprintf(stderr, "usage: stream [-l] rdma|tcp ADDRESS:PORT "
				       "BYTES ANSWER ROUNDS\n"),
		       1;
	signal(SIGPIPE, SIG_IGN);
	alarm(LIMIT_S);
	stream.loop = event_base_new();
	if (!strcmp(argv[0], "rdma") && !(stream.base = evrdma_base_new(stream.loop, NULL)))
		return perror("stream: no base"), 1;
	return run((struct sockaddr *)&addr, len);
}
