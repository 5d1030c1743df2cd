/* What the number of a socket shows to those who poll: one suite, on TCP and on rsockets. */
#ifndef RS_DESCRIPTOR_H
#define RS_DESCRIPTOR_H

#include "rs/pair.h"

TCase *descriptor_case(const char *name);

#endif
