/* Two ends of a connection, and the steps that the suites on TCP and rsockets take with them. */
#ifndef RS_PAIR_H
#define RS_PAIR_H

#include "rs/calls.h"

#include <check.h>
#include <stdbool.h>
#include <stdint.h>

enum { PATIENCE_MS = 60000, QUIET_MS = 30 };

/* Where the suites listen, by which calls, and how many connections at once they try. */
struct pair_place {
	const struct rs_calls *calls;
	const char *ip; /* of IPv4 or IPv6 */
	int many;
	/* What confirms connections is lost on its way to who listens. NULL: it cannot be. */
	void (*lose_confirmations)(bool lose);
};

/* Chosen before a suite runs. */
extern struct pair_place pair_place;

static inline const struct rs_calls *call(void)
{
	return pair_place.calls;
}

/* An address there; it has so many bytes, as have all of the family. */
int family(void);
struct sockaddr_storage place(uint16_t port);
socklen_t place_len(void);
uint16_t port_of(const struct sockaddr_storage *addr);

struct pair {
	int listener, client, server;
};

/* All of them are nonblocking. */
int open_one(void);
/* On a port that is free. */
int listen_on(uint16_t *port, int backlog);
/* It is on its way. */
int connect_to(uint16_t port);
int accept_from(int listener);
struct pair make_pair(void);
void end_pair(const struct pair *pair);
void set_blocking(int fd);
/* Closes so that the peer meets a reset. */
void reset(int fd);

int64_t now_ms(void);
void pause_ms(int ms);
void lose_confirmations(bool lose);
/* What it shows of POLLIN, POLLOUT, POLLRDHUP and of what is always shown. */
int events_of(int fd);
/* It comes to show this, and stays so. */
bool shows(int fd, int wanted);
void expect_events(int fd, int wanted);
/* It shows one of these, sooner or later. */
void wait_for(int fd, short events);

/* A pattern of bytes, of all that goes in one direction from an offset on. */
void fill(char *bytes, size_t len, size_t offset);
void send_bytes(int fd, size_t len);
void receive_bytes(int fd, size_t len);
/* Nothing is there to be read. */
void expect_nothing(int fd);
void expect_end(int fd);
/* As much as it takes; returns how much. */
size_t fill_up(int fd);
/* All of that is read, and has the pattern from the offset on. */
void empty(int fd, size_t len, size_t offset);

#endif
