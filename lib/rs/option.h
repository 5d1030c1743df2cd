/* Options that the CM has to know of. */
#ifndef EVR_RS_OPTION_H
#define EVR_RS_OPTION_H

#include "rs/rs.h"

/* To an id that is new. What it does not take is as it would be without. */
void evr_rs_apply_options(struct evr_rs *rs);

#endif
