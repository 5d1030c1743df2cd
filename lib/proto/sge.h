/*
 * A piece of a peer's memory: address, key and length, 16 bytes on the wire of rsocket protocol
 * version 1 (rdma-core's librdmacm). The struct is laid out as the bytes are, in host order: peers
 * write such entries into each other's memory.
 */
#ifndef EVR_PROTO_SGE_H
#define EVR_PROTO_SGE_H

#include <stdbool.h>
#include <stdint.h>

struct evr_sge {
	uint64_t addr;
	uint32_t rkey;
	uint32_t len;
};

enum { EVR_SGE_LEN = 16, EVR_SGE_MAX = INT32_MAX };

/* 0; -ENOSPC: it is empty; -ERANGE: longer than 2 GiB - 1, or over the end of all addresses. */
int evr_sge_check(const struct evr_sge *sge);

/* To and from EVR_SGE_LEN bytes of either order. */
void evr_sge_put(const struct evr_sge *sge, uint8_t *bytes, bool big_endian);
struct evr_sge evr_sge_get(const uint8_t *bytes, bool big_endian);

#endif
