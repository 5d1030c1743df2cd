/*
 * Memory that nobody may touch: under AddressSanitizer, whoever does is stopped there and then;
 * with a pattern it is found when the memory is used again.
 */
#ifndef EVR_EV_POISON_H
#define EVR_EV_POISON_H

#include <stdbool.h>
#include <stddef.h>

void evr_poison(void *data, size_t size, bool pattern);
/* Whether nobody has written to it meanwhile, as far as is known. */
bool evr_unpoison(void *data, size_t size, bool pattern);

#endif
