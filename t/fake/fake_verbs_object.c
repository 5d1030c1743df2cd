/* What all verbs objects have in common: the list, the counts, the handles. */
#include "fake/fake_verbs.h"

/* Of each kind, the oldest first. */
static TAILQ_HEAD(fake_nodes, fake_node) nodes[FAKE_OBJECTS];
static uint32_t last_handle;

static struct fake_nodes *nodes_of(enum fake_object kind)
{
	if (!nodes[kind].tqh_last)
		TAILQ_INIT(&nodes[kind]);
	return &nodes[kind];
}

void *fake_node_new(size_t size, enum fake_object kind, struct fake_context *context)
{
	struct fake_node *node = fake_alloc(size);

	node->kind = kind;
	node->handle = ++last_handle;
	node->context = context;
	if (context)
		context->objects[kind]++;
	TAILQ_INSERT_TAIL(nodes_of(kind), node, link);
	fake_born(kind);
	return node;
}

void fake_node_free(struct fake_node *node)
{
	if (node->fini)
		node->fini(node);
	if (node->context)
		node->context->objects[node->kind]--;
	TAILQ_REMOVE(nodes_of(node->kind), node, link);
	if (!node->lost)
		fake_died(node->kind);
	fake_free_in_sight(node);
}

struct fake_node *fake_node_next(enum fake_object kind, struct fake_node *after)
{
	return after ? TAILQ_NEXT(after, link) : TAILQ_FIRST(nodes_of(kind));
}

unsigned fake_node_count(enum fake_object kind, const struct fake_context *context)
{
	return context->objects[kind];
}

uint32_t fake_node_handles(
	enum fake_object kind, const struct fake_context *context, uint32_t *handles, uint32_t max)
{
	struct fake_node *node = NULL;
	uint32_t n = 0;

	while ((node = fake_node_next(kind, node))) {
		if (node->context != context)
			continue;
		if (n < max)
			handles[n] = node->handle;
		n++;
	}
	return n;
}

int fake_verb_fault(const struct fake_context *context, const char *name)
{
	int err = fake_fault(FAKE_VERBS, name);

	return !err && context && context->gone ? EIO : err;
}

int fake_verb_fault_release(const struct fake_context *context, const char *name)
{
	int err = fake_fault_release(FAKE_VERBS, name);

	return !err && context->gone ? EIO : err;
}

/* --- all of them --- */

/* In the order in which they depend on each other. */
static const enum fake_object teardown[] = { FAKE_QP, FAKE_SRQ, FAKE_XRCD, FAKE_CQ, FAKE_CHANNEL,
	FAKE_AH, FAKE_MR, FAKE_PD, FAKE_CONTEXT };

static struct fake_node *next_on(
	enum fake_object kind, const struct fake_context *context, struct fake_node *after)
{
	do
		after = fake_node_next(kind, after);
	while (after && context && after != &context->node && after->context != context);
	return after;
}

void fake_nodes_free(const struct fake_context *context)
{
	struct fake_node *node;
	size_t i;

	for (i = 0; i < sizeof(teardown) / sizeof(teardown[0]); i++)
		while ((node = next_on(teardown[i], context, NULL)))
			fake_node_free(node);
}

void fake_nodes_lose(const struct fake_context *context)
{
	struct fake_node *node = NULL;
	size_t i;

	for (i = 0; i < sizeof(teardown) / sizeof(teardown[0]); i++)
		while ((node = next_on(teardown[i], context, node))) {
			node->lost = true;
			fake_died(node->kind);
		}
}

void fake_verbs_reset(void)
{
	fake_work_reset();
	fake_data_reset();
	fake_nodes_free(NULL);
	fake_mem_reset();
	fake_qp_reset();
	fake_srq_reset();
}
