/* The hostile peer on the fake, on each of its devices. */
#include "rs/hostile_suite.h"

#include <stdlib.h>

#include "unit/cm_unit.h"

static void set_up(void)
{
	cm_set_up();
	if (fake_kind_to_test(FAKE_ROCE) != FAKE_ROCE)
		fake_device_add(fake_kind_to_test(FAKE_ROCE));
}

int main(void)
{
	hostile_place.ip = fake_ip(fake_kind_to_test(FAKE_ROCE));
	hostile_place.give_up = fake_time_out_work;
	return hostile_run(set_up, cm_tear_down);
}
