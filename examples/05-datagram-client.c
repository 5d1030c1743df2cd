/*
 * Asks a service of datagrams, and prints its answer. Datagrams may be lost: when no answer comes
 * in time, it asks again.
 *
 *   05-datagram-client ADDRESS:PORT TEXT
 */
#include <evrdma/evrdma.h>
#include <event2/event.h>
#include <event2/util.h>
#include <stdio.h>
#include <string.h>

enum { MOST_BYTES = 1024, TRIES = 5, RETRY_MS = 300 };

static struct evrdma_base *base;
static struct evrdma_pool *pool;
static struct evrdma_dgram *dgram;
static struct evrdma_peer *service;
static struct sockaddr_storage addr;
static const char *text;
static struct event *timer;
static int tries, status = 1;

static void quit(const char *why)
{
	if (why)
		fprintf(stderr, "%s\n", why);
	event_del(timer);
	evrdma_base_close(base, NULL, NULL);
}

static void fail(const struct evrdma_error *error)
{
	char why[EVRDMA_ERROR_TEXT_MAX];

	quit(evrdma_error_text(error, why, sizeof(why)));
}

static void ask(evutil_socket_t fd, short what, void *arg)
{
	const struct timeval later = { .tv_usec = RETRY_MS * 1000 };
	struct evrdma_buf *buf = evrdma_pool_get(pool);
	size_t len = strlen(text);

	if (!buf || len > evrdma_dgram_get_mtu(dgram) || len > MOST_BYTES || tries++ == TRIES) {
		quit("no answer");
	} else {
		memcpy(evrdma_buf_data(buf), text, len);
		evrdma_dgram_send_to(dgram, service, buf, len, NULL, NULL, NULL);
		evtimer_add(timer, &later);
	}
	evrdma_buf_unref(buf);
}

static void on_recv(struct evrdma_dgram *to, const struct evrdma_recv *recv, void *arg)
{
	printf("%.*s\n", (int)recv->len, (const char *)recv->data);
	status = 0;
	quit(NULL);
}

static void on_service(struct evrdma_peer *peer, enum evrdma_peer_event event,
	const struct evrdma_error *error, void *arg)
{
	if (event == EVRDMA_PEER_READY)
		ask(-1, EV_TIMEOUT, NULL);
	if (event == EVRDMA_PEER_ERROR)
		fail(error);
}

static void on_event(struct evrdma_dgram *from, enum evrdma_dgram_event event,
	const struct evrdma_error *error, void *arg)
{
	if (event == EVRDMA_DGRAM_ERROR)
		fail(error);
	if (event != EVRDMA_DGRAM_READY)
		return;
	service = evrdma_peer_new(from, (struct sockaddr *)&addr, NULL, on_service, NULL);
	if (!service)
		quit("cannot look for the service");
}

int main(int argc, char **argv)
{
	int len = sizeof(addr);
	struct event_base *loop = event_base_new();
	struct evrdma_dgram_options options;

	base = evrdma_base_new(loop, NULL);
	if (!base)
		return perror("evrdma_base_new"), 1;
	if (argc < 3 || evutil_parse_sockaddr_port(argv[1], (struct sockaddr *)&addr, &len))
		return fprintf(stderr, "usage: 05-datagram-client ADDRESS:PORT TEXT\n"), 1;
	text = argv[2];
	timer = evtimer_new(loop, ask, NULL);
	pool = evrdma_pool_new(base, EVRDMA_DGRAM_HEADER_BYTES + MOST_BYTES, 0);
	evrdma_dgram_options_init(&options);
	options.recv_pool = pool;
	dgram = evrdma_dgram_new(base, &options);
	evrdma_dgram_setcb(dgram, on_recv, on_event, NULL);
	/* on the device that leads to the service */
	evrdma_dgram_open(dgram, NULL, (struct sockaddr *)&addr);
	event_base_dispatch(loop);
	event_free(timer);
	event_base_free(loop);
	return status;
}
