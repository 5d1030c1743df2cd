/* The other side, each in a process of its own. */
#include "interop/faults.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CQ_ENTRIES = 32767 };

static enum service service;

/* --- bytes ----------------------------------------------------------------------------------- */

static uint8_t pattern_at(unsigned number, size_t at)
{
	return (uint8_t)(at * 31 + at / 251 + number * 17);
}

void pattern_make(uint8_t *bytes, size_t len, unsigned number, size_t at)
{
	size_t i;

	for (i = 0; i < len; i++)
		bytes[i] = pattern_at(number, at + i);
}

bool pattern_is(const uint8_t *bytes, size_t len, unsigned number, size_t at)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (bytes[i] != pattern_at(number, at + i))
			return false;
	return true;
}

/* --- what it does ---------------------------------------------------------------------------- */

static void echo(struct bufferevent *bev, void *arg)
{
	(void)arg;
	bufferevent_write_buffer(bev, bufferevent_get_input(bev));
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
	(void)arg;
	if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
		bufferevent_free(bev);
}

static void on_connection(struct evrdma_listener *listener, struct bufferevent *bev,
	const struct sockaddr *addr, void *arg)
{
	(void)listener, (void)addr;
	bufferevent_setcb(bev, echo, NULL, on_event, arg);
	if (service != PEER_DEAF)
		bufferevent_enable(bev, EV_READ);
}

/* --- the process ----------------------------------------------------------------------------- */

/* The queues of so many streams do not take more of siw's queue pairs than there are. */
struct evrdma_base *faults_base(struct event_base *loop)
{
	struct evrdma_base_options options;

	evrdma_base_options_init(&options);
	options.cq_entries = CQ_ENTRIES;
	return evrdma_base_new(loop, &options);
}

void faults_set_window(struct evrdma_bev_options *options)
{
	options->recv_bytes = options->send_bytes = FAULT_WINDOW;
}

static void print_log(enum evrdma_log_level level, const char *text, void *arg)
{
	(void)arg;
	if (level >= EVRDMA_LOG_MSG)
		dprintf(STDOUT_FILENO, "# a peer: %s\n", text);
}

/* On any address, so that nothing of a device is kept for it. */
static int serve(int ready, uint16_t port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct event_base *loop = event_base_new();
	struct evrdma_base *base = faults_base(loop);
	struct evrdma_bev_options options;

	evrdma_bev_options_init(&options);
	faults_set_window(&options);
	signal(SIGPIPE, SIG_IGN);
	evrdma_set_log_cb(print_log, NULL);
	if (!base || !evrdma_bufferevent_listen(base, (struct sockaddr *)&addr, NULL, &options, 0,
			on_connection, NULL))
		return 1;
	if (write(ready, "y", 1) != 1)
		return 1;
	return event_base_dispatch(loop);
}

void peer_start(struct peer *peer, uint16_t port, enum service what)
{
	char ready = 0;
	int ends[2];

	ck_assert_int_eq(pipe(ends), 0);
	peer->port = port;
	peer->pid = fork();
	if (!peer->pid) {
		service = what;
		_exit(serve(ends[1], port));
	}
	close(ends[1]);
	ck_assert_int_eq(read(ends[0], &ready, 1), 1);
	ck_assert_int_eq(ready, 'y');
	close(ends[0]);
}

/* One that has been stopped, too. */
void peer_end(struct peer *peer)
{
	if (!peer->pid)
		return;
	kill(peer->pid, SIGKILL);
	waitpid(peer->pid, NULL, 0);
	peer->pid = 0;
}
