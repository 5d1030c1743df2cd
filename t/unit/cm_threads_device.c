/* Devices that come and go under several threads, and the calls that list them. */
#include "unit/cm_crew.h"

#include <sched.h>

enum { NUM_THREADS = 4, ROUNDS = 60, PLUGS = 8 };

static struct rdma_event_channel *channel;

/* The first call of each thread is the first of the process. */
static void begin(unsigned number)
{
	struct rdma_event_channel *mine = cm_channel();

	rdma_destroy_event_channel(mine);
}

START_TEST(the_first_calls_come_from_all_threads_at_once)
{
	crew_run(NUM_THREADS, begin);
}
END_TEST

static void tell(struct rdma_cm_event *event)
{
	if (event->id->context)
		atomic_store_explicit(
			(atomic_bool *)event->id->context, true, memory_order_relaxed);
}

/* The reader must have seen that the device left, before its last id does. */
static void plug_again_and_again(void)
{
	int i;

	for (i = 0; i < PLUGS; i++) {
		struct rdma_cm_id *id;
		atomic_bool told = false;

		ck_assert_ok(rdma_create_id(channel, &id, &told, RDMA_PS_TCP));
		ck_assert_ok(rdma_bind_addr(id, cm_addr(FAKE_IWARP_IP, 0)));
		fake_device_remove(FAKE_IWARP);
		while (!atomic_load_explicit(&told, memory_order_relaxed))
			sched_yield();
		ck_assert_ok(rdma_destroy_id(id));
		while (!fake_device_gone(FAKE_IWARP))
			sched_yield();
		fake_device_add(FAKE_IWARP);
		sched_yield();
	}
}

static atomic_bool plugged_enough;

/* Half of them on the device that leaves, which may refuse with whatever it has come to. */
static void bind_again_and_again(unsigned number)
{
	while (!atomic_load_explicit(&plugged_enough, memory_order_relaxed)) {
		struct rdma_cm_id *id = cm_id(channel, RDMA_PS_TCP);

		if (number % 2)
			ck_assert_ok(rdma_bind_addr(id, cm_addr(FAKE_ROCE_IP, 0)));
		else if (!rdma_bind_addr(id, cm_addr(FAKE_IWARP_IP, 0)))
			ck_assert_ptr_nonnull(id->verbs);
		ck_assert_ok(rdma_destroy_id(id));
	}
}

static void plug_or_bind(unsigned number)
{
	if (number) {
		bind_again_and_again(number);
		return;
	}
	plug_again_and_again();
	atomic_store_explicit(&plugged_enough, true, memory_order_relaxed);
}

START_TEST(a_device_leaves_and_returns_under_threads_that_create_ids)
{
	struct crew_reader reader;

	channel = cm_channel();
	fake_device_add(FAKE_IWARP);
	crew_reader_start(&reader, channel, tell);
	crew_run(1 + NUM_THREADS, plug_or_bind);
	crew_reader_stop(&reader);
	rdma_destroy_event_channel(channel);
}
END_TEST

static void list_devices(void)
{
	int num = 0;
	struct ibv_context **list = rdma_get_devices(&num);

	ck_assert(list && num == 1 && list[0] && !list[1]);
	rdma_free_devices(list);
}

static void look_up(void)
{
	struct rdma_addrinfo *res;

	ck_assert_ok(rdma_getaddrinfo(FAKE_ROCE_IP, "7471", NULL, &res));
	rdma_freeaddrinfo(res);
}

static void list_look_up_or_bind(unsigned number)
{
	int i;

	for (i = 0; i < ROUNDS; i++) {
		struct rdma_cm_id *id;

		list_devices();
		look_up();
		id = cm_id(channel, RDMA_PS_TCP);
		ck_assert_ok(rdma_bind_addr(id, cm_addr(FAKE_ROCE_IP, 0)));
		ck_assert_ok(rdma_destroy_id(id));
	}
}

START_TEST(devices_and_addresses_are_looked_up_by_all_at_once)
{
	channel = cm_channel();
	crew_run(NUM_THREADS, list_look_up_or_bind);
	rdma_destroy_event_channel(channel);
	ck_assert_uint_eq(fake_live(FAKE_CONTEXT), 1);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		the_first_calls_come_from_all_threads_at_once,
		a_device_leaves_and_returns_under_threads_that_create_ids,
		devices_and_addresses_are_looked_up_by_all_at_once,
	};

	return cm_main("cm_threads_device", tests, sizeof(tests) / sizeof(tests[0]));
}
