/*
 * libevent's HTTP on bufferevents over RDMA, for its own tests. Each connection of theirs is one
 * over RDMA, and after it one of TCP that carries nothing: evhttp dials that, or accepts it, and
 * then the bufferevent gets its own descriptor back. What comes over RDMA to a port is for the next
 * connection of TCP that evhttp accepts.
 *
 * When a connection has ended and evhttp dials again, that is TCP alone.
 */
#define SHIM_ITSELF
#include "conform/libevent_http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <evrdma/evrdma.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "fake/fake.h"
#include "schedule/clock.h"

enum { DOORS = 4, VISITS = 16, MOST_FDS = 64, PATIENCE_MS = 20000 };

/* A port where an evhttp listens. */
struct door {
	struct evhttp *http;
	struct evhttp_bound_socket *bound;
	struct evrdma_listener *listener;
	const char *host;
	uint16_t port;
};

/* What came over RDMA. */
struct visit {
	struct bufferevent *bev;
	evutil_socket_t own;
	struct event *back; /* evhttp has it, and its own descriptor is to be set back */
};

static struct {
	struct door doors[DOORS];
	struct visit visits[VISITS];
	int came, inside;
	bool is_connected;

	/* an evhttp_connection that has not dialled yet */
	struct evhttp_connection *asker;
	const struct door *asked;
	struct bufferevent *asking;
	evutil_socket_t own;

	/* what is to be connected by TCP as soon as it is by RDMA */
	struct sockaddr_in knock;
} us;

/* --- servers -------------------------------------------------------------------------------- */

static void set_back(evutil_socket_t fd, short what, void *arg)
{
	struct visit *visit = arg;

	bufferevent_setfd(visit->bev, visit->own);
	event_free(visit->back);
	visit->back = NULL;
}

static struct visit *next_visit(void)
{
	return us.inside < us.came ? &us.visits[us.inside++] : NULL;
}

static struct bufferevent *let_in(struct event_base *loop, void *arg)
{
	struct visit *visit = next_visit();

	if (!visit)
		return NULL;
	visit->own = bufferevent_getfd(visit->bev);
	visit->back = event_new(loop, -1, 0, set_back, visit);
	event_active(visit->back, EV_TIMEOUT, 0);
	return visit->bev;
}

struct evhttp *shim_http_new(struct event_base *loop)
{
	struct evhttp *http = evhttp_new(loop);

	if (loop) {
		shim_base(loop);
		evhttp_set_bevcb(http, let_in, NULL);
	}
	return http;
}

static void on_visit(struct evrdma_listener *listener, struct bufferevent *bev,
	const struct sockaddr *peer, void *arg)
{
	if (us.came == VISITS)
		shim_die("there are too many connections");
	us.visits[us.came++].bev = bev;
}

/* One of an evhttp; with NULL a free one. */
static struct door *door_of(const struct evhttp *http)
{
	int i;

	for (i = 0; i < DOORS; i++)
		if (us.doors[i].http == http)
			return &us.doors[i];
	return NULL;
}

static struct door *door_at(uint16_t port)
{
	int i;

	for (i = 0; i < DOORS; i++)
		if (us.doors[i].http && us.doors[i].port == port)
			return &us.doors[i];
	return NULL;
}

static uint16_t port_of(evutil_socket_t fd)
{
	struct sockaddr_in6 sin6; /* where IPv4 has its port, too */
	socklen_t len = sizeof(sin6);

	if (getsockname(fd, (struct sockaddr *)&sin6, &len))
		shim_die("a listener has no name");
	return ntohs(sin6.sin6_port);
}

struct evhttp_bound_socket *shim_http_bind(struct evhttp *http, const char *host, uint16_t port)
{
	struct evhttp_bound_socket *bound = evhttp_bind_socket_with_handle(http, host, port);
	struct door *door = door_of(NULL);
	struct sockaddr_in sin;

	if (!bound || !door)
		return bound;
	port = port_of(evhttp_bound_socket_get_fd(bound));
	sin = shim_address(FAKE_ROCE_IP, port);
	*door = (struct door){ .http = http, .bound = bound, .host = host, .port = port };
	door->listener = evrdma_bufferevent_listen(
		shim_base(NULL), (struct sockaddr *)&sin, NULL, NULL, 0, on_visit, NULL);
	if (!door->listener)
		shim_die("no listener");
	return bound;
}

static void close_doors(struct evhttp *http)
{
	struct door *door;

	while ((door = door_of(http))) {
		evrdma_listener_close(door->listener);
		*door = (struct door){ .http = NULL };
	}
}

/* What of this has been let in is evhttp's. */
void shim_http_free(struct evhttp *http)
{
	int i;

	close_doors(http);
	for (i = 0; i < us.inside; i++)
		if (us.visits[i].back)
			set_back(-1, 0, &us.visits[i]);
	evhttp_free(http);
	while (us.inside < us.came)
		bufferevent_free(next_visit()->bev);
}

/* --- connecting ----------------------------------------------------------------------------- */

static void on_event(struct bufferevent *bev, short what, void *arg)
{
	if (!(what & BEV_EVENT_CONNECTED))
		shim_die("it does not connect");
	us.is_connected = true;
}

/* What was dialled by TCP waits to be accepted. */
static void await_knock(const struct door *door)
{
	struct pollfd listener = { .fd = evhttp_bound_socket_get_fd(door->bound),
		.events = POLLIN };

	if (poll(&listener, 1, PATIENCE_MS) != 1)
		shim_die("nothing comes by TCP");
}

/* Both ends are there. */
static struct bufferevent *reach(const struct door *door, int options)
{
	struct bufferevent *bev = shim_dial(FAKE_ROCE_IP, door->port, options);
	int came = us.came;

	us.is_connected = false;
	bufferevent_setcb(bev, NULL, NULL, on_event, NULL);
	while (!us.is_connected || us.came == came)
		shim_turn();
	bufferevent_setcb(bev, NULL, NULL, NULL, NULL);
	return bev;
}

/* What the tests have made for evhttp to dial with, if anything, is replaced. */
static struct bufferevent *put_in_place(struct bufferevent *bev, struct bufferevent *below)
{
	if (bev && bufferevent_openssl_get_ssl(bev))
		return shim_ssl_move(bev, below);
	if (bev)
		bufferevent_free(bev);
	return below;
}

struct evhttp_connection *shim_http_connection_new(struct event_base *loop, struct evdns_base *dns,
	struct bufferevent *bev, const char *host, uint16_t port)
{
	const struct door *door = door_at(port);

	if (!door)
		return evhttp_connection_base_bufferevent_new(loop, dns, bev, host, port);
	us.asked = door;
	us.asking = reach(door, BEV_OPT_DEFER_CALLBACKS);
	us.own = bufferevent_getfd(us.asking);
	bev = put_in_place(bev, us.asking);
	bufferevent_setfd(us.asking, -1);
	us.asker = evhttp_connection_base_bufferevent_new(loop, NULL, bev, door->host, port);
	return us.asker;
}

int shim_http_request(struct evhttp_connection *http, struct evhttp_request *request,
	enum evhttp_cmd_type type, const char *uri)
{
	int ret = evhttp_make_request(http, request, type, uri);

	if (http == us.asker) {
		us.asker = NULL;
		bufferevent_setfd(us.asking, us.own);
		await_knock(us.asked);
	}
	return ret;
}

int shim_connect(evutil_socket_t fd, const struct sockaddr *addr, socklen_t len)
{
	memcpy(&us.knock, addr, sizeof(us.knock));
	return 0;
}

struct bufferevent *shim_http_socket_new(struct event_base *loop, evutil_socket_t fd, int options)
{
	const struct door *door = door_at(ntohs(us.knock.sin_port));
	struct bufferevent *bev;

	if (fd < 0)
		return bufferevent_socket_new(loop, fd, options);
	bev = reach(door, options);
	if (connect(fd, (struct sockaddr *)&us.knock, sizeof(us.knock)) && errno != EINPROGRESS)
		shim_die("nobody listens for TCP");
	await_knock(door);
	return shim_stand_in(bev, fd);
}

struct bufferevent *shim_http_below(
	struct event_base *loop, evutil_socket_t fd, enum bufferevent_ssl_state state, int options)
{
	if (fd >= 0)
		return shim_http_socket_new(loop, fd, options);
	return state == BUFFEREVENT_SSL_ACCEPTING ? let_in(loop, NULL) : NULL;
}

int shim_shutdown(evutil_socket_t fd, int how)
{
	struct bufferevent *bev = shim_of_fd(fd);

	return shutdown(bev ? bufferevent_getfd(bev) : fd, how);
}

/* --- the loop ------------------------------------------------------------------------------- */

/* A socket of TCP on whose peer the kernel still works. */
static bool is_moving(evutil_socket_t fd)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);
	int unseen = 0;

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len))
		return false;
	ioctl(fd, SIOCOUTQ, &unseen);
	return info.tcpi_state == TCP_SYN_SENT || unseen;
}

/* Time must not pass meanwhile, but the machine's. */
static bool wait_for_kernel(void)
{
	evutil_socket_t fd;

	for (fd = 0; fd < MOST_FDS; fd++)
		if (is_moving(fd))
			return poll(NULL, 0, 1) == 0;
	return false;
}

int shim_http_dispatch(struct event_base *loop)
{
	enum clock_turn turn;

	do {
		turn = clock_turn(loop, false);
		if (turn >= CLOCK_IDLE && wait_for_kernel())
			turn = CLOCK_RAN;
		else if (turn == CLOCK_IDLE)
			turn = clock_turn(loop, true);
	} while (turn < CLOCK_FOREVER && !event_base_got_exit(loop));
	return 0;
}
