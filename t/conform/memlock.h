/* What only a real kernel refuses: more locked memory than the process may have. */
#ifndef EVR_CONFORM_MEMLOCK_H
#define EVR_CONFORM_MEMLOCK_H

#include <check.h>

TCase *memlock_case(void);

#endif
