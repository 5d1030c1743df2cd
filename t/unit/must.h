/* An assertion for what is looked at a million times: Check writes a file for each of its own. */
#ifndef UNIT_MUST_H
#define UNIT_MUST_H

#include <check.h>

#define MUST(condition, ...)                                                                       \
	do {                                                                                       \
		if (!(condition))                                                                  \
			ck_abort_msg(__VA_ARGS__);                                                 \
	} while (0)

#endif
