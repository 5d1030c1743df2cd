/*
 * What a device of RoCE puts in front of each datagram: the header of the packet, which tells the
 * address that it came from. With IPv4 that is the last 20 bytes of it, and the others are whatever
 * was there before.
 */
#ifndef EVR_PROTO_GRH_H
#define EVR_PROTO_GRH_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/dgram.h"

enum { EVR_GRH_LEN = 40 };

/* The packet came from the address that its sender says it has. */
bool evr_grh_is_from(const uint8_t grh[EVR_GRH_LEN], const struct evr_dgram_header *sender);
/* It came from an address that is only of its link. */
bool evr_grh_is_link_local(const uint8_t grh[EVR_GRH_LEN]);

#endif
