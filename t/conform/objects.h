/* The kernel's objects of RDMA that this process has. */
#ifndef EVR_CONFORM_OBJECTS_H
#define EVR_CONFORM_OBJECTS_H

#include "conform/fixture.h"

/* Returns 0, or a negative error of libnl. */
int objects_count(int counts[TESTBED_COUNTS]);

#endif
