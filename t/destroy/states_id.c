/* What ids of the thin layer can be while something else calls. */
#include "destroy/stage.h"

#include <check.h>
#include <rdma/rdma_cma.h>

enum { TIMEOUT_MS = 1000 };

static const enum fake_kind goes = FAKE_IB;

/* --- one id --------------------------------------------------------------------------------- */

static void new_id(struct stage *stage)
{
	stage->victim = make_id(stage->base, RDMA_PS_TCP);
}

static void resolving(struct stage *stage)
{
	new_id(stage);
	fake_hold(FAKE_ADDR);
	id_resolve(stage->victim, stage->kind);
	stage_settle(stage);
	fake_keep(FAKE_ADDR);
}

static void resolved(struct stage *stage)
{
	new_id(stage);
	id_resolve(stage->victim, stage->kind);
	stage_settle(stage);
}

static void id_removed(struct stage *stage)
{
	new_id(stage);
	id_resolve(stage->victim, goes);
	stage_settle(stage);
	stage_pull(stage, goes);
	stage_settle(stage);
}

static void resolve_route(struct actor *id)
{
	struct op *op = op_new(id, ROW_ID_DONE, ROW_ID_FAILED);

	op_begun(op, evrdma_id_resolve_route(id->it, TIMEOUT_MS, on_id_done, op));
	stage_settle(id->stage);
}

static void routing(struct stage *stage)
{
	resolved(stage);
	fake_hold(FAKE_ROUTE);
	resolve_route(stage->victim);
	fake_keep(FAKE_ROUTE);
}

static void joining(struct stage *stage)
{
	struct op *op;

	stage->victim = make_id(stage->base, RDMA_PS_UDP);
	ck_assert_int_eq(evrdma_id_bind(stage->victim->it, address(FAKE_ROCE_IP, 0)), 0);
	fake_hold(FAKE_JOIN);
	op = op_new(stage->victim, ROW_ID_DONE, ROW_ID_FAILED);
	op_begun(op, evrdma_id_join(
			     stage->victim->it, address("239.1.2.3", 0), 0, on_id_done, op));
	stage_settle(stage);
	fake_keep(FAKE_JOIN);
}

/* --- two ids -------------------------------------------------------------------------------- */

static void make_qp(struct actor *id)
{
	struct ibv_qp_init_attr init = { .cap = { 2, 2, 1, 1, 0 }, .qp_type = IBV_QPT_RC };

	ck_assert_int_eq(rdma_create_qp(evrdma_id_get_cm_id(id->it), NULL, &init), 0);
}

static void resolve_to(struct actor *id, const struct actor *listening)
{
	const struct sockaddr_in *to =
		(void *)rdma_get_local_addr(evrdma_id_get_cm_id(listening->it));
	struct op *op = op_new(id, ROW_ID_DONE, ROW_ID_FAILED);

	op_begun(op, evrdma_id_resolve_addr(id->it, NULL, (const struct sockaddr *)to, TIMEOUT_MS,
			     on_id_done, op));
	stage_settle(id->stage);
	resolve_route(id);
}

/* From the id to one that listens, as far as the message, which stays on its way. */
static void connect_until(struct stage *stage, enum fake_message message)
{
	struct actor *listening = make_id(stage->base, RDMA_PS_TCP);
	struct op *op;

	ck_assert_int_eq(
		evrdma_id_bind(listening->it, address(stage_ip(stage->kind), 0)), 0);
	ck_assert_int_eq(evrdma_id_listen(listening->it, 4), 0);
	new_id(stage);
	stage->id = listening;
	resolve_to(stage->victim, listening);
	make_qp(stage->victim);
	fake_hold(message);
	op = op_new(stage->victim, ROW_ID_DONE, ROW_ID_FAILED);
	op_begun(op, evrdma_id_connect(stage->victim->it, NULL, TIMEOUT_MS, on_id_done, op));
	stage_settle(stage);
}

static void accept_it(struct actor *id)
{
	struct op *op = op_new(id, ROW_ID_DONE, ROW_ID_FAILED);

	make_qp(id);
	op_begun(op, evrdma_id_accept(id->it, NULL, TIMEOUT_MS, on_id_done, op));
	stage_settle(id->stage);
}

static void connecting(struct stage *stage)
{
	connect_until(stage, FAKE_REQ);
	fake_keep(FAKE_REQ);
}

static void accepting(struct stage *stage)
{
	connect_until(stage, FAKE_REP);
	stage->victim = stage->id->accepted;
	accept_it(stage->victim);
	fake_keep(FAKE_REP);
}

static void disconnecting(struct stage *stage)
{
	struct op *op;

	connect_until(stage, FAKE_DREQ);
	accept_it(stage->id->accepted);
	op = op_new(stage->victim, ROW_ID_DONE, ROW_ID_FAILED);
	op_begun(op, evrdma_id_disconnect(stage->victim->it, on_id_done, op));
	stage_settle(stage);
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
