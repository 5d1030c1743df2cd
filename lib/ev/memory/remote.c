/* Where memory of a peer's is, as bytes of a message. */
#include <evrdma/work.h>

enum { ADDR_BYTES = 8, KEY_BYTES = 4 };

static void put(unsigned char *to, uint64_t value, int bytes)
{
	while (bytes--) {
		to[bytes] = (unsigned char)value;
		value >>= 8;
	}
}

static uint64_t get(const unsigned char *from, int bytes)
{
	uint64_t value = 0;

	while (bytes--)
		value = value << 8 | *from++;
	return value;
}

void evrdma_remote_pack(const struct evrdma_remote *remote, void *packed)
{
	unsigned char *to = packed;

	put(to, remote->addr, ADDR_BYTES);
	put(to + ADDR_BYTES, remote->key, KEY_BYTES);
}

void evrdma_remote_unpack(struct evrdma_remote *remote, const void *packed)
{
	const unsigned char *from = packed;

	remote->addr = get(from, ADDR_BYTES);
	remote->key = (uint32_t)get(from + ADDR_BYTES, KEY_BYTES);
}

struct evrdma_remote evrdma_remote_at(const struct evrdma_remote *remote, uint64_t offset)
{
	struct evrdma_remote at = *remote;

	at.addr += offset;
	return at;
}
