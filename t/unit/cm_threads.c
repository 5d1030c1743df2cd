/* Calls on different ids in parallel, and events read by one thread for the ids of another. */
#include "unit/cm_crew.h"

#include <sched.h>

enum { NUM_THREADS = 4, NUM_READERS = 3, ROUNDS = 100 };

static struct rdma_event_channel *channel, *other;
/* Keeps the device open, so that opening it orders nothing; NULL where it shall open and close. */
static struct rdma_cm_id *keeper;

static void set_up(void)
{
	cm_set_up();
	channel = cm_channel();
	other = cm_channel();
	keeper = cm_id(other, RDMA_PS_TCP);
	ck_assert_ok(rdma_bind_addr(keeper, cm_addr(FAKE_ROCE_IP, 0)));
}

static void tear_down(void)
{
	cm_destroy(keeper);
	rdma_destroy_event_channel(other);
	rdma_destroy_event_channel(channel);
	cm_tear_down();
}

static void connect_and_end(struct rdma_event_channel *mine, uint16_t port)
{
	struct rdma_cm_id *listener = cm_id(mine, RDMA_PS_TCP);
	struct rdma_cm_id *client = cm_id(mine, RDMA_PS_TCP), *server;

	ck_assert_ok(rdma_bind_addr(listener, cm_addr("0.0.0.0", port)));
	ck_assert_ok(rdma_listen(listener, 0));
	ck_assert_ok(rdma_resolve_addr(client, NULL, cm_addr(FAKE_ROCE_IP, port), CM_TIMEOUT_MS));
	cm_await(mine, RDMA_CM_EVENT_ADDR_RESOLVED);
	ck_assert_ok(rdma_resolve_route(client, CM_TIMEOUT_MS));
	cm_await(mine, RDMA_CM_EVENT_ROUTE_RESOLVED);
	cm_make_qp(client);
	ck_assert_ok(rdma_connect(client, NULL));
	server = cm_await(mine, RDMA_CM_EVENT_CONNECT_REQUEST);
	cm_make_qp(server);
	ck_assert_ok(rdma_accept(server, NULL));
	cm_await(mine, RDMA_CM_EVENT_ESTABLISHED);
	cm_await(mine, RDMA_CM_EVENT_ESTABLISHED);
	cm_destroy(client);
	cm_destroy(server);
	cm_destroy(listener);
}

static void connect_again_and_again(unsigned number)
{
	int i;

	for (i = 0; i < ROUNDS; i++) {
		struct rdma_event_channel *mine = cm_channel();

		connect_and_end(mine, (uint16_t)(CM_PORT + number));
		rdma_destroy_event_channel(mine);
	}
}

START_TEST(threads_with_ids_of_their_own_do_not_meet)
{
	crew_run(NUM_THREADS, connect_again_and_again);
}
END_TEST

START_TEST(the_device_opens_and_closes_under_threads_that_come_and_go)
{
	cm_destroy(keeper);
	keeper = NULL;
	crew_run(NUM_THREADS, connect_again_and_again);
}
END_TEST

static void resolve_and_destroy(unsigned number)
{
	int i;

	for (i = 0; i < ROUNDS; i++) {
		struct rdma_cm_id *id = cm_id(channel, RDMA_PS_TCP);

		ck_assert_ok(rdma_resolve_addr(id, NULL, cm_addr(FAKE_ROCE_IP, CM_PORT), 1));
		if (i % 2)
			sched_yield();
		ck_assert_ok(rdma_destroy_id(id));
	}
}

START_TEST(ids_are_destroyed_while_another_thread_reads_their_events)
{
	struct crew_reader reader;

	crew_reader_start(&reader, channel, NULL);
	crew_run(NUM_THREADS, resolve_and_destroy);
	crew_reader_stop(&reader);
}
END_TEST

static void count_on_the_id(struct rdma_cm_event *event)
{
	atomic_fetch_add_explicit((atomic_uint *)event->id->context, 1, memory_order_relaxed);
}

static void wait_for(atomic_uint *told, unsigned num)
{
	while (atomic_load_explicit(told, memory_order_relaxed) < num)
		sched_yield();
}

/* Each id sees each of its events once, whoever reads it. */
static void resolve_with_any_reader(unsigned number)
{
	int i;

	for (i = 0; i < ROUNDS; i++) {
		struct rdma_cm_id *id;
		atomic_uint told = 0;

		ck_assert_ok(rdma_create_id(channel, &id, &told, RDMA_PS_TCP));
		ck_assert_ok(rdma_resolve_addr(id, NULL, cm_addr(FAKE_ROCE_IP, CM_PORT), 1));
		wait_for(&told, 1);
		ck_assert_ok(rdma_destroy_id(id));
		ck_assert_uint_eq(told, 1);
	}
}

START_TEST(several_threads_read_one_channel)
{
	struct crew_reader readers[NUM_READERS];
	unsigned i, seen = 0;

	for (i = 0; i < NUM_READERS; i++)
		crew_reader_start(&readers[i], channel, count_on_the_id);
	crew_run(NUM_THREADS, resolve_with_any_reader);
	for (i = 0; i < NUM_READERS; i++) {
		crew_reader_stop(&readers[i]);
		seen += readers[i].seen[RDMA_CM_EVENT_ADDR_RESOLVED];
	}
	ck_assert_uint_eq(seen, NUM_THREADS * ROUNDS);
}
END_TEST

static void resolve_and_move(unsigned number)
{
	int i;

	for (i = 0; i < ROUNDS; i++) {
		struct rdma_cm_id *id = cm_id(channel, RDMA_PS_TCP);

		ck_assert_ok(rdma_resolve_addr(id, NULL, cm_addr(FAKE_ROCE_IP, CM_PORT), 1));
		ck_assert_ok(rdma_migrate_id(id, other));
		ck_assert_ok(rdma_migrate_id(id, channel));
		ck_assert_ok(rdma_destroy_id(id));
	}
}

START_TEST(ids_move_while_both_channels_are_read)
{
	struct crew_reader readers[2];

	crew_reader_start(&readers[0], channel, NULL);
	crew_reader_start(&readers[1], other, NULL);
	crew_run(NUM_THREADS, resolve_and_move);
	crew_reader_stop(&readers[0]);
	crew_reader_stop(&readers[1]);
}
END_TEST

static void resolve_in_step(unsigned number)
{
	int i;

	for (i = 0; i < ROUNDS; i++) {
		struct rdma_cm_id *id;

		ck_assert_ok(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP));
		ck_assert_ok(rdma_resolve_addr(id, NULL, cm_addr(FAKE_ROCE_IP, CM_PORT), 1));
		ck_assert_ok(rdma_resolve_route(id, 1));
		ck_assert(id->verbs && id->route.num_paths);
		cm_make_qp(id);
		cm_destroy(id);
	}
}

START_TEST(each_thread_waits_for_its_synchronous_ids_alone)
{
	crew_run(NUM_THREADS, resolve_in_step);
}
END_TEST

static struct sockaddr *group(unsigned number)
{
	char ip[] = "239.1.2.0";

	ip[sizeof(ip) - 2] = (char)('0' + number);
	return cm_addr(ip, 0);
}

static struct rdma_cm_id *member;
static atomic_uint joined, left;

/* Even numbers join; the one above each leaves the same group after it, read or not. */
static void join_or_leave(unsigned number)
{
	atomic_uint *turn = number % 2 ? &joined : &left;
	unsigned i;

	for (i = 0; i < ROUNDS; i++) {
		wait_for(turn, number % 2 ? i + 1 : i);
		if (number % 2) {
			ck_assert_ok(rdma_leave_multicast(member, group(1)));
			atomic_fetch_add(&left, 1);
		} else {
			ck_assert_ok(rdma_join_multicast(member, group(1), NULL));
			atomic_fetch_add(&joined, 1);
		}
	}
}

START_TEST(a_group_is_joined_read_and_left_in_three_threads)
{
	struct crew_reader reader;

	member = cm_id(channel, RDMA_PS_UDP);
	ck_assert_ok(rdma_bind_addr(member, cm_addr(FAKE_ROCE_IP, 0)));
	cm_make_qp(member);
	crew_reader_start(&reader, channel, NULL);
	crew_run(2, join_or_leave);
	crew_reader_stop(&reader);
	ck_assert_uint_eq(fake_live(FAKE_ATTACHMENT) + fake_live(FAKE_MEMBERSHIP), 0);
	cm_destroy(member);
}
END_TEST

/* On one id, but different groups. */
static void come_and_go(unsigned number)
{
	int i;

	for (i = 0; i < ROUNDS; i++) {
		ck_assert_ok(rdma_join_multicast(member, group(number), NULL));
		if (i % 2)
			sched_yield();
		ck_assert_ok(rdma_leave_multicast(member, group(number)));
	}
}

START_TEST(threads_join_and_leave_groups_of_their_own_with_one_id)
{
	struct crew_reader reader;

	member = cm_id(channel, RDMA_PS_UDP);
	ck_assert_ok(rdma_bind_addr(member, cm_addr(FAKE_ROCE_IP, 0)));
	cm_make_qp(member);
	crew_reader_start(&reader, channel, NULL);
	crew_run(NUM_THREADS, come_and_go);
	crew_reader_stop(&reader);
	ck_assert_uint_eq(fake_live(FAKE_ATTACHMENT) + fake_live(FAKE_MEMBERSHIP), 0);
	cm_destroy(member);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		threads_with_ids_of_their_own_do_not_meet,
		the_device_opens_and_closes_under_threads_that_come_and_go,
		ids_are_destroyed_while_another_thread_reads_their_events,
		several_threads_read_one_channel,
		ids_move_while_both_channels_are_read,
		each_thread_waits_for_its_synchronous_ids_alone,
		a_group_is_joined_read_and_left_in_three_threads,
		threads_join_and_leave_groups_of_their_own_with_one_id,
	};

	return unit_main("cm_threads", tests, sizeof(tests) / sizeof(tests[0]), set_up, tear_down);
}
