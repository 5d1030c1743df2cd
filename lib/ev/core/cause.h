/*
 * What is likely to have made a call fail, and what can be done: this process's limits and
 * permissions, and what the errno alone would not say of a step.
 */
#ifndef EVR_EV_CAUSE_H
#define EVR_EV_CAUSE_H

#include <stddef.h>

#include <evrdma/error.h>

/* Words for people in buf, or NULL when nothing is to be said. Any thread. */
const char *evr_cause_text(int err, enum evrdma_step step, char *buf, size_t size);

#endif
