#include "perf_wire.h"

#include <endian.h>
#include <string.h>

#include "perf.h"

static const uint8_t magic[8] = { 'e', 'v', 'r', 'p', 'e', 'r', 'f', 1 };

static void put32(uint8_t *to, uint32_t value)
{
	const uint32_t wire = htobe32(value);

	memcpy(to, &wire, sizeof(wire));
}

static uint32_t get32(const uint8_t *from)
{
	uint32_t wire;

	memcpy(&wire, from, sizeof(wire));
	return be32toh(wire);
}

static void put64(uint8_t *to, uint64_t value)
{
	put32(to, (uint32_t)(value >> 32));
	put32(to + 4, (uint32_t)value);
}

static uint64_t get64(const uint8_t *from)
{
	return (uint64_t)get32(from) << 32 | get32(from + 4);
}

void perf_hello_pack(const struct perf_hello *hello, uint8_t *bytes)
{
	memcpy(bytes, magic, sizeof(magic));
	put32(bytes + 8, hello->test);
	put32(bytes + 12, hello->window);
	put32(bytes + 16, hello->size);
}

static int can_serve(const struct perf_hello *hello)
{
	return hello->test <= PERF_CONNECT && hello->window >= 1 &&
	       hello->window <= PERF_WINDOW_MAX && hello->size >= 1 && hello->size <= PERF_SIZE_MAX;
}

int perf_hello_unpack(struct perf_hello *hello, const void *bytes, size_t len)
{
	const uint8_t *from = bytes;

	if (!from || len < PERF_HELLO_BYTES || memcmp(from, magic, sizeof(magic)))
		return -1;
	hello->test = (enum perf_test)get32(from + 8);
	hello->window = get32(from + 12);
	hello->size = get32(from + 16);
	return can_serve(hello) ? 0 : -1;
}

void perf_refusal_pack(enum perf_refusal refusal, uint8_t *bytes)
{
	memcpy(bytes, magic, sizeof(magic));
	put32(bytes + 8, refusal);
}

enum perf_refusal perf_refusal_unpack(const void *bytes, size_t len)
{
	const uint8_t *from = bytes;
	uint32_t refusal;

	if (!from || len < PERF_REFUSAL_BYTES || memcmp(from, magic, sizeof(magic)))
		return PERF_REFUSAL_NONE;
	refusal = get32(from + 8);
	return refusal < PERF_REFUSALS ? (enum perf_refusal)refusal : PERF_REFUSAL_NONE;
}

/* The type, and 3 bytes of nothing; the remote has 12 bytes. */
void perf_word_pack(const struct perf_word *word, uint8_t *bytes)
{
	put32(bytes, (uint32_t)word->type << 24);
	put64(bytes + 4, word->messages);
	put64(bytes + 12, word->bytes);
	evrdma_remote_pack(&word->remote, bytes + 20);
}

int perf_word_unpack(struct perf_word *word, const void *bytes, size_t len)
{
	const uint8_t *from = bytes;

	if (len != PERF_WORD_BYTES || from[0] == PERF_DATA || from[0] > PERF_REPORT)
		return -1;
	word->type = (enum perf_type)from[0];
	word->messages = get64(from + 4);
	word->bytes = get64(from + 12);
	evrdma_remote_unpack(&word->remote, from + 20);
	return 0;
}
