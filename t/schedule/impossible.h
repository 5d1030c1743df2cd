/* The pairs that no schedule can reach, and why. */
#ifndef EVR_SCHEDULE_IMPOSSIBLE_H
#define EVR_SCHEDULE_IMPOSSIBLE_H

#include "schedule/cover.h"

struct impossible {
	enum kind kind;
	unsigned mark;
	unsigned states; /* a bit each */
	const char *reason;
};

/* Ends with one without a reason. */
extern const struct impossible impossible[];

#endif
