/* What the numbers in the kernel's events stand for, and that a stale one stands for nothing. */
#include "cm/cm.h"
#include "unit/unit.h"

static struct evr_cm_id a, b;

static void forget(void)
{
	evr_cm_map_remove_id(&a);
	evr_cm_map_remove_id(&b);
}

START_TEST(an_id_is_found_by_its_uid_until_it_is_removed)
{
	ck_assert_int_eq(evr_cm_map_add_id(&a), 0);
	ck_assert_int_eq(evr_cm_map_add_id(&b), 0);
	ck_assert_ptr_eq(evr_cm_map_find_id(evr_cm_uid(&a)), &a);
	evr_cm_map_remove_id(&a);
	ck_assert_ptr_null(evr_cm_map_find_id(evr_cm_uid(&a)));
	ck_assert_ptr_eq(evr_cm_map_find_id(evr_cm_uid(&b)), &b);
}
END_TEST

START_TEST(no_id_has_the_uid_zero)
{
	ck_assert_ptr_null(evr_cm_map_find_id(0));
	ck_assert_ptr_null(evr_cm_map_find_mc(0));
}
END_TEST

START_TEST(children_are_found_by_their_handle_which_may_be_zero)
{
	a.handle = 0;
	ck_assert_int_eq(evr_cm_map_add_child(&a), 0);
	ck_assert_ptr_eq(evr_cm_map_find_child(0), &a);
	ck_assert_ptr_null(evr_cm_map_find_child(1));
	evr_cm_map_remove_id(&a);
	ck_assert_ptr_null(evr_cm_map_find_child(0));
}
END_TEST

/* While one thread is still on its way out of rdma_destroy_id, another reads the next request. */
START_TEST(a_handle_that_is_given_out_again_is_the_new_childs)
{
	a.handle = b.handle = 7;
	ck_assert_int_eq(evr_cm_map_add_child(&a), 0);
	ck_assert_int_eq(evr_cm_map_add_child(&b), 0);
	ck_assert_ptr_eq(evr_cm_map_find_child(7), &b);
	evr_cm_map_remove_id(&a);
	ck_assert_ptr_eq(evr_cm_map_find_child(7), &b);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		an_id_is_found_by_its_uid_until_it_is_removed,
		no_id_has_the_uid_zero,
		children_are_found_by_their_handle_which_may_be_zero,
		a_handle_that_is_given_out_again_is_the_new_childs,
	};

	return unit_main("cm_event_map", tests, sizeof(tests) / sizeof(tests[0]), NULL, forget);
}
