/*
 * Want of memory. A program that uses this has fake_heap.c among its sources and EVR_FAKE_HEAP_WRAP
 * among its flags: the linker leads what it allocates here. What the fake itself allocates does
 * not count, what the test allocates does.
 */
#ifndef FAKE_FAKE_HEAP_H
#define FAKE_FAKE_HEAP_H

#include <stdbool.h>

/* The n-th allocation from now on (1 is the next) fails; 0 cancels. */
void fake_heap_fail_nth(unsigned n);
/* The same, and all after it fail too. */
void fake_heap_fail_from(unsigned n);
/* One that the test makes itself, in a place of its own: whether it fails, with errno. */
bool fake_heap_fails(void);
/* Whether it has come. */
bool fake_heap_failed(void);
/* How many there were so far. */
unsigned fake_heap_count(void);

#endif
