/* The pairs of a schedule are connected, by a listener whose backlog may be too small at first. */
#include "rs/random.h"

#include "unit/cm_unit.h"

#include <fcntl.h>
#include <rdma/rsocket.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { PATIENCE_TURNS = HANG_S * 1000, TURN_US = 1000 };

static int open_one(void)
{
	int fd = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	return fd;
}

static struct sockaddr *place_of(const struct random_schedule *s)
{
	return cm_addr(fake_ip(s->kind), CM_PORT);
}

static int listen_with(const struct random_schedule *s, int backlog)
{
	int fd = open_one();

	ck_assert_ok(rbind(fd, place_of(s), sizeof(struct sockaddr_in)));
	ck_assert_ok(rlisten(fd, backlog));
	return fd;
}

static bool is_ready(int fd, short events, bool by_number)
{
	struct pollfd pfd = { .fd = fd, .events = events };

	return (by_number ? poll(&pfd, 1, 0) : rpoll(&pfd, 1, 0)) > 0;
}

static unsigned connected(struct random_schedule *s)
{
	unsigned i, n = 0;

	for (i = 0; i < s->num_ends; i += 2)
		n += is_ready(s->ends[i].fd, POLLOUT, s->seed & 1);
	return n;
}

static void await_connected(struct random_schedule *s, unsigned n)
{
	unsigned turns = 0;

	while (connected(s) < n) {
		if (turns++ == PATIENCE_TURNS)
			random_wrong(s, &s->ends[0], "too few of those that connect have");
		usleep(TURN_US);
	}
}

static void begin_to_connect(const struct random_schedule *s, struct random_end *end)
{
	end->fd = open_one();
	ck_assert_fails(rconnect(end->fd, place_of(s), sizeof(struct sockaddr_in)), EINPROGRESS);
}

static in_port_t port_of(int fd, int (*get)(int socket, struct sockaddr *addr, socklen_t *addrlen))
{
	struct sockaddr_in name = { 0 };
	socklen_t len = sizeof(name);

	ck_assert_ok(get(fd, (struct sockaddr *)&name, &len));
	return name.sin_port;
}

/* Whose other end it is its port says. */
static void take_in(struct random_schedule *s, int fd)
{
	in_port_t port = port_of(fd, rgetpeername);
	unsigned i = 0;

	while (i < s->num_ends && port_of(s->ends[i].fd, rgetsockname) != port)
		i += 2;
	ck_assert_uint_lt(i, s->num_ends);
	s->ends[i + 1].fd = fd;
}

static void accept_one(struct random_schedule *s, int listener)
{
	unsigned turns = 0;

	while (!is_ready(listener, POLLIN, s->seed & 2)) {
		if (turns++ == PATIENCE_TURNS)
			random_wrong(s, &s->ends[0], "the listener has none of those that connect");
		usleep(TURN_US);
	}
	take_in(s, raccept(listener, NULL, NULL));
}

static void share_a_set(struct random_schedule *s, struct random_end *end)
{
	static const short wanted[] = { POLLIN, POLLOUT, POLLIN | POLLOUT };
	struct epoll_event event;

	end->in_repoll = random_once_in(&s->random, 4);
	end->set_events = RANDOM_OF(&s->random, wanted);
	event = (struct epoll_event){ .events = (uint32_t)end->set_events };
	end->set = end->in_repoll ? repoll_create(EPOLL_CLOEXEC) : epoll_create1(EPOLL_CLOEXEC);
	ck_assert_int_ge(end->set, 0);
	if (end->in_repoll)
		ck_assert_ok(repoll_ctl(end->set, EPOLL_CTL_ADD, end->fd, &event));
	else
		ck_assert_ok(epoll_ctl(end->set, EPOLL_CTL_ADD, end->fd, &event));
}

static void finish(struct random_schedule *s, struct random_end *end)
{
	end->nonblock = !s->alone && random_once_in(&s->random, 2);
	ck_assert_ok(rfcntl(end->fd, F_SETFL, O_RDWR | (end->nonblock ? O_NONBLOCK : 0)));
	end->copy = dup(end->fd);
	ck_assert_int_ge(end->copy, 0);
	end->set = -1;
	if (!s->alone)
		share_a_set(s, end);
}

void random_connect(struct random_schedule *s)
{
	unsigned pairs = s->num_ends / 2, i, backlog = random_below(&s->random, 3);
	int listener = listen_with(s, (int)backlog);

	for (i = 0; i < s->num_ends; i += 2)
		begin_to_connect(s, &s->ends[i]);
	if (random_once_in(&s->random, 2)) {
		await_connected(s, backlog + 1 < pairs ? backlog + 1 : pairs);
		ck_assert_ok(rlisten(listener, RANDOM_PAIRS));
		await_connected(s, pairs);
	}
	for (i = 0; i < pairs; i++)
		accept_one(s, listener);
	await_connected(s, pairs);
	for (i = 0; i < s->num_ends; i++)
		finish(s, &s->ends[i]);
	ck_assert_ok(rclose(listener));
}
