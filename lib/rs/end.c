/*
 * The ends that may take long. Without a carrier, or while a neighbour does not answer, Linux keeps
 * whoever destroys a queue pair until the frames that wait are given up, seconds later: threads of
 * their own wait there, a few at most, and are gone when nothing is left to end.
 */
#include "rs/rs.h"

#include "util/thread.h"

enum { ENDERS = 4 };

/* Its lock may be taken while an rsocket's is held, not the other way round. */
static struct {
	pthread_mutex_t lock;
	struct evr_rs_list waiting; /* each with a reference */
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

	while ((rs = take_or_leave())) {
		pthread_mutex_lock(&rs->lock);
		evr_rs_end(rs);
		pthread_mutex_unlock(&rs->lock);
		evr_rs_put(rs);
	}
	return arg;
}

/* Whether somebody will take it. */
static bool hand_over(struct evr_rs *rs)
{
	bool taken;

	pthread_mutex_lock(&enders.lock);
	if (enders.running < ENDERS && !evr_thread_start(run, NULL))
		enders.running++;
	taken = enders.running;
	if (taken) {
		atomic_fetch_add(&rs->refs, 1);
		TAILQ_INSERT_TAIL(&enders.waiting, rs, end_link);
	}
	pthread_mutex_unlock(&enders.lock);
	return taken;
}

void evr_rs_end_apart(struct evr_rs *rs)
{
	if (!hand_over(rs))
		evr_rs_end(rs);
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
