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

/* After each call, and each event: who looks after it, and what its number shows. */
void evr_rs_settle(struct evr_rs *rs);
/* Its channels are about to close, or nobody shall look at them. */
void evr_rs_unwatch(struct evr_rs *rs);

/* rpoll() looks at it; and has looked at it at that time. */
void evr_rs_enter_rpoll(struct evr_rs *rs);
void evr_rs_leave_rpoll(struct evr_rs *rs, uint64_t now_us);

/* Goes on with one that is closed, until the time, if that is not done before. 0 or -errno. */
int evr_rs_helper_close(struct evr_rs *rs, uint64_t deadline_us);

#endif
