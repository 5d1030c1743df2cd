/* Whether anything comes, looked at each second; on a terminal it shows how far a run is. */
#ifndef EVR_PERF_WATCH_H
#define EVR_PERF_WATCH_H

#include <event2/event.h>
#include <stdint.h>

/* Nothing has come for the patience. It was stopped. */
typedef void perf_silence_cb(void *arg);

struct perf_watch {
	uint64_t progress; /* goes up with each message, or connection, */
	uint64_t goal;	   /* to this, for the line on the terminal; 0: not known */
	int alive;	   /* set by what comes besides */
	long patience_s;
	perf_silence_cb *cb;
	void *arg;

	struct event *timer;
	uint64_t seen;	 /* of the progress, when it was looked at last */
	uint64_t due_ns; /* when it is looked at next */
	long quiet_s;	 /* so long nothing came */
	int on_terminal;
	int shown; /* a line is there */
};

/* Begins anew. cb, arg and patience_s are set. 0, or -1 for want of memory. */
int perf_watch_start(struct perf_watch *watch, struct event_base *base, uint64_t goal);
void perf_watch_stop(struct perf_watch *watch);
void perf_watch_free(struct perf_watch *watch);

#endif
