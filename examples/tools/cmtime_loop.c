/*
 * The loops of cmtime: the first is the tool's, each other one has a thread. Only the first thread
 * talks to the tool; what the others have to say comes to it by a bell.
 */
#include "cmtime.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include <sys/eventfd.h>

#include <event2/event.h>

static int is_first(const struct cmtime_loop *loop)
{
	return loop == loop->test->loops;
}

struct cmtime_loop *cmtime_next_loop(struct cmtime *test)
{
	return &test->loops[test->next_loop++ % test->options.threads];
}

/* --- bells ---------------------------------------------------------------------------------- */

/* The counter cannot be full, as each is heard before it is rung often. */
void cmtime_ring(const struct cmtime_bell *bell)
{
	const uint64_t one = 1;
	ssize_t n = write(bell->fd, &one, sizeof(one));

	(void)n;
}

static void hear(int fd)
{
	uint64_t count;
	ssize_t n = read(fd, &count, sizeof(count));

	(void)n;
}

/* --- steps ---------------------------------------------------------------------------------- */

static void begin_came(evutil_socket_t fd, short what, void *arg)
{
	hear(fd);
	cmtime_loop_begin(arg);
}

void cmtime_loop_over(struct cmtime_loop *loop)
{
	if (is_first(loop))
		cmtime_loop_came(loop);
	else
		cmtime_ring(&loop->over);
}

static void over_came(evutil_socket_t fd, short what, void *arg)
{
	struct cmtime_loop *loop = arg;

	hear(fd);
	if (!loop->test->tool.stopping)
		cmtime_loop_came(loop);
}

/* --- failures ------------------------------------------------------------------------------- */

static void tell_failure(struct cmtime_loop *loop)
{
	struct cmtime *test = loop->test;

	if (loop->text)
		tool_fail(&test->tool, "%s: %s", ends_peer_text(&test->ends), loop->text);
	else
		ends_fail_error(&test->ends, &loop->error);
}

static void failure_came(evutil_socket_t fd, short what, void *arg)
{
	hear(fd);
	tell_failure(arg);
}

/* Only the first failure is told, so that nothing is written here while it is read there. */
static void fail(struct cmtime_loop *loop, const struct evrdma_error *error, const char *text)
{
	if (loop->has_failed)
		return;
	loop->has_failed = 1;
	loop->text = text;
	if (error)
		loop->error = *error;
	if (is_first(loop))
		tell_failure(loop);
	else
		cmtime_ring(&loop->failed);
}

void cmtime_fail_error(struct cmtime_loop *loop, const struct evrdma_error *error)
{
	fail(loop, error, NULL);
}

void cmtime_fail_call(struct cmtime_loop *loop, enum evrdma_step step, int err)
{
	const struct evrdma_error error = { .err = err, .step = step, .cm_event = -1 };

	fail(loop, &error, NULL);
}

void cmtime_fail_text(struct cmtime_loop *loop, const char *text)
{
	fail(loop, NULL, text);
}

void cmtime_tell_error(struct cmtime_loop *loop, const struct evrdma_error *error)
{
	struct cmtime *test = loop->test;

	pthread_mutex_lock(&test->lock);
	ends_tell_error(&test->ends, error);
	pthread_mutex_unlock(&test->lock);
}

void cmtime_tell_call(struct cmtime_loop *loop, enum evrdma_step step, int err)
{
	struct cmtime *test = loop->test;

	pthread_mutex_lock(&test->lock);
	ends_tell_call(&test->ends, step, err);
	pthread_mutex_unlock(&test->lock);
}

/* --- life ----------------------------------------------------------------------------------- */

static void base_closed(struct evrdma_base *base, void *arg)
{
	struct cmtime_loop *loop = arg;

	loop->base = NULL;
	event_base_loopbreak(loop->event_base);
}

static void end_came(evutil_socket_t fd, short what, void *arg)
{
	struct cmtime_loop *loop = arg;

	hear(fd);
	loop->stopping = 1;
	if (loop->base)
		evrdma_base_close(loop->base, base_closed, loop);
	else
		event_base_loopbreak(loop->event_base);
}

static void socket_came(evutil_socket_t fd, short what, void *arg)
{
	hear(fd);
	cmtime_tcp_take(arg);
}

static int make_first(struct cmtime *test)
{
	struct cmtime_loop *loop = test->loops;

	loop->event_base = test->tool.event_base;
	if (test->options.tcp)
		return 0;
	loop->base = test->base = tool_add_base(&test->tool, NULL);
	return loop->base ? 0 : -1;
}

static int make_bell(struct cmtime_bell *bell, struct event_base *base, event_callback_fn cb,
	struct cmtime_loop *loop)
{
	bell->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (bell->fd < 0)
		return -1;
	bell->event = event_new(base, bell->fd, EV_READ | EV_PERSIST, cb, loop);
	if (!bell->event)
		close(bell->fd);
	return bell->event ? event_add(bell->event, NULL) : -1;
}

static void free_bell(struct cmtime_bell *bell)
{
	if (!bell->event)
		return;
	event_free(bell->event);
	close(bell->fd);
}

static int make_bells(struct cmtime_loop *loop)
{
	struct event_base *first = loop->test->tool.event_base;

	return make_bell(&loop->end, loop->event_base, end_came, loop) ||
			       make_bell(&loop->begin, loop->event_base, begin_came, loop) ||
			       make_bell(&loop->socket, loop->event_base, socket_came, loop) ||
			       make_bell(&loop->over, first, over_came, loop) ||
			       make_bell(&loop->failed, first, failure_came, loop)
		       ? -1
		       : 0;
}

static int make_other(struct cmtime_loop *loop)
{
	struct cmtime *test = loop->test;

	loop->event_base = event_base_new();
	if (!loop->event_base || make_bells(loop)) {
		tool_fail(&test->tool, "cannot make an event loop; make -n smaller");
		return -1;
	}
	if (test->options.tcp)
		return 0;
	loop->base = evrdma_base_new(loop->event_base, NULL);
	if (loop->base)
		return 0;
	tool_fail(&test->tool, "RDMA: %s; make -n smaller", strerror(errno));
	return -1;
}

/* All have the same number of nodes, but for the first ones, which have the rest too. */
static void share_out(struct cmtime *test)
{
	long threads = test->options.threads, connections = test->options.connections, at = 0;

	for (long i = 0; i < threads; i++) {
		test->loops[i].test = test;
		test->loops[i].nodes = test->nodes + at;
		test->loops[i].n = connections / threads + (i < connections % threads);
		at += test->loops[i].n;
	}
}

int cmtime_loops_make(struct cmtime *test)
{
	int ret;

	share_out(test);
	ret = make_first(test);
	for (long i = 1; !ret && i < test->options.threads; i++)
		ret = make_other(&test->loops[i]);
	return ret;
}

static void *run(void *arg)
{
	struct cmtime_loop *loop = arg;

	event_base_dispatch(loop->event_base);
	return NULL;
}

/* Signals are the first thread's, whose loop has the events of them. */
static int start(struct cmtime_loop *loop)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&loop->thread, NULL, run, loop);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	loop->started = !err;
	if (err)
		tool_fail(&loop->test->tool, "cannot make a thread: %s; make -n smaller",
			strerror(err));
	return err ? -1 : 0;
}

int cmtime_loops_start(struct cmtime *test)
{
	int ret = 0;

	for (long i = 1; !ret && i < test->options.threads; i++)
		ret = start(&test->loops[i]);
	return ret;
}

/* One whose thread was never started is run to its end here. */
static void finish(struct cmtime_loop *loop)
{
	if (loop->end.event)
		cmtime_ring(&loop->end);
	if (loop->started)
		pthread_join(loop->thread, NULL);
	else if (loop->end.event)
		run(loop);
}

static void free_nodes(struct cmtime_loop *loop)
{
	for (long i = 0; i < loop->n; i++)
		if (loop->nodes[i].event)
			event_free(loop->nodes[i].event);
	loop->test->served += loop->served;
}

static void free_loop(struct cmtime_loop *loop)
{
	free_bell(&loop->begin);
	free_bell(&loop->end);
	free_bell(&loop->socket);
	free_bell(&loop->over);
	free_bell(&loop->failed);
	if (loop->event_base)
		event_base_free(loop->event_base);
}

void cmtime_loops_finish(struct cmtime *test)
{
	if (!test->loops || !test->nodes)
		return;
	for (long i = 1; i < test->options.threads; i++)
		finish(&test->loops[i]);
	for (long i = 0; i < test->options.threads; i++)
		free_nodes(&test->loops[i]);
	cmtime_tcp_fini(test);
	for (long i = 1; i < test->options.threads; i++)
		free_loop(&test->loops[i]);
}
