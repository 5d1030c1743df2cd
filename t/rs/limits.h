/* SO_RCVTIMEO and SO_SNDTIMEO: one suite, on TCP and on rsockets. */
#ifndef RS_LIMITS_H
#define RS_LIMITS_H

#include "rs/pair.h"

TCase *limits_case(const char *name);

#endif
