/*
 * Rounds over many sockets at once: on each the client sends BYTES, and gets ANSWER bytes back.
 *
 *	sockets -l WAY ADDRESS PORT SOCKETS BYTES ANSWER ROUNDS   the server, until ended
 *	sockets WAY ADDRESS PORT SOCKETS BYTES ANSWER ROUNDS      prints the microseconds of one
 *
 * WAY is what the sockets are and how both ends wait for them: epoll (rsockets whose numbers epoll
 * takes), rpoll (rsockets of any librdmacm), or tcp (those of the kernel, in epoll). The rounds of
 * all sockets count: what is printed is the whole time by their number.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/rsocket.h>

#include "bench.h"

enum { MOST_SOCKETS = 1000, BLOCK_BYTES = 65536, EVENTS = 128, LIMIT_S = 100 };

struct sock {
	int fd;
	short want;  /* what it waits for */
	int turn;    /* whose it is to send: 0, the client's */
	size_t left; /* of what is sent in this turn */
	long rounds;
};

struct way {
	const char *name;
	int has_epoll;
	int (*socket)(int domain, int type, int protocol);
	int (*bind)(int fd, const struct sockaddr *addr, socklen_t len);
	int (*listen)(int fd, int backlog);
	int (*accept)(int fd, struct sockaddr *addr, socklen_t *len);
	int (*connect)(int fd, const struct sockaddr *addr, socklen_t len);
	ssize_t (*send)(int fd, const void *bytes, size_t len, int flags);
	ssize_t (*recv)(int fd, void *bytes, size_t len, int flags);
	int (*fcntl)(int fd, int command, ...);
};

/* With extensions these three take unions. */
static int tcp_bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	return bind(fd, addr, len);
}

static int tcp_accept(int fd, struct sockaddr *addr, socklen_t *len)
{
	return accept(fd, addr, len);
}

/* What ends a stream is not to wait for an acknowledgement: rsockets send at once. */
static int tcp_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	int on = 1;

	return setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) || connect(fd, addr, len);
}

static const struct way ways[] = {
	{ "epoll", 1, rsocket, rbind, rlisten, raccept, rconnect, rsend, rrecv, rfcntl },
	{ "rpoll", 0, rsocket, rbind, rlisten, raccept, rconnect, rsend, rrecv, rfcntl },
	{ "tcp", 1, socket, tcp_bind, listen, tcp_accept, tcp_connect, send, recv, fcntl },
};
enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

static const struct way *way;
static struct sock socks[MOST_SOCKETS];
static struct pollfd polled[MOST_SOCKETS];
static char block[BLOCK_BYTES];
static size_t lens[2]; /* of what the client sends, and of the answer */
static int is_server, epoll, count, busy;

/* --- rounds --------------------------------------------------------------------------------- */

static void want(struct sock *sock, short events)
{
	struct epoll_event event = { .events = (uint32_t)events, .data.ptr = sock };

	if (sock->want == events)
		return;
	sock->want = polled[sock - socks].events = events;
	if (way->has_epoll)
		bench_check(epoll_ctl(epoll, EPOLL_CTL_MOD, sock->fd, &event), "epoll_ctl");
}

static void pass_turn(struct sock *sock)
{
	sock->turn = !sock->turn;
	sock->left = lens[sock->turn];
	if (!sock->turn && !--sock->rounds)
		busy--;
}

/* More than 0: there may be more at once. */
static ssize_t transfer(struct sock *sock)
{
	size_t len = sock->left < BLOCK_BYTES ? sock->left : BLOCK_BYTES;
	int sends = sock->turn == is_server;
	ssize_t ret =
		sends ? way->send(sock->fd, block, len, 0) : way->recv(sock->fd, block, len, 0);

	if (ret < 0 && errno == EAGAIN) {
		want(sock, sends ? POLLOUT : POLLIN);
		return 0;
	}
	bench_check(ret <= 0, sends ? "send" : "recv");
	return ret;
}

static void step(struct sock *sock)
{
	ssize_t ret;

	while (sock->rounds && (ret = transfer(sock)) > 0) {
		sock->left -= (size_t)ret;
		if (!sock->left)
			pass_turn(sock);
	}
}

static void turn_epoll(void)
{
	struct epoll_event events[EVENTS];
	int i, n = epoll_wait(epoll, events, EVENTS, -1);

	bench_check(n < 0, "epoll_wait");
	for (i = 0; i < n; i++)
		step(events[i].data.ptr);
}

static void turn_rpoll(void)
{
	int i;

	bench_check(rpoll(polled, (nfds_t)count, -1) < 0, "rpoll");
	for (i = 0; i < count; i++)
		if (polled[i].revents)
			step(&socks[i]);
}

static void run(void)
{
	while (busy)
		way->has_epoll ? turn_epoll() : turn_rpoll();
}

/* --- sockets -------------------------------------------------------------------------------- */

static void add(int fd, long rounds)
{
	struct sock *sock = &socks[busy];
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = sock };

	bench_check(fd < 0, "socket");
	*sock = (struct sock){ .fd = fd, .want = POLLIN, .left = lens[0], .rounds = rounds };
	polled[busy++] = (struct pollfd){ .fd = fd, .events = POLLIN };
	bench_check(way->fcntl(fd, F_SETFL, O_NONBLOCK), "fcntl");
	if (way->has_epoll)
		bench_check(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
}

static void serve(const struct sockaddr *addr, long rounds)
{
	int fd = way->socket(AF_INET, SOCK_STREAM, 0);

	bench_check(fd < 0 || way->bind(fd, addr, sizeof(struct sockaddr_in)), "bind");
	bench_check(way->listen(fd, count), "listen");
	while (busy < count)
		add(way->accept(fd, NULL, NULL), rounds);
	run();
	pause(); /* the client has yet to read the last answers */
}

static void ask(const struct sockaddr *addr, long rounds)
{
	double began;
	int i, fd;

	while (busy < count) {
		fd = way->socket(AF_INET, SOCK_STREAM, 0);
		bench_check(
			fd < 0 || way->connect(fd, addr, sizeof(struct sockaddr_in)), "connect");
		add(fd, rounds);
	}
	began = bench_now_us();
	for (i = 0; i < count; i++)
		step(&socks[i]);
	run();
	printf("%.2f\n", (bench_now_us() - began) / ((double)rounds * count));
}

/* --- the program ---------------------------------------------------------------------------- */

static const struct way *find_way(const char *name)
{
	int i;

	for (i = 0; i < WAYS; i++)
		if (!strcmp(ways[i].name, name))
			return &ways[i];
	return NULL;
}

/* The words after -l. 0 or -1. */
static int read_words(char **words, struct sockaddr_in *addr)
{
	way = find_way(words[0]);
	addr->sin_family = AF_INET;
	addr->sin_port = htons((uint16_t)atoi(words[2]));
	count = atoi(words[3]);
	lens[0] = strtoul(words[4], NULL, 10);
	lens[1] = strtoul(words[5], NULL, 10);
	if (!way || inet_pton(AF_INET, words[1], &addr->sin_addr) != 1 || atol(words[6]) < 1)
		return -1;
	return count < 1 || count > MOST_SOCKETS || !lens[0] || !lens[1] ? -1 : 0;
}

int main(int argc, char **argv)
{
	struct sockaddr_in addr = { 0 };

	is_server = argc > 1 && !strcmp(argv[1], "-l");
	argv += is_server + 1;
	if (argc != is_server + 8 || read_words(argv, &addr))
		return fprintf(stderr, "usage: sockets [-l] epoll|rpoll|tcp ADDRESS PORT "
				       "SOCKETS BYTES ANSWER ROUNDS\n"),
		       1;
	alarm(LIMIT_S);
	epoll = epoll_create1(EPOLL_CLOEXEC);
	(is_server ? serve : ask)((struct sockaddr *)&addr, atol(argv[6]));
	return 0;
}
