/* What the cases that run only on the fake share. */
#ifndef EVR_CONFORM_FAKE_H
#define EVR_CONFORM_FAKE_H

#include <check.h>

#include "fake/fake.h"

/* The kind of device that the testbed's address belongs to. */
extern enum fake_kind fake_testbed_kind;

/* One that the testbed has not. */
static inline enum fake_kind fake_another_kind(void)
{
	return fake_testbed_kind == FAKE_IB ? FAKE_IWARP : FAKE_IB;
}

TCase *async_case(void);
TCase *attempt_case(void);
TCase *budget_case(void);
TCase *calls_case(void);
TCase *steps_case(void);
TCase *channel_case(void);
TCase *cost_case(void);
TCase *device_case(void);
TCase *infiniband_case(void);
TCase *reply_case(void);
TCase *machine_case(void);
TCase *missing_case(void);
TCase *report_case(void);
TCase *posted_case(void);
TCase *shared_case(void);
TCase *silence_case(void);
TCase *linger_case(void);
TCase *fake_id_case(void);
TCase *fake_group_case(void);
TCase *keepalive_case(void);
TCase *stale_case(void);
TCase *stream_case(void);
TCase *turns_case(void);

#endif
