/* What is seldom asked of a socket: one suite, on TCP and on rsockets. */
#ifndef RS_EDGES_H
#define RS_EDGES_H

#include "rs/pair.h"

TCase *edges_case(const char *name);

#endif
