/* The address handles of an endpoint: how long they are believed. */
#include "unit/fake_main.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <string.h>

#include "ev/device/ah.h"
#include "ev/core/base.h"
#include "schedule/clock.h"
#include "util/clock.h"

static struct evrdma_base base;
static struct evr_ah_cache cache;
static struct ibv_device **devices;
static struct ibv_context *context;
static struct ibv_pd *pd;
static const struct ibv_ah_attr attr = {
	.is_global = 1, .port_num = 1, .grh = { .hop_limit = 64 }
};

static void setup(void)
{
	fake_setup();
	clock_start(1);
	memset(&base, 0, sizeof(base));
	evr_ah_cache_init(&cache, &base);
	devices = ibv_get_device_list(NULL);
	context = ibv_open_device(devices[0]);
	ck_assert_ptr_nonnull(context);
	pd = ibv_alloc_pd(context);
	ck_assert_ptr_nonnull(pd);
}

static void teardown(void)
{
	evr_ah_cache_clear(&cache);
	ck_assert_uint_eq(base.stats.address_handles, 0);
	ck_assert_int_eq(ibv_dealloc_pd(pd), 0);
	ck_assert_int_eq(ibv_close_device(context), 0);
	ibv_free_device_list(devices);
	clock_stop();
	fake_teardown();
}

static void pass_ms(unsigned ms)
{
	clock_advance_us((uint64_t)ms * EVR_US_PER_MS);
}

/* 0, or why none was got. */
static int get_and_put(void)
{
	struct evr_ah *ah;
	int ret = evr_ah_get(&cache, pd, &attr, &ah);

	if (!ret)
		evr_ah_unref(ah);
	return ret;
}

START_TEST(a_handle_is_used_again_within_its_lifetime)
{
	struct evr_ah *first, *again;

	ck_assert_int_eq(evr_ah_get(&cache, pd, &attr, &first), 0);
	evr_ah_unref(first);
	pass_ms(EVR_AH_LIFETIME_MS - 1);
	ck_assert_int_eq(evr_ah_get(&cache, pd, &attr, &again), 0);
	ck_assert_ptr_eq(again, first);
	evr_ah_unref(again);
	ck_assert_uint_eq(base.stats.address_handles, 1);
}
END_TEST

START_TEST(a_hardware_address_is_not_believed_for_ever)
{
	ck_assert_int_eq(get_and_put(), 0);
	pass_ms(EVR_AH_LIFETIME_MS);
	fake_fail_next("ibv_create_ah", ENOMEM);
	ck_assert_int_eq(get_and_put(), -ENOMEM);
	ck_assert_uint_eq(base.stats.address_handles, 0);
	ck_assert_int_eq(get_and_put(), 0);
}
END_TEST

START_TEST(a_handle_whose_time_is_over_stays_with_its_users)
{
	struct evr_ah *old, *new;

	ck_assert_int_eq(evr_ah_get(&cache, pd, &attr, &old), 0);
	pass_ms(EVR_AH_LIFETIME_MS);
	ck_assert_int_eq(evr_ah_get(&cache, pd, &attr, &new), 0);
	ck_assert_ptr_ne(old, new);
	ck_assert_uint_eq(base.stats.address_handles, 2);
	evr_ah_unref(old);
	ck_assert_uint_eq(base.stats.address_handles, 1);
	evr_ah_unref(new);
}
END_TEST

START_TEST(who_was_asked_for_in_vain_is_not_asked_for_again_at_once)
{
	fake_fail_next("ibv_create_ah", ETIMEDOUT);
	ck_assert_int_eq(get_and_put(), -ETIMEDOUT);
	pass_ms(EVR_AH_IN_VAIN_MS - 1);
	ck_assert_int_eq(get_and_put(), -ETIMEDOUT);
	pass_ms(1);
	ck_assert_int_eq(get_and_put(), 0);
}
END_TEST

START_TEST(want_of_memory_says_nothing_of_an_address)
{
	fake_fail_next("ibv_create_ah", ENOMEM);
	ck_assert_int_eq(get_and_put(), -ENOMEM);
	ck_assert_int_eq(get_and_put(), 0);
}
END_TEST

START_TEST(when_the_hardware_address_changes_no_handle_is_found_again)
{
	struct evr_ah *ah;

	ck_assert_int_eq(get_and_put(), 0);
	evr_ah_cache_retire_all(&cache);
	ck_assert_uint_eq(base.stats.address_handles, 0);
	ck_assert_int_eq(evr_ah_get(&cache, pd, &attr, &ah), 0);
	evr_ah_cache_retire_all(&cache);
	ck_assert_uint_eq(base.stats.address_handles, 1);
	evr_ah_unref(ah);
	ck_assert_uint_eq(base.stats.address_handles, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ev_ah");
	TCase *tc = tcase_create("ev_ah");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, a_handle_is_used_again_within_its_lifetime);
	tcase_add_test(tc, a_hardware_address_is_not_believed_for_ever);
	tcase_add_test(tc, a_handle_whose_time_is_over_stays_with_its_users);
	tcase_add_test(tc, who_was_asked_for_in_vain_is_not_asked_for_again_at_once);
	tcase_add_test(tc, want_of_memory_says_nothing_of_an_address);
	tcase_add_test(tc, when_the_hardware_address_changes_no_handle_is_found_again);
	suite_add_tcase(suite, tc);
	return fake_run(suite);
}
