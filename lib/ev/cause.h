/* What about this process is likely to have made a call fail: its limits, its permissions. */
#ifndef EVR_EV_CAUSE_H
#define EVR_EV_CAUSE_H

#include <stddef.h>

#include <evrdma/error.h>

/* Words for people in buf, or NULL when nothing is to be said. Any thread. */
const char *evr_cause_text(int err, enum evrdma_step step, char *buf, size_t size);

#endif
