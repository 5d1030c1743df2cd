/* Bytes that both sides can make, so that a receiver can check every one of a message. */
#ifndef TOOLS_PATTERN_H
#define TOOLS_PATTERN_H

#include <stddef.h>
#include <stdint.h>

/* A seed that differs for every triple. */
uint32_t pattern_seed(uint32_t first, uint32_t second, uint32_t third);

void pattern_fill(void *data, size_t len_bytes, uint32_t seed);

/* Returns the index of the first byte that is wrong, len_bytes when all are right. */
size_t pattern_check(const void *data, size_t len_bytes, uint32_t seed);

#endif
