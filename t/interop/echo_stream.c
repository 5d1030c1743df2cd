/*
 * echo_stream ADDRESS [BYTES]: sends back what comes to it over RDMA, by bufferevents, until
 * killed. One that has sent BYTES is freed in the read callback.
 */
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/util.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <evrdma/evrdma.h>

static size_t most = SIZE_MAX;

/* How much has come. */
struct count {
	size_t bytes;
};

static void echo(struct bufferevent *bev, void *arg)
{
	struct count *count = arg;

	count->bytes += evbuffer_get_length(bufferevent_get_input(bev));
	if (count->bytes < most) {
		bufferevent_write_buffer(bev, bufferevent_get_input(bev));
		return;
	}
	free(count);
	bufferevent_free(bev);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
	if (!(what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)))
		return;
	free(arg);
	bufferevent_free(bev);
}

static void on_connection(struct evrdma_listener *listener, struct bufferevent *bev,
	const struct sockaddr *peer, void *arg)
{
	bufferevent_setcb(bev, echo, NULL, on_event, calloc(1, sizeof(struct count)));
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
	if (argc > 2)
		most = strtoul(argv[2], NULL, 10);
	if (!evrdma_bufferevent_listen(base, at, NULL, NULL, 0, on_connection, NULL)) {
		perror("cannot listen");
		return 1;
	}
	event_base_dispatch(loop);
	return 0;
}
