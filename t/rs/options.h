/* Options, flags and copies of a number: one suite, on TCP and on rsockets. */
#ifndef RS_OPTIONS_H
#define RS_OPTIONS_H

#include "rs/calls.h"

#include <check.h>

/* Each at an address of the machine that its calls can connect to. */
TCase *options_tcp_case(const char *ip);
TCase *options_rs_case(const char *ip);

#endif
