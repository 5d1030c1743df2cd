/* Steps that the tests of datagram rsockets share: UDP is this machine's own. */
#ifndef UNIT_RS_DGRAM_UNIT_H
#define UNIT_RS_DGRAM_UNIT_H

#include "unit/rs_unit.h"

#include <netinet/in.h>

#define DGRAM_HOST "127.0.0.1"

struct dgram_two {
	int a, b;
	struct sockaddr_in a_addr, b_addr;
};

struct sockaddr_in dgram_place(const char *ip, uint16_t port);
int dgram_open_one(int type);
/* On a port that is free. */
struct sockaddr_in dgram_bind_to(int fd, const char *ip);
/* Both bound, on one host. */
struct dgram_two dgram_make_two(int type);
void dgram_close_two(struct dgram_two *two);
/* Until both know each other's queue pair. */
void dgram_meet(struct dgram_two *two);

void dgram_send_text(int fd, const char *text, const struct sockaddr_in *to);
void dgram_await(int fd);
void dgram_expect_text(int fd, const char *text, struct sockaddr_in *from);
/* What was sent to it before is there by now: it comes in order, and this is the last. */
void dgram_expect_none_until(int fd, int other, const struct sockaddr_in *to);
void dgram_expect_nothing(int fd);
/* One message, and how many of the device's it was. */
unsigned dgram_pass(int from, int to, const struct sockaddr_in *addr, size_t len);
/* As one who has no rsocket. */
void dgram_send_plain(const char *ip, const void *bytes, size_t len, const struct sockaddr_in *to);

#endif
