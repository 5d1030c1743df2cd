#include "unit/cm_crew.h"

#include <poll.h>
#include <sched.h>
#include <stdlib.h>

enum { TURN_MS = 5 };

struct worker {
	pthread_t thread;
	unsigned number;
	void (*work)(unsigned number);
	pthread_barrier_t *start;
};

static void *work(void *arg)
{
	struct worker *worker = arg;

	pthread_barrier_wait(worker->start);
	worker->work(worker->number);
	return NULL;
}

void crew_run(unsigned n, void (*what)(unsigned number))
{
	struct worker *workers = calloc(n, sizeof(*workers));
	pthread_barrier_t start;
	unsigned i;

	ck_assert_ptr_nonnull(workers);
	pthread_barrier_init(&start, NULL, n);
	for (i = 0; i < n; i++) {
		workers[i] = (struct worker){ .number = i, .work = what, .start = &start };
		ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	for (i = 0; i < n; i++)
		pthread_join(workers[i].thread, NULL);
	pthread_barrier_destroy(&start);
	free(workers);
}

static void read_one(struct crew_reader *reader)
{
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;

	if (rdma_get_cm_event(reader->channel, &event)) {
		ck_assert_int_eq(errno, EAGAIN);
		return;
	}
	type = event->event;
	if (reader->on_event)
		reader->on_event(event);
	ck_assert_ok(rdma_ack_cm_event(event));
	atomic_fetch_add_explicit(&reader->seen[type], 1, memory_order_relaxed);
}

static void *read_events(void *arg)
{
	struct crew_reader *reader = arg;
	struct pollfd pfd = { .fd = reader->channel->fd, .events = POLLIN };

	while (!atomic_load_explicit(&reader->stop, memory_order_relaxed))
		if (poll(&pfd, 1, TURN_MS) > 0)
			read_one(reader);
	return NULL;
}

void crew_reader_start(struct crew_reader *reader, struct rdma_event_channel *channel,
	void (*on_event)(struct rdma_cm_event *event))
{
	*reader = (struct crew_reader){ .channel = channel, .on_event = on_event };
	ck_assert_int_eq(pthread_create(&reader->thread, NULL, read_events, reader), 0);
}

void crew_reader_stop(struct crew_reader *reader)
{
	atomic_store_explicit(&reader->stop, true, memory_order_relaxed);
	pthread_join(reader->thread, NULL);
}

void crew_reader_wait(struct crew_reader *reader, enum rdma_cm_event_type type, unsigned num)
{
	while (atomic_load_explicit(&reader->seen[type], memory_order_relaxed) < num)
		sched_yield();
}
