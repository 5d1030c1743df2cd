/* Peers that connect, send one message, and destroy their id without a word. */
#ifndef EVR_CONFORM_HOSTILE_H
#define EVR_CONFORM_HOSTILE_H

#include <stdbool.h>

struct fixture;

enum { HOSTILE_PEERS = 4 };

/*
 * As processes, before there is anything that they would inherit; so many connections each. One of
 * a hundred may fail, whose handshake is disturbed by the end of the one before.
 */
void hostile_start(unsigned each);
/* At the fixture's listener. */
void hostile_let_go(struct fixture *f);
/* They are gone, and so are the connections with them. */
bool hostile_are_gone(struct fixture *f);

#endif
