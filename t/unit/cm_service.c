/* Services of InfiniBand, look-ups that end in an event, and events that programs write. */
#include "unit/cm_unit.h"

#include <arpa/inet.h>
#include <infiniband/ib.h>
#include <pthread.h>
#include <string.h>

enum { SERVICE = 0x13f1d2f };

_Static_assert(sizeof(struct rdma_cm_event) == 80, "programs were built for this size");

static const struct rdma_addrinfo by_sa = { .ai_flags = RAI_SA };
static const struct rdma_addrinfo numeric = { .ai_flags = RAI_DNS | RAI_NUMERICHOST };

static struct rdma_event_channel *channel;
static struct rdma_cm_id *id;
static struct rdma_addrinfo *res;

static void set_up(void)
{
	cm_set_up();
	fake_device_add(FAKE_IB);
	fake_newer_kernel(true);
	fake_service_add(SERVICE, "MyService", FAKE_IB_GID);
	channel = cm_channel();
	id = cm_id(channel, RDMA_PS_IB);
}

static void tear_down(void)
{
	rdma_freeaddrinfo(res);
	res = NULL;
	cm_destroy(id);
	rdma_destroy_event_channel(channel);
	cm_tear_down();
}

static struct sockaddr *gid_addr(const char *gid)
{
	static struct sockaddr_ib sib;

	sib = (struct sockaddr_ib){ .sib_family = AF_IB, .sib_pkey = 0xffff };
	ck_assert_int_eq(inet_pton(AF_INET6, gid, &sib.sib_addr), 1);
	return (struct sockaddr *)&sib;
}

static void bind_to_gid(void)
{
	ck_assert_ok(rdma_bind_addr(id, gid_addr(FAKE_IB_GID)));
}

static void check_service(const struct rdma_addrinfo *rai)
{
	const struct sockaddr_ib *sib = (const struct sockaddr_ib *)rai->ai_dst_addr;

	ck_assert(rai->ai_flags == RAI_SA && rai->ai_family == AF_IB);
	ck_assert_uint_eq(rai->ai_dst_len, sizeof(*sib));
	ck_assert_uint_eq(be64toh(sib->sib_sid), SERVICE);
	ck_assert_mem_eq(&sib->sib_addr, &((struct sockaddr_ib *)gid_addr(FAKE_IB_GID))->sib_addr,
		sizeof(sib->sib_addr));
	ck_assert(sib->sib_pkey == 0xffff && sib->sib_sid_mask == UINT64_MAX);
	ck_assert_str_eq(rai->ai_dst_canonname, "MyService");
}

/* --- services --- */

START_TEST(a_service_is_found_by_number_and_by_name)
{
	const char *const texts[] = { "20913455", "0x13f1d2f", "MyService" };
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct rdma_cm_id *other = cm_id(channel, RDMA_PS_IB);

		ck_assert_ok(rdma_bind_addr(other, gid_addr(FAKE_IB_GID)));
		ck_assert_ok(rdma_resolve_addrinfo(other, NULL, texts[i], &by_sa));
		ck_assert_ptr_eq(cm_await(channel, RDMA_CM_EVENT_ADDRINFO_RESOLVED), other);
		ck_assert_ok(rdma_query_addrinfo(other, &res));
		check_service(res);
		ck_assert(!res->ai_next && res->ai_port_space == RDMA_PS_IB);
		rdma_freeaddrinfo(res);
		res = NULL;
		cm_destroy(other);
	}
}
END_TEST

START_TEST(the_first_record_is_where_the_id_goes)
{
	const struct sockaddr_ib *dst;

	bind_to_gid();
	ck_assert_ok(rdma_resolve_addrinfo(id, NULL, "MyService", &by_sa));
	cm_await(channel, RDMA_CM_EVENT_ADDRINFO_RESOLVED);
	dst = (const struct sockaddr_ib *)rdma_get_peer_addr(id);
	ck_assert(dst->sib_family == AF_IB && be64toh(dst->sib_sid) == SERVICE);
	ck_assert_uint_eq(rdma_get_dst_port(id), htons(SERVICE & 0xffff));
	ck_assert_mem_eq(&id->route.addr.addr.ibaddr.dgid, &dst->sib_addr, 16);
	ck_assert_ok(rdma_resolve_route(id, CM_TIMEOUT_MS));
	cm_await(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	ck_assert_int_eq(id->route.num_paths, 1);
}
END_TEST

START_TEST(all_records_are_results_however_many)
{
	struct rdma_addrinfo *rai;
	unsigned i, n = 0;

	for (i = 0; i < 300; i++)
		fake_service_add(0x5000000 + i, "many", FAKE_IB_GID);
	bind_to_gid();
	ck_assert_ok(rdma_resolve_addrinfo(id, NULL, "many", &by_sa));
	cm_await(channel, RDMA_CM_EVENT_ADDRINFO_RESOLVED);
	ck_assert_ok(rdma_query_addrinfo(id, &res));
	for (rai = res; rai; rai = rai->ai_next, n++)
		ck_assert_uint_eq(
			be64toh(((struct sockaddr_ib *)rai->ai_dst_addr)->sib_sid), 0x5000000 + n);
	ck_assert_uint_eq(n, 300);
}
END_TEST

START_TEST(more_records_than_an_answer_holds_are_cut)
{
	struct rdma_addrinfo *rai;
	unsigned i, n = 0;

	for (i = 0; i < 500; i++)
		fake_service_add(0x5000000 + i, "many", FAKE_IB_GID);
	bind_to_gid();
	ck_assert_ok(rdma_resolve_addrinfo(id, NULL, "many", &by_sa));
	cm_await(channel, RDMA_CM_EVENT_ADDRINFO_RESOLVED);
	ck_assert_ok(rdma_query_addrinfo(id, &res));
	for (rai = res; rai; rai = rai->ai_next)
		n++;
	ck_assert_uint_eq(n, (UINT16_MAX - 8) / 176);
}
END_TEST

START_TEST(names_may_fill_their_field_or_be_missing)
{
	char name[65];

	memset(name, 'x', 64);
	name[64] = '\0';
	fake_service_add(77, name, FAKE_IB_GID);
	fake_service_add(77, NULL, "fe80::77");
	bind_to_gid();
	ck_assert_ok(rdma_resolve_addrinfo(id, NULL, "77", &by_sa));
	cm_await(channel, RDMA_CM_EVENT_ADDRINFO_RESOLVED);
	ck_assert_ok(rdma_query_addrinfo(id, &res));
	ck_assert_str_eq(res->ai_dst_canonname, name);
	ck_assert_ptr_null(res->ai_next->ai_dst_canonname);
}
END_TEST

START_TEST(an_unknown_service_is_an_event_and_may_be_followed_by_another_try)
{
	struct rdma_cm_event *event;

	bind_to_gid();
	ck_assert_ok(rdma_resolve_addrinfo(id, NULL, "nobody", &by_sa));
	event = cm_expect(channel, RDMA_CM_EVENT_ADDRINFO_ERROR);
	ck_assert(event->id == id && event->status == -ENOENT);
	ck_assert_ok(rdma_ack_cm_event(event));
	ck_assert_fails(rdma_query_addrinfo(id, &res), ENOENT);
	ck_assert_ok(rdma_resolve_addrinfo(id, NULL, "MyService", &by_sa));
	cm_await(channel, RDMA_CM_EVENT_ADDRINFO_RESOLVED);
}
END_TEST

START_TEST(a_silent_administrator_is_an_event)
{
	struct rdma_cm_event *event;

	bind_to_gid();
	fake_hold(FAKE_SERVICE);
	ck_assert_ok(rdma_resolve_addrinfo(id, NULL, "MyService", &by_sa));
	cm_expect_none(channel);
	ck_assert_fails(rdma_resolve_addrinfo(id, NULL, "MyService", &by_sa), EBUSY);
	ck_assert_fails(rdma_query_addrinfo(id, &res), ENOENT);
	ck_assert_uint_eq(fake_time_out(FAKE_SERVICE), 1);
	event = cm_expect(channel, RDMA_CM_EVENT_ADDRINFO_ERROR);
	ck_assert_int_eq(event->status, -ETIMEDOUT);
	ck_assert_ok(rdma_ack_cm_event(event));
}
END_TEST

START_TEST(an_answer_that_cannot_be_read_is_an_error_of_ours)
{
	struct rdma_cm_event *event;

	bind_to_gid();
	ck_assert_ok(rdma_resolve_addrinfo(id, NULL, "MyService", &by_sa));
	fake_fail_next("QUERY", EINTR);
	event = cm_expect(channel, RDMA_CM_EVENT_ADDRINFO_ERROR);
	ck_assert(event->status == -1 && errno == EINTR);
	ck_assert_ok(rdma_ack_cm_event(event));
	ck_assert_fails(rdma_query_addrinfo(id, &res), ENOENT);
}
END_TEST

START_TEST(only_an_id_on_infiniband_has_somebody_to_ask)
{
	ck_assert_fails(rdma_resolve_addrinfo(id, NULL, "MyService", &by_sa), EINVAL);
	ck_assert_ok(rdma_bind_addr(id, cm_addr(FAKE_ROCE_IP, 0)));
	ck_assert_fails(rdma_resolve_addrinfo(id, NULL, "MyService", &by_sa), EOPNOTSUPP);
}
END_TEST

START_TEST(a_request_that_the_kernel_refuses_leaves_the_id_as_it_was)
{
	bind_to_gid();
	fake_fail_next("RESOLVE_IB_SERVICE", ENXIO);
	ck_assert_fails(rdma_resolve_addrinfo(id, NULL, "MyService", &by_sa), ENXIO);
	fake_fail_next("RESOLVE_IB_SERVICE", EINVAL);
	ck_assert_fails(rdma_resolve_addrinfo(id, NULL, "MyService", &by_sa), EINVAL);
	ck_assert_ok(rdma_resolve_addrinfo(id, NULL, "MyService", &by_sa));
	cm_await(channel, RDMA_CM_EVENT_ADDRINFO_RESOLVED);
}
END_TEST

START_TEST(a_wrong_service_is_told_at_once)
{
	const struct rdma_addrinfo both = { .ai_flags = RAI_SA | RAI_DNS };
	char name[65] = "";

	bind_to_gid();
	ck_assert_fails(rdma_resolve_addrinfo(NULL, NULL, "1", &by_sa), EINVAL);
	ck_assert_fails(rdma_resolve_addrinfo(id, "192.0.2.9", "1", &by_sa), EOPNOTSUPP);
	ck_assert_fails(rdma_resolve_addrinfo(id, NULL, NULL, &by_sa), EINVAL);
	ck_assert_fails(rdma_resolve_addrinfo(id, NULL, "1", &both), EOPNOTSUPP);
	ck_assert_fails(rdma_resolve_addrinfo(id, NULL, "", &by_sa), EINVAL);
	ck_assert_fails(rdma_resolve_addrinfo(id, NULL, "99999999999999999999999", &by_sa), EINVAL);
	memset(name, 'x', 64);
	ck_assert_fails(rdma_resolve_addrinfo(id, NULL, name, &by_sa), EINVAL);
	ck_assert_uint_eq(fake_calls("RESOLVE_IB_SERVICE"), 0);
}
END_TEST

START_TEST(a_result_that_nobody_fetched_goes_with_its_id)
{
	bind_to_gid();
	ck_assert_ok(rdma_resolve_addrinfo(id, NULL, "MyService", &by_sa));
	cm_await(channel, RDMA_CM_EVENT_ADDRINFO_RESOLVED);
	ck_assert_fails(rdma_resolve_addrinfo(id, "192.0.2.9", NULL, &numeric), EBUSY);
	ck_assert_fails(rdma_query_addrinfo(NULL, &res), EINVAL);
	ck_assert_fails(rdma_query_addrinfo(id, NULL), EINVAL);
}
END_TEST

/* --- names --- */

START_TEST(a_name_is_looked_up_and_told_by_an_event)
{
	struct rdma_cm_event *event;

	ck_assert_ok(rdma_resolve_addrinfo(id, "192.0.2.9", "7471", &numeric));
	ck_assert_fails(rdma_query_addrinfo(id, &res), ENOENT);
	ck_assert_fails(rdma_resolve_addrinfo(id, "192.0.2.9", NULL, &numeric), EBUSY);
	event = cm_expect(channel, RDMA_CM_EVENT_ADDRINFO_RESOLVED);
	ck_assert(event->id == id && !event->status);
	ck_assert_ok(rdma_ack_cm_event(event));
	ck_assert_ok(rdma_query_addrinfo(id, &res));
	ck_assert(res->ai_family == AF_INET && res->ai_dst_addr);
	ck_assert_uint_eq(((struct sockaddr_in *)res->ai_dst_addr)->sin_port, htons(7471));
	ck_assert_fails(rdma_query_addrinfo(id, &res), ENOENT);
	ck_assert_ok(rdma_resolve_addrinfo(id, "192.0.2.9", NULL, NULL));
}
END_TEST

START_TEST(a_name_that_is_none_fails_the_call)
{
	ck_assert_fails(rdma_resolve_addrinfo(id, "no-number", NULL, &numeric), ENOENT);
	ck_assert_fails(rdma_resolve_addrinfo(id, NULL, NULL, NULL), EINVAL);
	cm_expect_none(channel);
	ck_assert_ok(rdma_resolve_addrinfo(id, "192.0.2.9", NULL, &numeric));
}
END_TEST

START_TEST(an_event_that_cannot_be_written_fails_the_call)
{
	unsigned n;

	/* The first call only asks whether the kernel knows how. */
	for (n = 1; n <= 2; n++) {
		fake_fail_nth(FAKE_KERNEL, n, EACCES);
		ck_assert_fails(rdma_resolve_addrinfo(id, "192.0.2.9", NULL, &numeric), EACCES);
		ck_assert_fails(rdma_query_addrinfo(id, &res), ENOENT);
	}
	ck_assert_ok(rdma_resolve_addrinfo(id, "192.0.2.9", NULL, &numeric));
	cm_await(channel, RDMA_CM_EVENT_ADDRINFO_RESOLVED);
}
END_TEST

START_TEST(a_look_up_ends_with_its_id_whether_its_event_was_read_or_not)
{
	ck_assert_ok(rdma_resolve_addrinfo(id, "192.0.2.9", NULL, &numeric));
	cm_destroy(id);
	id = NULL;
	cm_expect_none(channel);
}
END_TEST

START_TEST(internal_events_that_nobody_waits_for_are_dropped)
{
	ck_assert_int_eq(fake_inject(id, RDMA_CM_EVENT_INTERNAL, 0), 0);
	cm_expect_none(channel);
	ck_assert_ok(rdma_resolve_addrinfo(id, "192.0.2.9", NULL, &numeric));
	ck_assert_int_eq(fake_inject(id, RDMA_CM_EVENT_INTERNAL, 0), 0);
	ck_assert_int_eq(fake_bring_forward(channel->fd, 2), 0);
	cm_await(channel, RDMA_CM_EVENT_ADDRINFO_RESOLVED);
	ck_assert_int_eq(fake_inject(id, RDMA_CM_EVENT_INTERNAL, 0), 0);
	cm_expect_none(channel);
	ck_assert_ok(rdma_query_addrinfo(id, &res));
}
END_TEST

START_TEST(answers_that_nobody_asked_for_do_no_harm)
{
	ck_assert_int_eq(fake_inject(id, RDMA_CM_EVENT_ADDRINFO_RESOLVED, 0), 0);
	cm_await(channel, RDMA_CM_EVENT_ADDRINFO_ERROR);
	ck_assert_int_eq(fake_inject(id, RDMA_CM_EVENT_ADDRINFO_ERROR, -ENOENT), 0);
	cm_await(channel, RDMA_CM_EVENT_ADDRINFO_ERROR);
	bind_to_gid();
	ck_assert_ok(rdma_resolve_addrinfo(id, NULL, "MyService", &by_sa));
	ck_assert_int_eq(fake_inject(id, RDMA_CM_EVENT_ADDRINFO_RESOLVED, 0), 0);
	cm_await(channel, RDMA_CM_EVENT_ADDRINFO_RESOLVED);
	cm_await(channel, RDMA_CM_EVENT_ADDRINFO_RESOLVED);
	ck_assert_ok(rdma_query_addrinfo(id, &res));
	check_service(res);
}
END_TEST

/* --- synchronous ids --- */

START_TEST(a_synchronous_id_has_the_result_when_the_call_returns)
{
	struct rdma_cm_id *sync;

	ck_assert_ok(rdma_create_id(NULL, &sync, NULL, RDMA_PS_IB));
	ck_assert_ok(rdma_resolve_addrinfo(sync, "192.0.2.9", NULL, &numeric));
	ck_assert_int_eq(sync->event->event, RDMA_CM_EVENT_ADDRINFO_RESOLVED);
	ck_assert_ok(rdma_query_addrinfo(sync, &res));
	ck_assert_ok(rdma_bind_addr(sync, gid_addr(FAKE_IB_GID)));
	ck_assert_fails(rdma_resolve_addrinfo(sync, NULL, "nobody", &by_sa), ENOENT);
	ck_assert_int_eq(sync->event->event, RDMA_CM_EVENT_ADDRINFO_ERROR);
	rdma_freeaddrinfo(res);
	ck_assert_ok(rdma_resolve_addrinfo(sync, NULL, "MyService", &by_sa));
	ck_assert_ok(rdma_query_addrinfo(sync, &res));
	check_service(res);
	cm_destroy(sync);
}
END_TEST

/* --- events of programs --- */

START_TEST(a_written_event_arrives_as_it_was_written)
{
	const uint64_t arg = UINT64_C(0x123456789abcdef0);
	struct rdma_cm_event *event = NULL;

	ck_assert_ok(rdma_write_cm_event(id, RDMA_CM_EVENT_USER, -42, arg));
	ck_assert_ok(rdma_get_cm_event(channel, &event));
	ck_assert(event->event == RDMA_CM_EVENT_USER && event->id == id);
	ck_assert(event->status == -42 && event->param.arg == arg);
	ck_assert_ok(rdma_ack_cm_event(event));
}
END_TEST

START_TEST(only_user_events_can_be_written)
{
	int type;

	ck_assert_fails(rdma_write_cm_event(NULL, RDMA_CM_EVENT_USER, 0, 0), EINVAL);
	for (type = 0; type < 99; type++)
		if (type != RDMA_CM_EVENT_USER)
			ck_assert_fails(
				rdma_write_cm_event(id, (enum rdma_cm_event_type)type, 0, 0),
				EINVAL);
	cm_expect_none(channel);
}
END_TEST

START_TEST(an_id_that_was_not_accepted_gets_written_events_too)
{
	struct rdma_cm_event *event = NULL;
	struct cm_pair pair;

	cm_pair_start(&pair, RDMA_PS_TCP);
	cm_pair_request(&pair, NULL);
	ck_assert_ok(rdma_write_cm_event(pair.server, RDMA_CM_EVENT_USER, 0, 7));
	ck_assert_ok(rdma_get_cm_event(pair.channel, &event));
	ck_assert(event->id == pair.server && event->param.arg == 7);
	ck_assert_ok(rdma_ack_cm_event(event));
	ck_assert_ok(rdma_resolve_addrinfo(pair.server, "192.0.2.9", NULL, &numeric));
	cm_await(pair.channel, RDMA_CM_EVENT_ADDRINFO_RESOLVED);
	cm_pair_end(&pair);
}
END_TEST

static void *kick(void *arg)
{
	return rdma_write_cm_event(arg, RDMA_CM_EVENT_USER, 0, 1) ? NULL : arg;
}

START_TEST(a_written_event_wakes_the_thread_that_reads)
{
	struct rdma_event_channel *waiting = rdma_create_event_channel();
	struct rdma_cm_id *mine = cm_id(waiting, RDMA_PS_TCP);
	struct rdma_cm_event *event = NULL;
	pthread_t thread;
	void *kicked;

	fake_wait_for_others(CM_TIMEOUT_MS * 10);
	ck_assert_int_eq(pthread_create(&thread, NULL, kick, mine), 0);
	ck_assert_ok(rdma_get_cm_event(waiting, &event));
	ck_assert(event->event == RDMA_CM_EVENT_USER && event->param.arg == 1);
	ck_assert_int_eq(pthread_join(thread, &kicked), 0);
	ck_assert_ptr_eq(kicked, mine);
	ck_assert_ok(rdma_ack_cm_event(event));
	cm_destroy(mine);
	rdma_destroy_event_channel(waiting);
}
END_TEST

START_TEST(a_written_event_ends_the_wait_of_a_synchronous_id)
{
	const struct {
		int status, error;
	} ends[] = { { 0, EINTR }, { -ECANCELED, ECANCELED }, { ECANCELED, ECANCELED },
		{ -1, EPERM } };
	struct rdma_cm_id *sync;
	size_t i;

	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		ck_assert_ok(rdma_create_id(NULL, &sync, NULL, RDMA_PS_TCP));
		ck_assert_ok(rdma_write_cm_event(sync, RDMA_CM_EVENT_USER, ends[i].status, 7));
		ck_assert_fails(
			rdma_resolve_addr(sync, NULL, cm_addr(FAKE_ROCE_IP, 1), 1), ends[i].error);
		ck_assert_int_eq(sync->event->event, RDMA_CM_EVENT_USER);
		ck_assert(sync->event->param.arg == 7);
		cm_destroy(sync);
	}
}
END_TEST

/* --- kernels without all that --- */

START_TEST(a_kernel_that_cannot_is_told_from_a_wrong_argument)
{
	bind_to_gid();
	fake_newer_kernel(false);
	ck_assert_fails(rdma_resolve_addrinfo(id, NULL, "MyService", &by_sa), ENOSYS);
	ck_assert_fails(rdma_resolve_addrinfo(id, "192.0.2.9", NULL, &numeric), ENOSYS);
	ck_assert_fails(rdma_write_cm_event(id, RDMA_CM_EVENT_USER, 0, 0), ENOSYS);
	ck_assert_fails(rdma_write_cm_event(id, RDMA_CM_EVENT_ESTABLISHED, 0, 0), EINVAL);
	ck_assert_fails(rdma_resolve_addrinfo(id, NULL, "", &by_sa), EINVAL);
	ck_assert_fails(rdma_query_addrinfo(id, &res), ENOENT);
	ck_assert_fails(rdma_getaddrinfo(NULL, "MyService", &by_sa, &res), ENOSYS);
	cm_expect_none(channel);
}
END_TEST

/* Nobody waits for a name server that was asked in vain. */
START_TEST(a_kernel_that_cannot_tell_is_found_out_before_the_look_up)
{
	fake_newer_kernel(false);
	ck_assert_fails(rdma_resolve_addrinfo(id, "no-number", NULL, &numeric), ENOSYS);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		a_service_is_found_by_number_and_by_name,
		the_first_record_is_where_the_id_goes,
		all_records_are_results_however_many,
		more_records_than_an_answer_holds_are_cut,
		names_may_fill_their_field_or_be_missing,
		an_unknown_service_is_an_event_and_may_be_followed_by_another_try,
		a_silent_administrator_is_an_event,
		an_answer_that_cannot_be_read_is_an_error_of_ours,
		only_an_id_on_infiniband_has_somebody_to_ask,
		a_request_that_the_kernel_refuses_leaves_the_id_as_it_was,
		a_wrong_service_is_told_at_once,
		a_result_that_nobody_fetched_goes_with_its_id,
		a_name_is_looked_up_and_told_by_an_event,
		a_name_that_is_none_fails_the_call,
		an_event_that_cannot_be_written_fails_the_call,
		a_look_up_ends_with_its_id_whether_its_event_was_read_or_not,
		internal_events_that_nobody_waits_for_are_dropped,
		answers_that_nobody_asked_for_do_no_harm,
		a_synchronous_id_has_the_result_when_the_call_returns,
		a_written_event_arrives_as_it_was_written,
		only_user_events_can_be_written,
		an_id_that_was_not_accepted_gets_written_events_too,
		a_written_event_wakes_the_thread_that_reads,
		a_written_event_ends_the_wait_of_a_synchronous_id,
		a_kernel_that_cannot_is_told_from_a_wrong_argument,
		a_kernel_that_cannot_tell_is_found_out_before_the_look_up,
	};

	return unit_main("cm_service", tests, sizeof(tests) / sizeof(tests[0]), set_up, tear_down);
}
