/*
 * A place for the tests of the preload module: RDMA is the fake's, TCP the kernel's own. What is
 * bound to 127.0.0.1 seems to be bound to the fake's address, and who connects to that by TCP comes
 * to 127.0.0.1.
 */
#ifndef PRELOAD_PLACES_H
#define PRELOAD_PLACES_H

#include <check.h>
#include <netinet/in.h>
#include <stdbool.h>

struct evr_pre_real;

void places_install(void);
void places_reset(void);
/* The calls that are the kernel's own. */
const struct evr_pre_real *places_real(void);
/* A case of tests in such a place, and a program of it. */
TCase *places_cases(const char *name, const TTest *const *tests, size_t num);
int places_main(TCase *cases);

/* What TCP's connects fail with from now on, 0: they do not. How many there were. */
void places_fail_tcp(int error);
int places_tcp_connects(void);

/* A listener of the program's, by both ways, or by TCP alone; its address. */
int places_listen(int flags, struct sockaddr_in *addr);
int places_listen_tcp(struct sockaddr_in *addr);
/* A socket of the program's; one that is bound to a port. */
int places_socket(int flags);
int places_bound(void);
void places_bind(int fd, const struct sockaddr_in *addr);
int places_connect(int fd, const struct sockaddr_in *addr);
/* Whether its bytes go by RDMA: the kernel knows no TCP socket under the number. */
bool places_by_rdma(int fd);

/* Both ends of a connection by RDMA. */
struct places_pair {
	int listener, client, server;
};
struct places_pair places_pair(int flags);
void places_close(struct places_pair *pair);
/* A child has the numbers, but not what is behind them, and closes them. */
void places_child_closes(int one, int other);

enum { PLACES_PATIENCE_MS = 60000 };
/* Until it has one of the events; what it has. */
short places_await(int fd, short events);
void places_say(int fd, const char *text);
void places_hear(int fd, const char *text);
void places_set_nonblock(int fd);

#endif
