/*
 * Who looks after an rsocket: the helper, who watches its channels, or its user in rpoll(). And
 * what its number shows then.
 */
#include "rs/dgram.h"
#include "rs/helper.h"
#include "rs/ready.h"

enum { LOOKS = 64 };

/* --- watching -------------------------------------------------------------------------------- */

void evr_rs_unwatch_cq(struct evr_rs *rs)
{
	if (!rs->cq_watched || !evr_rs_helper_is_ours())
		return;
	evr_rs_helper_remove(evr_rs_arrivals_fd(rs));
	rs->cq_watched = rs->cq_muted = false;
}

/* A child of fork() leaves alone what its parent watches. */
void evr_rs_unwatch(struct evr_rs *rs)
{
	if (!rs->watched || !evr_rs_helper_is_ours())
		return;
	evr_rs_unwatch_cq(rs);
	if (rs->channel && !rs->dgram)
		evr_rs_helper_remove(rs->channel->fd);
	rs->watched = false;
	evr_rs_helper_stop_using();
}

static int watch_cm(struct evr_rs *rs)
{
	int ret;

	if (rs->watched || !(rs->channel || rs->dgram))
		return 0;
	ret = evr_rs_helper_use();
	if (ret)
		return ret;
	rs->watched = true;
	return rs->dgram ? 0 : evr_rs_helper_add(rs, rs->channel->fd, EVR_RS_CM_CHANNEL);
}

static void mute_cq(struct evr_rs *rs, bool muted)
{
	if (!rs->cq_watched || rs->cq_muted == muted)
		return;
	rs->cq_muted = muted;
	evr_rs_helper_mute(rs, evr_rs_arrivals_fd(rs), EVR_RS_CQ_CHANNEL, muted);
}

static int watch_cq(struct evr_rs *rs)
{
	int ret;

	if (!rs->watched || !evr_rs_is_going(rs) || rs->transport.lost)
		return 0;
	if (!rs->cq_watched) {
		ret = evr_rs_helper_add(rs, evr_rs_arrivals_fd(rs), EVR_RS_CQ_CHANNEL);
		if (ret)
			return ret;
		rs->cq_watched = true;
	}
	mute_cq(rs, rs->by_rpoll);
	return 0;
}

static bool needs_help(const struct evr_rs *rs)
{
	return evr_rs_is_shown(rs) && rs->fd >= 0 && !rs->deaf &&
	       (rs->state == EVR_RS_LISTENING || evr_rs_is_going(rs) || evr_rs_is_connecting(rs));
}

int evr_rs_watch(struct evr_rs *rs)
{
	int ret;

	if (!needs_help(rs)) {
		evr_rs_unwatch(rs);
		rs->by_rpoll = false;
		return 0;
	}
	ret = watch_cm(rs);
	if (!ret)
		ret = watch_cq(rs);
	if (ret)
		evr_rs_unwatch(rs);
	return ret;
}

/*
 * Until there is nothing new. But what comes once it is armed is an event: who sends as fast as it
 * is dropped does not keep a call for ever, nor the helper from the others.
 */
static void arm(struct evr_rs *rs)
{
	int looks = 0;

	while (rs->cq_watched && !evr_rs_shows_all(rs) && looks++ < LOOKS && evr_rs_arm(rs))
		;
}

/*
 * Whom nobody can look after says so, for its user would wait for ever. While its user is in
 * rpoll() and between two of them, the number shows nothing new; nor does it show what is not there
 * any more, for who asks poll(2) meanwhile may call what then waits.
 */
void evr_rs_settle(struct evr_rs *rs)
{
	int ret = evr_rs_watch(rs);

	if (ret) {
		evr_rs_deafen(rs, ret);
		evr_rs_wake(rs);
	}
	if (!evr_rs_is_shown(rs) || rs->fd < 0)
		return;
	if (rs->by_rpoll && rs->watched) {
		evr_rs_hide(rs);
		return;
	}
	arm(rs);
	/* Last: who has waited for it comes for the lock. */
	evr_rs_show(rs);
}

/* --- when there is something ----------------------------------------------------------------- */

static void serve_timer(struct evr_rs *rs)
{
	bool any = evr_rs_backlog_due(rs);

	evr_rs_keepalive_due(rs);
	if (!any && !rs->stream.error && !rs->listener.want)
		return;
	evr_rs_wake(rs);
	evr_rs_settle(rs);
}

void evr_rs_serve(struct evr_rs *rs, enum evr_rs_kind kind)
{
	if (kind == EVR_RS_TIMER) {
		serve_timer(rs);
		return;
	}
	if (!rs->watched)
		return;
	if (kind == EVR_RS_CQ_CHANNEL)
		evr_rs_take_cq_event(rs);
	else
		evr_rs_read_events(rs);
	evr_rs_progress(rs);
	evr_rs_wake(rs);
	evr_rs_settle(rs);
}

/* --- rpoll ----------------------------------------------------------------------------------- */

void evr_rs_enter_rpoll(struct evr_rs *rs)
{
	if (!evr_rs_is_shown(rs) || rs->by_rpoll)
		return;
	rs->by_rpoll = true;
	mute_cq(rs, true);
}

/* Of one that nobody watches there is nothing to be given back. */
void evr_rs_leave_rpoll(struct evr_rs *rs)
{
	if (!rs->by_rpoll)
		return;
	rs->touched = true;
	if (!rs->watched)
		rs->by_rpoll = rs->late;
	else if (!rs->late)
		evr_rs_helper_expect(rs);
}

void evr_rs_stay_in_rpoll(struct evr_rs *rs)
{
	rs->touched = true;
}

/* Who sleeps in another call looks only for what that wants. */
static bool is_polled(const struct evr_rs *rs)
{
	const struct evr_rs_sleeper *sleeper;

	TAILQ_FOREACH (sleeper, &rs->sleepers, link)
		if (sleeper->polls)
			return true;
	return false;
}

bool evr_rs_comes_back(struct evr_rs *rs, uint64_t now_us)
{
	if (rs->state == EVR_RS_CLOSED || !rs->by_rpoll)
		return true;
	if (rs->touched)
		rs->rpolled_us = now_us;
	rs->touched = false;
	if (now_us < rs->rpolled_us + EVR_RS_LATE_US)
		return false;
	/* Its user has slept for long, and says when it wakes up. */
	if (is_polled(rs))
		return true;
	rs->by_rpoll = false;
	rs->late = false;
	evr_rs_settle(rs);
	return true;
}
