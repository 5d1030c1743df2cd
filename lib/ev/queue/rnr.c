#include "ev/queue/rnr.h"

#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdlib.h>

#include "ev/core/log.h"
#include "ev/queue/qp.h"

/* InfiniBand's encoding from 1 on, in microseconds; 0 is EVR_RNR_US_MAX. */
static const int times_us[] = { 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1280,
	1920, 2560, 3840, 5120, 7680, 10240, 15360, 20480, 30720, 40960, 61440, 81920, 122880,
	163840, 245760, 327680, 491520 };

static uint8_t encode(int us)
{
	const uint8_t n = sizeof(times_us) / sizeof(times_us[0]);
	uint8_t i = 0;

	while (i < n && times_us[i] < us)
		i++;
	return i < n ? i + 1 : 0;
}

/*
 * Without it a connection is slow at worst, and works. One that its peer has ended already does not
 * take it, which is nobody's failure: its completions say so.
 */
void evr_rnr_set(struct evr_qp *qp, int us)
{
	struct ibv_qp_attr attr = { .min_rnr_timer = encode(us) };
	int err;

	if (us < 0 || !qp->qp || qp->in_error || evr_qp_is_iwarp(qp))
		return;
	err = abs(ibv_modify_qp(qp->qp, &attr, IBV_QP_MIN_RNR_TIMER));
	if (err && !evr_qp_is_over(qp))
		evr_log_failure("setting the RNR timer", err);
}
