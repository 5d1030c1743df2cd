/* What select(2) and pselect(2) say of a number: one suite, on TCP and on rsockets. */
#ifndef RS_SELECTS_H
#define RS_SELECTS_H

#include "rs/pair.h"

TCase *selects_case(const char *name, bool is_rs);

#endif
