/*
 * The thread that makes progress for nonblocking rsockets while the process waits elsewhere: in
 * poll, epoll, io_uring, or an event loop. It is there while there is a nonblocking rsocket that
 * listens, connects or is connected, or one that is closing. It watches the channels of each, takes
 * what they have, and shows it on the number.
 *
 * An rsocket that is in rpoll() needs no help: its user looks at it. It comes back to the helper
 * when it has not been there for a while.
 */
#ifndef EVR_RS_HELPER_H
#define EVR_RS_HELPER_H

#include "rs/rs.h"

/* How long nobody has to have been in rpoll(), or to have read, for it to come back. */
enum { EVR_RS_LATE_US = 2000 };

/* --- watch ----------------------------------------------------------------------------------- */

/*
 * Has it watched, if that is needed as it is now. 0 or -errno: it is not, and could not show what
 * comes.
 */
int evr_rs_watch(struct evr_rs *rs);
/* Its channels are about to close, or nobody shall look at them. */
void evr_rs_unwatch(struct evr_rs *rs);
/* The completion channel is readable for ever, or goes. */
void evr_rs_unwatch_cq(struct evr_rs *rs);
/* Its number is for others to wait by. */
static inline bool evr_rs_is_shown(const struct evr_rs *rs)
{
	return rs->nonblock || rs->in_repoll;
}
/* After each call, and each event: who looks after it, and what its number shows. */
void evr_rs_settle(struct evr_rs *rs);

/* rpoll() looks at it; and has looked at it. */
void evr_rs_enter_rpoll(struct evr_rs *rs);
void evr_rs_leave_rpoll(struct evr_rs *rs);
/* Who has been there reads, and will be there again when there is nothing left to read. */
void evr_rs_stay_in_rpoll(struct evr_rs *rs);
/* Whether it needs no more looking at for that. */
bool evr_rs_comes_back(struct evr_rs *rs, uint64_t now_us);

/* What of an rsocket has news. */
enum evr_rs_kind { EVR_RS_CM_CHANNEL, EVR_RS_CQ_CHANNEL, EVR_RS_TIMER, EVR_RS_KINDS };
void evr_rs_serve(struct evr_rs *rs, enum evr_rs_kind kind);

/* --- helper ---------------------------------------------------------------------------------- */

/* It is there from now on; 0 or -errno. Who uses it may have it watch descriptors: 0 or -errno. */
int evr_rs_helper_use(void);
void evr_rs_helper_stop_using(void);
int evr_rs_helper_add(const struct evr_rs *rs, int fd, enum evr_rs_kind kind);
void evr_rs_helper_mute(const struct evr_rs *rs, int fd, enum evr_rs_kind kind, bool muted);
void evr_rs_helper_remove(int fd);
/* It is not that of a parent. */
bool evr_rs_helper_is_ours(void);
/* Looks at one that it watches now and then, until that has come back from rpoll(). */
void evr_rs_helper_expect(struct evr_rs *rs);

/* Goes on with one that is closed, until the time, if that is not done before. 0 or -errno. */
int evr_rs_helper_close(struct evr_rs *rs, uint64_t deadline_us);
/* Whether there is any such whose user closed it. For the end of the process: waits for nobody. */
bool evr_rs_helper_has_closing(void);
/*
 * linger: what the device has of one whose request is unanswered goes on apart. 0 or -errno, and it
 * stays where it is.
 */
int evr_rs_linger(struct evr_rs *rs);

/*
 * keepalive: as the options and the state are now: 0, or -errno. When the timer has rung. Stopping
 * is for one whose number goes.
 */
int evr_rs_keepalive_update(struct evr_rs *rs);
void evr_rs_keepalive_due(struct evr_rs *rs);
void evr_rs_keepalive_stop(struct evr_rs *rs);
/* Watches a timer of an rsocket's. 0 or -errno. */
int evr_rs_helper_add_timer(struct evr_rs *rs, int fd);
void evr_rs_helper_remove_timer(int fd);

/* Nobody is within the helper while the process is copied; the child has no thread. */
void evr_rs_helper_before_fork(void);
void evr_rs_helper_after_fork(void);
void evr_rs_helper_begin_child(void);

#endif
