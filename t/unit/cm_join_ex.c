/* The cases that run on a device, on the fake. */
#include "interop/join_ex.h"

#include "unit/cm_unit.h"

struct join_ex_testbed join_ex_testbed = { FAKE_ROCE_IP, .has_groups = true, .own_core = true };

int main(void)
{
	return join_ex_run(cm_set_up, cm_tear_down);
}
