/* A base on the fake, and the loop that it needs, for tests of the event layer. */
#ifndef UNIT_EV_LOOP_H
#define UNIT_EV_LOOP_H

#include "unit/fake_main.h"

#include <errno.h>
#include <event2/event.h>
#include <evrdma/evrdma.h>
#include <netinet/in.h>
#include <stdbool.h>

extern struct event_base *ev_loop;
extern struct evrdma_base *ev_base;

/* The checked fixture: the fake, the loop, the base; at the end all of it is closed. */
void ev_set_up(void);
void ev_tear_down(void);
/* main() of a program with one case. */
int ev_main(const char *name, const TTest *const *tests, size_t n);

/* Runs the loop until the flag is set; the test fails when that takes more than 5 seconds. */
void ev_run_until(const bool *flag);
/* Runs the loop until it has nothing more to do at once. */
void ev_run_now(void);

/* An IPv4 address, valid until the fourth call after. */
struct sockaddr *ev_addr(const char *ip, uint16_t port);

#endif
