/* Datagram rsockets that meet strangers, and an honest pair among them that goes on. */
#ifndef RS_HOSTILE_DGRAMS_H
#define RS_HOSTILE_DGRAMS_H

#include "rs/hostile_dgram.h"

#include <check.h>

/* Messages that the victim has room for, of each way. */
enum { HOSTILE_DGRAMS_ROOM = 16 };

/* One that everybody knows, and one whose messages to it and from it all arrive. */
struct hostile_dgrams {
	int victim, honest;
	struct sockaddr_in victim_addr, honest_addr;
	struct hostile_dgram hostile;
};
extern struct hostile_dgrams hostile_dgrams;

void hostile_dgrams_begin(void);
void hostile_dgrams_end(void);
void hostile_dgrams_honest_pass(void);

/* The next message to the victim; who it says it is from. */
size_t hostile_dgrams_hear(void *bytes, size_t room, struct sockaddr_in *from);
/*
 * What else the victim hears before a last word by the same way: how many there were. Each is
 * answered if so wanted.
 */
unsigned hostile_dgrams_hear_until_last(bool by_qp, bool answer);

TCase *hostile_dgrams_words_case(void);
TCase *hostile_dgrams_floods_case(void);
int hostile_dgrams_run(void (*set_up)(void), void (*tear_down)(void));

#endif
