/*
 * What a server of evrdma-perf says of its clients. Who has thousands of connections is told in two
 * lines, not in thousands: the first at once, and after a second how many more there were of the
 * same. Of different kinds the first few are told like this, and how many others there were.
 */
#ifndef TOOLS_PERF_COMPLAINTS_H
#define TOOLS_PERF_COMPLAINTS_H

#include "common.h"

struct event;
struct sockaddr;

#define PERF_COMPLAINTS_AT_ONCE 4

struct perf_complaint {
	char text[TOOL_ERROR_TEXT_MAX]; /* "": there is none */
	long more;			/* of the same */
};

/* All 0 but the tool. */
struct perf_complaints {
	struct tool *tool;
	struct event *timer; /* a second after the first */
	struct perf_complaint said[PERF_COMPLAINTS_AT_ONCE];
	long others; /* in this second, when there was no room for them */
};

/* Makes the tool's status 1. addr: the client's, of this connection. */
void perf_complain(struct perf_complaints *complaints, const struct sockaddr *addr,
	const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Says what is still to be said. */
void perf_complaints_end(struct perf_complaints *complaints);

#endif
