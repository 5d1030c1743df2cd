#include "config.h"

/*
 * The ends that may take long. Without a carrier, or while a neighbour does not answer, Linux keeps
 * whoever destroys a queue pair until the frames that wait are given up, seconds later: threads of
 * their own wait there, a few at most, and are gone when nothing is left to end. Nobody else has
 * what they end any more.
 */
#include "rs/rs.h"

#include <time.h>

#include "util/clock.h"
#include "util/thread.h"

enum {
	ENDERS = 4,
	SETTLE_US = 20000, /* longer than they take where the kernel keeps nobody */
	US_PER_S = 1000000,
	NS_PER_US = 1000
};

/* Its lock may be taken while an rsocket's is held, not the other way round. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t idle;
	struct evr_rs_list waiting; /* each with the last reference to it */
	unsigned int running;
} enders = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.idle = PTHREAD_COND_INITIALIZER,
	.waiting = TAILQ_HEAD_INITIALIZER(enders.waiting),
};

static void leave(void)
{
	enders.running--;
	if (!enders.running)
		pthread_cond_broadcast(&enders.idle);
}

static struct evr_rs *take_or_leave(void)
{
	struct evr_rs *rs;

	pthread_mutex_lock(&enders.lock);
	rs = TAILQ_FIRST(&enders.waiting);
	if (rs)
		TAILQ_REMOVE(&enders.waiting, rs, end_link);
	else
		leave();
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

static struct timespec at_us(uint64_t us)
{
	return (struct timespec){
		.tv_sec = (time_t)(us / US_PER_S),
		.tv_nsec = (long)(us % US_PER_S) * NS_PER_US,
	};
}

bool evr_rs_end_settles(void)
{
	struct timespec until = at_us(evr_clock_now_us() + SETTLE_US);
	bool waited = false;
	int ret = 0;

	pthread_mutex_lock(&enders.lock);
	while (enders.running && !ret) {
		ret = pthread_cond_clockwait(&enders.idle, &enders.lock, CLOCK_MONOTONIC, &until);
		waited = true;
	}
	pthread_mutex_unlock(&enders.lock);
	return waited;
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
	enders.idle = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	pthread_mutex_unlock(&enders.lock);
}
