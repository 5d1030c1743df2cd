#include "proto/grh.h"

#include <string.h>

enum {
	GID_AT = 8,
	GID_LEN = 16,
	V4_AT = 20, /* the header of IPv4 */
	V4_FIRST = 0x45,
	V4_FROM_AT = 32,
	V4_LEN = 4,
	MAPPED_LEN = 12, /* of a GID, in front of the address of IPv4 */
};

static const uint8_t mapped[MAPPED_LEN] = { [10] = 0xff, [11] = 0xff };

static void gid_of(const struct evr_dgram_header *sender, uint8_t gid[GID_LEN])
{
	if (sender->version == 6) {
		memcpy(gid, sender->addr, GID_LEN);
		return;
	}
	memcpy(gid, mapped, MAPPED_LEN);
	memcpy(gid + MAPPED_LEN, sender->addr, V4_LEN);
}

/* Which of the two headers it is cannot be told for sure: it is either. */
bool evr_grh_is_from(const uint8_t grh[EVR_GRH_LEN], const struct evr_dgram_header *sender)
{
	uint8_t gid[GID_LEN];

	gid_of(sender, gid);
	if (!memcmp(grh + GID_AT, gid, GID_LEN))
		return true;
	return !memcmp(gid, mapped, MAPPED_LEN) && grh[V4_AT] == V4_FIRST &&
	       !memcmp(grh + V4_FROM_AT, gid + MAPPED_LEN, V4_LEN);
}

bool evr_grh_is_link_local(const uint8_t grh[EVR_GRH_LEN])
{
	return grh[GID_AT] == 0xfe && (grh[GID_AT + 1] & 0xc0) == 0x80;
}
