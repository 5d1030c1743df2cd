/* Numbers in libevent's event bases, by each backend: one suite, on TCP and on rsockets. */
#ifndef RS_BASES_H
#define RS_BASES_H

#include "rs/pair.h"

TCase *bases_case(const char *name);

#endif
