/*
 * Bufferevents over RDMA, on the fake, for libevent's own tests. What stands for what:
 *
 *   two ends of a socket pair, a bufferevent_pair   two that are connected to each other
 *   an evconnlistener                               a listener of the fake's device
 *   descriptor -1, where there is a listener        one that connects to it
 *   descriptor -1, flags                            one that connects where nobody listens
 *   descriptor -1, no flags                         one that connects where nobody answers
 *
 * event_base_dispatch() ends when no event of the tests is left; those of evrdma are for ever. The
 * time is the tests' own: it passes where the loop would sleep.
 */
#define SHIM_ITSELF
#include "conform/libevent_shim.h"

#include <arpa/inet.h>
#include <evrdma/evrdma.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bufferevent-internal.h"
#include "fake/fake.h"
#include "schedule/clock.h"

#define SILENT_IP "192.0.2.250"

enum {
	READING_US = 1,
	MOST = 16,
	NOBODY_PORT = 9,
	ACCEPTED_FD = 100000,
	SOME_TURNS = 6,
	LEFT_BEHIND = 98
};

/* One that the tests have, and the descriptor they gave for it. */
struct stand_in {
	struct bufferevent *bev;
	evutil_socket_t fd;
	bool is_of_pair; /* it would have no event on the loop but those of timeouts */
	const struct bufferevent *partner;
};

static struct {
	struct event_base *loop;
	struct evrdma_base *base;
	struct evrdma_listener *listener;
	evconnlistener_cb on_accept;
	void *on_accept_arg;
	int options; /* of the last that connects, for those that are accepted */
	struct stand_in all[MOST];
	struct bufferevent *made[2], *accepted;
	struct event *timer;
	bool exit_is_due, is_broken, is_closed;
	evutil_socket_t name; /* a socket that has one, for the listener */
	unsigned dialled;
} us;

void shim_die(const char *what)
{
	fprintf(stderr, "libevent_shim: %s\n", what);
	_exit(LEFT_BEHIND);
}

struct evrdma_base *shim_base(struct event_base *loop)
{
	if (us.base)
		return us.base;
	if (!loop)
		loop = global_base;
	clock_start(READING_US);
	fake_install();
	us.loop = loop;
	us.base = evrdma_base_new(loop, NULL);
	if (!us.base)
		shim_die("no base");
	return us.base;
}

void shim_turn(void)
{
	if (clock_turn(us.loop, true) >= CLOCK_FOREVER)
		shim_die("it waits for nothing");
}

/* --- who stands in for what ----------------------------------------------------------------- */

static struct stand_in *find(const struct bufferevent *bev)
{
	int i;

	for (i = 0; i < MOST; i++)
		if (us.all[i].bev == bev)
			return &us.all[i];
	return NULL;
}

static struct bufferevent *add(struct bufferevent *bev, evutil_socket_t fd, bool is_of_pair)
{
	struct stand_in *place = find(NULL);

	if (!bev || !place)
		shim_die("no bufferevent");
	*place = (struct stand_in){ .bev = bev, .fd = fd, .is_of_pair = is_of_pair };
	return bev;
}

/* With those below it that go with it. */
static void forget(struct bufferevent *bev)
{
	struct bufferevent *below = bufferevent_get_underlying(bev);
	struct stand_in *found = find(bev);

	if (found)
		found->bev = NULL;
	if (below && bufferevent_get_options_(bev) & BEV_OPT_CLOSE_ON_FREE)
		forget(below);
}

void shim_free(struct bufferevent *bev)
{
	forget(bev);
	bufferevent_free(bev);
}

static struct bufferevent *lowest(struct bufferevent *bev)
{
	while (bufferevent_get_underlying(bev))
		bev = bufferevent_get_underlying(bev);
	return bev;
}

evutil_socket_t shim_getfd(struct bufferevent *bev)
{
	const struct stand_in *found = find(lowest(bev));

	return found ? found->fd : bufferevent_getfd(bev);
}

struct bufferevent *shim_stand_in(struct bufferevent *bev, evutil_socket_t fd)
{
	return add(bev, fd, false);
}

struct bufferevent *shim_of_fd(evutil_socket_t fd)
{
	int i;

	for (i = 0; i < MOST; i++)
		if (us.all[i].bev && us.all[i].fd == fd)
			return us.all[i].bev;
	return NULL;
}

/* --- connecting ----------------------------------------------------------------------------- */

struct sockaddr_in shim_address(const char *ip, uint16_t port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(port) };

	inet_pton(AF_INET, ip, &sin.sin_addr);
	return sin;
}

struct bufferevent *shim_dial(const char *ip, uint16_t port, int options)
{
	struct sockaddr_in sin = shim_address(ip, port);

	us.dialled++;
	return evrdma_bufferevent_connect(us.base, NULL, (struct sockaddr *)&sin, NULL, options);
}

static struct bufferevent *dial_as_told(int options)
{
	us.options = options;
	if (us.listener)
		return shim_dial(FAKE_ROCE_IP, evrdma_listener_get_port(us.listener), options);
	return shim_dial(options ? FAKE_ROCE_IP : SILENT_IP, NOBODY_PORT, options);
}

/* It does so already. */
int shim_socket_connect(struct bufferevent *bev, const struct sockaddr *addr, int len)
{
	return find(lowest(bev)) ? 0 : -1;
}

/* --- pairs ---------------------------------------------------------------------------------- */

static void on_pair(struct evrdma_listener *listener, struct bufferevent *bev,
	const struct sockaddr *peer, void *arg)
{
	us.made[1] = bev;
}

static void on_written(struct bufferevent *bev, void *ready)
{
	*(bool *)ready = true;
}

static void on_event(struct bufferevent *bev, short what, void *ready)
{
	if (!(what & BEV_EVENT_CONNECTED))
		shim_die("a pair does not connect");
}

/* Up to the write callback that follows CONNECTED. */
static void make_pair(int options)
{
	struct sockaddr_in sin = shim_address(FAKE_ROCE_IP, 0);
	struct evrdma_listener *listener = evrdma_bufferevent_listen(
		us.base, (struct sockaddr *)&sin, NULL, NULL, options, on_pair, NULL);
	bool ready = false;

	if (!listener)
		shim_die("no listener");
	us.made[0] = shim_dial(FAKE_ROCE_IP, evrdma_listener_get_port(listener), options);
	bufferevent_setcb(us.made[0], NULL, on_written, on_event, &ready);
	while (!ready || !us.made[1])
		shim_turn();
	bufferevent_setcb(us.made[0], NULL, NULL, NULL, NULL);
	evrdma_listener_close(listener);
}

int shim_pair_new(struct event_base *loop, int options, struct bufferevent *pair[2])
{
	shim_base(loop);
	make_pair(options);
	pair[0] = add(us.made[0], -1, true);
	pair[1] = add(us.made[1], -1, true);
	find(pair[0])->partner = pair[1];
	find(pair[1])->partner = pair[0];
	us.made[0] = us.made[1] = NULL;
	return 0;
}

struct bufferevent *shim_get_partner(struct bufferevent *bev)
{
	const struct stand_in *found = find(bev);

	found = found && found->partner ? find(found->partner) : NULL;
	return found ? found->bev : NULL;
}

/* What was written is on its way already. The end is told as on a socket. */
int shim_flush(struct bufferevent *bev, short what, enum bufferevent_flush_mode mode)
{
	const struct stand_in *found = find(bev);

	if (found && found->is_of_pair && mode == BEV_FINISHED)
		shutdown(bufferevent_getfd(bev), SHUT_WR);
	return bufferevent_flush(bev, what, mode);
}

/* The first that is asked for is the one end, the next the other one. */
static struct bufferevent *next_end(int options)
{
	struct bufferevent *bev;
	int end = us.made[0] ? 0 : 1;

	if (!us.made[end]) {
		make_pair(options);
		end = 0;
	}
	bev = us.made[end];
	us.made[end] = NULL;
	return bev;
}

struct bufferevent *shim_socket_new(struct event_base *loop, evutil_socket_t fd, int options)
{
	struct bufferevent *bev;

	shim_base(loop);
	if (fd == -1) {
		bev = dial_as_told(options);
	} else if (fd == ACCEPTED_FD) {
		bev = us.accepted;
		us.accepted = NULL;
	} else {
		bev = next_end(options);
	}
	return add(bev, fd, false);
}

struct bufferevent *shim_new(evutil_socket_t fd, bufferevent_data_cb read_cb,
	bufferevent_data_cb write_cb, bufferevent_event_cb event_cb, void *arg)
{
	struct bufferevent *bev = shim_socket_new(NULL, fd, 0);

	bufferevent_setcb(bev, read_cb, write_cb, event_cb, arg);
	return bev;
}

/* --- listeners ------------------------------------------------------------------------------ */

static void on_accepted(struct bufferevent *bev, const struct evrdma_error *error, void *arg)
{
	us.accepted = bev;
	us.on_accept((struct evconnlistener *)us.listener, ACCEPTED_FD, NULL, 0, us.on_accept_arg);
}

static void on_request(struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	if (evrdma_bufferevent_accept(request, NULL, us.options, on_accepted, NULL))
		shim_die("cannot accept");
}

struct evconnlistener *shim_listener_new(struct event_base *loop, evconnlistener_cb cb, void *arg,
	unsigned flags, int backlog, const struct sockaddr *addr, int len)
{
	struct sockaddr_in sin = shim_address(FAKE_ROCE_IP, 0);

	shim_base(loop);
	us.on_accept = cb;
	us.on_accept_arg = arg;
	us.listener = evrdma_listener_new(us.base, (struct sockaddr *)&sin, NULL, on_request, NULL);
	return (struct evconnlistener *)us.listener;
}

int shim_listener_addr(struct evconnlistener *listener, struct sockaddr *addr, socklen_t *len)
{
	struct sockaddr_in sin = shim_address(FAKE_ROCE_IP, evrdma_listener_get_port(us.listener));

	memcpy(addr, &sin, sizeof(sin));
	*len = sizeof(sin);
	return 0;
}

/* All that is asked of it is its name, and of that no more than that it is IPv4's. */
evutil_socket_t shim_listener_fd(struct evconnlistener *listener)
{
	struct sockaddr_in sin = shim_address("127.0.0.1", 0);

	if (us.name)
		return us.name;
	us.name = socket(AF_INET, SOCK_DGRAM, 0);
	if (bind(us.name, (struct sockaddr *)&sin, sizeof(sin)))
		shim_die("no name");
	return us.name;
}

struct event_base *shim_listener_loop(struct evconnlistener *listener)
{
	return us.loop;
}

int shim_listener_enable(struct evconnlistener *listener)
{
	return 0;
}

void shim_listener_free(struct evconnlistener *listener)
{
	evrdma_listener_close(us.listener);
	us.listener = NULL;
}

/* --- the loop ------------------------------------------------------------------------------- */

int shim_add(struct event *event, const struct timeval *timeout)
{
	us.timer = event;
	return event_add(event, timeout);
}

int shim_loopexit(struct event_base *loop, const struct timeval *after)
{
	us.exit_is_due = true;
	return event_base_loopexit(loop, after);
}

int shim_loopbreak(struct event_base *loop)
{
	us.is_broken = true;
	return event_base_loopbreak(loop);
}

static bool waits(const struct stand_in *one)
{
	if (!one->bev)
		return false;
	return event_pending(&one->bev->ev_write, EV_WRITE, NULL) ||
	       (!one->is_of_pair && event_pending(&one->bev->ev_read, EV_READ, NULL));
}

static bool is_left(void)
{
	int i;

	if (us.exit_is_due || (us.timer && event_pending(us.timer, EV_TIMEOUT, NULL)))
		return true;
	for (i = 0; i < MOST; i++)
		if (waits(&us.all[i]))
			return true;
	return false;
}

/* Of a pair nothing is left before all that was written has arrived. */
int shim_dispatch(struct event_base *loop)
{
	us.is_broken = false;
	event_base_loop(loop, EVLOOP_NONBLOCK);
	while (!event_base_got_exit(loop) && !us.is_broken && is_left())
		shim_turn();
	us.exit_is_due = false;
	return 0;
}

/* What takes one turn on a pair takes some on a wire. */
int shim_loop(struct event_base *loop, int flags)
{
	int turns;

	for (turns = 0; us.base && turns < SOME_TURNS; turns++)
		event_base_loop(loop, EVLOOP_NONBLOCK);
	return us.base ? 0 : event_base_loop(loop, flags);
}

int shim_dispatch_current(void)
{
	return shim_dispatch(us.loop);
}

static void on_closed(struct evrdma_base *base, void *arg)
{
	us.is_closed = true;
}

/* The tests have freed all they had: so has evrdma. */
void shim_base_free(struct event_base *loop)
{
	const char *left;

	if (us.base && loop == us.loop) {
		evrdma_base_close(us.base, on_closed, NULL);
		while (!us.is_closed)
			shim_turn();
		left = fake_expect_clean();
		if (left)
			shim_die(left);
		printf("%u were over RDMA\n", us.dialled);
	}
	event_base_free(loop);
}
