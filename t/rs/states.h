/* What calls say of a socket's state: one suite, on TCP and on rsockets. */
#ifndef RS_STATES_H
#define RS_STATES_H

#include "rs/pair.h"

TCase *states_case(const char *name);

#endif
