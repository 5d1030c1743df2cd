/* How often the process has asked for memory: libraries, and the libraries under them, included. */
#ifndef SCALE_ALLOCATIONS_H
#define SCALE_ALLOCATIONS_H

/* 0 for ever where a sanitizer has malloc(3) for itself. */
unsigned long allocations_now(void);

#endif
