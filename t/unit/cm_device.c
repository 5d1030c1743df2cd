/* How long devices stay open, and what happens when one is taken away. */
#include "unit/cm_unit.h"

#include "util/clock.h"

static struct rdma_event_channel *channel;

static void set_up(void)
{
	cm_set_up();
	channel = cm_channel();
}

static void tear_down(void)
{
	rdma_destroy_event_channel(channel);
	cm_tear_down();
}

static struct rdma_cm_id *bound(const char *ip)
{
	struct rdma_cm_id *id = cm_id(channel, RDMA_PS_TCP);

	ck_assert_ok(rdma_bind_addr(id, cm_addr(ip, 0)));
	return id;
}

START_TEST(ids_on_a_device_share_it)
{
	struct rdma_cm_id *a = bound(FAKE_ROCE_IP), *b = bound(FAKE_ROCE_IP6);

	ck_assert(a->verbs == b->verbs && a->pd == b->pd);
	ck_assert_uint_eq(fake_live(FAKE_CONTEXT), 1);
	cm_destroy(a);
	ck_assert_uint_eq(fake_live(FAKE_PD), 1);
	cm_destroy(b);
	ck_assert_uint_eq(fake_live(FAKE_PD), 0);
}
END_TEST

START_TEST(devices_are_told_apart)
{
	struct rdma_cm_id *a, *b;

	fake_device_add(FAKE_IWARP);
	a = bound(FAKE_ROCE_IP);
	b = bound(FAKE_IWARP_IP);
	ck_assert_ptr_ne(a->verbs, b->verbs);
	ck_assert_uint_eq(fake_live(FAKE_CONTEXT), 2);
	cm_destroy(a);
	cm_destroy(b);
}
END_TEST

/* libibverbs tries a second name of the file then, which is not there. */
START_TEST(a_device_that_may_not_be_opened_says_so)
{
	struct rdma_cm_id *id = cm_id(channel, RDMA_PS_TCP);

	fake_fail_next("ibv_open_device", ENOENT);
	fake_fail_next("open", EACCES);
	ck_assert_fails(rdma_bind_addr(id, cm_addr(FAKE_ROCE_IP, 0)), EACCES);
	cm_destroy(id);
}
END_TEST

START_TEST(a_device_without_a_file_says_so)
{
	struct rdma_cm_id *id = cm_id(channel, RDMA_PS_TCP);

	fake_fail_next("ibv_open_device", ENOENT);
	ck_assert_fails(rdma_bind_addr(id, cm_addr(FAKE_ROCE_IP, 0)), ENOENT);
	cm_destroy(id);
}
END_TEST

/* --- without ids -------------------------------------------------------------------------- */

/* What the program has of it, if only the context, the library cannot know. */
static void expect_open(struct ibv_context *verbs)
{
	struct ibv_device_attr attr;
	struct rdma_cm_id *id;

	cm_expect_none(channel);
	ck_assert_int_eq(ibv_query_device(verbs, &attr), 0);
	id = bound(FAKE_ROCE_IP);
	ck_assert_ptr_eq(id->verbs, verbs);
	cm_destroy(id);
}

START_TEST(a_listed_device_stays_open)
{
	struct ibv_context **list = rdma_get_devices(NULL);
	struct ibv_context *verbs = list[0];

	rdma_free_devices(list);
	expect_open(verbs);
}
END_TEST

START_TEST(a_device_stays_open_after_its_last_id)
{
	struct rdma_cm_id *id = bound(FAKE_ROCE_IP);
	struct ibv_context *verbs = id->verbs;

	cm_destroy(id);
	expect_open(verbs);
}
END_TEST

START_TEST(a_device_stays_open_after_the_last_channel)
{
	struct rdma_cm_id *id = cm_id(NULL, RDMA_PS_TCP);
	struct ibv_context *verbs;

	rdma_destroy_event_channel(channel);
	ck_assert_ok(rdma_resolve_addr(id, NULL, cm_addr(FAKE_ROCE_IP, 1), CM_TIMEOUT_MS));
	ck_assert_ok(rdma_resolve_route(id, CM_TIMEOUT_MS));
	verbs = id->verbs;
	cm_destroy(id);
	channel = cm_channel();
	expect_open(verbs);
}
END_TEST

/* Memory on the shared domain outlives the ids, and the domain does. */
START_TEST(memory_on_the_shared_domain_keeps_the_domain)
{
	struct rdma_cm_id *id = bound(FAKE_ROCE_IP);
	static char memory[64];
	struct ibv_mr *mr = ibv_reg_mr(id->pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);

	cm_destroy(id);
	ck_assert_uint_eq(fake_live(FAKE_PD), 1);
	id = bound(FAKE_ROCE_IP);
	ck_assert_ptr_eq(id->pd, mr->pd);
	ck_assert_int_eq(ibv_dereg_mr(mr), 0);
	cm_destroy(id);
	ck_assert_uint_eq(fake_live(FAKE_PD), 0);
}
END_TEST

static unsigned looks(void)
{
	return fake_calls("ibv_get_device_list") + fake_calls("find_driver_id") +
	       fake_calls("ioctl");
}

/* What one look may take, each second begun. */
enum { CALLS_OF_A_LOOK = 8 };

static void expect_few_looks(void)
{
	const uint64_t begin_us = evr_clock_now_us();
	const unsigned before = looks();
	uint64_t seconds;
	int i;

	for (i = 0; i < 100; i++) {
		cm_expect_none(channel);
		cm_destroy(cm_id(channel, RDMA_PS_TCP));
	}
	seconds = (evr_clock_now_us() - begin_us) / 1000000;
	ck_assert_uint_le(looks() - before, CALLS_OF_A_LOOK * (1 + seconds));
}

START_TEST(a_device_without_ids_is_looked_at_once_a_second)
{
	struct rdma_cm_id *id = bound(FAKE_ROCE_IP);
	struct ibv_pd *pd = ibv_alloc_pd(id->verbs);

	cm_destroy(id);
	expect_few_looks();
	ck_assert_int_eq(ibv_dealloc_pd(pd), 0);
}
END_TEST

/* --- removal without ids ---------------------------------------------------------------------- */

static void look_now(void)
{
	rdma_free_devices(rdma_get_devices(NULL));
}

/* Other calls look once a second. */
static void expect_gone_in_time(void)
{
	const uint64_t deadline_us = evr_clock_now_us() + 60 * 1000000;

	while (!fake_device_gone(FAKE_ROCE) && evr_clock_now_us() < deadline_us)
		cm_expect_none(channel);
	ck_assert(fake_device_gone(FAKE_ROCE));
}

START_TEST(a_look_finds_a_device_that_was_removed_meanwhile)
{
	cm_destroy(bound(FAKE_ROCE_IP));
	fake_device_remove(FAKE_ROCE);
	expect_gone_in_time();
}
END_TEST

START_TEST(so_does_the_list_of_devices)
{
	cm_destroy(bound(FAKE_ROCE_IP));
	fake_device_remove(FAKE_ROCE);
	errno = 0;
	ck_assert_ptr_null(rdma_get_devices(NULL));
	ck_assert_int_eq(errno, ENODEV);
	ck_assert(fake_device_gone(FAKE_ROCE));
}
END_TEST

/* Such as without descriptors. */
START_TEST(a_device_that_cannot_be_asked_for_is_there)
{
	struct rdma_cm_id *id = bound(FAKE_ROCE_IP);
	struct ibv_context *verbs = id->verbs;

	cm_destroy(id);
	fake_fail_next("find_driver_id", EMFILE);
	look_now();
	expect_open(verbs);
}
END_TEST

/* --- removal under what is the caller's ------------------------------------------------------- */

static struct ibv_context *removed(void)
{
	struct rdma_cm_id *id = bound(FAKE_ROCE_IP);
	struct ibv_context *verbs = id->verbs;

	fake_device_remove(FAKE_ROCE);
	ck_assert_ptr_eq(cm_await(channel, RDMA_CM_EVENT_DEVICE_REMOVAL), id);
	cm_destroy(id);
	return verbs;
}

START_TEST(a_domain_of_the_callers_holds_a_removed_device)
{
	struct rdma_cm_id *id = bound(FAKE_ROCE_IP);
	struct ibv_pd *pd = ibv_alloc_pd(id->verbs);

	cm_destroy(id);
	removed();
	ck_assert(!fake_device_gone(FAKE_ROCE));
	ck_assert_int_eq(ibv_dealloc_pd(pd), 0);
	expect_gone_in_time();
}
END_TEST

START_TEST(so_do_queues_and_channels)
{
	struct rdma_cm_id *id = bound(FAKE_ROCE_IP);
	struct ibv_comp_channel *comp = ibv_create_comp_channel(id->verbs);
	struct ibv_cq *cq = ibv_create_cq(id->verbs, 1, NULL, NULL, 0);

	cm_destroy(id);
	removed();
	ck_assert(!fake_device_gone(FAKE_ROCE));
	ck_assert_int_eq(ibv_destroy_cq(cq), 0);
	look_now();
	ck_assert(!fake_device_gone(FAKE_ROCE));
	ck_assert_int_eq(ibv_destroy_comp_channel(comp), 0);
	look_now();
	ck_assert(fake_device_gone(FAKE_ROCE));
}
END_TEST

/* Drivers that take everything away with the device: what the program has left is only names. */
START_TEST(a_removed_device_that_tells_nothing_stays_open)
{
	struct ibv_device_attr attr;
	struct ibv_context *verbs;

	fake_fail_next("ioctl", EIO);
	verbs = removed();
	ck_assert_int_eq(ibv_query_device(verbs, &attr), 0);
	look_now();
	ck_assert(fake_device_gone(FAKE_ROCE));
}
END_TEST

START_TEST(a_removed_device_in_use_is_looked_at_once_a_second)
{
	struct rdma_cm_id *id = bound(FAKE_ROCE_IP);
	struct ibv_pd *pd = ibv_alloc_pd(id->verbs);

	cm_destroy(id);
	removed();
	expect_few_looks();
	ck_assert_int_eq(ibv_dealloc_pd(pd), 0);
}
END_TEST

/* --- removal ---------------------------------------------------------------------------------- */

START_TEST(a_removed_device_is_gone_with_its_last_id)
{
	struct rdma_cm_id *id = bound(FAKE_ROCE_IP);

	fake_device_remove(FAKE_ROCE);
	ck_assert_ptr_eq(cm_await(channel, RDMA_CM_EVENT_DEVICE_REMOVAL), id);
	ck_assert(!fake_device_gone(FAKE_ROCE));
	cm_destroy(id);
	ck_assert(fake_device_gone(FAKE_ROCE));
	fake_device_add(FAKE_ROCE);
}
END_TEST

START_TEST(a_connection_on_a_device_that_came_back_works)
{
	struct cm_pair pair;

	cm_pair_connect(&pair);
	fake_device_remove(FAKE_ROCE);
	cm_await(pair.channel, RDMA_CM_EVENT_DEVICE_REMOVAL);
	cm_await(pair.channel, RDMA_CM_EVENT_DEVICE_REMOVAL);
	cm_pair_end(&pair);
	fake_device_add(FAKE_ROCE);
	cm_pair_connect(&pair);
	cm_pair_end(&pair);
}
END_TEST

/* Without it the kernel cannot be asked what is in use. */
START_TEST(a_device_whose_driver_is_unknown_stays_open_when_it_is_removed)
{
	struct ibv_context *verbs;

	fake_fail_next("find_driver_id", ENOENT);
	verbs = removed();
	ck_assert_ptr_null(rdma_get_devices(NULL));
	ck_assert(!fake_device_gone(FAKE_ROCE));
	ck_assert_uint_eq(fake_live(FAKE_PD), 0);
	ck_assert_int_eq(ibv_close_device(verbs), 0);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		ids_on_a_device_share_it,
		devices_are_told_apart,
		a_device_that_may_not_be_opened_says_so,
		a_device_without_a_file_says_so,
		a_listed_device_stays_open,
		a_device_stays_open_after_its_last_id,
		a_device_stays_open_after_the_last_channel,
		memory_on_the_shared_domain_keeps_the_domain,
		a_device_without_ids_is_looked_at_once_a_second,
		a_look_finds_a_device_that_was_removed_meanwhile,
		so_does_the_list_of_devices,
		a_device_that_cannot_be_asked_for_is_there,
		a_domain_of_the_callers_holds_a_removed_device,
		so_do_queues_and_channels,
		a_removed_device_that_tells_nothing_stays_open,
		a_removed_device_in_use_is_looked_at_once_a_second,
		a_removed_device_is_gone_with_its_last_id,
		a_connection_on_a_device_that_came_back_works,
		a_device_whose_driver_is_unknown_stays_open_when_it_is_removed,
	};

	return unit_main("cm_device", tests, sizeof(tests) / sizeof(tests[0]), set_up, tear_down);
}
