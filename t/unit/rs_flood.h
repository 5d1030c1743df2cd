/* Messages that never pause. */
#ifndef UNIT_RS_FLOOD_H
#define UNIT_RS_FLOOD_H

#include <netinet/in.h>

/*
 * Until fake_meanwhile(NULL) each of this thread's calls of the fake has it send as many messages
 * as are taken from a queue at once, of one byte; to: NULL for a stream.
 */
void rs_flood_from(int fd, const struct sockaddr_in *to);

#endif
