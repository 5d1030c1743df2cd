/* Option structs that can grow: the caller's may be older or newer than ours. */
#ifndef EVR_UTIL_OPTIONS_H
#define EVR_UTIL_OPTIONS_H

#include <stddef.h>

/*
 * Both structs begin with their size_t size. Copies what both know from the caller's to ours, which
 * holds the defaults; given NULL it copies nothing. -EINVAL when the caller's has something set
 * that we do not know, or was not filled by evr_options_init().
 */
int evr_options_load(void *ours, size_t our_size, const void *callers);

/*
 * Fills the caller's size bytes from our defaults, what we do not know with zeroes. Its size is
 * marked: memory that nobody has initialised is not taken for options.
 */
void evr_options_init(void *callers, size_t size, const void *defaults, size_t our_size);

/* The same for what is only read: its size is plain. */
void evr_options_store(void *callers, size_t size, const void *defaults, size_t our_size);

#endif
