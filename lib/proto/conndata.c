#include "proto/conndata.h"

#include "proto/bytes.h"

#include <errno.h>
#include <string.h>

enum {
	VERSION = 1,
	FLAG_NET = 1,
	FLAG_IOMAP = 2,
	VERSION_AT = 0,
	FLAGS_AT = 1,
	CREDITS_AT = 2,
	IOMAP_SIZE_AT = 7,
	TARGET_AT = 8,
	DATA_AT = 24,
	/* Behind the targets, an entry of the table. */
	IOMAP_ENTRY_LEN = 24,
	EXACT_SIZES = 128,
	SCALE_BITS = 8,
};

uint8_t evr_iomap_scale(uint32_t size)
{
	if (size <= EXACT_SIZES)
		return (uint8_t)size;
	if (size > EVR_IOMAP_SIZE_MAX)
		size = EVR_IOMAP_SIZE_MAX;
	return (uint8_t)(EXACT_SIZES | size >> SCALE_BITS);
}

uint32_t evr_iomap_unscale(uint8_t scaled)
{
	if (scaled <= EXACT_SIZES)
		return scaled;
	return (uint32_t)(scaled & (EXACT_SIZES - 1)) << SCALE_BITS;
}

static struct evr_sge targets_of(const struct evr_conndata *conn)
{
	return (struct evr_sge){
		.addr = conn->target_addr,
		.rkey = conn->target_rkey,
		.len = EVR_CONNDATA_TARGETS,
	};
}

int evr_conndata_encode(const struct evr_conndata *conn, size_t prefix, void *bytes, size_t size)
{
	struct evr_sge targets = targets_of(conn);
	uint8_t *data;

	if (prefix > size || size - prefix < EVR_CONNDATA_LEN)
		return -EMSGSIZE;
	memset(bytes, 0, prefix + EVR_CONNDATA_LEN);
	data = (uint8_t *)bytes + prefix;
	data[VERSION_AT] = VERSION;
	data[FLAGS_AT] =
		(uint8_t)((conn->big_endian ? FLAG_NET : 0) | (conn->iomap ? FLAG_IOMAP : 0));
	data[IOMAP_SIZE_AT] = evr_iomap_scale(conn->iomap_size);
	evr_put16(data + CREDITS_AT, conn->credits, true);
	evr_sge_put(&targets, data + TARGET_AT, true);
	evr_sge_put(&conn->data, data + DATA_AT, true);
	return (int)(prefix + EVR_CONNDATA_LEN);
}

/* The two entries, and the table behind them, have addresses. */
static int check_targets(const struct evr_conndata *conn, uint32_t entries)
{
	uint64_t len = EVR_CONNDATA_TARGETS * EVR_SGE_LEN + conn->iomap_size * IOMAP_ENTRY_LEN;

	if (entries != EVR_CONNDATA_TARGETS)
		return -EDOM;
	return conn->target_addr > UINT64_MAX - len ? -ERANGE : 0;
}

static uint32_t table_size(const uint8_t *data)
{
	return data[FLAGS_AT] & FLAG_IOMAP ? evr_iomap_unscale(data[IOMAP_SIZE_AT]) : 0;
}

static int decode(struct evr_conndata *conn, const uint8_t *data)
{
	struct evr_sge targets = evr_sge_get(data + TARGET_AT, true);
	int ret;

	*conn = (struct evr_conndata){
		.big_endian = data[FLAGS_AT] & FLAG_NET,
		.iomap = data[FLAGS_AT] & FLAG_IOMAP,
		.credits = evr_get16(data + CREDITS_AT, true),
		.iomap_size = table_size(data),
		.target_addr = targets.addr,
		.target_rkey = targets.rkey,
		.data = evr_sge_get(data + DATA_AT, true),
	};
	if (data[VERSION_AT] != VERSION)
		return -ENOTSUP;
	if (!conn->credits)
		return -ENOBUFS;
	ret = check_targets(conn, targets.len);
	return ret ? ret : evr_sge_check(&conn->data);
}

int evr_conndata_decode(struct evr_conndata *conn, size_t prefix, const void *bytes, size_t len)
{
	if (!bytes || !len)
		return -ENODATA;
	if (len < prefix || len - prefix < EVR_CONNDATA_LEN)
		return -EMSGSIZE;
	return decode(conn, (const uint8_t *)bytes + prefix);
}
