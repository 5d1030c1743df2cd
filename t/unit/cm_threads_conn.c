/* Connections of several threads: handed over before they are accepted, and ended half-way. */
#include "unit/cm_crew.h"

#include <sched.h>

enum { NUM_CLIENTS = 3, ROUNDS = 40, PATIENCE_MS = 60000 };

static struct rdma_event_channel *channel; /* the listener's */
static struct rdma_cm_id *listener;

static void start_listener(void)
{
	listener = cm_id(channel, RDMA_PS_TCP);
	ck_assert_ok(rdma_bind_addr(listener, cm_addr(FAKE_ROCE_IP, CM_PORT)));
	ck_assert_ok(rdma_listen(listener, 0));
}

static void set_up(void)
{
	cm_set_up();
	channel = cm_channel();
	start_listener();
}

static void tear_down(void)
{
	cm_destroy(listener);
	rdma_destroy_event_channel(channel);
	cm_tear_down();
}

static struct rdma_cm_event *next_event(struct rdma_event_channel *from)
{
	struct rdma_cm_event *event;

	while (rdma_get_cm_event(from, &event)) {
		ck_assert_int_eq(errno, EAGAIN);
		sched_yield();
	}
	return event;
}

/* The type of the next event, which is acknowledged. */
static enum rdma_cm_event_type next_type(struct rdma_event_channel *from)
{
	struct rdma_cm_event *event = next_event(from);
	enum rdma_cm_event_type type = event->event;

	ck_assert_ok(rdma_ack_cm_event(event));
	return type;
}

static struct rdma_cm_id *client_of(struct rdma_event_channel *mine)
{
	struct rdma_cm_id *client = cm_id(mine, RDMA_PS_TCP);

	cm_resolve(client, FAKE_ROCE_IP);
	cm_make_qp(client);
	ck_assert_ok(rdma_connect(client, NULL));
	return client;
}

/* --- served by another thread than the one that read the request --- */

/* One place for each worker, served in turn. */
static _Atomic(struct rdma_cm_id *) desk[NUM_CLIENTS];

static bool lay_down(unsigned number, struct rdma_cm_id *id)
{
	struct rdma_cm_id *none = NULL;

	return atomic_compare_exchange_strong_explicit(
		&desk[number], &none, id, memory_order_release, memory_order_relaxed);
}

static void hand_over(struct rdma_cm_event *event)
{
	static unsigned turn;

	ck_assert_int_eq(event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	while (!lay_down(turn % NUM_CLIENTS, event->id))
		sched_yield();
	turn++;
}

static struct rdma_cm_id *take_over(unsigned number)
{
	struct rdma_cm_id *id;

	while (!(id = atomic_exchange_explicit(&desk[number], NULL, memory_order_acquire)))
		sched_yield();
	return id;
}

static void serve(struct rdma_event_channel *mine, unsigned number)
{
	int i;

	for (i = 0; i < ROUNDS; i++) {
		struct rdma_cm_id *server = take_over(number);

		ck_assert_ok(rdma_migrate_id(server, mine));
		cm_make_qp(server);
		ck_assert_ok(rdma_accept(server, NULL));
		ck_assert_int_eq(next_type(mine), RDMA_CM_EVENT_ESTABLISHED);
		ck_assert_int_eq(next_type(mine), RDMA_CM_EVENT_DISCONNECTED);
		ck_assert_ok(rdma_disconnect(server));
		cm_destroy(server);
	}
}

static void be_served(struct rdma_event_channel *mine)
{
	int i;

	for (i = 0; i < ROUNDS; i++) {
		struct rdma_cm_id *client = client_of(mine);

		ck_assert_int_eq(next_type(mine), RDMA_CM_EVENT_ESTABLISHED);
		ck_assert_ok(rdma_disconnect(client));
		ck_assert_int_eq(next_type(mine), RDMA_CM_EVENT_DISCONNECTED);
		cm_destroy(client);
	}
}

static void serve_or_be_served(unsigned number)
{
	struct rdma_event_channel *mine = cm_channel();

	if (number < NUM_CLIENTS)
		serve(mine, number);
	else
		be_served(mine);
	rdma_destroy_event_channel(mine);
}

START_TEST(workers_accept_what_one_thread_listens_for)
{
	struct crew_reader reader;

	crew_reader_start(&reader, channel, hand_over);
	crew_run(2 * NUM_CLIENTS, serve_or_be_served);
	crew_reader_stop(&reader);
	ck_assert_uint_eq(reader.seen[RDMA_CM_EVENT_CONNECT_REQUEST], NUM_CLIENTS * ROUNDS);
}
END_TEST

/* --- fetched by several threads from one synchronous listener --- */

static void get_and_refuse(void)
{
	int i;

	for (i = 0; i < ROUNDS; i++) {
		struct rdma_cm_id *server;

		ck_assert_ok(rdma_get_request(listener, &server));
		ck_assert_int_eq(server->event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
		cm_destroy(server);
	}
}

static void be_refused(void)
{
	struct rdma_event_channel *mine = cm_channel();
	int i;

	for (i = 0; i < ROUNDS; i++) {
		struct rdma_cm_id *client = client_of(mine);

		ck_assert_int_eq(next_type(mine), RDMA_CM_EVENT_REJECTED);
		cm_destroy(client);
	}
	rdma_destroy_event_channel(mine);
}

static void refuse_or_be_refused(unsigned number)
{
	if (number < NUM_CLIENTS)
		get_and_refuse();
	else
		be_refused();
}

START_TEST(each_request_is_fetched_once_by_one_of_several_threads)
{
	fake_wait_for_others(PATIENCE_MS);
	ck_assert_ok(rdma_migrate_id(listener, NULL));
	crew_run(2 * NUM_CLIENTS, refuse_or_be_refused);
	ck_assert_ok(rdma_migrate_id(listener, channel));
}
END_TEST

static atomic_uint told;

static void wait_to_be_told(unsigned number)
{
	struct rdma_cm_id *server;

	if (number) {
		ck_assert_fails(rdma_get_request(listener, &server), ECANCELED);
		atomic_fetch_add(&told, 1);
		return;
	}
	while (atomic_load(&told) < NUM_CLIENTS)
		if (!fake_unread(listener->channel->fd))
			fake_inject(listener, RDMA_CM_EVENT_USER, -ECANCELED);
}

/* What is no request stays on the listener, one at a time. */
START_TEST(each_of_several_threads_is_told_of_another_event)
{
	fake_wait_for_others(PATIENCE_MS);
	ck_assert_ok(rdma_migrate_id(listener, NULL));
	crew_run(1 + NUM_CLIENTS, wait_to_be_told);
	ck_assert_int_eq(listener->event->event, RDMA_CM_EVENT_USER);
	ck_assert_ok(rdma_migrate_id(listener, channel));
	while (fake_unread(channel->fd))
		cm_await(channel, RDMA_CM_EVENT_USER);
}
END_TEST

/* --- ended while another thread reads what comes of it --- */

static struct rdma_event_channel *clients_channel;

static void connect_and_leave(unsigned number)
{
	int i;

	for (i = 0; i < ROUNDS; i++) {
		struct rdma_cm_id *client;

		ck_assert_ok(rdma_create_id(NULL, &client, NULL, RDMA_PS_TCP));
		ck_assert_ok(rdma_resolve_addr(client, NULL, cm_addr(FAKE_ROCE_IP, CM_PORT), 1));
		ck_assert_ok(rdma_resolve_route(client, 1));
		ck_assert_ok(rdma_migrate_id(client, clients_channel));
		cm_make_qp(client);
		ck_assert_ok(rdma_connect(client, NULL));
		if (i % 2)
			sched_yield();
		cm_destroy(client);
	}
}

/* Who asked may have left already. */
static void accept_and_end(struct rdma_cm_event *event)
{
	struct ibv_qp_init_attr attr = cm_qp_attr(IBV_QPT_RC);

	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return;
	if (rdma_create_qp(event->id, NULL, &attr) || rdma_accept(event->id, NULL))
		ck_assert_int_eq(errno, EINVAL);
	cm_destroy(event->id);
}

static void read_both_while(unsigned n, void (*work)(unsigned number))
{
	struct crew_reader passive, active;

	clients_channel = cm_channel();
	crew_reader_start(&passive, channel, accept_and_end);
	crew_reader_start(&active, clients_channel, accept_and_end);
	crew_run(n, work);
	crew_reader_stop(&active);
	crew_reader_stop(&passive);
	rdma_destroy_event_channel(clients_channel);
}

START_TEST(a_queue_pair_and_its_id_go_while_another_thread_reads_the_answer)
{
	read_both_while(NUM_CLIENTS, connect_and_leave);
}
END_TEST

static void listen_or_connect(unsigned number)
{
	int i;

	if (number) {
		connect_and_leave(number);
		return;
	}
	for (i = 0; i < ROUNDS; i++) {
		ck_assert_ok(rdma_destroy_id(listener));
		start_listener();
		sched_yield();
	}
}

START_TEST(a_listener_goes_while_another_thread_reads_its_requests)
{
	read_both_while(1 + NUM_CLIENTS, listen_or_connect);
}
END_TEST

static void move_or_connect(unsigned number)
{
	int i;

	if (number) {
		connect_and_leave(number);
		return;
	}
	for (i = 0; i < ROUNDS; i++) {
		ck_assert_ok(rdma_migrate_id(listener, clients_channel));
		ck_assert_ok(rdma_migrate_id(listener, channel));
	}
}

START_TEST(a_listener_moves_while_another_thread_reads_its_requests)
{
	read_both_while(1 + NUM_CLIENTS, move_or_connect);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		workers_accept_what_one_thread_listens_for,
		each_request_is_fetched_once_by_one_of_several_threads,
		each_of_several_threads_is_told_of_another_event,
		a_queue_pair_and_its_id_go_while_another_thread_reads_the_answer,
		a_listener_goes_while_another_thread_reads_its_requests,
		a_listener_moves_while_another_thread_reads_its_requests,
	};

	return unit_main(
		"cm_threads_conn", tests, sizeof(tests) / sizeof(tests[0]), set_up, tear_down);
}
