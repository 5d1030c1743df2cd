/* Calls on different ids in parallel, and events read by one thread for the ids of another. */
#include "unit/cm_unit.h"

#include <pthread.h>
#include <stdatomic.h>

enum { NUM_THREADS = 4, ROUNDS = 40 };

static void listen_connect_and_end(uint16_t port)
{
	struct rdma_event_channel *channel = cm_channel();
	struct rdma_cm_id *listener = cm_id(channel, RDMA_PS_TCP);
	struct rdma_cm_id *client = cm_id(channel, RDMA_PS_TCP), *server;

	ck_assert_ok(rdma_bind_addr(listener, cm_addr("0.0.0.0", port)));
	ck_assert_ok(rdma_listen(listener, 0));
	ck_assert_ok(rdma_resolve_addr(client, NULL, cm_addr(FAKE_ROCE_IP, port), CM_TIMEOUT_MS));
	cm_await(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	ck_assert_ok(rdma_resolve_route(client, CM_TIMEOUT_MS));
	cm_await(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	cm_make_qp(client);
	ck_assert_ok(rdma_connect(client, NULL));
	server = cm_await(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	cm_make_qp(server);
	ck_assert_ok(rdma_accept(server, NULL));
	cm_await(channel, RDMA_CM_EVENT_ESTABLISHED);
	cm_await(channel, RDMA_CM_EVENT_ESTABLISHED);
	cm_destroy(client);
	cm_destroy(server);
	cm_destroy(listener);
	rdma_destroy_event_channel(channel);
}

static void *connect_again_and_again(void *arg)
{
	uint16_t port = (uint16_t)(CM_PORT + (uintptr_t)arg);
	int i;

	for (i = 0; i < ROUNDS; i++)
		listen_connect_and_end(port);
	return NULL;
}

/* The device opens and closes all the time, for now one of them is the last on it and now not. */
START_TEST(threads_with_ids_of_their_own_do_not_meet)
{
	pthread_t threads[NUM_THREADS];
	uintptr_t i;

	for (i = 0; i < NUM_THREADS; i++)
		ck_assert_int_eq(
			pthread_create(&threads[i], NULL, connect_again_and_again, (void *)i), 0);
	for (i = 0; i < NUM_THREADS; i++)
		pthread_join(threads[i], NULL);
}
END_TEST

struct reader {
	struct rdma_event_channel *channel;
	atomic_bool stop;
	atomic_uint read;
};

static void *read_and_acknowledge(void *arg)
{
	struct reader *reader = arg;
	struct rdma_cm_event *event;

	while (!atomic_load(&reader->stop)) {
		if (rdma_get_cm_event(reader->channel, &event))
			continue;
		atomic_fetch_add(&reader->read, 1);
		rdma_ack_cm_event(event);
	}
	return NULL;
}

START_TEST(ids_are_destroyed_while_another_thread_reads_their_events)
{
	struct reader reader = { .channel = cm_channel() };
	pthread_t thread;
	int i;

	ck_assert_int_eq(pthread_create(&thread, NULL, read_and_acknowledge, &reader), 0);
	for (i = 0; i < 10 * ROUNDS; i++) {
		struct rdma_cm_id *id = cm_id(reader.channel, RDMA_PS_TCP);

		ck_assert_ok(rdma_resolve_addr(id, NULL, cm_addr(FAKE_ROCE_IP, CM_PORT), 1));
		ck_assert_ok(rdma_destroy_id(id));
	}
	atomic_store(&reader.stop, true);
	pthread_join(thread, NULL);
	rdma_destroy_event_channel(reader.channel);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		threads_with_ids_of_their_own_do_not_meet,
		ids_are_destroyed_while_another_thread_reads_their_events,
	};

	return cm_main("cm_threads", tests, sizeof(tests) / sizeof(tests[0]));
}
