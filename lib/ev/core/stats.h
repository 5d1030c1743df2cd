/*
 * What is counted, and how it is told. Whoever does a thing counts it, in the base and in the
 * object that it is done for: a base is one thread, so that is an addition.
 */
#ifndef EVR_EV_STATS_H
#define EVR_EV_STATS_H

#include <stddef.h>

#include <evrdma/stats.h>

struct evr_dump {
	evrdma_dump_cb cb;
	void *arg;
};

/* A line for each value that is not 0; what is the name of the object. */
void evr_dump_traffic(const struct evr_dump *dump, const char *what,
	const struct evrdma_traffic_stats *stats);
void evr_dump_pool(
	const struct evr_dump *dump, size_t buf_size, const struct evrdma_pool_stats *stats);
void evr_dump_listener(const struct evr_dump *dump, const char *what,
	const struct evrdma_listener_stats *stats);

#endif
