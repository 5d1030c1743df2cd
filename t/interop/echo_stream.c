/* echo_stream ADDRESS: sends back what comes to it over RDMA, by bufferevents, until killed. */
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/util.h>
#include <signal.h>
#include <stdio.h>

#include <evrdma/evrdma.h>

static void echo(struct bufferevent *bev, void *arg)
{
	bufferevent_write_buffer(bev, bufferevent_get_input(bev));
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
	if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
		bufferevent_free(bev);
}

static void on_connection(struct evrdma_listener *listener, struct bufferevent *bev,
	const struct sockaddr *peer, void *arg)
{
	bufferevent_setcb(bev, echo, NULL, on_event, NULL);
	bufferevent_enable(bev, EV_READ);
}

int main(int argc, char **argv)
{
	struct sockaddr_storage addr;
	struct sockaddr *at = (struct sockaddr *)&addr;
	int len = sizeof(addr);
	struct event_base *loop = event_base_new();
	struct evrdma_base *base = evrdma_base_new(loop, NULL);

	signal(SIGPIPE, SIG_IGN);
	if (!base || argc < 2 || evutil_parse_sockaddr_port(argv[1], at, &len))
		return 1;
	if (!evrdma_bufferevent_listen(base, at, NULL, NULL, 0, on_connection, NULL)) {
		perror("cannot listen");
		return 1;
	}
	event_base_dispatch(loop);
	return 0;
}
