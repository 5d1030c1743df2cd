/*
 * The time of a schedule. Once started it passes only when the schedule says so: the clock of the
 * whole program, libevent's included, is the one here, and where the loop would sleep it is told so
 * instead. Before that it is the machine's, which may itself skip what nobody waits through.
 */
#ifndef EVR_SCHEDULE_CLOCK_H
#define EVR_SCHEDULE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct event_base;

/* Starts over; every reading of the clock then takes tick_us. */
void clock_start(unsigned tick_us);
/* Starts over on the machine's time. */
void clock_follow(void);
/* The clock is the machine's, as it was before the first start. */
void clock_stop(void);
uint64_t clock_now_us(void);
void clock_advance_us(uint64_t us);

/* The longest that those whom a turn called kept the loop, since it was last asked. */
uint64_t clock_held_us(void);

/* How often the program has read the clock, without the loop's own readings, so far. */
unsigned clock_readings(void);

/* The machine's own time. */
uint64_t clock_real_us(void);

enum clock_turn {
	CLOCK_RAN,     /* something was called */
	CLOCK_IDLE,    /* nothing is to be done before the next timer */
	CLOCK_FOREVER, /* nothing is to be done, and there is no timer */
	CLOCK_EMPTY,   /* the loop has no event left */
};

/*
 * One turn of the loop. Where it would sleep until a timer it goes on at that time when skip is
 * set, else it returns.
 */
enum clock_turn clock_turn(struct event_base *loop, bool skip);

#endif
