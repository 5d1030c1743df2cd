/* The case of bufferevents, in several files. */
#ifndef EVR_CONFORM_BUFFEREVENT_H
#define EVR_CONFORM_BUFFEREVENT_H

#include <check.h>

void bufferevent_add_accepts(TCase *tcase);
void bufferevent_add_ends(TCase *tcase);

#endif
