/*
 * What a number shows while its connect is on its way: nothing. It is an end of a pair, whose other
 * end is the bell.
 *
 * Who waits for the number meanwhile, in poll(2) or select(2), is woken by the end that it had, and
 * looks then at what it has now. The bell is rung when the number has got another descriptor. Who
 * does not find there what he waits for sleeps on, and nothing but the bell can wake him: it is
 * kept while there is anybody, and rung when the other descriptor shows something new.
 */
#ifndef EVR_PRELOAD_SILENT_H
#define EVR_PRELOAD_SILENT_H

#include <stdbool.h>
#include <stdint.h>

/* The end that shows nothing, or a negative error. */
int evr_silent_open(int *bell);
void evr_silent_ring(int bell);
/* Whether anybody has the silent end still: who waits for it, or a child of fork(). */
bool evr_silent_is_held(int bell);

/*
 * Of the thread that watches epoll_fd, under its lock. Keeping takes the bell, and a duplicate of
 * what the number has now. Looking is at one of the thread's events, and nothing where that is not
 * of what is kept.
 */
void evr_silent_keep(int epoll_fd, int bell, int fd);
void evr_silent_look(int epoll_fd, int fd, uint32_t events);
bool evr_silent_keeps_any(void);
/* In a child of fork(): the parent goes on. */
void evr_silent_drop_all(void);

#endif
