/* What sending, receiving and mappings share. */
#ifndef EVR_RS_STREAM_H
#define EVR_RS_STREAM_H

#include "rs/iov.h"
#include "rs/rs.h"

struct evr_rs_send {
	struct evr_rs_iov from;
	const struct sockaddr *to; /* of a datagram */
	socklen_t to_len;
	bool one_peer; /* a stream has one: another address cannot be meant */
	bool vectors;  /* of which no bytes are nothing, whatever the state */
	size_t done;
	bool direct; /* into a mapping of the peer's, at an offset */
	uint64_t offset;
};

/* The call: of all that is to be sent, how many bytes went, or -1 with errno. */
ssize_t evr_rs_send_pieces(int socket, struct evr_rs_send *send, int flags);

/* 0 when there is, or was, a connection; -EAGAIN while there is none yet; or why there is none. */
int evr_rs_check_connected(struct evr_rs *rs);

#endif
