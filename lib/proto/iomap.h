/*
 * Mappings of rsocket protocol version 1 (rdma-core's librdmacm): memory that one side shows to the
 * other under an offset, for direct writes. An entry has 24 bytes, in the byte order of the host
 * it is written to, and stands in a table there, behind the target entries. Nothing takes a mapping
 * back: what was unmapped stays in the peer's table until its place is used again.
 */
#ifndef EVR_PROTO_IOMAP_H
#define EVR_PROTO_IOMAP_H

#include "proto/sge.h"

#include <stdbool.h>
#include <stdint.h>

struct evr_iomap_entry {
	uint64_t offset;
	struct evr_sge sge;
};

enum { EVR_IOMAP_ENTRY_LEN = 24 };

/* To EVR_IOMAP_ENTRY_LEN bytes of the order of the host that they are for. */
void evr_iomap_put(const struct evr_iomap_entry *entry, uint8_t *bytes, bool big_endian);

/* What the peer has mapped for us. */
struct evr_iomap_in {
	volatile const struct evr_iomap_entry *memory; /* which the peer writes */
	struct evr_iomap_entry *entries;	       /* ours: copied and checked */
	uint32_t size;
};

/* Both have size entries, and stay the caller's; ours are cleared. */
void evr_iomap_in_init(struct evr_iomap_in *in, volatile const struct evr_iomap_entry *memory,
	struct evr_iomap_entry *entries, uint32_t size);
/*
 * The peer has written an entry. An empty one maps nothing. 0; -ENXIO: the table has no such entry;
 * -EBADMSG: it is longer than 2 GiB - 1, or it runs over the end of all addresses or offsets.
 */
int evr_iomap_in_take(struct evr_iomap_in *in, uint32_t index);
/*
 * Where len bytes at an offset of the peer's mappings are: at most what is left there of the first
 * mapping that has the offset. 0 and the place; -ENXIO: nothing is mapped there.
 */
int evr_iomap_in_find(
	const struct evr_iomap_in *in, uint64_t offset, uint32_t len, struct evr_sge *place);

/* A place of the peer's table. */
struct evr_iomap_slot {
	struct evr_iomap_entry entry;
	uint32_t turn; /* when it was mapped */
	bool used;
	bool told; /* the peer has it */
};

/* What we have mapped for the peer. */
struct evr_iomap_out {
	struct evr_iomap_slot *slots;
	uint32_t size;
	uint32_t waiting; /* how many the peer has to be told */
	uint32_t turn;
};

/* The slots stay the caller's; they are cleared. size is at most the peer's. */
void evr_iomap_out_init(struct evr_iomap_out *out, struct evr_iomap_slot *slots, uint32_t size);
/* The index of a new mapping; -ENOSPC: no place is free; -EINVAL: no such memory or offset. */
int evr_iomap_out_map(struct evr_iomap_out *out, const struct evr_iomap_entry *entry);
/* The place is free; the peer is not told. 0; -EINVAL: nothing is mapped there. */
int evr_iomap_out_unmap(struct evr_iomap_out *out, uint32_t index);
/* The oldest mapping that the peer has not been told, which is now; its index, or -ENOENT. */
int evr_iomap_out_next(struct evr_iomap_out *out, struct evr_iomap_entry *entry);

#endif
