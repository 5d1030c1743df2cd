/* rsockets that meet a hostile peer, and a pair beside them that goes on. */
#ifndef RS_HOSTILE_SUITE_H
#define RS_HOSTILE_SUITE_H

#include "rs/hostile.h"

#include <check.h>

/* Which side the peer is. */
enum hostile_role { HOSTILE_CLIENT, HOSTILE_SERVER, HOSTILE_ROLES };

/* The one that meets it: nonblocking, looked at by its number alone. */
struct hostile_victim {
	enum hostile_role role;
	struct hostile hostile;
	int listener, fd;
};

/* Two rsockets that have nothing to do with it: connected, and at the end bytes still pass. */
void hostile_begin(void);
void hostile_end(void);
void hostile_bytes_pass(void);

/* A listener; an attempt to connect. */
int hostile_rlisten(uint16_t *port);
int hostile_rconnect(uint16_t port);
/* The next connection of the listener. */
int hostile_raccept(int listener);
/* Waits for what the number shows; SO_ERROR. */
void hostile_wait_for(int fd, short events);
short hostile_events(int fd);
int hostile_error(int fd);

/* Both have said who they are, and the victim one byte more, which has arrived. */
void hostile_meet(struct hostile_victim *victim, enum hostile_role role);
/* Closes the victim, then the peer. */
void hostile_part(struct hostile_victim *victim);

/* A test by a name of its own. */
void hostile_add(TCase *tcase, const TTest *test, const char *name, int i);

TCase *hostile_words_case(enum hostile_role role);
TCase *hostile_greetings_case(enum hostile_role role);
TCase *hostile_silence_case(void);
int hostile_run(void (*set_up)(void), void (*tear_down)(void));

#endif
