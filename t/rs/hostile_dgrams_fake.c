/* The strangers on the fake, by packets as large as any device's. */
#include "rs/hostile_dgrams.h"

#include "unit/cm_unit.h"

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
	hostile_dgram_ip = "127.0.0.1";
	return hostile_dgrams_run(set_up, tear_down);
}
