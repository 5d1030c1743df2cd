/*
 * The suite under the kernel's tracer, which t/interop/stall.sh prepares: the tracer runs while
 * there is a fixture, and one more case does what nobody should do.
 */
#ifndef EVR_CONFORM_TRACED_H
#define EVR_CONFORM_TRACED_H

#include <check.h>
#include <stdbool.h>

/* Whether EVR_TRACING in the environment names the tracer's folder. */
bool traced(void);
void traced_start(void);
void traced_watch(bool on);

TCase *traced_case(void);

#endif
