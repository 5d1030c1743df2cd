/*
 * pingpong ADDRESS PORT WAY SIZE ROUNDS: sends so many bytes over rsockets, and gets them back.
 * pingpong -l ADDRESS PORT WAY SIZE: sends back what one client sends.
 *
 * WAY is how it waits: block, rpoll, or by the number: poll, or loop, an event loop (of servers).
 * It has only the calls of the stock library, so that it runs on that one too, where the number
 * says nothing. The client prints the microseconds of a round, how often it slept in one, and its
 * threads.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <rdma/rsocket.h>

#include "bench.h"

struct end {
	int fd;
	int (*poll)(struct pollfd *fds, nfds_t num, int timeout); /* NULL: it blocks */
	char *bytes;
	size_t size, got;
	long rounds;
};

static int poll_number(struct pollfd *fds, nfds_t num, int timeout)
{
	return poll(fds, num, timeout);
}

/* Whether to try again. */
static int awaits(const struct end *end, short events)
{
	struct pollfd pfd = { .fd = end->fd, .events = events };

	if (errno != EAGAIN || !end->poll)
		return 0;
	return end->poll(&pfd, 1, -1) == 1;
}

static void send_all(const struct end *end)
{
	size_t sent = 0;
	ssize_t ret;

	while (sent < end->size) {
		ret = rsend(end->fd, end->bytes + sent, end->size - sent, 0);
		bench_check(ret < 0 && !awaits(end, POLLOUT), "rsend");
		sent += ret > 0 ? (size_t)ret : 0;
	}
}

/* 0: the peer has ended. */
static int receive_all(struct end *end)
{
	ssize_t ret = 1;

	for (end->got = 0; ret && end->got < end->size;) {
		ret = rrecv(end->fd, end->bytes + end->got, end->size - end->got, 0);
		bench_check(ret < 0 && !awaits(end, POLLIN), "rrecv");
		end->got += ret > 0 ? (size_t)ret : 0;
	}
	return ret != 0;
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct end *end = arg;
	ssize_t ret = 1;

	while (ret > 0) {
		ret = rrecv(end->fd, end->bytes + end->got, end->size - end->got, 0);
		end->got += ret > 0 ? (size_t)ret : 0;
		if (end->got < end->size)
			continue;
		end->got = 0;
		end->rounds++;
		send_all(end);
	}
	if (!ret)
		exit(0);
	bench_check(errno != EAGAIN, "rrecv");
}

static void loop(struct end *end)
{
	struct event_base *base = event_base_new();
	struct event *event = event_new(base, end->fd, EV_READ | EV_PERSIST, on_readable, end);

	end->poll = poll_number;
	bench_check(!event || event_add(event, NULL), "event_new");
	event_base_dispatch(base);
}

static void set_way(struct end *end, const char *way)
{
	end->poll = strcmp(way, "rpoll") ? poll_number : rpoll;
	if (!strcmp(way, "block"))
		end->poll = NULL;
	else
		bench_check(rfcntl(end->fd, F_SETFL, O_NONBLOCK), "rfcntl");
}

static long threads(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	char line[128];
	long num = 0;

	while (file && fgets(line, sizeof(line), file))
		sscanf(line, "Threads: %ld", &num);
	if (file)
		fclose(file);
	return num;
}

static void client(struct end *end)
{
	struct rusage before, after;
	double began;
	long i;

	getrusage(RUSAGE_SELF, &before);
	began = bench_now_us();
	for (i = 0; i < end->rounds; i++) {
		send_all(end);
		bench_check(!receive_all(end), "the end");
	}
	began = bench_now_us() - began;
	getrusage(RUSAGE_SELF, &after);
	printf("%.2f us, slept %.2f, %ld threads\n", began / (double)end->rounds,
		(double)(after.ru_nvcsw - before.ru_nvcsw) / (double)end->rounds, threads());
}

static void server(struct end *end, const char *way)
{
	int listener = end->fd;

	bench_check(rlisten(listener, 1), "rlisten");
	end->fd = raccept(listener, NULL, NULL);
	bench_check(end->fd < 0, "raccept");
	set_way(end, way);
	if (!strcmp(way, "loop"))
		loop(end);
	while (receive_all(end))
		send_all(end);
}

int main(int argc, char **argv)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	int listens = argc > 1 && !strcmp(argv[1], "-l");
	struct end end = { .fd = rsocket(AF_INET, SOCK_STREAM, 0) };

	argv += listens;
	if (argc != 6 || inet_pton(AF_INET, argv[1], &addr.sin_addr) != 1)
		return 2;
	addr.sin_port = htons((uint16_t)atoi(argv[2]));
	end.size = (size_t)atol(argv[4]);
	end.bytes = calloc(1, end.size + 1);
	bench_check(end.fd < 0 || !end.bytes, "rsocket");
	if (listens) {
		bench_check(rbind(end.fd, (struct sockaddr *)&addr, sizeof(addr)), "rbind");
		server(&end, argv[3]);
	} else {
		end.rounds = atol(argv[5]);
		bench_check(rconnect(end.fd, (struct sockaddr *)&addr, sizeof(addr)), "rconnect");
		set_way(&end, argv[3]);
		client(&end);
	}
	rclose(end.fd);
	return 0;
}
