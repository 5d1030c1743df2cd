/* What the number of a socket shows to poll(2) and epoll(7): one suite, on TCP and on rsockets. */
#ifndef RS_DESCRIPTOR_H
#define RS_DESCRIPTOR_H

#include "rs/calls.h"

#include <check.h>

/* Where the suite listens, and how many connections at once it tries. */
struct descriptor_place {
	const struct rs_calls *calls;
	const char *ip;
	int many;
};

/* Chosen before the suite runs. */
extern struct descriptor_place descriptor_place;

TCase *descriptor_case(void);

#endif
