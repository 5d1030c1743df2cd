/*
 * Connects, transfers and disconnects at random on one loop, for as long as is asked. Every so
 * often all is closed, and what the process has then is held against what it had the first time.
 */
#ifndef SCALE_ENDURE_H
#define SCALE_ENDURE_H

#include <stddef.h>
#include <stdint.h>
#include <netinet/in.h>

enum { ENDURE_KINDS = 8 };

/* What there is at rest. */
struct endure_state {
	unsigned fds;
	size_t heap;
	uint64_t objects[ENDURE_KINDS]; /* of the kernel, or what is one */
};

struct endure_device {
	struct sockaddr_in addr; /* whose port is 0 */
	unsigned clients;	 /* at once, at most 64 */
	void (*count)(uint64_t objects[ENDURE_KINDS]);
	unsigned slack[ENDURE_KINDS];
};

/* For seconds, from the seed. 0, or -1 and it was said why. */
int endure(const struct endure_device *device, unsigned seconds, unsigned seed);

#endif
