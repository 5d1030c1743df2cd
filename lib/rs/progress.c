/* What arrives, what completes, and what the stream sends by itself. */
#include "rs/dgram.h"
#include "rs/helper.h"

#include <errno.h>

#include "util/clock.h"

enum { LOOK_US = 1000, TURNS = 64 };

/*
 * What the device no longer takes, or gives back undone. Why, the CM may know, and may have said it
 * already: the kernel takes the queue pair from us as the device is removed.
 */
static void fail(struct evr_rs *rs, int error)
{
	if (!rs->why)
		evr_rs_read_events(rs);
	evr_rs_fail(rs, rs->why ? rs->why : error);
}

/*
 * Some devices refuse what is posted when the peer is gone. What comes back then says so; if it is
 * that the peer has ended, nothing failed. What is refused meanwhile is judged with the first; and
 * others may wait for what comes. As no receive is posted any more, that has an end.
 */
static void fail_to_post(struct evr_rs *rs, int error)
{
	if (rs->refused)
		return;
	rs->refused = true;
	while (evr_rs_poll_cq(rs))
		;
	if (!evr_stream_status(&rs->stream).finished)
		fail(rs, error);
	evr_rs_wake(rs);
}

void evr_rs_post(
	struct evr_rs *rs, const struct evr_stream_work *work, const void *own, uint32_t lkey)
{
	int ret = evr_rs_transport_post(&rs->transport, work, own, lkey);

	if (ret)
		fail_to_post(rs, ret);
}

void evr_rs_pump(struct evr_rs *rs)
{
	struct evr_stream_work work;

	if (rs->state != EVR_RS_CONNECTED || rs->held)
		return;
	while (evr_stream_next(&rs->stream, &work))
		evr_rs_post(rs, &work, NULL, 0);
}

/* --- completions ----------------------------------------------------------------------------- */

/*
 * Of what the device says, what a program knows. Of a process that is killed the kernel takes the
 * memory first, so that its device refuses what still comes, and its CM tells of the end last.
 */
static int error_of(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_WR_FLUSH_ERR:
	case IBV_WC_REM_ACCESS_ERR:
	case IBV_WC_REM_INV_REQ_ERR:
	case IBV_WC_REM_OP_ERR:
	case IBV_WC_REM_ABORT_ERR:
		return -ECONNRESET;
	case IBV_WC_RETRY_EXC_ERR:
	case IBV_WC_RNR_RETRY_EXC_ERR:
		return -ETIMEDOUT;
	default:
		return -EIO;
	}
}

static void take_message(struct evr_rs *rs, const struct ibv_wc *wc)
{
	uint32_t imm;

	if (rs->transport.iwarp) {
		if (wc->byte_len != EVR_IMM_MESSAGE_LEN) {
			evr_rs_fail(rs, -EPROTO);
			return;
		}
		imm = evr_imm_from_message(evr_rs_transport_message(&rs->transport, wc->wr_id));
		evr_stream_receive(&rs->stream, imm, EVR_WRITTEN_UNKNOWN);
	} else if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
		evr_stream_receive(&rs->stream, evr_imm_from_ib(wc->imm_data), wc->byte_len);
	} else {
		evr_rs_fail(rs, -EPROTO);
	}
}

static void take(struct evr_rs *rs, const struct ibv_wc *wc, struct evr_rs_receives *again)
{
	if (wc->status != IBV_WC_SUCCESS)
		return;
	if (evr_wrid_is_recv(wc->wr_id)) {
		rs->held = false;
		take_message(rs, wc);
		evr_rs_receives_add(again, &rs->transport, wc->wr_id);
	} else {
		evr_stream_complete(&rs->stream, wc->wr_id, true);
	}
}

/* What went wrong here the CM does not know. */
static void fail_for(struct evr_rs *rs, enum ibv_wc_status status)
{
	int error = error_of(status);

	if (evr_stream_status(&rs->stream).finished)
		return;
	if (error == -EIO)
		evr_rs_fail(rs, error);
	else
		fail(rs, error);
}

/* After all that has arrived with them. */
static void take_failed(struct evr_rs *rs, const struct ibv_wc *wcs, int num)
{
	int i;

	for (i = 0; i < num; i++) {
		if (wcs[i].status == IBV_WC_SUCCESS)
			continue;
		fail_for(rs, wcs[i].status);
		evr_stream_complete(&rs->stream, wcs[i].wr_id, false);
	}
}

/* Receives are there again before the peer is given credits for them. */
static void take_all(struct evr_rs *rs, const struct ibv_wc *wcs, int num)
{
	struct evr_rs_receives again;
	int i, ret;

	again.num = 0;
	for (i = 0; i < num; i++)
		take(rs, &wcs[i], &again);
	ret = evr_rs_receives_post(&again, &rs->transport);
	if (ret)
		fail_to_post(rs, ret);
	take_failed(rs, wcs, num);
	evr_rs_pump(rs);
}

void evr_rs_lose_cq(struct evr_rs *rs)
{
	evr_rs_unwatch_cq(rs);
	rs->transport.broken = rs->transport.lost = true;
	fail(rs, -EIO);
}

/* All that there was as it began: a peer that never pauses keeps no call for ever. */
bool evr_rs_poll_cq(struct evr_rs *rs)
{
	struct ibv_wc wcs[EVR_RS_BATCH];
	bool any = false;
	int num, turns;

	if (rs->state != EVR_RS_CONNECTED || !rs->transport.cq)
		return false;
	turns = rs->transport.cq->cqe / EVR_RS_BATCH;
	do {
		num = ibv_poll_cq(rs->transport.cq, EVR_RS_BATCH, wcs);
		if (num > 0)
			take_all(rs, wcs, num);
		else if (num < 0 && !rs->transport.broken)
			evr_rs_lose_cq(rs);
		any = any || num;
	} while (num == EVR_RS_BATCH && rs->transport.cq && turns--);
	return any && num >= 0;
}

/* Of one that is connected the CM has little to say: it is asked now and then. */
static bool look_at_events(struct evr_rs *rs)
{
	uint64_t now = evr_clock_now_us();

	if (now < rs->look_us)
		return false;
	rs->look_us = now + LOOK_US;
	return evr_rs_read_events(rs);
}

/* A device that leaves carries data until its connections end: who never sleeps must look. */
void evr_rs_count_turn(struct evr_rs *rs)
{
	if (++rs->turns % TURNS == 0 && rs->state == EVR_RS_CONNECTED && !rs->watched)
		look_at_events(rs);
}

static bool take_arrivals(struct evr_rs *rs)
{
	if (rs->dgram)
		return rs->state == EVR_RS_OPEN && evr_rs_dgram_progress(rs);
	return evr_rs_poll_cq(rs);
}

/* What one that is watched is told, the helper reads. */
static bool take_events(struct evr_rs *rs)
{
	if (rs->dgram)
		return false;
	if (rs->state != EVR_RS_CONNECTED)
		return evr_rs_read_events(rs);
	return !rs->watched && look_at_events(rs);
}

static bool tell(struct evr_rs *rs, bool any)
{
	if (any && !TAILQ_EMPTY(&rs->sleepers))
		evr_rs_wake(rs);
	return any;
}

bool evr_rs_take_arrivals(struct evr_rs *rs)
{
	return tell(rs, take_arrivals(rs));
}

bool evr_rs_progress(struct evr_rs *rs)
{
	return tell(rs, take_arrivals(rs) || take_events(rs));
}

bool evr_rs_progress_in_all(struct evr_rs *rs)
{
	bool any = take_arrivals(rs);

	return tell(rs, take_events(rs) || any);
}
