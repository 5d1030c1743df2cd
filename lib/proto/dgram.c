#include "proto/dgram.h"

#include "proto/bytes.h"

#include <errno.h>
#include <string.h>

#define TAG UINT32_C(0x55555555)

enum {
	/* Of a packet. */
	VERSION_AT = 0,
	LENGTH_AT = 1,
	PORT_AT = 2,
	ADDR4_AT = 4,
	FLOWINFO_AT = 4,
	ADDR6_AT = 8,
	/* Of a message by UDP. */
	UDP_TAG_AT = 0,
	UDP_VERSION_AT = 4,
	UDP_OP_AT = 5,
	UDP_LENGTH_AT = 6,
	UDP_QPN_AT = 8,
	UDP_ADDR_AT = 12,
	ADDR4_LEN = 4,
	ADDR6_LEN = 16,
};

static int length_of(uint8_t version, int len4, int len6)
{
	return version == 4 ? len4 : version == 6 ? len6 : -EAFNOSUPPORT;
}

static size_t addr_len(uint8_t version)
{
	return version == 4 ? ADDR4_LEN : ADDR6_LEN;
}

/* What a header says of itself is true of its version, and there. */
static int check_length(uint8_t version, uint8_t said, int len4, int len6, size_t there)
{
	int len = length_of(version, len4, len6);

	if (len < 0)
		return len;
	if (said != len)
		return -EBADMSG;
	return there < (size_t)len ? -EMSGSIZE : len;
}

/* --- packets --------------------------------------------------------------------------------- */

static size_t addr_at(uint8_t version)
{
	return version == 4 ? ADDR4_AT : ADDR6_AT;
}

int evr_dgram_encode(const struct evr_dgram_header *header, void *bytes, size_t size)
{
	int len = length_of(header->version, EVR_DGRAM_LEN4, EVR_DGRAM_LEN6);
	uint8_t *data = bytes;

	if (len < 0)
		return len;
	if ((size_t)len > size)
		return -EMSGSIZE;
	data[VERSION_AT] = header->version;
	data[LENGTH_AT] = (uint8_t)len;
	evr_put16(data + PORT_AT, header->port, true);
	if (header->version == 6)
		evr_put32(data + FLOWINFO_AT, header->flowinfo, true);
	memcpy(data + addr_at(header->version), header->addr, addr_len(header->version));
	return len;
}

static void decode(struct evr_dgram_header *header, const uint8_t *data)
{
	uint8_t version = data[VERSION_AT];

	*header = (struct evr_dgram_header){
		.version = version,
		.port = evr_get16(data + PORT_AT, true),
		.flowinfo = version == 6 ? evr_get32(data + FLOWINFO_AT, true) : 0,
	};
	memcpy(header->addr, data + addr_at(version), addr_len(version));
}

int evr_dgram_decode(struct evr_dgram_header *header, const void *bytes, size_t len)
{
	const uint8_t *data = bytes;
	int ret;

	if (len < EVR_DGRAM_LEN4)
		return -EMSGSIZE;
	ret = check_length(data[VERSION_AT], data[LENGTH_AT], EVR_DGRAM_LEN4, EVR_DGRAM_LEN6, len);
	if (ret > 0)
		decode(header, data);
	return ret;
}

/* --- messages by UDP ------------------------------------------------------------------------- */

static bool is_op(uint8_t op)
{
	return op == EVR_DGRAM_DATA || op == EVR_DGRAM_CONTROL;
}

int evr_dgram_message_encode(const struct evr_dgram_message *message, void *bytes, size_t size)
{
	int len = length_of(message->version, EVR_DGRAM_UDP_LEN4, EVR_DGRAM_UDP_LEN6);
	uint8_t *data = bytes;

	if (len < 0)
		return len;
	if (!is_op(message->op) || message->qpn > EVR_DGRAM_QPN_MAX)
		return -EINVAL;
	if ((size_t)len > size)
		return -EMSGSIZE;
	memset(data, 0, (size_t)len);
	evr_put32(data + UDP_TAG_AT, TAG, true);
	data[UDP_VERSION_AT] = message->version;
	data[UDP_OP_AT] = message->op;
	data[UDP_LENGTH_AT] = (uint8_t)len;
	evr_put32(data + UDP_QPN_AT, message->qpn, true);
	memcpy(data + UDP_ADDR_AT, message->addr, addr_len(message->version));
	return len;
}

static void decode_message(struct evr_dgram_message *message, const uint8_t *data)
{
	*message = (struct evr_dgram_message){
		.version = data[UDP_VERSION_AT],
		.op = data[UDP_OP_AT],
		.qpn = evr_get32(data + UDP_QPN_AT, true) & EVR_DGRAM_QPN_MAX,
	};
	memcpy(message->addr, data + UDP_ADDR_AT, addr_len(message->version));
}

int evr_dgram_message_decode(struct evr_dgram_message *message, const void *bytes, size_t len)
{
	const uint8_t *data = bytes;
	int ret;

	if (len < EVR_DGRAM_UDP_LEN4)
		return -EMSGSIZE;
	if (evr_get32(data + UDP_TAG_AT, true) != TAG)
		return -EPROTO;
	ret = check_length(data[UDP_VERSION_AT], data[UDP_LENGTH_AT], EVR_DGRAM_UDP_LEN4,
		EVR_DGRAM_UDP_LEN6, len);
	if (ret < 0)
		return ret;
	if (!is_op(data[UDP_OP_AT]))
		return -EBADMSG;
	if (data[UDP_OP_AT] == EVR_DGRAM_CONTROL && len > (size_t)ret)
		return -EMSGSIZE;
	decode_message(message, data);
	return ret;
}
