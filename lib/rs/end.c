/*
 * The ends that may take long. Without a carrier, or while a neighbour does not answer, Linux keeps
 * whoever destroys a queue pair until the frames that wait are given up, seconds later: threads of
 * their own wait there, a few at most, and are gone when nothing is left to end. Nobody else has
 * what they end any more.
 */
#include "rs/rs.h"

#include <unistd.h>

#include "util/clock.h"
#include "util/thread.h"

enum {
	ENDERS = 4,
	SETTLE_US = 20000 /* longer than they take where the kernel keeps nobody */
};

/* Its lock may be taken while an rsocket's is held, not the other way round. */
static struct {
	pthread_mutex_t lock;
	struct evr_rs_list waiting; /* each with the last reference to it */
	unsigned int running;
} enders = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.waiting = TAILQ_HEAD_INITIALIZER(enders.waiting),
};

static struct evr_rs *take_or_leave(void)
{
	struct evr_rs *rs;

	pthread_mutex_lock(&enders.lock);
	rs = TAILQ_FIRST(&enders.waiting);
	if (rs)
		TAILQ_REMOVE(&enders.waiting, rs, end_link);
	else
		enders.running--;
	pthread_mutex_unlock(&enders.lock);
	return rs;
}

static void *run(void *arg)
{
	struct evr_rs *rs;

	while ((rs = take_or_leave()))
		evr_rs_put(rs);
	return arg;
}

bool evr_rs_end_apart(struct evr_rs *rs)
{
	bool taken;

	pthread_mutex_lock(&enders.lock);
	if (enders.running < ENDERS && !evr_thread_start(run, NULL))
		enders.running++;
	taken = enders.running;
	if (taken)
		TAILQ_INSERT_TAIL(&enders.waiting, rs, end_link);
	pthread_mutex_unlock(&enders.lock);
	return taken;
}

static bool any_runs(void)
{
	bool any;

	pthread_mutex_lock(&enders.lock);
	any = enders.running;
	pthread_mutex_unlock(&enders.lock);
	return any;
}

bool evr_rs_end_settles(void)
{
	uint64_t until_us = evr_clock_now_us() + SETTLE_US;

	if (!any_runs())
		return false;
	do
		usleep(EVR_US_PER_MS);
	while (any_runs() && evr_clock_now_us() < until_us);
	return true;
}

void evr_rs_end_before_fork(void)
{
	pthread_mutex_lock(&enders.lock);
}

void evr_rs_end_after_fork(void)
{
	pthread_mutex_unlock(&enders.lock);
}

void evr_rs_end_begin_child(void)
{
	TAILQ_INIT(&enders.waiting);
	enders.running = 0;
	pthread_mutex_unlock(&enders.lock);
}
