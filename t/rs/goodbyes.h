/* How connections end: one suite, on TCP and on rsockets. */
#ifndef RS_GOODBYES_H
#define RS_GOODBYES_H

#include "rs/pair.h"

TCase *goodbyes_case(const char *name);

#endif
