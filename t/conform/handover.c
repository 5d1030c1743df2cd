/* A request accepted by a listener on one thread is served by a base on another. */
#include "conform/suite.h"
#include "conform/fixture.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { CLIENTS = 8, MESSAGES = 32 };

struct server {
	struct evrdma_conn *conn;
	struct worker *worker;
};

struct worker {
	pthread_t thread;
	struct event_base *loop;
	struct evrdma_base *base;
	struct evrdma_pool *pool;
	unsigned served, closed, wrong_thread;
};

/* --- on the worker's thread ----------------------------------------------------------------- */

static void check_thread(struct worker *worker)
{
	worker->wrong_thread += !pthread_equal(pthread_self(), worker->thread);
}

static void close_worker(struct worker *worker)
{
	if (worker->closed == CLIENTS)
		evrdma_base_close(worker->base, NULL, NULL);
}

static void on_server_event(struct evrdma_conn *conn, enum evrdma_conn_event event,
	const struct evrdma_error *error, void *arg)
{
	struct server *server = arg;
	struct worker *worker = server->worker;

	check_thread(worker);
	worker->served += event == EVRDMA_CONN_CONNECTED;
	if (event == EVRDMA_CONN_DISCONNECTED || event == EVRDMA_CONN_ERROR)
		evrdma_conn_close(conn);
	if (event == EVRDMA_CONN_CLOSED) {
		worker->closed++;
		free(server);
		close_worker(worker);
	}
}

static void echo(struct evrdma_conn *conn, const struct evrdma_recv *recv, void *arg)
{
	struct server *server = arg;

	check_thread(server->worker);
	if (!recv->err)
		ck_assert_int_eq(evrdma_conn_send(conn, recv->buf, recv->len, NULL, NULL), 0);
}

static void serve(struct evrdma_request *request, void *arg)
{
	struct worker *worker = arg;
	struct server *server = calloc(1, sizeof(*server));
	struct evrdma_conn_options options;

	check_thread(worker);
	evrdma_conn_options_init(&options);
	options.recv_pool = worker->pool;
	server->worker = worker;
	server->conn = evrdma_conn_new(worker->base, &options);
	evrdma_conn_setcb(server->conn, echo, on_server_event, server);
	ck_assert_int_eq(evrdma_conn_accept(server->conn, request), 0);
}

static void *work(void *arg)
{
	struct worker *worker = arg;

	event_base_dispatch(worker->loop);
	return NULL;
}

/* --- on the listener's ---------------------------------------------------------------------- */

static void hand_over(struct fixture *f, struct evrdma_request *request)
{
	struct worker *worker = f->tag;

	ck_assert_int_eq(evrdma_request_move(request, worker->base, serve, worker), 0);
}

static void on_client_event(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	if (event == EVRDMA_CONN_CONNECTED)
		endpoint_send(endpoint, MESSAGES, 128);
	ck_assert_int_ne(event, EVRDMA_CONN_ERROR);
}

static void on_client_recv(struct endpoint *endpoint, const struct evrdma_recv *recv)
{
	ck_assert_uint_eq(recv->len, 128);
	if (endpoint->received == MESSAGES)
		evrdma_conn_close(endpoint->conn);
}

static bool all_clients_closed(struct fixture *f)
{
	return f->closed == CLIENTS;
}

static void start_worker(struct worker *worker)
{
	worker->loop = event_base_new();
	worker->base = evrdma_base_new(worker->loop, NULL);
	ck_assert_ptr_nonnull(worker->base);
	worker->pool = evrdma_pool_new(worker->base, 4096, 0);
	ck_assert_int_eq(pthread_create(&worker->thread, NULL, work, worker), 0);
}

START_TEST(request_is_served_on_another_thread)
{
	struct worker worker = { 0 };
	struct fixture *f = fixture_new_on_machine_time();
	unsigned i;

	f->tag = &worker;
	f->on_request = hand_over;
	f->on_event = on_client_event;
	f->on_recv = on_client_recv;
	start_worker(&worker);
	fixture_listen(f);
	for (i = 0; i < CLIENTS; i++)
		fixture_connect(f);
	fixture_run_until(f, all_clients_closed, 30000);
	pthread_join(worker.thread, NULL);
	event_base_free(worker.loop);
	ck_assert_uint_eq(worker.served, CLIENTS);
	ck_assert_uint_eq(worker.wrong_thread, 0);
	fixture_free(f);
}
END_TEST

struct note {
	struct fixture *f;
	bool ran;
};

static void take_note(struct evrdma_base *base, void *arg)
{
	struct note *note = arg;

	note->ran = true;
}

static void *call_in(void *arg)
{
	struct note *note = arg;

	return (void *)(intptr_t)evrdma_base_run_in_loop(note->f->base, take_note, note);
}

static bool was_called(struct fixture *f)
{
	return ((struct note *)f->tag)->ran;
}

START_TEST(any_thread_may_call_into_the_loop)
{
	struct fixture *f = fixture_new_on_machine_time();
	struct note note = { .f = f };
	pthread_t thread;
	void *ret;

	f->tag = &note;
	ck_assert_int_eq(pthread_create(&thread, NULL, call_in, &note), 0);
	fixture_run_until(f, was_called, 10000);
	pthread_join(thread, &ret);
	ck_assert_ptr_null(ret);
	fixture_free(f);
}
END_TEST

TCase *handover_case(void)
{
	TCase *tc = tcase_create("handover");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, request_is_served_on_another_thread);
	tcase_add_test(tc, any_thread_may_call_into_the_loop);
	return tc;
}
