/* What the cases that run only on the fake share. */
#ifndef EVR_CONFORM_FAKE_H
#define EVR_CONFORM_FAKE_H

#include "fake/fake.h"

/* The kind of device that the place's address belongs to. */
extern const enum fake_kind fake_place_kind;

#endif
