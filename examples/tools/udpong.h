/* udpong: datagrams between clients and a server, counted or echoed, and timed. */
#ifndef TOOLS_UDPONG_H
#define TOOLS_UDPONG_H

#include <stdint.h>

#include "lookup.h"
#include "sock.h"

#define UDPONG "udpong"
#define UDPONG_SIZE_MAX 2048

struct udpong_options {
	const char *server;
	const char *bind;
	long port;
	long buffer_bytes;
	long transfers;
	long size_bytes;
	long patience_s; /* 0: without end */
	int custom;
	int plain;
	int async;
	int blocking;
	int echo;
};

/* LOGIN, START, ECHO and END are answered with the same number, and sent again until they are. */
enum udpong_op { UDPONG_LOGIN, UDPONG_START, UDPONG_DATA, UDPONG_ECHO, UDPONG_END };

/* A message; but for ECHO and DATA it has no payload. */
struct udpong_message {
	uint8_t op;
	uint8_t id;    /* of the client, which the answer to LOGIN says */
	uint8_t seqno; /* of DATA, that of START */
	uint8_t reserved;
	uint32_t data; /* big-endian; in the answer to END how many messages came */
	uint8_t unused[8];
	uint8_t payload[UDPONG_SIZE_MAX - 16];
};

#define UDPONG_HEADER_BYTES 16

struct udpong {
	struct udpong_options options;
	struct lookup lookup;
	struct sock sock;
};

/* Opens a socket with the options. Returns 0, or -1 after saying why. */
int udpong_open(struct udpong *test);

/* They wait as the options say, for at most timeout_ms if that is not negative. Calls give a count,
 * or -errno: -ETIMEDOUT when nothing came. */
ssize_t udpong_send(struct udpong *test, const void *data, size_t len_bytes,
	const struct sockaddr_storage *to, socklen_t len);
ssize_t udpong_recv(struct udpong *test, void *data, size_t len_bytes,
	struct sockaddr_storage *from, socklen_t *len, int timeout_ms);

/* They return the status; the server ends by a signal only. */
int udpong_serve(struct udpong *test);
int udpong_run(struct udpong *test);

#endif
