/*
 * The 16 bytes that go each way before a run. The stock tools look at them with -T v only, and send
 * back what came; without it they are ours to tell the other side what is about to be run.
 */
#ifndef TOOLS_HELLO_H
#define TOOLS_HELLO_H

#include <stdint.h>

#include "series.h"

#define HELLO_BYTES 16

/* Makes a greeting. verify says that the sender looks at data. */
void hello_make(uint8_t *bytes, const struct series_run *run, int from_client, int verify);

/*
 * Looks at what came from the other side. Returns 0 when it is no greeting of ours or says the same
 * as this run, or -1 after saying on stderr what differs.
 */
int hello_check(const char *name, const uint8_t *bytes, const struct series_run *run,
	int from_client, int verify);

#endif
