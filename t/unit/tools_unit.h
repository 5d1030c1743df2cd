/* The tools on the fake: both ends in one process, each with its loop on a thread of its own. */
#ifndef TOOLS_UNIT_H
#define TOOLS_UNIT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "fake/fake.h"

enum { TOOLS_ARGS_MAX = 32 };

/* A command line, cut at its spaces. */
struct tools_args {
	char text[256];
	char *argv[TOOLS_ARGS_MAX];
	int argc;
};

/* Also makes getopt() begin again. */
void tools_args_set(struct tools_args *args, const char *text);

/* Returns whether the number of live objects of a kind came to n within some seconds. */
bool tools_wait_live(enum fake_object object, unsigned n);

/* A tool's end on a thread; the result is its status. */
void tools_thread_start(pthread_t *thread, int (*finish)(void *tool), void *tool);
int tools_thread_join(pthread_t thread);

#endif
