/*
 * Immediates of rsocket protocol version 1, as rdma-core's librdmacm speaks it: bits 31:29 say what
 * it is, bits 28:0 are its data. In the program they are plain numbers, in host order.
 */
#ifndef EVR_PROTO_IMM_H
#define EVR_PROTO_IMM_H

#include <stdint.h>

enum evr_imm_op {
	EVR_IMM_DATA = 0,    /* data: how many bytes were written into the target */
	EVR_IMM_WRITE = 2,   /* never sent: direct writes have no immediate */
	EVR_IMM_SGL = 4,     /* data: the limit of messages; 16 bits of it count */
	EVR_IMM_IOMAP = 6,   /* data: the index of the entry that was written */
	EVR_IMM_CONTROL = 7, /* data: one of enum evr_imm_control */
};

enum evr_imm_control {
	EVR_IMM_DISCONNECT = 0,
	EVR_IMM_KEEPALIVE = 1, /* a keepalive has no immediate; who sends one does no harm */
	EVR_IMM_SHUTDOWN = 2,
};

enum {
	EVR_IMM_DATA_BITS = 29,
	EVR_IMM_DATA_MAX = (1 << EVR_IMM_DATA_BITS) - 1,
	EVR_IMM_MESSAGE_LEN = 4,
};

/* The immediate of an operation. What of the data is above 29 bits is cut off. */
uint32_t evr_imm(enum evr_imm_op op, uint32_t data);

/* The three bits of the operation. Of the eight values three are reserved: 1, 3 and 5. */
unsigned int evr_imm_op(uint32_t imm);
uint32_t evr_imm_data(uint32_t imm);

/* InfiniBand and RoCE: what imm_data holds in a work request and in a completion: big-endian. */
uint32_t evr_imm_to_ib(uint32_t imm);
uint32_t evr_imm_from_ib(uint32_t imm_data);

/*
 * iWARP has no immediates: they go as messages of four bytes, which hold the number in host order
 * (so hosts of different byte order do not understand each other there, as with librdmacm).
 */
void evr_imm_to_message(uint32_t imm, uint8_t message[EVR_IMM_MESSAGE_LEN]);
uint32_t evr_imm_from_message(const uint8_t message[EVR_IMM_MESSAGE_LEN]);

#endif
