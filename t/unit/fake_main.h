/* A test program that runs on the fake: each test begins and ends with nothing on it. */
#ifndef FAKE_MAIN_H
#define FAKE_MAIN_H

#include "fake/fake.h"

#include <check.h>

/* The checked fixture: installs the fake; fails the test when something is left behind. */
void fake_setup(void);
void fake_teardown(void);
/* main() of a program with one case. */
int fake_main(const char *name, const TTest *const *tests, size_t n);
/* The end of any other main(): runs the suite; what main() returns. */
int fake_run(Suite *suite);

#endif
