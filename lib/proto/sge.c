#include "proto/sge.h"

#include "proto/bytes.h"

#include <errno.h>

enum { RKEY_AT = 8, LEN_AT = 12 };

int evr_sge_check(const struct evr_sge *sge)
{
	if (!sge->len)
		return -ENOSPC;
	if (sge->len > EVR_SGE_MAX || sge->addr > UINT64_MAX - sge->len)
		return -ERANGE;
	return 0;
}

void evr_sge_put(const struct evr_sge *sge, uint8_t *bytes, bool big_endian)
{
	evr_put64(bytes, sge->addr, big_endian);
	evr_put32(bytes + RKEY_AT, sge->rkey, big_endian);
	evr_put32(bytes + LEN_AT, sge->len, big_endian);
}

struct evr_sge evr_sge_get(const uint8_t *bytes, bool big_endian)
{
	return (struct evr_sge){
		.addr = evr_get64(bytes, big_endian),
		.rkey = evr_get32(bytes + RKEY_AT, big_endian),
		.len = evr_get32(bytes + LEN_AT, big_endian),
	};
}
