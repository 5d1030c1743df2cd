/* The strangers on the fake, by packets as large as any device's. */
#include "rs/hostile_dgrams.h"

#include "unit/cm_unit.h"

static unsigned int count_objects(void)
{
	return fake_live(FAKE_QP) + fake_live(FAKE_CQ) + fake_live(FAKE_MR) + fake_live(FAKE_ID);
}

static void set_up(void)
{
	cm_set_up();
	fake_port_attr(FAKE_ROCE)->active_mtu = IBV_MTU_4096;
}

static void tear_down(void)
{
	ck_assert_uint_eq(fake_live(FAKE_AH), 0);
	cm_tear_down();
}

int main(void)
{
	hostile_dgram_place.ip = "127.0.0.1";
	hostile_dgram_place.count_objects = count_objects;
	return hostile_dgrams_run(set_up, tear_down);
}
