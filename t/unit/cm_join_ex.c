/* The cases that run on a device, on the fake. */
#include "interop/join_ex.h"

#include "fake/fake.h"

struct join_ex_place join_ex_place = { FAKE_ROCE_IP, .has_groups = true, .own_core = true };

static void set_up(void)
{
	fake_install();
}

static void tear_down(void)
{
	ck_assert_pstr_eq(fake_expect_clean(), NULL);
	fake_reset();
}

int main(void)
{
	return join_ex_run(set_up, tear_down);
}
