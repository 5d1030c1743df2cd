/* The thin layer: one call and one callback for each operation. */
#include "conform/suite.h"
#include "conform/fixture.h"

#include <errno.h>
#include <rdma/rdma_cma.h>
#include <string.h>

/* What one operation came to. */
struct result {
	unsigned done;
	int err;
	int event;
	char data[8];
};

struct talk {
	struct fixture *f;
	struct evrdma_id *listener, *client, *server;
	struct result op, accept, disconnect, join;
	struct result *awaited;
	unsigned closed, disconnected, requests;
	bool done_after_closed;
};

static void on_done(struct evrdma_id *id, const struct evrdma_error *error,
	const struct rdma_cm_event *event, void *arg)
{
	struct result *result = arg;

	result->done++;
	result->err = error ? error->err : 0;
	result->event = event ? (int)event->event : -1;
	if (event && event->event == RDMA_CM_EVENT_REJECTED && event->param.conn.private_data)
		memcpy(result->data, event->param.conn.private_data, 3);
}

static void on_event(struct evrdma_id *id, const struct rdma_cm_event *event, void *arg)
{
	struct talk *talk = arg;

	if (!event) {
		talk->closed++;
	} else if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		talk->requests++;
		talk->server = evrdma_id_adopt(talk->f->base, event->id, on_event, talk);
		ck_assert_ptr_nonnull(talk->server);
	} else if (event->event == RDMA_CM_EVENT_DISCONNECTED) {
		talk->disconnected++;
	}
}

static bool awaited_is_done(struct fixture *f)
{
	return ((struct talk *)f->tag)->awaited->done;
}

static void await(struct talk *talk, struct result *result)
{
	talk->awaited = result;
	fixture_run_until(talk->f, awaited_is_done, 20000);
	ck_assert_uint_eq(result->done, 1);
}

/* The operation ends well, in this event. */
static void expect(struct talk *talk, struct result *result, int event)
{
	await(talk, result);
	ck_assert_int_eq(result->err, 0);
	ck_assert_int_eq(result->event, event);
	*result = (struct result){ 0 };
}

static struct fixture *start(struct talk *talk, int port_space)
{
	struct fixture *f = fixture_new();

	*talk = (struct talk){ .f = f };
	f->tag = talk;
	talk->client = evrdma_id_new(f->base, port_space, on_event, talk);
	ck_assert_ptr_nonnull(talk->client);
	return f;
}

static void finish(struct talk *talk, unsigned ids)
{
	fixture_free(talk->f);
	ck_assert_uint_eq(talk->closed, ids);
}

static void listen_by_id(struct talk *talk)
{
	struct sockaddr_in sin;

	talk->listener = evrdma_id_new(talk->f->base, RDMA_PS_TCP, on_event, talk);
	fixture_address(&sin, testbed.ip, 0);
	ck_assert_int_eq(evrdma_id_bind(talk->listener, (struct sockaddr *)&sin), 0);
	ck_assert_int_eq(evrdma_id_listen(talk->listener, 8), 0);
}

static int resolve(struct talk *talk)
{
	struct sockaddr_in sin;
	uint16_t port = 9;
	int ret;

	if (talk->listener)
		port = ntohs(rdma_get_src_port(evrdma_id_get_cm_id(talk->listener)));
	fixture_address(&sin, testbed.ip, port);
	talk->f->in_call = true;
	ret = evrdma_id_resolve_addr(
		talk->client, NULL, (struct sockaddr *)&sin, 2000, on_done, &talk->op);
	talk->f->in_call = false;
	return ret;
}

static void make_qp(struct evrdma_id *id)
{
	struct ibv_qp_init_attr init = { .cap = { 2, 2, 1, 1, 0 },
		.qp_type = evrdma_id_get_cm_id(id)->qp_type };

	ck_assert_int_eq(rdma_create_qp(evrdma_id_get_cm_id(id), NULL, &init), 0);
}

static void resolve_all(struct talk *talk)
{
	ck_assert_int_eq(resolve(talk), 0);
	expect(talk, &talk->op, RDMA_CM_EVENT_ADDR_RESOLVED);
	ck_assert_int_eq(evrdma_id_resolve_route(talk->client, 2000, on_done, &talk->op), 0);
	expect(talk, &talk->op, RDMA_CM_EVENT_ROUTE_RESOLVED);
	make_qp(talk->client);
}

static int connect_id(struct talk *talk)
{
	return evrdma_id_connect(talk->client, NULL, 5000, on_done, &talk->op);
}

static void resolve_and_connect(struct talk *talk)
{
	resolve_all(talk);
	ck_assert_int_eq(connect_id(talk), 0);
	ck_assert_int_eq(connect_id(talk), -EBUSY);
}

static bool was_requested(struct fixture *f)
{
	return ((struct talk *)f->tag)->requests;
}

static bool server_disconnected(struct fixture *f)
{
	return ((struct talk *)f->tag)->disconnected;
}

START_TEST(ids_connect_and_disconnect_step_by_step)
{
	struct talk talk;
	struct fixture *f = start(&talk, RDMA_PS_TCP);

	listen_by_id(&talk);
	resolve_and_connect(&talk);
	fixture_run_until(f, was_requested, 20000);
	make_qp(talk.server);
	ck_assert_int_eq(evrdma_id_accept(talk.server, NULL, 5000, on_done, &talk.accept), 0);
	expect(&talk, &talk.op, RDMA_CM_EVENT_ESTABLISHED);
	expect(&talk, &talk.accept, RDMA_CM_EVENT_ESTABLISHED);
	ck_assert_int_eq(evrdma_id_disconnect(talk.client, on_done, &talk.disconnect), 0);
	ck_assert_int_eq(evrdma_id_disconnect(talk.client, NULL, NULL), -EBUSY);
	fixture_run_until(f, server_disconnected, 20000);
	evrdma_id_close(talk.server);
	expect(&talk, &talk.disconnect, RDMA_CM_EVENT_DISCONNECTED);
	finish(&talk, 3);
}
END_TEST

START_TEST(an_id_rejects_with_data)
{
	struct talk talk;
	struct fixture *f = start(&talk, RDMA_PS_TCP);

	listen_by_id(&talk);
	resolve_and_connect(&talk);
	fixture_run_until(f, was_requested, 20000);
	ck_assert_int_eq(evrdma_id_reject(talk.server, "no", 256), -EINVAL);
	ck_assert_int_eq(evrdma_id_reject(talk.server, "no", 3), 0);
	evrdma_id_close(talk.server);
	await(&talk, &talk.op);
	ck_assert_int_eq(talk.op.err, ECONNREFUSED);
	ck_assert_str_eq(talk.op.data, "no");
	finish(&talk, 3);
}
END_TEST

/* The kernel would forget its message, and hold whoever destroys the id until it was sent for the
   last time. */
START_TEST(what_is_asked_of_the_peer_can_be_neither_rejected_nor_accepted)
{
	struct talk talk;
	struct fixture *f = start(&talk, RDMA_PS_TCP);

	listen_by_id(&talk);
	resolve_all(&talk);
	ck_assert_int_eq(evrdma_id_connect(talk.client, NULL, 1000, on_done, &talk.op), 0);
	fixture_run_until(f, was_requested, 20000);
	ck_assert_int_eq(evrdma_id_reject(talk.client, NULL, 0), -EINVAL);
	await(&talk, &talk.op);
	ck_assert_int_eq(talk.op.err, ETIMEDOUT);
	ck_assert_int_eq(evrdma_id_reject(talk.client, NULL, 0), -EINVAL);
	ck_assert_int_eq(evrdma_id_accept(talk.client, NULL, 1000, NULL, NULL), -EINVAL);
	make_qp(talk.server);
	ck_assert_int_eq(evrdma_id_accept(talk.server, NULL, 1000, NULL, NULL), 0);
	ck_assert_int_eq(evrdma_id_reject(talk.server, NULL, 0), -EINVAL);
	finish(&talk, 3);
}
END_TEST

/* A soft iWARP device may know at once. */
START_TEST(a_connect_that_nobody_takes_ends_in_an_error)
{
	struct talk talk;
	int ret;

	start(&talk, RDMA_PS_TCP);
	resolve_all(&talk);
	ret = connect_id(&talk);
	if (testbed.is_iwarp && ret) {
		ck_assert_int_eq(ret, -ECONNREFUSED);
	} else {
		await(&talk, &talk.op);
		ck_assert_int_eq(talk.op.err, ECONNREFUSED);
		ck_assert_int_eq(talk.op.event, RDMA_CM_EVENT_REJECTED);
	}
	finish(&talk, 1);
}
END_TEST

static bool client_closed(struct fixture *f)
{
	return ((struct talk *)f->tag)->closed;
}

START_TEST(close_cancels_an_operation_then_says_closed)
{
	struct talk talk;
	struct fixture *f = start(&talk, RDMA_PS_TCP);

	ck_assert_int_eq(resolve(&talk), 0);
	ck_assert_int_eq(resolve(&talk), -EBUSY);
	evrdma_id_close(talk.client);
	evrdma_id_close(talk.client);
	ck_assert_uint_eq(talk.op.done, 0);
	ck_assert_ptr_null(evrdma_id_get_cm_id(talk.client));
	ck_assert_int_eq(resolve(&talk), -EPIPE);
	ck_assert_int_eq(evrdma_id_listen(talk.client, 1), -EPIPE);
	await(&talk, &talk.op);
	ck_assert_int_eq(talk.op.err, ECANCELED);
	fixture_run_until(f, client_closed, 10000);
	finish(&talk, 1);
}
END_TEST

static void close_it(struct evrdma_id *id, const struct evrdma_error *error,
	const struct rdma_cm_event *event, void *arg)
{
	on_done(id, error, event, arg);
	evrdma_id_close(id);
}

START_TEST(an_id_can_be_closed_in_the_callback_of_its_operation)
{
	struct talk talk;
	struct sockaddr_in sin;
	struct fixture *f = start(&talk, RDMA_PS_TCP);

	fixture_address(&sin, testbed.ip, 9);
	ck_assert_int_eq(evrdma_id_resolve_addr(talk.client, NULL, (struct sockaddr *)&sin, 2000,
				 close_it, &talk.op),
		0);
	await(&talk, &talk.op);
	ck_assert_int_eq(talk.op.err, 0);
	fixture_run_until(f, client_closed, 10000);
	finish(&talk, 1);
}
END_TEST

START_TEST(operations_that_cannot_begin_say_so_and_call_nobody)
{
	struct talk talk;
	struct sockaddr nothing = { .sa_family = AF_UNSPEC };
	struct sockaddr_in sin;
	struct fixture *f = start(&talk, RDMA_PS_TCP);
	struct evrdma_id *id = talk.client;

	fixture_address(&sin, testbed.ip, 9);
	ck_assert_int_eq(
		evrdma_id_resolve_addr(id, NULL, (struct sockaddr *)&sin, 0, on_done, &talk.op),
		-EINVAL);
	ck_assert_int_eq(evrdma_id_resolve_addr(id, NULL, NULL, 9, on_done, &talk.op), -EINVAL);
	ck_assert_int_eq(
		evrdma_id_resolve_addr(id, NULL, &nothing, 9, on_done, &talk.op), -EAFNOSUPPORT);
	ck_assert_int_eq(evrdma_id_resolve_route(id, 9, on_done, &talk.op), -EINVAL);
	ck_assert_int_eq(evrdma_id_bind(id, NULL), -EINVAL);
	ck_assert_int_eq(evrdma_id_bind(id, &nothing), -EAFNOSUPPORT);
	ck_assert_int_eq(evrdma_id_disconnect(id, on_done, &talk.disconnect), -EINVAL);
	ck_assert_int_eq(evrdma_id_join(id, NULL, 0, on_done, &talk.join), -EINVAL);
	ck_assert_ptr_null(evrdma_id_new(f->base, 77, on_event, &talk));
	ck_assert_int_eq(errno, EINVAL);
	finish(&talk, 1);
	ck_assert_uint_eq(talk.op.done + talk.disconnect.done + talk.join.done, 0);
}
END_TEST

START_TEST(a_moved_id_goes_on_where_it_is)
{
	struct talk talk;
	struct fixture *f = start(&talk, RDMA_PS_TCP);
	struct event_base *elsewhere = event_base_new();
	struct evrdma_base *far_away = evrdma_base_new(elsewhere, NULL);

	fixture_add_other(f);
	ck_assert_int_eq(evrdma_id_migrate(talk.client, far_away), -EXDEV);
	ck_assert_int_eq(evrdma_id_migrate(talk.client, f->other), 0);
	ck_assert_int_eq(resolve(&talk), 0);
	expect(&talk, &talk.op, RDMA_CM_EVENT_ADDR_RESOLVED);
	evrdma_base_close(far_away, NULL, NULL);
	event_base_dispatch(elsewhere);
	event_base_free(elsewhere);
	fixture_close_other(f);
	ck_assert_uint_eq(talk.closed, 1);
	finish(&talk, 1);
}
END_TEST

/* --- datagrams ------------------------------------------------------------------------------ */

static int join(struct talk *talk, struct sockaddr_in *group)
{
	fixture_address(group, "239.7.7.1", 0);
	return evrdma_id_join(talk->client, (struct sockaddr *)group, 0, on_done, &talk->join);
}

static struct fixture *start_bound(struct talk *talk)
{
	struct fixture *f = start(talk, RDMA_PS_UDP);
	struct sockaddr_in sin;

	fixture_address(&sin, testbed.ip, 0);
	ck_assert_int_eq(evrdma_id_bind(talk->client, (struct sockaddr *)&sin), 0);
	make_qp(talk->client);
	return f;
}

START_TEST(an_id_joins_and_leaves_a_group)
{
	struct talk talk;
	struct sockaddr_in group;

	start_bound(&talk);
	ck_assert_int_eq(join(&talk, &group), 0);
	ck_assert_int_eq(join(&talk, &group), -EBUSY);
	expect(&talk, &talk.join, RDMA_CM_EVENT_MULTICAST_JOIN);
	ck_assert_int_eq(evrdma_id_leave(talk.client, (struct sockaddr *)&group), 0);
	ck_assert_int_eq(evrdma_id_leave(talk.client, (struct sockaddr *)&group), -EADDRNOTAVAIL);
	finish(&talk, 1);
}
END_TEST

/* Two of one address Linux cannot tell apart when one of them is left. */
START_TEST(an_id_joins_a_group_once_until_it_leaves)
{
	struct talk talk;
	struct sockaddr_in group;
	int i;

	start_bound(&talk);
	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(join(&talk, &group), 0);
		expect(&talk, &talk.join, RDMA_CM_EVENT_MULTICAST_JOIN);
		ck_assert_int_eq(join(&talk, &group), -EADDRINUSE);
		ck_assert_int_eq(evrdma_id_leave(talk.client, (struct sockaddr *)&group), 0);
	}
	ck_assert_int_eq(join(&talk, &group), 0);
	finish(&talk, 1);
}
END_TEST

START_TEST(leaving_or_closing_cancels_a_join)
{
	struct talk talk;
	struct sockaddr_in group;

	start_bound(&talk);
	ck_assert_int_eq(join(&talk, &group), 0);
	if (_i)
		evrdma_id_close(talk.client);
	else
		ck_assert_int_eq(evrdma_id_leave(talk.client, (struct sockaddr *)&group), 0);
	await(&talk, &talk.join);
	ck_assert_int_eq(talk.join.err, ECANCELED);
	finish(&talk, 1);
}
END_TEST

TCase *id_case(void)
{
	TCase *tc = tcase_create("id");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, ids_connect_and_disconnect_step_by_step);
	tcase_add_test(tc, an_id_rejects_with_data);
	tcase_add_test(tc, what_is_asked_of_the_peer_can_be_neither_rejected_nor_accepted);
	tcase_add_test(tc, a_connect_that_nobody_takes_ends_in_an_error);
	tcase_add_test(tc, close_cancels_an_operation_then_says_closed);
	tcase_add_test(tc, an_id_can_be_closed_in_the_callback_of_its_operation);
	tcase_add_test(tc, operations_that_cannot_begin_say_so_and_call_nobody);
	tcase_add_test(tc, a_moved_id_goes_on_where_it_is);
	if (testbed_has(TESTBED_DATAGRAMS | TESTBED_GROUPS)) {
		tcase_add_test(tc, an_id_joins_and_leaves_a_group);
		tcase_add_test(tc, an_id_joins_a_group_once_until_it_leaves);
		tcase_add_loop_test(tc, leaving_or_closing_cancels_a_join, 0, 2);
	}
	return tc;
}
