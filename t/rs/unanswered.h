/* A connect that nobody answers, by TCP and by rsockets; on the devices of breaks.sh. */
#ifndef RS_UNANSWERED_H
#define RS_UNANSWERED_H

#include <check.h>

TCase *unanswered_case(void);

#endif
