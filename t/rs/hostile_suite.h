/*
 * Streams that meet a hostile peer, and a pair beside them that goes on. hostile_rsockets.c has
 * them as rsockets, hostile_bufferevents.c as bufferevents over RDMA under numbers of its own.
 */
#ifndef RS_HOSTILE_SUITE_H
#define RS_HOSTILE_SUITE_H

#include "rs/hostile.h"

#include <check.h>
#include <sys/types.h>

/* Which side the peer is. */
enum hostile_role { HOSTILE_CLIENT, HOSTILE_SERVER, HOSTILE_ROLES };

/* The one that meets it. */
struct hostile_victim {
	enum hostile_role role;
	struct hostile hostile;
	int listener, fd;
};

/* What they are. */
struct hostile_kind {
	const char *name;
	bool waits_to_be_spoken_to; /* one that accepted on iWARP is not writable before */
	bool shows_targets_alone;   /* and no memory for tables behind them */
	void (*begin)(void);
	void (*end)(void);
	TCase *(*own_case)(void);
};
extern const struct hostile_kind hostile_kind;

/* Two streams that have nothing to do with it: connected, and at the end bytes still pass. */
void hostile_begin(void);
void hostile_end(void);
void hostile_bytes_pass(void);

/* A listener; an attempt to connect. */
int hostile_rlisten(uint16_t *port);
int hostile_rconnect(uint16_t port);
/* The next connection of the listener. */
int hostile_raccept(int listener);
/* As the calls of sockets are, and none waits. */
ssize_t hostile_rsend(int fd, const void *bytes, size_t len);
ssize_t hostile_rrecv(int fd, void *bytes, size_t len);
int hostile_rclose(int fd);
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
