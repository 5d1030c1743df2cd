/*
 * A publisher to a multicast group, and a subscriber that counts what was lost on the way: nobody
 * sends a datagram again, so each carries a number, and a gap in them is a loss.
 *
 *   13-multicast ADDRESS GROUP                   subscribes, until it is interrupted
 *   13-multicast ADDRESS GROUP COUNT [FIRST]     publishes so many, numbered from FIRST on (0)
 *
 * ADDRESS is the device's own. A datagram is lost when the subscriber has no buffer posted: it has
 * 64, and the publisher leaves a millisecond between two. Not on iWARP, which has no datagrams.
 */
#include <arpa/inet.h>
#include <evrdma/evrdma.h>
#include <event2/event.h>
#include <event2/util.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHUTDOWN_MS = 2000 };

static struct evrdma_base *base;
static struct evrdma_dgram *dgram;
static struct evrdma_pool *pool;
static struct sockaddr_storage addr, group_addr;
static struct event *signal_event, *timer;
static int publishes, status;
static uint32_t next, last; /* of the publisher: what to send; of the subscriber next to come */
static unsigned long heard, lost;

/* Sends under way are waited for. */
static void end(void)
{
	event_del(signal_event);
	event_del(timer);
	evrdma_base_shutdown(base, SHUTDOWN_MS, NULL, NULL);
}

static void fail(const char *why)
{
	fprintf(stderr, "%s\n", why);
	status = 1;
	end();
}

static void fail_by(const struct evrdma_error *error)
{
	char why[EVRDMA_ERROR_TEXT_MAX];

	fail(evrdma_error_text(error, why, sizeof(why)));
}

/* --- the publisher -------------------------------------------------------------------------- */

static void on_sent(struct evrdma_dgram *from, struct evrdma_buf *buf,
	const struct evrdma_error *error, void *group)
{
	const struct timeval later = { .tv_usec = 1000 };

	if (error)
		fail_by(error);
	else if (next == last)
		end();
	else
		evtimer_add(timer, &later);
}

static void publish(evutil_socket_t fd, short what, void *arg)
{
	static struct evrdma_mcast *group;
	struct evrdma_buf *buf = evrdma_pool_get(pool);
	uint32_t number = htonl(next++);

	if (arg)
		group = arg;
	if (buf)
		memcpy(evrdma_buf_data(buf), &number, sizeof(number));
	if (!buf || evrdma_dgram_send(dgram, group, buf, sizeof(number), NULL, on_sent, NULL))
		fail("cannot send");
	evrdma_buf_unref(buf);
}

/* --- the subscriber ------------------------------------------------------------------------- */

/* A number that was passed already is of a publisher that begins anew. */
static void on_recv(struct evrdma_dgram *to, const struct evrdma_recv *recv, void *arg)
{
	uint32_t number;

	if (recv->len != sizeof(number))
		return;
	memcpy(&number, recv->data, sizeof(number));
	number = ntohl(number);
	if (heard && number > next) {
		lost += number - next;
		printf("%u lost before %u\n", number - next, number);
	}
	heard++;
	next = number + 1;
	printf("%lu heard\n", heard);
}

static void on_signal(evutil_socket_t fd, short what, void *arg)
{
	if (!publishes)
		printf("%lu heard, %lu lost\n", heard, lost);
	end();
}

/* --- both ----------------------------------------------------------------------------------- */

static void on_group(struct evrdma_mcast *group, enum evrdma_mcast_event event,
	const struct evrdma_error *error, void *arg)
{
	if (event == EVRDMA_MCAST_ERROR)
		fail_by(error);
	else if (event == EVRDMA_MCAST_JOINED && publishes)
		publish(-1, EV_TIMEOUT, group);
	else if (event == EVRDMA_MCAST_JOINED)
		printf("joined\n");
}

static void on_event(struct evrdma_dgram *at, enum evrdma_dgram_event event,
	const struct evrdma_error *error, void *arg)
{
	unsigned flags = publishes ? EVRDMA_MCAST_OPT_SENDONLY : 0;

	if (event == EVRDMA_DGRAM_ERROR)
		fail_by(error);
	if (event == EVRDMA_DGRAM_READY &&
		!evrdma_mcast_join(at, (struct sockaddr *)&group_addr, flags, on_group, NULL))
		fail("cannot join: is it a group, of the same family as the address?");
}

static int open_endpoint(void)
{
	struct evrdma_dgram_options options;

	evrdma_dgram_options_init(&options);
	pool = evrdma_pool_new(base, EVRDMA_DGRAM_HEADER_BYTES + sizeof(uint32_t), 0);
	options.recv_pool = publishes ? NULL : pool;
	options.recv_depth = publishes ? 0 : options.recv_depth;
	dgram = evrdma_dgram_new(base, &options);
	if (!dgram)
		return -1;
	evrdma_dgram_setcb(dgram, on_recv, on_event, NULL);
	return evrdma_dgram_open(dgram, (struct sockaddr *)&addr, NULL);
}

static int run(struct event_base *loop)
{
	base = evrdma_base_new(loop, NULL);
	if (!base)
		return perror("evrdma_base_new"), 1;
	signal_event = evsignal_new(loop, SIGINT, on_signal, NULL);
	timer = evtimer_new(loop, publish, NULL);
	event_add(signal_event, NULL);
	if (open_endpoint())
		fail("cannot open an endpoint");
	event_base_dispatch(loop); /* returns when the base is closed */
	event_free(timer);
	event_free(signal_event);
	event_base_free(loop);
	return status;
}

int main(int argc, char **argv)
{
	int len = sizeof(addr), group_len = sizeof(group_addr);
	int help = argc > 1 && !strcmp(argv[1], "-h");
	uint32_t count = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 1;

	publishes = argc > 3;
	next = argc > 4 ? (uint32_t)strtoul(argv[4], NULL, 10) : 0;
	last = next + count;
	if (help || argc < 3 || argc > 5 || !count ||
		evutil_parse_sockaddr_port(argv[1], (struct sockaddr *)&addr, &len) ||
		evutil_parse_sockaddr_port(argv[2], (struct sockaddr *)&group_addr, &group_len))
		return fprintf(help ? stdout : stderr,
			       "usage: 13-multicast ADDRESS GROUP [COUNT [FIRST]]\n"
			       "publishes COUNT datagrams; without it, subscribes\n"), !help;
	setvbuf(stdout, NULL, _IOLBF, 0);
	return run(event_base_new());
}
