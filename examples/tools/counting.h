/*
 * What -T v sends: bytes that count up from 0, over all that goes one way, in the stock tools as
 * well.
 */
#ifndef TOOLS_COUNTING_H
#define TOOLS_COUNTING_H

#include <stddef.h>
#include <stdint.h>

struct counting {
	uint8_t next;
	uint64_t bytes; /* so far */
};

void counting_fill(struct counting *counting, void *data, size_t len_bytes);

/* Returns how many bytes are right before the first that is wrong, len_bytes for all. */
size_t counting_check(struct counting *counting, const void *data, size_t len_bytes);

/* As if that many bytes had gone by. */
void counting_skip(struct counting *counting, uint64_t bytes);

#endif
