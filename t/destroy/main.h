/* The whole test, on a device of the kind. */
#ifndef EVR_DESTROY_MAIN_H
#define EVR_DESTROY_MAIN_H

#include "fake/fake.h"

int destroy_main(enum fake_kind kind);

#endif
