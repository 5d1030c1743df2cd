/* Steps that the tests of rsockets share: two ends in one thread, on the fake. */
#ifndef UNIT_RS_UNIT_H
#define UNIT_RS_UNIT_H

#include "unit/cm_unit.h"

#include <rdma/rsocket.h>

/* One end of a connection, and its listener. */
struct rs_pair {
	int listener, client, server;
};

/* A nonblocking listener on the fake's RoCE, on CM_PORT. */
int rs_listener(void);
/* A nonblocking client whose connection is under way. */
int rs_client(void);
int rs_client_of(const char *ip);
struct rs_pair rs_connect(void);
/* The same on another device. */
struct rs_pair rs_connect_at(const char *ip);
/* The same at a listener that is there. */
struct rs_pair rs_connect_to(int listener);
/* The same, whose server has room to show its client some memory. */
struct rs_pair rs_connect_to_show(void);
void rs_close(struct rs_pair *pair);

/* What rpoll() says at once, of events. */
short rs_events(int fd, short events);
/* And when there is anything. */
short rs_await(int fd, short events);
/* All of it goes, and is there. */
void rs_pass(int from, int to, size_t len);

#endif
