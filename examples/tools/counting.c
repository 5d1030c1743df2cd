#include "counting.h"

void counting_skip(struct counting *counting, uint64_t bytes)
{
	counting->next = (uint8_t)(counting->next + bytes);
	counting->bytes += bytes;
}

void counting_fill(struct counting *counting, void *data, size_t len_bytes)
{
	uint8_t *byte = data;

	for (size_t i = 0; i < len_bytes; i++)
		byte[i] = (uint8_t)(counting->next + i);
	counting_skip(counting, len_bytes);
}

size_t counting_check(struct counting *counting, const void *data, size_t len_bytes)
{
	const uint8_t *byte = data;
	size_t i = 0;

	while (i < len_bytes && byte[i] == (uint8_t)(counting->next + i))
		i++;
	counting_skip(counting, i);
	return i;
}
