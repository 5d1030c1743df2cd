/* The addresses that a tool connects to and from, found before anything runs. */
#ifndef TOOLS_LOOKUP_H
#define TOOLS_LOOKUP_H

#include <stddef.h>
#include <sys/socket.h>

#include "address.h"

struct lookup {
	const char *name;   /* of the tool */
	const char *server; /* NULL for a server */
	const char *bind;
	enum address_format format;
	long port;
	int type;    /* SOCK_STREAM, SOCK_DGRAM */
	int resolve; /* by rdma_getaddrinfo() */
	/* -- */
	struct sockaddr_storage addr; /* to connect to, or to listen on */
	socklen_t len;
	struct sockaddr_storage src; /* to connect from; len 0 without one */
	socklen_t src_len;
	void *route; /* for RDMA_ROUTE, when the resolver gave one */
	socklen_t route_len;
};

/* Fills in what is below the line. Returns 0, or -1 after saying why. */
int lookup_run(struct lookup *lookup);
void lookup_fini(struct lookup *lookup);

#endif
