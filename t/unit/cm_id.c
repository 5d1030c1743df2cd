#include "unit/cm_unit.h"

#include <pthread.h>
#include <string.h>

START_TEST(an_id_starts_with_what_it_was_given)
{
	struct rdma_event_channel *channel = cm_channel();
	int context;
	struct rdma_cm_id *id;

	ck_assert_ok(rdma_create_id(channel, &id, &context, RDMA_PS_TCP));
	ck_assert(id->channel == channel && id->context == &context && id->ps == RDMA_PS_TCP);
	ck_assert(!id->verbs && !id->pd && !id->qp && !id->event && !id->port_num);
	ck_assert_int_eq(id->qp_type, IBV_QPT_RC);
	cm_destroy(id);
	rdma_destroy_event_channel(channel);
}
END_TEST

START_TEST(the_port_space_decides_the_type_of_queue_pair)
{
	struct rdma_event_channel *channel = cm_channel();
	const enum rdma_port_space datagram[] = { RDMA_PS_UDP, RDMA_PS_IPOIB };
	size_t i;

	for (i = 0; i < 2; i++) {
		struct rdma_cm_id *id = cm_id(channel, datagram[i]);

		ck_assert_int_eq(id->qp_type, IBV_QPT_UD);
		cm_destroy(id);
	}
	rdma_destroy_event_channel(channel);
}
END_TEST

START_TEST(an_id_that_cannot_be_made_leaves_nothing)
{
	struct rdma_event_channel *channel = cm_channel();
	struct rdma_cm_id *id;

	ck_assert_fails(rdma_create_id(channel, NULL, NULL, RDMA_PS_TCP), EINVAL);
	ck_assert_fails(rdma_create_id(channel, &id, NULL, (enum rdma_port_space)1), EINVAL);
	fake_fail_next("CREATE_ID", ENOMEM);
	ck_assert_fails(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), ENOMEM);
	fake_fail_next("open", EMFILE);
	ck_assert_fails(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), EMFILE);
	ck_assert_uint_eq(fake_live(FAKE_ID), 0);
	rdma_destroy_event_channel(channel);
}
END_TEST

START_TEST(an_id_that_the_kernel_keeps_stays_whole)
{
	struct rdma_event_channel *channel = cm_channel();
	struct rdma_cm_id *id = cm_id(channel, RDMA_PS_TCP);

	ck_assert_fails(rdma_destroy_id(NULL), EINVAL);
	fake_fail_next("DESTROY_ID", EACCES);
	ck_assert_fails(rdma_destroy_id(id), EACCES);
	ck_assert_ok(rdma_bind_addr(id, cm_addr(FAKE_ROCE_IP, 0)));
	cm_destroy(id);
	rdma_destroy_event_channel(channel);
}
END_TEST

struct ack_later {
	struct rdma_cm_event *event;
	bool acked;
};

static void *ack_in_a_thread(void *arg)
{
	struct ack_later *later = arg;

	later->acked = true;
	rdma_ack_cm_event(later->event);
	return NULL;
}

START_TEST(destroying_waits_for_events_that_another_thread_still_has)
{
	struct rdma_event_channel *channel = cm_channel();
	struct rdma_cm_id *id = cm_id(channel, RDMA_PS_TCP);
	struct ack_later later = { 0 };
	pthread_t thread;

	ck_assert_ok(rdma_resolve_addr(id, NULL, cm_addr(FAKE_ROCE_IP, CM_PORT), CM_TIMEOUT_MS));
	later.event = cm_expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	ck_assert_int_eq(pthread_create(&thread, NULL, ack_in_a_thread, &later), 0);
	cm_destroy(id);
	ck_assert(later.acked);
	pthread_join(thread, NULL);
	rdma_destroy_event_channel(channel);
}
END_TEST

START_TEST(events_that_were_not_read_go_with_their_id)
{
	struct rdma_event_channel *channel = cm_channel();
	struct rdma_cm_id *id = cm_id(channel, RDMA_PS_TCP);

	ck_assert_ok(rdma_resolve_addr(id, NULL, cm_addr(FAKE_ROCE_IP, CM_PORT), CM_TIMEOUT_MS));
	cm_destroy(id);
	cm_expect_none(channel);
	rdma_destroy_event_channel(channel);
}
END_TEST

START_TEST(an_id_moves_with_its_events_to_another_channel)
{
	struct rdma_event_channel *from = cm_channel(), *to = cm_channel();
	struct rdma_cm_id *id = cm_id(from, RDMA_PS_TCP);

	ck_assert_ok(rdma_resolve_addr(id, NULL, cm_addr(FAKE_ROCE_IP, CM_PORT), CM_TIMEOUT_MS));
	ck_assert_ok(rdma_migrate_id(id, to));
	ck_assert_ptr_eq(id->channel, to);
	cm_expect_none(from);
	ck_assert_ptr_eq(cm_await(to, RDMA_CM_EVENT_ADDR_RESOLVED), id);
	rdma_destroy_event_channel(from);
	cm_destroy(id);
	rdma_destroy_event_channel(to);
}
END_TEST

START_TEST(an_id_turns_synchronous_and_back)
{
	struct rdma_event_channel *channel = cm_channel();
	struct rdma_cm_id *id = cm_id(channel, RDMA_PS_TCP);

	ck_assert_ok(rdma_migrate_id(id, NULL));
	ck_assert_uint_eq(fake_live(FAKE_FILE), 2);
	ck_assert_fails(rdma_migrate_id(id, NULL), EINVAL);
	ck_assert_ok(rdma_resolve_addr(id, NULL, cm_addr(FAKE_ROCE_IP, CM_PORT), CM_TIMEOUT_MS));
	ck_assert_ptr_nonnull(id->event);
	ck_assert_ok(rdma_migrate_id(id, channel));
	ck_assert_ptr_null(id->event);
	ck_assert_uint_eq(fake_live(FAKE_FILE), 1);
	ck_assert_ok(rdma_resolve_route(id, CM_TIMEOUT_MS));
	cm_await(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	cm_destroy(id);
	rdma_destroy_event_channel(channel);
}
END_TEST

START_TEST(a_move_that_fails_changes_nothing)
{
	struct rdma_event_channel *channel = cm_channel();
	struct rdma_cm_id *id = cm_id(channel, RDMA_PS_TCP);

	fake_fail_next("MIGRATE_ID", EINVAL);
	ck_assert_fails(rdma_migrate_id(id, NULL), EINVAL);
	ck_assert_ptr_eq(id->channel, channel);
	ck_assert_uint_eq(fake_live(FAKE_FILE), 1);
	ck_assert_fails(rdma_migrate_id(NULL, channel), EINVAL);
	cm_destroy(id);
	rdma_destroy_event_channel(channel);
}
END_TEST

START_TEST(options_reach_the_kernel)
{
	struct rdma_event_channel *channel = cm_channel();
	struct rdma_cm_id *id = cm_id(channel, RDMA_PS_TCP);
	uint8_t tos = 8;
	int yes = 1;

	ck_assert_ok(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos)));
	ck_assert_ok(
		rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &yes, sizeof(yes)));
	ck_assert_fails(
		rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &yes, sizeof(yes)), EINVAL);
	ck_assert_fails(rdma_set_option(id, 77, 0, &yes, sizeof(yes)), ENOSYS);
	ck_assert_fails(rdma_set_option(id, RDMA_OPTION_ID, 0, NULL, 1), EFAULT);
	ck_assert_fails(rdma_set_option(NULL, RDMA_OPTION_ID, 0, &tos, sizeof(tos)), EINVAL);
	cm_destroy(id);
	rdma_destroy_event_channel(channel);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		an_id_starts_with_what_it_was_given,
		the_port_space_decides_the_type_of_queue_pair,
		an_id_that_cannot_be_made_leaves_nothing,
		an_id_that_the_kernel_keeps_stays_whole,
		destroying_waits_for_events_that_another_thread_still_has,
		events_that_were_not_read_go_with_their_id,
		an_id_moves_with_its_events_to_another_channel,
		an_id_turns_synchronous_and_back,
		a_move_that_fails_changes_nothing,
		options_reach_the_kernel,
	};

	return cm_main("cm_id", tests, sizeof(tests) / sizeof(tests[0]));
}
