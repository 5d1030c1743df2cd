/* The calls that move bytes, by number: those of a socket that names nobody, and those that may. */
#ifndef PRELOAD_WAYS_H
#define PRELOAD_WAYS_H

#include <netinet/in.h>
#include <sys/types.h>

enum { WAYS = 6, WAYS_NAMELESS = 3 };

/* The address is NULL for a stream; the first WAYS_NAMELESS ways leave it alone. */
ssize_t ways_send(int way, int fd, char *buf, size_t len, struct sockaddr_in *to);
ssize_t ways_receive(int way, int fd, char *buf, size_t len, struct sockaddr_in *from);

#endif
