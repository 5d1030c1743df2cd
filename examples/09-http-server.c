/*
 * An HTTP server of libevent's whose connections come over RDMA and TCP, on one loop: the handler
 * is the same for both. It answers with what it was sent, or says which way the request came.
 *
 *   09-http-server [ADDRESS:PORT [ADDRESS:PORT]]
 *
 * The first is RDMA's (0.0.0.0:7471 when not given), the second TCP's (0.0.0.0:8080).
 *
 * An evhttp takes connections from a listening socket only, and gives the descriptor of each to a
 * bufferevent that its callback makes. So each connection that comes over RDMA knocks at a socket
 * that nobody else can reach. The callback gives evhttp the bufferevent over RDMA, and at once
 * after that the bufferevent gets its own descriptor back; evhttp keeps that of the local socket,
 * and shuts it down when it is done with the connection.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* O_PATH */
#endif
#include <evrdma/evrdma.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <event2/util.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 1024 };

/* --- what is served, whichever way ---------------------------------------------------------- */

static void on_request(struct evhttp_request *request, void *arg)
{
	struct evhttp_connection *http = evhttp_request_get_connection(request);
	struct bufferevent *bev = evhttp_connection_get_bufferevent(http);
	struct evbuffer *body = evhttp_request_get_input_buffer(request);

	if (!evbuffer_get_length(body))
		evbuffer_add_printf(body, "this came over %s\n",
			evrdma_bufferevent_get_conn(bev) ? "RDMA" : "TCP");
	evhttp_send_reply(request, HTTP_OK, "OK", body);
}

/* --- an evhttp with a door for RDMA --------------------------------------------------------- */

/* A connection. */
struct visit {
	TAILQ_ENTRY(visit) next;
	struct bufferevent *bev;
	evutil_socket_t own;   /* the bufferevent's */
	evutil_socket_t here;  /* our end of the local connection */
	evutil_socket_t there; /* what evhttp has; -1: not yet, or not known yet */
	struct event *event;
	struct door *door;
};

TAILQ_HEAD(visits, visit);

struct door {
	struct event_base *loop;
	struct evhttp *http;
	struct visits waiting; /* for evhttp to accept them */
	struct visits inside;
	evutil_socket_t handle; /* of the listening socket, which has no name any more */
};

static void close_if_open(evutil_socket_t fd)
{
	if (fd >= 0)
		evutil_closesocket(fd);
}

static void visit_free(struct visit *visit)
{
	if (visit->event)
		event_free(visit->event);
	close_if_open(visit->here);
	close_if_open(visit->there);
	free(visit);
}

/* EV_TIMEOUT: evhttp has it. EV_READ: evhttp is done with it, and has freed the bufferevent. */
static void on_visit(evutil_socket_t fd, short what, void *arg)
{
	struct visit *visit = arg;

	if (what & EV_TIMEOUT) {
		visit->there = bufferevent_getfd(visit->bev);
		bufferevent_setfd(visit->bev, visit->own);
		event_add(visit->event, NULL);
	} else {
		TAILQ_REMOVE(&visit->door->inside, visit, next);
		visit_free(visit);
	}
}

/* evhttp has accepted the next one, and asks what it is to read from. */
static struct bufferevent *let_in(struct event_base *loop, void *arg)
{
	struct door *door = arg;
	struct visit *visit = TAILQ_FIRST(&door->waiting);

	TAILQ_REMOVE(&door->waiting, visit, next);
	TAILQ_INSERT_TAIL(&door->inside, visit, next);
	event_active(visit->event, EV_TIMEOUT, 0);
	return visit->bev;
}

/* A descriptor that is connected to the socket of the handle, or -1. */
static evutil_socket_t knock(evutil_socket_t handle)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	evutil_socket_t fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	snprintf(name.sun_path, sizeof(name.sun_path), "/proc/self/fd/%d", (int)handle);
	if (fd < 0 || connect(fd, (struct sockaddr *)&name, sizeof(name)) == 0)
		return fd;
	evutil_closesocket(fd);
	return -1;
}

static struct visit *visit_new(struct door *door, struct bufferevent *bev)
{
	struct visit *visit = calloc(1, sizeof(*visit));

	if (!visit)
		return NULL;
	visit->door = door;
	visit->bev = bev;
	visit->own = bufferevent_getfd(bev);
	visit->there = -1;
	visit->here = knock(door->handle);
	visit->event = event_new(door->loop, visit->here, EV_READ, on_visit, visit);
	if (visit->here >= 0 && visit->event)
		return visit;
	visit_free(visit);
	return NULL;
}

static void on_connection(struct evrdma_listener *listener, struct bufferevent *bev,
	const struct sockaddr *peer, void *arg)
{
	struct door *door = arg;
	struct visit *visit = visit_new(door, bev);

	if (visit)
		TAILQ_INSERT_TAIL(&door->waiting, visit, next);
	else
		bufferevent_free(bev);
}

/* A listening socket, bound where nobody else can look, and a handle of it. 0 or -1. */
static int open_door(evutil_socket_t fd, evutil_socket_t *handle)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "/tmp/http-XXXXXX" };
	char folder[sizeof(name.sun_path)];
	int ret;

	if (!mkdtemp(name.sun_path))
		return -1;
	strcpy(folder, name.sun_path);
	strcat(name.sun_path, "/door");
	ret = bind(fd, (struct sockaddr *)&name, sizeof(name));
	*handle = ret ? -1 : open(name.sun_path, O_PATH | O_CLOEXEC);
	unlink(name.sun_path);
	rmdir(folder);
	return ret || *handle < 0 ? -1 : listen(fd, BACKLOG);
}

/* The socket is evhttp's when 0 is returned. */
static int door_init(struct door *door, struct event_base *loop, struct evhttp *http)
{
	evutil_socket_t fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	door->loop = loop;
	door->http = http;
	door->handle = -1;
	TAILQ_INIT(&door->waiting);
	TAILQ_INIT(&door->inside);
	evhttp_set_bevcb(http, let_in, door);
	if (fd >= 0 && open_door(fd, &door->handle) == 0 && evhttp_accept_socket(http, fd) == 0)
		return 0;
	close_if_open(fd);
	close_if_open(door->handle);
	return -1;
}

/* The bufferevents that are inside are evhttp's. */
static void door_close(struct door *door)
{
	struct visit *visit;

	TAILQ_FOREACH(visit, &door->inside, next)
		event_del(visit->event);
	evhttp_free(door->http);
	while ((visit = TAILQ_FIRST(&door->inside))) {
		TAILQ_REMOVE(&door->inside, visit, next);
		visit_free(visit);
	}
	while ((visit = TAILQ_FIRST(&door->waiting))) {
		TAILQ_REMOVE(&door->waiting, visit, next);
		bufferevent_free(visit->bev);
		visit_free(visit);
	}
	close_if_open(door->handle);
}

/* --- the program ---------------------------------------------------------------------------- */

struct server {
	struct evrdma_base *base;
	struct evhttp *tcp, *rdma;
	struct door door;
	struct event *signal;
};

/* What was answered is still sent. */
static void on_signal(evutil_socket_t signal, short what, void *arg)
{
	struct server *server = arg;

	event_del(server->signal);
	evhttp_free(server->tcp);
	door_close(&server->door);
	evrdma_base_shutdown(server->base, 10000, NULL, NULL);
}

static int parse(const char *text, struct sockaddr_storage *addr)
{
	int len = sizeof(*addr);

	if (evutil_parse_sockaddr_port(text, (struct sockaddr *)addr, &len) == 0)
		return 0;
	fprintf(stderr, "http: not an ADDRESS:PORT: %s\n", text);
	return -1;
}

static int listen_tcp(struct event_base *loop, struct evhttp *http, const char *text)
{
	struct sockaddr_storage addr;
	struct evconnlistener *listener;
	unsigned flags = LEV_OPT_CLOSE_ON_FREE | LEV_OPT_REUSEABLE | LEV_OPT_CLOSE_ON_EXEC;

	if (parse(text, &addr))
		return -1;
	listener = evconnlistener_new_bind(
		loop, NULL, NULL, flags, BACKLOG, (struct sockaddr *)&addr, sizeof(addr));
	return listener && evhttp_bind_listener(http, listener) ? 0 : -1;
}

/* All that TCP does not have. */
static int listen_rdma(struct server *server, struct event_base *loop, const char *text)
{
	struct sockaddr_storage addr;
	struct evrdma_listener *listener = NULL;

	if (parse(text, &addr) == 0 && door_init(&server->door, loop, server->rdma) == 0)
		listener = evrdma_bufferevent_listen(server->base, (struct sockaddr *)&addr, NULL,
			NULL, 0, on_connection, &server->door);
	return listener ? 0 : -1;
}

static int server_init(struct server *server, struct event_base *loop)
{
	server->base = evrdma_base_new(loop, NULL);
	server->tcp = evhttp_new(loop);
	server->rdma = evhttp_new(loop);
	server->signal = evsignal_new(loop, SIGINT, on_signal, server);
	if (!server->base || !server->tcp || !server->rdma || !server->signal)
		return -1;
	evhttp_set_gencb(server->tcp, on_request, NULL);
	evhttp_set_gencb(server->rdma, on_request, NULL);
	return event_add(server->signal, NULL);
}

int main(int argc, char **argv)
{
	const char *rdma = argc > 1 ? argv[1] : "0.0.0.0:7471";
	const char *tcp = argc > 2 ? argv[2] : "0.0.0.0:8080";
	struct event_base *loop = event_base_new();
	struct server server = { NULL };

	signal(SIGPIPE, SIG_IGN);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!loop || server_init(&server, loop))
		return perror("http: cannot start"), 1;
	if (listen_tcp(loop, server.tcp, tcp) || listen_rdma(&server, loop, rdma))
		return perror("http: cannot listen"), 1;
	printf("http: listening on %s for RDMA, on %s for TCP\n", rdma, tcp);
	event_base_dispatch(loop); /* until a signal */
	event_free(server.signal);
	event_base_free(loop);
	return 0;
}
