/* The client of cmtime: all connections take one step, then all take the next. */
#include "cmtime.h"

#include <stdio.h>

static void begin_step(struct cmtime *test);

static void finish(struct cmtime *test)
{
	cmtime_print(test);
	tool_stop(&test->tool);
}

int cmtime_has_step(const struct cmtime *test, enum cmtime_step step)
{
	return test->steps[step] && (step != CMTIME_BIND_ADDR || ends_local(&test->ends));
}

/* --- a loop --------------------------------------------------------------------------------- */

int cmtime_loop_is_stopping(const struct cmtime_loop *loop)
{
	return loop == loop->test->loops ? loop->test->tool.stopping : loop->stopping;
}

void cmtime_step_done(struct cmtime_node *node)
{
	struct cmtime_loop *loop = node->loop;

	node->spans[loop->step].end_us = cmtime_now_us();
	if (++loop->done == loop->n && !cmtime_loop_is_stopping(loop))
		cmtime_loop_over(loop);
}

/* The last one may be through inside of its call, and then the step is another one after it. */
void cmtime_loop_begin(struct cmtime_loop *loop)
{
	enum cmtime_step step = loop->test->step;

	loop->step = step;
	loop->done = 0;
	for (long i = 0; i < loop->n && !cmtime_loop_is_stopping(loop); i++) {
		loop->nodes[i].spans[step].begin_us = cmtime_now_us();
		loop->test->steps[step](&loop->nodes[i]);
	}
	if (!loop->n)
		cmtime_loop_over(loop);
}

/* --- all of them ---------------------------------------------------------------------------- */

/* The last one to be through takes all to the next step. */
void cmtime_loop_came(struct cmtime_loop *loop)
{
	struct cmtime *test = loop->test;

	loop->through = 1;
	if (++test->loops_done < test->options.threads)
		return;
	test->spans[test->step].end_us = cmtime_now_us();
	test->step++;
	begin_step(test);
}

/* As the stock tool has it on its standard output. */
static void say(enum cmtime_step step)
{
	static const char *const texts[CMTIME_STEPS] = {
		[CMTIME_CREATE_ID] = "creating id",
		[CMTIME_BIND_ADDR] = "binding source address",
		[CMTIME_RESOLVE_ADDR] = "resolving address",
		[CMTIME_RESOLVE_ROUTE] = "resolving route",
		[CMTIME_CREATE_QP] = "creating qp",
		[CMTIME_CONNECT] = "connecting",
		[CMTIME_DISCONNECT] = "disconnecting",
		[CMTIME_DESTROY] = "destroying id",
	};

	puts(texts[step]);
}

/* The others first, as the first loop may be through before it returns. */
static void begin_step(struct cmtime *test)
{
	while (test->step < CMTIME_STEPS && !cmtime_has_step(test, test->step))
		test->step++;
	if (test->step == CMTIME_STEPS) {
		finish(test);
		return;
	}
	say(test->step);
	test->loops_done = 0;
	for (long i = 0; i < test->options.threads; i++)
		test->loops[i].through = 0;
	test->spans[test->step].begin_us = cmtime_now_us();
	for (long i = 1; i < test->options.threads; i++)
		cmtime_ring(&test->loops[i].begin);
	cmtime_loop_begin(&test->loops[0]);
}

void cmtime_run(struct cmtime *test)
{
	struct cmtime_node *node;

	for (long i = 0; i < test->options.threads; i++) {
		for (long k = 0; k < test->loops[i].n; k++) {
			node = &test->loops[i].nodes[k];
			node->loop = &test->loops[i];
			node->fd = -1;
			node->retries = test->options.retries;
			node->qpn = test->next_qpn++ & 0xffffff;
		}
	}
	begin_step(test);
}
