/* What every unit test needs: Check, a fresh kernel around each test, and an account after it. */
#ifndef UNIT_UNIT_H
#define UNIT_UNIT_H

#include <check.h>
#include <stddef.h>

typedef void (*unit_fixture)(void);

/* Runs the tests of one file between the fixtures (or NULL), and returns main's status. */
int unit_main(const char *name, const TTest *const tests[], size_t num, unit_fixture setup,
	unit_fixture teardown);

#endif
