/*
 * The conformance suite on the fake, once for each kind of device: EVR_FAKE_KIND says which, unless
 * EVR_FAKE_PROFILE in the environment names another device. The time is the test's own: it passes
 * with the calls and where the loop would sleep, so that no verdict is the machine's.
 */
#include "conform/fake.h"

#include "conform/suite.h"
#include "conform/fixture.h"
#include "ev/core/lock.h"

#include <rdma/rdma_cma.h>

#include "schedule/clock.h"

/* What a look at the clock takes, and each call of the CM's kernel and the verbs. */
enum { READING_US = 1, CALL_US = 20 };

enum fake_kind fake_testbed_kind;

static void take_time(void)
{
	clock_advance_us(CALL_US);
}

static void own_time(bool on)
{
	if (on)
		clock_start(READING_US);
	else
		clock_stop();
	fake_each_call(on ? take_time : NULL);
}

static void start(void)
{
	fake_install();
	if (fake_testbed_kind != FAKE_ROCE)
		fake_device_add(fake_testbed_kind);
	testbed.most_reads = (unsigned)fake_device_attr(fake_testbed_kind)->max_qp_rd_atom;
}

/* What the library keeps open for the program is of this test's fake, and not of the next one's. */
static void take_devices_back(void)
{
	int kind;

	for (kind = 0; kind < FAKE_KINDS; kind++)
		fake_device_remove((enum fake_kind)kind);
	rdma_free_devices(rdma_get_devices(NULL));
	ck_assert(fake_device_gone(fake_testbed_kind));
}

static void stop(void)
{
	const char *left;

	rdma_free_devices(rdma_get_devices(NULL));
	left = fake_expect_clean();
	ck_assert_msg(!left, "%s", left);
	take_devices_back();
	fake_reset();
}

static void remove_device(void)
{
	fake_device_remove(fake_testbed_kind);
}

static bool device_is_removed(void)
{
	return fake_device_gone(fake_testbed_kind);
}

static void add_device(void)
{
	fake_device_add(fake_testbed_kind);
}

static void count(int counts[TESTBED_COUNTS])
{
	static const enum fake_object kinds[TESTBED_COUNTS] = { FAKE_QP, FAKE_CQ, FAKE_MR, FAKE_PD,
		FAKE_ID };
	int i;

	for (i = 0; i < TESTBED_COUNTS; i++)
		counts[i] = (int)fake_live(kinds[i]);
}

struct testbed testbed = {
	.own_core = true,
	.start = start,
	.stop = stop,
	.remove_device = remove_device,
	.device_is_removed = device_is_removed,
	.add_device = add_device,
	.count = count,
	.lost_fds = fake_lost_descriptors,
	.now_us = clock_now_us,
	.own_time = own_time,
};

static unsigned testbed_lacks(void)
{
	static const unsigned options[][2] = { { FAKE_DATAGRAMS, TESTBED_DATAGRAMS },
		{ FAKE_GROUPS, TESTBED_GROUPS }, { FAKE_SRQS, TESTBED_SRQS },
		{ FAKE_ATOMICS, TESTBED_ATOMICS }, { FAKE_IMMEDIATES, TESTBED_IMMEDIATES },
		{ FAKE_DEEP_QUEUES, TESTBED_DEEP_QUEUES } };
	unsigned i, lacks = 0;

	for (i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (fake_lacks(fake_testbed_kind) & options[i][0])
			lacks |= options[i][1];
	return lacks;
}

static void lock_misused(const char *what)
{
	ck_abort_msg("%s", what);
}

int main(void)
{
	static TCase *(*const cases[])(void) = {
		silence_case, linger_case, fake_id_case, fake_group_case, keepalive_case,
		channel_case, infiniband_case, async_case, machine_case, report_case,
		device_case, posted_case, attempt_case, calls_case, budget_case, steps_case,
		missing_case, shared_case, reply_case, stale_case, cost_case, stream_case,
		turns_case };
	static const char *const ips[FAKE_KINDS] = {
		[FAKE_ROCE] = FAKE_ROCE_IP, [FAKE_IWARP] = FAKE_IWARP_IP, [FAKE_IB] = FAKE_IB_IP
	};
	static const char *const ip6s[FAKE_KINDS] = { [FAKE_ROCE] = FAKE_ROCE_IP6,
		[FAKE_IWARP] = FAKE_IWARP_IP6,
		[FAKE_IB] = FAKE_IB_IP6 };

	evr_lock_misused = lock_misused;
	fake_testbed_kind = fake_kind_to_test(EVR_FAKE_KIND);
	testbed.ip = ips[fake_testbed_kind];
	testbed.ip6 = ip6s[fake_testbed_kind];
	testbed.lacks = testbed_lacks();
	testbed.is_iwarp = fake_testbed_kind == FAKE_IWARP;
	testbed.is_infiniband = fake_testbed_kind == FAKE_IB;
	return run_suite("fake", cases, sizeof(cases) / sizeof(cases[0]));
}
