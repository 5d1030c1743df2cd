/* What the number of a socket shows to those who poll: one suite, on TCP and on rsockets. */
#ifndef RS_DESCRIPTOR_H
#define RS_DESCRIPTOR_H

#include "rs/pair.h"

/* With the calls of rsockets besides the kernel's, where it is for them. */
TCase *descriptor_case(const char *name, bool is_rs);

#endif
