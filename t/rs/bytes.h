/* What the calls that move bytes do: one suite, on TCP and on rsockets. */
#ifndef RS_BYTES_H
#define RS_BYTES_H

#include "rs/pair.h"

TCase *bytes_case(const char *name);

#endif
