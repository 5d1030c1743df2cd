/*
 * Datagrams of rsockets, as rdma-core's librdmacm speaks them: the header of every packet that goes
 * by a UD queue pair, and the messages by UDP with which two sockets find each other's queue pairs.
 * Nothing of it is larger than EVR_DGRAM_MAX with its header.
 */
#ifndef EVR_PROTO_DGRAM_H
#define EVR_PROTO_DGRAM_H

#include <stddef.h>
#include <stdint.h>

enum {
	EVR_DGRAM_MAX = 2048,
	EVR_DGRAM_LEN4 = 8,
	EVR_DGRAM_LEN6 = 24,
	EVR_DGRAM_UDP_LEN4 = 16,
	EVR_DGRAM_UDP_LEN6 = 28,
	EVR_DGRAM_QPN_MAX = 0xffffff,
};

/* The sender of a packet. Numbers in host order, addresses as they are sent. */
struct evr_dgram_header {
	uint8_t version; /* 4 or 6 */
	uint16_t port;
	uint32_t flowinfo; /* of version 6 */
	uint8_t addr[16];  /* four of them in version 4 */
};

/* Returns the length, 8 or 24; -EAFNOSUPPORT: another version; -EMSGSIZE: more than size. */
int evr_dgram_encode(const struct evr_dgram_header *header, void *bytes, size_t size);
/*
 * Returns the length of the header, behind which the data is. -EMSGSIZE: the packet is shorter than
 * its header; -EAFNOSUPPORT: another version; -EBADMSG: the length is not the version's.
 */
int evr_dgram_decode(struct evr_dgram_header *header, const void *bytes, size_t len);

enum evr_dgram_op {
	EVR_DGRAM_DATA = 0,    /* data for the socket follows, for want of a queue pair */
	EVR_DGRAM_CONTROL = 7, /* tells a queue pair */
};

/* A message by UDP: the queue pair for an address of the sender's. */
struct evr_dgram_message {
	uint8_t version;  /* 4 or 6 */
	uint8_t op;	  /* one of enum evr_dgram_op */
	uint32_t qpn;	  /* 24 bits */
	uint8_t addr[16]; /* four of them in version 4 */
};

/*
 * Returns the length, 16 or 28; -EAFNOSUPPORT: another version; -EINVAL: no such operation or queue
 * pair; -EMSGSIZE: more than size.
 */
int evr_dgram_message_encode(const struct evr_dgram_message *message, void *bytes, size_t size);
/*
 * Returns the length of the message, behind which the data is. -EMSGSIZE: it is shorter than it
 * says, or a control message is longer; -EPROTO: it has no tag, and so is nobody's;
 * -EAFNOSUPPORT: another version; -EBADMSG: the length is not the version's, or no such operation.
 * The eight bits above a queue pair's number are reserved, and left out.
 */
int evr_dgram_message_decode(struct evr_dgram_message *message, const void *bytes, size_t len);

#endif
