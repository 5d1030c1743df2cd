/* Suites whose tests share a process where one of their own costs more than they do themselves. */
#ifndef EVR_ONE_PROCESS_H
#define EVR_ONE_PROCESS_H

#include <check.h>

/* Tagged so, a case is run in no process that others have been in. */
#define OWN_PROCESS "own_process"

/*
 * Runs all tests, each in its own process; or, built with AddressSanitizer or with EVR_ONE_PROCESS
 * set, in this one all but those of OWN_PROCESS. CK_FORK goes before either. Check's time-outs need
 * processes: what hangs in one is ended by an alarm, and CK_FORK=yes says which test it is.
 */
void run_in_one_process(SRunner *runner);

#endif
