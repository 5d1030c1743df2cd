/*
 * A cable between two network devices, in a process of its own. It loses, delays, repeats and
 * reorders frames as it is told, drawn from a seed, so that the same run sees the same weather.
 */
#ifndef EVR_SCHEDULE_WIRE_H
#define EVR_SCHEDULE_WIRE_H

#include <stdbool.h>
#include <stdint.h>

enum wire_end { WIRE_A, WIRE_B, WIRE_ENDS };

/* What the CM's agents say to each other; the bits of weather.lost. */
enum wire_message {
	WIRE_REQ,
	WIRE_MRA,
	WIRE_REJ,
	WIRE_REP,
	WIRE_RTU,
	WIRE_DREQ,
	WIRE_DREP,
	WIRE_MESSAGES
};

struct weather {
	uint64_t seed;		      /* of what is drawn from now on; 0: as before */
	uint32_t loss, repeat;	      /* per mille */
	uint32_t delay_us, jitter_us; /* a random part of the jitter comes on top */
	uint32_t lost;		      /* messages of the CM that do not pass at all */
	bool down[WIRE_ENDS];	      /* the devices see no carrier */
};

/*
 * The ends are network devices in the namespace of that name; the process ends with ours. 0, or
 * -errno.
 */
int wire_start(const char *net_namespace, const char *const ends[WIRE_ENDS]);
/* What a network device at such an end sends is to be as on a cable: in frames, with checksums. */
int wire_whole_frames(const char *netdev);
/* Returns when it holds. */
void wire_set(const struct weather *weather);

#endif
