/*
 * What the number of an rsocket shows to poll(2) and the like. It is one end of a local pair: a
 * byte from the other end makes it readable, a full buffer not writable, and the other end's
 * shutdown and close are what they are to it. It is changed only where it is not yet what it should
 * be.
 */
#ifndef EVR_RS_READY_H
#define EVR_RS_READY_H

#include "rs/rs.h"

/* As it is now. */
void evr_rs_show(struct evr_rs *rs);
/* Less than it showed, where there is less: what came is not shown yet. */
void evr_rs_hide(struct evr_rs *rs);
/* Neither bytes nor room: what is there when it is shown again is new to who waits for an edge. */
void evr_rs_show_nothing(struct evr_rs *rs);
/* It has ended: nothing more will be shown. What can be read and written may still end. */
bool evr_rs_shows_all(const struct evr_rs *rs);
/* The user is told why it has ended: neither a call nor the number says it again. */
void evr_rs_tell_error(struct evr_rs *rs);

#endif
