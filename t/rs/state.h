/* The states that a socket can be in: each has the client of a pair, or one in its place. */
#ifndef RS_STATE_H
#define RS_STATE_H

#include "rs/pair.h"

enum { NOT_THERE = 1 }; /* a port that nobody listens on */

/* 0 or an errno of what a call returned. */
int error_of(ssize_t ret);
/* What SO_ERROR has, which it tells once. */
int so_error(int fd);
/* Binds it there, to a port that is free. */
int bind_one(int fd);

void be_new(struct pair *pair);
void be_bound(struct pair *pair);
void listens(struct pair *pair);
void listens_no_more(struct pair *pair);
/* On its way to a listener that has no room: the pair's is one whose place another has. */
void connects(struct pair *pair);
void was_refused(struct pair *pair);
void was_refused_and_told(struct pair *pair);
void be_connected(struct pair *pair);
void sends_no_more(struct pair *pair);
void reads_no_more(struct pair *pair);
void does_neither(struct pair *pair);
void has_met_the_end(struct pair *pair);
/* Both sides have shut down. */
void has_ended(struct pair *pair);
void peer_has_closed(struct pair *pair);
/* After it had said its own end. */
void peer_has_closed_too(struct pair *pair);
void was_reset(struct pair *pair);
void was_reset_and_told(struct pair *pair);
void ended_and_was_reset(struct pair *pair);

#endif
