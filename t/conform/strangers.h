/* The peers of t/conform/beside_faults.c that are processes of their own, across the wire. */
#ifndef EVR_CONFORM_STRANGERS_H
#define EVR_CONFORM_STRANGERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct stranger {
	pid_t pid;
	uint16_t port;
	int orders; /* what it waits for, of a flood */
	int ready;  /* and what it says when it has all but asked */
};

enum service { STRANGER_ECHO, STRANGER_DEAF /* posts no buffer */ };

/* To be started before this process has anything of RDMA. */
void stranger_serve(struct stranger *stranger, enum service service);
void stranger_kill(struct stranger *stranger);

/*
 * Requests, so many, one after the other without waiting, each with some bytes of garbage; no
 * answer is answered. It begins when it is told a port, and is gone when it has heard of each and
 * is let go; well, if none of them was refused, where none may be.
 */
void stranger_flood(struct stranger *stranger, unsigned requests, bool may_be_refused);
void stranger_tell(const struct stranger *stranger, uint16_t port);
void stranger_let_go(const struct stranger *stranger);
/*
 * Whether it has all but asked; it asks when it is told the port again. Then, whether the first
 * have asked.
 */
int stranger_is_ready(const struct stranger *stranger);
/* Whether it is gone; it ended well then. */
int stranger_is_gone(struct stranger *stranger);

#endif
