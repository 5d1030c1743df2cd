/*
 * Many connections on one loop, both ends of each: all are made, a message passes on each there and
 * back, and all are closed, while a timer ticks.
 */
#ifndef SCALE_CROWD_H
#define SCALE_CROWD_H

#include <evrdma/error.h>
#include <stdint.h>
#include <sys/socket.h>

enum crowd_phase { CROWD_SET_UP, CROWD_IDLE, CROWD_USED, CROWD_TORN_DOWN, CROWD_PHASES };

struct crowd {
	unsigned wanted;     /* connections */
	unsigned at_once;    /* that are being made; 0: 64 */
	unsigned cq_entries; /* of the base's options; 0: as they are */
	unsigned made, passed, closed;
	uint64_t began_us[CROWD_PHASES], ended_us[CROWD_PHASES];
	uint64_t longest_gap_us; /* between two ticks */
	unsigned ticks;
	/* NULL, or called as each phase begins and when it has ended. */
	void (*watch)(enum crowd_phase phase, int has_ended, void *arg);
	void *arg;
	const char *error; /* what failed, or NULL */
	char text[EVRDMA_ERROR_TEXT_MAX];
};

/* On the device of an address of IPv4, whose port is 0. 0, or -1 and crowd->error. */
int crowd_run(struct crowd *crowd, const struct sockaddr *addr, uint64_t (*now_us)(void));

#endif
