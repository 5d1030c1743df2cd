/* Numbers in bytes, big-endian or little-endian, at any address. */
#ifndef EVR_PROTO_BYTES_H
#define EVR_PROTO_BYTES_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline void evr_put16(uint8_t *bytes, uint16_t value, bool big_endian)
{
	value = big_endian ? htobe16(value) : htole16(value);
	memcpy(bytes, &value, sizeof(value));
}

static inline void evr_put32(uint8_t *bytes, uint32_t value, bool big_endian)
{
	value = big_endian ? htobe32(value) : htole32(value);
	memcpy(bytes, &value, sizeof(value));
}

static inline void evr_put64(uint8_t *bytes, uint64_t value, bool big_endian)
{
	value = big_endian ? htobe64(value) : htole64(value);
	memcpy(bytes, &value, sizeof(value));
}

static inline uint16_t evr_get16(const uint8_t *bytes, bool big_endian)
{
	uint16_t value;

	memcpy(&value, bytes, sizeof(value));
	return big_endian ? be16toh(value) : le16toh(value);
}

static inline uint32_t evr_get32(const uint8_t *bytes, bool big_endian)
{
	uint32_t value;

	memcpy(&value, bytes, sizeof(value));
	return big_endian ? be32toh(value) : le32toh(value);
}

static inline uint64_t evr_get64(const uint8_t *bytes, bool big_endian)
{
	uint64_t value;

	memcpy(&value, bytes, sizeof(value));
	return big_endian ? be64toh(value) : le64toh(value);
}

static inline bool evr_host_is_big_endian(void)
{
	return htobe16(1) == 1;
}

#endif
