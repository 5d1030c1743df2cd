/* How long devices stay open, and what happens when one is taken away. */
#include "unit/cm_unit.h"

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
	ck_assert_uint_eq(fake_live(FAKE_CONTEXT), 1);
	cm_destroy(b);
	ck_assert_uint_eq(fake_live(FAKE_CONTEXT) + fake_live(FAKE_PD), 0);
}
END_TEST

START_TEST(devices_are_told_apart)
{
	struct rdma_cm_id *a, *b;

	fake_device_add(FAKE_IWARP);
	a = bound(FAKE_ROCE_IP);
	b = bound(FAKE_IWARP_IP);
	ck_assert_ptr_ne(a->verbs, b->verbs);
	cm_destroy(a);
	ck_assert_uint_eq(fake_live(FAKE_CONTEXT), 1);
	cm_destroy(b);
}
END_TEST

START_TEST(a_domain_of_the_callers_keeps_the_device_until_a_later_call)
{
	struct rdma_cm_id *id = bound(FAKE_ROCE_IP);
	struct ibv_pd *pd = ibv_alloc_pd(id->verbs);

	cm_destroy(id);
	ck_assert_uint_eq(fake_live(FAKE_CONTEXT), 1);
	cm_expect_none(channel);
	ck_assert_uint_eq(fake_live(FAKE_CONTEXT), 1);
	ck_assert_int_eq(ibv_dealloc_pd(pd), 0);
	cm_expect_none(channel);
	ck_assert_uint_eq(fake_live(FAKE_CONTEXT), 0);
}
END_TEST

START_TEST(queues_and_channels_of_the_callers_keep_the_device)
{
	struct rdma_cm_id *id = bound(FAKE_ROCE_IP);
	struct ibv_comp_channel *comp = ibv_create_comp_channel(id->verbs);
	struct ibv_cq *cq = ibv_create_cq(id->verbs, 1, NULL, NULL, 0);

	cm_destroy(id);
	ck_assert_int_eq(ibv_destroy_cq(cq), 0);
	cm_expect_none(channel);
	ck_assert_uint_eq(fake_live(FAKE_CONTEXT), 1);
	ck_assert_int_eq(ibv_destroy_comp_channel(comp), 0);
	cm_destroy(cm_id(channel, RDMA_PS_TCP));
	ck_assert_uint_eq(fake_live(FAKE_CONTEXT), 0);
}
END_TEST

/* Memory on the shared domain outlives the ids; the domain and the device wait for it. */
START_TEST(memory_on_the_shared_domain_keeps_the_device)
{
	struct rdma_cm_id *id = bound(FAKE_ROCE_IP);
	struct ibv_context *verbs = id->verbs;
	static char memory[64];
	struct ibv_mr *mr = ibv_reg_mr(id->pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);

	cm_destroy(id);
	ck_assert_uint_eq(fake_live(FAKE_PD), 1);
	id = bound(FAKE_ROCE_IP);
	ck_assert(id->verbs == verbs && id->pd == mr->pd);
	ck_assert_int_eq(ibv_dereg_mr(mr), 0);
	cm_destroy(id);
	ck_assert_uint_eq(fake_live(FAKE_CONTEXT), 0);
}
END_TEST

/* --- devices that a program may want nothing of but the context ------------------------------ */

/* Nobody tells that it leaves: the library looks whenever it is called. */
static void expect_until_removed(const struct ibv_context *verbs)
{
	struct ibv_device_attr attr;
	struct rdma_cm_id *id;

	cm_expect_none(channel);
	ck_assert_int_eq(ibv_query_device((struct ibv_context *)verbs, &attr), 0);
	id = bound(FAKE_ROCE_IP);
	ck_assert_ptr_eq(id->verbs, verbs);
	cm_destroy(id);
	ck_assert_uint_eq(fake_live(FAKE_CONTEXT), 1);
	fake_device_remove(FAKE_ROCE);
	cm_expect_none(channel);
	ck_assert(fake_device_gone(FAKE_ROCE));
	fake_device_add(FAKE_ROCE);
}

static void expect_closed(void)
{
	ck_assert_uint_eq(fake_live(FAKE_CONTEXT), 0);
}

START_TEST(a_listed_device_stays_until_it_is_removed)
{
	struct ibv_context **list = rdma_get_devices(NULL);
	struct ibv_context *verbs = list[0];

	rdma_free_devices(list);
	expect_until_removed(verbs);
	cm_destroy(bound(FAKE_ROCE_IP));
	expect_closed();
}
END_TEST

START_TEST(a_context_that_a_synchronous_id_led_to_stays_until_it_is_removed)
{
	struct rdma_cm_id *id = cm_id(NULL, RDMA_PS_TCP);
	struct ibv_context *verbs;

	ck_assert_ok(rdma_bind_addr(id, cm_addr(FAKE_ROCE_IP, 0)));
	verbs = id->verbs;
	cm_destroy(id);
	expect_until_removed(verbs);
	id = cm_id(NULL, RDMA_PS_TCP);
	ck_assert_ok(rdma_resolve_addr(id, NULL, cm_addr(FAKE_ROCE_IP, 1), CM_TIMEOUT_MS));
	verbs = id->verbs;
	cm_destroy(id);
	expect_until_removed(verbs);
}
END_TEST

START_TEST(so_does_one_that_a_blocking_channel_was_read_for)
{
	struct rdma_event_channel *blocking = rdma_create_event_channel();
	struct rdma_cm_id *id = cm_id(blocking, RDMA_PS_TCP);
	struct ibv_context *verbs;

	ck_assert_ok(rdma_resolve_addr(id, NULL, cm_addr(FAKE_ROCE_IP, 1), CM_TIMEOUT_MS));
	cm_await(blocking, RDMA_CM_EVENT_ADDR_RESOLVED);
	verbs = id->verbs;
	cm_destroy(id);
	rdma_destroy_event_channel(blocking);
	expect_until_removed(verbs);
}
END_TEST

/* An event loop gives up in any state, and is not to keep a device by that. */
START_TEST(an_id_that_an_event_loop_gives_up_takes_its_device_with_it)
{
	struct rdma_cm_id *id = cm_id(channel, RDMA_PS_TCP);

	ck_assert_ok(rdma_resolve_addr(id, NULL, cm_addr(FAKE_ROCE_IP, 1), CM_TIMEOUT_MS));
	cm_await(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	cm_destroy(id);
	expect_closed();
}
END_TEST

START_TEST(a_synchronous_listener_takes_its_device_with_it)
{
	struct rdma_cm_id *id = cm_id(NULL, RDMA_PS_TCP);

	ck_assert_ok(rdma_bind_addr(id, cm_addr(FAKE_ROCE_IP, 0)));
	ck_assert_ok(rdma_listen(id, 0));
	cm_destroy(id);
	expect_closed();
}
END_TEST

START_TEST(so_does_a_synchronous_id_that_had_a_route)
{
	struct rdma_cm_id *id = cm_id(NULL, RDMA_PS_TCP);

	ck_assert_ok(rdma_resolve_addr(id, NULL, cm_addr(FAKE_ROCE_IP, 1), CM_TIMEOUT_MS));
	ck_assert_ok(rdma_resolve_route(id, CM_TIMEOUT_MS));
	cm_destroy(id);
	expect_closed();
}
END_TEST

START_TEST(so_does_a_synchronous_id_that_had_a_queue_pair)
{
	struct rdma_cm_id *id = cm_id(NULL, RDMA_PS_UDP);
	struct ibv_qp_init_attr attr = cm_qp_attr(IBV_QPT_UD);

	ck_assert_ok(rdma_bind_addr(id, cm_addr(FAKE_ROCE_IP, 0)));
	ck_assert_ok(rdma_create_qp(id, NULL, &attr));
	cm_destroy(id);
	expect_closed();
}
END_TEST

START_TEST(a_listed_device_that_is_removed_is_gone_with_its_last_id)
{
	struct rdma_cm_id *id = bound(FAKE_ROCE_IP);

	rdma_free_devices(rdma_get_devices(NULL));
	fake_device_remove(FAKE_ROCE);
	ck_assert_ptr_eq(cm_await(channel, RDMA_CM_EVENT_DEVICE_REMOVAL), id);
	cm_destroy(id);
	ck_assert(fake_device_gone(FAKE_ROCE));
	fake_device_add(FAKE_ROCE);
	cm_destroy(bound(FAKE_ROCE_IP));
	expect_closed();
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

START_TEST(a_kernel_that_cannot_tell_what_is_in_use_keeps_the_device_open)
{
	struct rdma_cm_id *id;
	struct ibv_context *verbs;

	fake_fail_next("find_driver_id", ENOENT);
	id = bound(FAKE_ROCE_IP);
	verbs = id->verbs;
	cm_destroy(id);
	ck_assert_uint_eq(fake_live(FAKE_CONTEXT), 1);
	id = bound(FAKE_ROCE_IP);
	ck_assert(id->verbs == verbs && id->pd);
	ck_assert_int_eq(ibv_dealloc_pd(id->pd), 0);
	cm_destroy(id);
	ck_assert_int_eq(ibv_close_device(verbs), 0);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		ids_on_a_device_share_it,
		devices_are_told_apart,
		a_domain_of_the_callers_keeps_the_device_until_a_later_call,
		queues_and_channels_of_the_callers_keep_the_device,
		memory_on_the_shared_domain_keeps_the_device,
		a_listed_device_stays_until_it_is_removed,
		a_context_that_a_synchronous_id_led_to_stays_until_it_is_removed,
		so_does_one_that_a_blocking_channel_was_read_for,
		an_id_that_an_event_loop_gives_up_takes_its_device_with_it,
		a_synchronous_listener_takes_its_device_with_it,
		so_does_a_synchronous_id_that_had_a_route,
		so_does_a_synchronous_id_that_had_a_queue_pair,
		a_listed_device_that_is_removed_is_gone_with_its_last_id,
		a_removed_device_is_gone_with_its_last_id,
		a_connection_on_a_device_that_came_back_works,
		a_kernel_that_cannot_tell_what_is_in_use_keeps_the_device_open,
	};

	return unit_main("cm_device", tests, sizeof(tests) / sizeof(tests[0]), set_up, tear_down);
}
