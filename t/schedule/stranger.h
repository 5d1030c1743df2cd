/*
 * A peer in a process of its own, that can be stopped and killed. It takes every connection, makes
 * some when it is told to, says something on each, and hears whatever is said.
 */
#ifndef EVR_SCHEDULE_STRANGER_H
#define EVR_SCHEDULE_STRANGER_H

#include <stdint.h>

/* Returns the port that it listens on at that address. */
uint16_t stranger_start(const char *ip);
/* Has it connect there. */
void stranger_call(const char *ip, uint16_t port);
void stranger_signal(int number);
/* Kills it, and waits until it is gone. */
void stranger_end(void);

#endif
