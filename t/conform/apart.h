/*
 * Clients on a base and a loop of their own: the server's loop stands still while theirs runs. One
 * such loop at a time.
 */
#ifndef EVR_CONFORM_APART_H
#define EVR_CONFORM_APART_H

#include <stdbool.h>

struct endpoint;
struct event_base;
struct fixture;

extern struct event_base *apart_loop;

void apart_start(void);
/* To the fixture's listener, with its options; they have to do without a pool. */
struct endpoint *apart_connect(struct fixture *f);
void apart_run_until(struct fixture *f, bool (*condition)(struct fixture *));
/* Closes the base with all that is on it. */
void apart_end(void);

#endif
