/* What is seen of a socket in each state: one suite, on TCP and on rsockets. */
#ifndef RS_SEEN_H
#define RS_SEEN_H

#include "rs/pair.h"

TCase *seen_case(const char *name);

#endif
