/* What ids of the thin layer can be while something else calls. */
#include "destroy/fixture.h"

#include <check.h>
#include <rdma/rdma_cma.h>

enum { TIMEOUT_MS = 1000 };

static const enum fake_kind goes = FAKE_IB;

/* --- one id --------------------------------------------------------------------------------- */

static void new_id(struct fixture *fixture)
{
	fixture->victim = make_id(fixture->base, RDMA_PS_TCP);
}

static void resolving(struct fixture *fixture)
{
	new_id(fixture);
	fake_hold(FAKE_ADDR);
	id_resolve(fixture->victim, fixture->kind);
	fixture_settle(fixture);
	fake_keep(FAKE_ADDR);
}

static void resolved(struct fixture *fixture)
{
	new_id(fixture);
	id_resolve(fixture->victim, fixture->kind);
	fixture_settle(fixture);
}

static void id_removed(struct fixture *fixture)
{
	new_id(fixture);
	id_resolve(fixture->victim, goes);
	fixture_settle(fixture);
	fixture_pull(fixture, goes);
	fixture_settle(fixture);
}

static void resolve_route(struct object *id)
{
	struct op *op = op_new(id, ROW_ID_DONE, ROW_ID_FAILED);

	op_begun(op, evrdma_id_resolve_route(id->it, TIMEOUT_MS, on_id_done, op));
	fixture_settle(id->fixture);
}

static void routing(struct fixture *fixture)
{
	resolved(fixture);
	fake_hold(FAKE_ROUTE);
	resolve_route(fixture->victim);
	fake_keep(FAKE_ROUTE);
}

static void joining(struct fixture *fixture)
{
	struct op *op;

	fixture->victim = make_id(fixture->base, RDMA_PS_UDP);
	ck_assert_int_eq(evrdma_id_bind(fixture->victim->it, address(FAKE_ROCE_IP, 0)), 0);
	fake_hold(FAKE_JOIN);
	op = op_new(fixture->victim, ROW_ID_DONE, ROW_ID_FAILED);
	op_begun(op,
		evrdma_id_join(fixture->victim->it, address("239.1.2.3", 0), 0, on_id_done, op));
	fixture_settle(fixture);
	fake_keep(FAKE_JOIN);
}

/* --- two ids -------------------------------------------------------------------------------- */

static void make_qp(struct object *id)
{
	struct ibv_qp_init_attr init = { .cap = { 2, 2, 1, 1, 0 }, .qp_type = IBV_QPT_RC };

	ck_assert_int_eq(rdma_create_qp(evrdma_id_get_cm_id(id->it), NULL, &init), 0);
}

static void resolve_to(struct object *id, const struct object *listening)
{
	const struct sockaddr_in *to =
		(void *)rdma_get_local_addr(evrdma_id_get_cm_id(listening->it));
	struct op *op = op_new(id, ROW_ID_DONE, ROW_ID_FAILED);

	op_begun(op, evrdma_id_resolve_addr(id->it, NULL, (const struct sockaddr *)to, TIMEOUT_MS,
			     on_id_done, op));
	fixture_settle(id->fixture);
	resolve_route(id);
}

/* From the id to one that listens, as far as the message, which stays on its way. */
static void connect_until(struct fixture *fixture, enum fake_message message)
{
	struct object *listening = make_id(fixture->base, RDMA_PS_TCP);
	struct op *op;

	ck_assert_int_eq(evrdma_id_bind(listening->it, address(fixture_ip(fixture->kind), 0)), 0);
	ck_assert_int_eq(evrdma_id_listen(listening->it, 4), 0);
	new_id(fixture);
	fixture->id = listening;
	resolve_to(fixture->victim, listening);
	make_qp(fixture->victim);
	fake_hold(message);
	op = op_new(fixture->victim, ROW_ID_DONE, ROW_ID_FAILED);
	op_begun(op, evrdma_id_connect(fixture->victim->it, NULL, TIMEOUT_MS, on_id_done, op));
	fixture_settle(fixture);
}

static void accept_it(struct object *id)
{
	struct op *op = op_new(id, ROW_ID_DONE, ROW_ID_FAILED);

	make_qp(id);
	op_begun(op, evrdma_id_accept(id->it, NULL, TIMEOUT_MS, on_id_done, op));
	fixture_settle(id->fixture);
}

static void connecting(struct fixture *fixture)
{
	connect_until(fixture, FAKE_REQ);
	fake_keep(FAKE_REQ);
}

static void accepting(struct fixture *fixture)
{
	connect_until(fixture, FAKE_REP);
	fixture->victim = fixture->id->accepted;
	accept_it(fixture->victim);
	fake_keep(FAKE_REP);
}

static void disconnecting(struct fixture *fixture)
{
	struct op *op;

	connect_until(fixture, FAKE_DREQ);
	accept_it(fixture->id->accepted);
	op = op_new(fixture->victim, ROW_ID_DONE, ROW_ID_FAILED);
	op_begun(op, evrdma_id_disconnect(fixture->victim->it, on_id_done, op));
	fixture_settle(fixture);
	fake_keep(FAKE_DREQ);
}

const struct state id_states[] = {
	{ ID, "a new id", new_id },
	{ ID, "an id that is resolved", resolving },
	{ ID, "an id that was resolved", resolved },
	{ ID, "an id whose route is looked for", routing },
	{ ID, "an id that connects", connecting },
	{ ID, "an id that accepts", accepting },
	{ ID, "an id that disconnects", disconnecting, .not_on_iwarp = true },
	{ ID, "an id that joins", joining },
	{ ID, "an id whose device went", id_removed },
};

const unsigned num_id_states = sizeof(id_states) / sizeof(id_states[0]);
