/*
 * Clients of t/interop/http.sh and echo_stream.sh that know rsockets and nothing of evrdma, many of
 * them at once: all connect before any asks, then each gets and posts bodies of 1 B to 1 MiB in
 * turn, on one connection. Every byte is compared.
 *
 *   http_rsockets ADDRESS PORT CONNECTIONS FIRST together|in-turn [echo]
 *
 * With "echo" it is a server that sends back what it gets, without HTTP.
 *
 * They leave from port FIRST and those that follow it: of ports that the kernel draws, one may be
 * in TIME-WAIT still, and siw refuses to connect from it.
 *
 * It is told how they connect: the thread that the stock library begins for those that do so
 * without waiting corrupts the memory of its process when they are more than a few.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/rsocket.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "interop/http.h"

static const size_t sizes[] = { 1, 2, 100, 4095, 65537, 200000, 1 << 20 };
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]), REQUESTS = 3, BUF_BYTES = 65536, MOST = 1000 };

enum step { CONNECTING, CONNECTED, SENDING, HEAD, BODY, DONE };

/* One connection. */
struct asker {
	int fd;
	enum step step;
	unsigned int number, requests;
	char head[1024]; /* of what is sent, then of the answer */
	size_t head_len, at, len;
};

static struct sockaddr_in peer;
static struct asker askers[MOST];
static struct pollfd pfds[MOST];
static unsigned int count, first_port, connected, done;
static bool echoes;

static void die(const char *what)
{
	perror(what);
	_exit(1);
}

static void set_nonblocking(struct asker *asker)
{
	if (rfcntl(asker->fd, F_SETFL, O_NONBLOCK))
		die("http_rsockets: no flags");
}

static void dial(struct asker *asker, bool waits)
{
	struct sockaddr_in from = { .sin_family = AF_INET };

	asker->fd = rsocket(AF_INET, SOCK_STREAM, 0);
	if (asker->fd < 0)
		die("http_rsockets: no socket");
	from.sin_port = htons((in_port_t)(first_port + asker->number));
	if (rbind(asker->fd, (struct sockaddr *)&from, sizeof(from)))
		die("http_rsockets: cannot bind");
	if (!waits)
		set_nonblocking(asker);
	if (rconnect(asker->fd, (struct sockaddr *)&peer, sizeof(peer)) && errno != EINPROGRESS)
		die("http_rsockets: cannot connect");
	set_nonblocking(asker);
}

static bool posts(const struct asker *asker)
{
	return echoes || (asker->number + asker->requests) % 2;
}

static void begin(struct asker *asker)
{
	int len = 0;

	asker->len = sizes[(asker->number + asker->requests) % SIZES];
	if (posts(asker) && !echoes)
		len = snprintf(asker->head, sizeof(asker->head),
			"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: %zu\r\n\r\n", asker->len);
	else if (!echoes)
		len = snprintf(asker->head, sizeof(asker->head),
			"GET /bytes/%zu HTTP/1.1\r\nHost: test\r\n\r\n", asker->len);
	asker->head_len = (size_t)len;
	asker->at = 0;
	asker->step = SENDING;
}

/* How many bytes; 0: not now. */
static size_t moved(ssize_t ret)
{
	if (!ret)
		errno = ECONNRESET;
	if (ret <= 0 && errno != EAGAIN)
		die("http_rsockets: a connection has ended");
	return ret > 0 ? (size_t)ret : 0;
}

/* The head, and behind it the body of a post. False: it goes on when there is room. */
static bool go_on_sending(struct asker *asker)
{
	size_t all = asker->head_len + (posts(asker) ? asker->len : 0), at, n;
	const void *from;

	while (asker->at < all) {
		at = asker->at - asker->head_len;
		from = http_pattern + at % HTTP_PATTERN;
		n = http_piece(at, all - asker->at);
		if (asker->at < asker->head_len) {
			from = asker->head + asker->at;
			n = asker->head_len - asker->at;
		}
		n = moved(rsend(asker->fd, from, n, 0));
		if (!n)
			return false;
		asker->at += n;
	}
	asker->at = asker->head_len = 0;
	asker->step = echoes ? BODY : HEAD;
	return true;
}

static bool go_on_with_head(struct asker *asker)
{
	while (asker->head_len < 4 || memcmp(asker->head + asker->head_len - 4, "\r\n\r\n", 4)) {
		if (asker->head_len == sizeof(asker->head) - 1)
			die("http_rsockets: the answer's head is too long");
		if (!moved(rrecv(asker->fd, asker->head + asker->head_len, 1, 0)))
			return false;
		asker->head_len++;
	}
	asker->head[asker->head_len] = 0;
	const char *found = strstr(asker->head, "\r\nContent-Length: ");
	if (strncmp(asker->head, "HTTP/1.1 200 ", 13) || !found ||
		strtoul(found + 18, NULL, 10) != asker->len)
		die("http_rsockets: the answer is an error");
	asker->step = BODY;
	return true;
}

static bool go_on_with_body(struct asker *asker)
{
	static uint8_t buf[BUF_BYTES];
	size_t n;

	while (asker->at < asker->len) {
		n = asker->len - asker->at;
		n = moved(rrecv(asker->fd, buf, n < BUF_BYTES ? n : BUF_BYTES, 0));
		if (!n)
			return false;
		if (!http_is_pattern(buf, n, asker->at))
			die("http_rsockets: a byte is another");
		asker->at += n;
	}
	if (++asker->requests < REQUESTS) {
		begin(asker);
		return true;
	}
	asker->step = DONE;
	done++;
	return false;
}

static bool has_connected(struct asker *asker)
{
	int error;
	socklen_t len = sizeof(error);

	if (rgetsockopt(asker->fd, SOL_SOCKET, SO_ERROR, &error, &len) || error) {
		errno = error;
		die("http_rsockets: cannot connect");
	}
	asker->step = CONNECTED;
	connected++;
	return false;
}

static bool step(struct asker *asker)
{
	switch (asker->step) {
	case CONNECTING:
		return has_connected(asker);
	case SENDING:
		return go_on_sending(asker);
	case HEAD:
		return go_on_with_head(asker);
	case BODY:
		return go_on_with_body(asker);
	default:
		return false;
	}
}

static short events_of(const struct asker *asker)
{
	switch (asker->step) {
	case CONNECTING:
	case SENDING:
		return POLLOUT;
	case HEAD:
	case BODY:
		return POLLIN;
	default:
		return 0;
	}
}

/* Those that wait for the others are not among them. */
static unsigned int fill(struct asker **who)
{
	unsigned int i, n = 0;

	for (i = 0; i < count; i++) {
		short events = events_of(&askers[i]);

		if (!events)
			continue;
		who[n] = &askers[i];
		pfds[n++] = (struct pollfd){ .fd = askers[i].fd, .events = events };
	}
	return n;
}

static void turn(void)
{
	static struct asker *who[MOST];
	unsigned int i, n = fill(who);

	if (rpoll(pfds, n, -1) < 0)
		die("http_rsockets: poll");
	for (i = 0; i < n; i++)
		while (pfds[i].revents && step(who[i]))
			;
}

static void connect_all(bool in_turn)
{
	unsigned int i;

	for (i = 0; i < count; i++) {
		askers[i].number = i;
		dial(&askers[i], in_turn);
	}
	while (connected < count)
		turn();
}

static void ask_all(void)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		begin(&askers[i]);
	while (done < count)
		turn();
}

int main(int argc, char **argv)
{
	unsigned int i;

	if (argc < 6 || atoi(argv[3]) > MOST || inet_pton(AF_INET, argv[1], &peer.sin_addr) != 1)
		return 1;
	peer.sin_family = AF_INET;
	peer.sin_port = htons((uint16_t)atoi(argv[2]));
	count = (unsigned int)atoi(argv[3]);
	first_port = (unsigned int)atoi(argv[4]);
	echoes = argc > 6;
	http_pattern_fill();
	connect_all(!strcmp(argv[5], "in-turn"));
	ask_all();
	for (i = 0; i < count; i++)
		if (rclose(askers[i].fd))
			die("http_rsockets: close");
	return 0;
}
