/* Options that the CM has to know of. */
#ifndef EVR_RS_OPTION_H
#define EVR_RS_OPTION_H

#include "rs/rs.h"

/* To an id that is new. What it does not take is as it would be without. */
void evr_rs_apply_options(struct evr_rs *rs);
/*
 * route: 0 or -errno. Asks the CM for the route, which an event brings: with the paths that were
 * set, or to look them up. Getting: whole paths as far as there is room; returns how many bytes.
 */
int evr_rs_route_set(struct evr_rs *rs, const void *value, socklen_t len);
int evr_rs_route_ask(struct evr_rs *rs, int timeout_ms);
size_t evr_rs_route_get(const struct evr_rs *rs, void *value, size_t room);

#endif
