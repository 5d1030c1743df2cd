#include "rs/hostile_objects.h"

#include "fake/fake.h"

unsigned int hostile_objects(void)
{
	return fake_live(FAKE_QP) + fake_live(FAKE_CQ) + fake_live(FAKE_MR) + fake_live(FAKE_ID);
}
