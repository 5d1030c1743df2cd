#include "pattern.h"

static uint32_t mix(uint32_t hash, uint32_t value)
{
	hash = (hash ^ value) * 0x9e3779b1u;
	return hash ^ (hash >> 15);
}

uint32_t pattern_seed(uint32_t first, uint32_t second, uint32_t third)
{
	return mix(mix(mix(0x65767264u, first), second), third);
}

static uint8_t next_byte(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return (uint8_t)(*state >> 24);
}

void pattern_fill(void *data, size_t len_bytes, uint32_t seed)
{
	uint8_t *byte = data;

	for (size_t i = 0; i < len_bytes; i++)
		byte[i] = next_byte(&seed);
}

size_t pattern_check(const void *data, size_t len_bytes, uint32_t seed)
{
	const uint8_t *byte = data;
	size_t i;

	for (i = 0; i < len_bytes && byte[i] == next_byte(&seed); i++)
		;
	return i;
}
