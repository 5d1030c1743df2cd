/* The steps of cmtime over TCP (-S): what they are to be compared with. */
#include "cmtime.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <event2/event.h>
#include <event2/listener.h>

static socklen_t length(const struct sockaddr *addr)
{
	return addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
					  : sizeof(struct sockaddr_in6);
}

/* --- the client ----------------------------------------------------------------------------- */

static void fail(struct cmtime_node *node, enum evrdma_step step, int err)
{
	cmtime_fail_call(node->loop, step, err);
}

static void await(struct cmtime_node *node, short what, event_callback_fn cb, enum evrdma_step step)
{
	const struct timeval patience = { .tv_sec = node->loop->test->options.patience_s };

	if (node->event)
		event_free(node->event);
	node->event = event_new(node->loop->event_base, node->fd, what, cb, node);
	if (!node->event || event_add(node->event, &patience))
		fail(node, step, ENOMEM);
}

static void create_socket(struct cmtime_node *node)
{
	node->fd = socket(ends_remote(&node->loop->test->ends)->sa_family,
		SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (node->fd < 0)
		fail(node, EVRDMA_STEP_ADDR, errno);
	else
		cmtime_step_done(node);
}

static void bind_socket(struct cmtime_node *node)
{
	const struct sockaddr *addr = ends_local(&node->loop->test->ends);

	if (bind(node->fd, addr, length(addr)))
		fail(node, EVRDMA_STEP_ADDR, errno);
	else
		cmtime_step_done(node);
}

static void connected(evutil_socket_t fd, short what, void *arg)
{
	struct cmtime_node *node = arg;
	socklen_t len = sizeof(int);
	int err = 0;

	if (what & EV_TIMEOUT)
		err = ETIMEDOUT;
	else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len))
		err = errno;
	if (err)
		fail(node, EVRDMA_STEP_CONNECT, err);
	else
		cmtime_step_done(node);
}

static void connect_socket(struct cmtime_node *node)
{
	const struct sockaddr *addr = ends_remote(&node->loop->test->ends);

	if (!connect(node->fd, addr, length(addr)))
		cmtime_step_done(node);
	else if (errno == EINPROGRESS)
		await(node, EV_WRITE, connected, EVRDMA_STEP_CONNECT);
	else
		fail(node, EVRDMA_STEP_CONNECT, errno);
}

static void disconnected(evutil_socket_t fd, short what, void *arg)
{
	struct cmtime_node *node = arg;
	char byte;
	ssize_t n = what & EV_TIMEOUT ? -1 : read(fd, &byte, 1);

	if (what & EV_TIMEOUT)
		fail(node, EVRDMA_STEP_DISCONNECT, ETIMEDOUT);
	else if (n < 0)
		fail(node, EVRDMA_STEP_DISCONNECT, errno);
	else if (n > 0)
		cmtime_fail_text(node->loop, "this is no server of cmtime -S: it sends data");
	else
		cmtime_step_done(node);
}

/* Both ends say that it is over, as those of a connection of the CM do. */
static void disconnect_socket(struct cmtime_node *node)
{
	if (shutdown(node->fd, SHUT_WR))
		fail(node, EVRDMA_STEP_DISCONNECT, errno);
	else
		await(node, EV_READ, disconnected, EVRDMA_STEP_DISCONNECT);
}

/* The event goes first: it is about the number, which another may have then. */
static void close_node(struct cmtime_node *node)
{
	if (node->event)
		event_free(node->event);
	node->event = NULL;
	close(node->fd);
	node->fd = -1;
	cmtime_step_done(node);
}

const cmtime_step_cb cmtime_tcp_steps[CMTIME_STEPS] = {
	[CMTIME_CREATE_ID] = create_socket,
	[CMTIME_BIND_ADDR] = bind_socket,
	[CMTIME_CONNECT] = connect_socket,
	[CMTIME_DISCONNECT] = disconnect_socket,
	[CMTIME_DESTROY] = close_node,
};

/* --- the server ----------------------------------------------------------------------------- */

static void close_socket(struct cmtime_socket *socket)
{
	struct cmtime *test = socket->loop->test;

	if (socket->event)
		event_free(socket->event);
	close(socket->fd);
	pthread_mutex_lock(&test->lock);
	LIST_REMOVE(socket, link);
	pthread_mutex_unlock(&test->lock);
	free(socket);
}

/* Data is none of cmtime's. */
static void socket_came_to_an_end(evutil_socket_t fd, short what, void *arg)
{
	struct cmtime_socket *socket = arg;
	char byte;
	ssize_t n = read(fd, &byte, 1);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n)
		cmtime_tell_call(socket->loop, EVRDMA_STEP_DISCONNECT, n < 0 ? errno : EPROTO);
	close_socket(socket);
}

static int watch(struct cmtime_socket *socket)
{
	socket->event = event_new(socket->loop->event_base, socket->fd, EV_READ | EV_PERSIST,
		socket_came_to_an_end, socket);
	return socket->event && !event_add(socket->event, NULL) ? 0 : -1;
}

static struct cmtime_socket *next_unseen(struct cmtime_loop *loop)
{
	struct cmtime_socket *socket;

	pthread_mutex_lock(&loop->test->lock);
	LIST_FOREACH(socket, &loop->sockets, link)
	if (!socket->event)
		break;
	pthread_mutex_unlock(&loop->test->lock);
	return socket;
}

void cmtime_tcp_take(struct cmtime_loop *loop)
{
	struct cmtime_socket *socket;

	while ((socket = next_unseen(loop))) {
		if (!watch(socket)) {
			loop->served++;
			continue;
		}
		cmtime_tell_call(loop, EVRDMA_STEP_ACCEPT, ENOMEM);
		close_socket(socket);
	}
}

static void socket_came(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *addr,
	int len, void *arg)
{
	struct cmtime *test = arg;
	struct cmtime_loop *loop = cmtime_next_loop(test);
	struct cmtime_socket *socket = calloc(1, sizeof(*socket));

	if (!socket) {
		close(fd);
		cmtime_tell_call(loop, EVRDMA_STEP_ACCEPT, ENOMEM);
		return;
	}
	socket->loop = loop;
	socket->fd = fd;
	pthread_mutex_lock(&test->lock);
	LIST_INSERT_HEAD(&loop->sockets, socket, link);
	pthread_mutex_unlock(&test->lock);
	if (loop == test->loops)
		cmtime_tcp_take(loop);
	else
		cmtime_ring(&loop->socket);
}

static void accept_failed(struct evconnlistener *listener, void *arg)
{
	struct cmtime *test = arg;

	cmtime_fail_call(test->loops, EVRDMA_STEP_ACCEPT, errno);
}

void cmtime_serve_tcp(struct cmtime *test)
{
	const struct sockaddr *addr = ends_local(&test->ends);
	const unsigned flags = LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_REUSEABLE;

	test->tcp_listener = evconnlistener_new_bind(test->tool.event_base, socket_came, test,
		flags, SOMAXCONN, addr, (int)length(addr));
	if (test->tcp_listener)
		evconnlistener_set_error_cb(test->tcp_listener, accept_failed);
	else
		ends_fail_listen(&test->ends, errno);
}

/* When no loop runs any more. */
void cmtime_tcp_fini(struct cmtime *test)
{
	struct cmtime_loop *loop;

	if (test->tcp_listener)
		evconnlistener_free(test->tcp_listener);
	for (long i = 0; i < test->options.threads; i++) {
		loop = &test->loops[i];
		while (!LIST_EMPTY(&loop->sockets))
			close_socket(LIST_FIRST(&loop->sockets));
		for (long k = 0; test->options.tcp && k < loop->n; k++)
			if (loop->nodes[k].loop && loop->nodes[k].fd >= 0)
				close(loop->nodes[k].fd);
	}
}
