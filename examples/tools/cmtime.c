/* cmtime: how long each step of many connections takes, all of them at once. */
#include "cmtime.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const step_texts[CMTIME_STEPS] = {
	[CMTIME_CREATE_ID] = "create id",
	[CMTIME_BIND_ADDR] = "bind addr",
	[CMTIME_RESOLVE_ADDR] = "resolve addr",
	[CMTIME_RESOLVE_ROUTE] = "resolve route",
	[CMTIME_CREATE_QP] = "create qp",
	[CMTIME_CONNECT] = "connect",
	[CMTIME_DISCONNECT] = "disconnect",
	[CMTIME_DESTROY] = "destroy",
};

const char *cmtime_step_text(enum cmtime_step step)
{
	return step_texts[step];
}

double cmtime_now_us(void)
{
	return (double)tool_now_ns() / 1e3;
}

static double length(const struct cmtime_span *span)
{
	return span->end_us - span->begin_us;
}

static void print_step(const struct cmtime *test, enum cmtime_step step)
{
	double total = length(&test->spans[step]);
	double min = length(&test->nodes[0].spans[step]), max = min, one;

	for (long i = 1; i < test->options.connections; i++) {
		one = length(&test->nodes[i].spans[step]);
		min = one < min ? one : min;
		max = one > max ? one : max;
	}
	printf("%-13s: %11.2f%11.2f%11.2f%11.2f\n", step_texts[step], total / 1e3, max / 1e3, min,
		total / (double)test->options.connections);
}

void cmtime_print(const struct cmtime *test)
{
	puts("step              total ms     max ms     min us  us / conn");
	for (int step = 0; step < CMTIME_STEPS; step++)
		if (cmtime_has_step(test, (enum cmtime_step)step))
			print_step(test, (enum cmtime_step)step);
}

/* --- the program ---------------------------------------------------------------------------- */

/* Of loops on other threads it is known when they are through with the step. */
static long nodes_done(const struct cmtime *test)
{
	long done = test->loops[0].done;

	for (long i = 1; i < test->options.threads; i++)
		if (test->loops[i].through)
			done += test->loops[i].n;
	return done;
}

/* That is how a server ends. */
static void interrupted(void *arg)
{
	struct cmtime *test = arg;

	if (!test->options.server)
		tool_stop(&test->tool);
	else
		tool_fail(&test->tool, "interrupted: %ld of %ld connections were through with: %s",
			nodes_done(test), test->options.connections, step_texts[test->step]);
}

static void ends_found(void *arg)
{
	struct cmtime *test = arg;

	if (test->options.interface && cmtime_use_interface(test))
		return;
	if (cmtime_loops_start(test))
		return;
	if (test->options.server)
		cmtime_run(test);
	else if (test->options.tcp)
		cmtime_serve_tcp(test);
	else if (test->options.fake_us >= 0)
		cmtime_serve_fake(test);
	else
		cmtime_serve(test);
}

static int make_memory(struct cmtime *test)
{
	test->nodes = calloc((size_t)test->options.connections, sizeof(*test->nodes));
	test->loops = calloc((size_t)test->options.threads, sizeof(*test->loops));
	if (test->nodes && test->loops)
		return 0;
	tool_fail(&test->tool, "out of memory; make -c smaller");
	return -1;
}

static void find_ends(struct cmtime *test)
{
	const struct cmtime_options *options = &test->options;

	test->ends.tool = &test->tool;
	test->ends.server = options->server;
	test->ends.bind = options->bind;
	test->ends.port = options->port;
	test->ends.timeout_s = options->patience_s;
	test->ends.cb = ends_found;
	test->ends.arg = test;
	ends_find(&test->ends);
}

void cmtime_start(struct cmtime *test)
{
	pthread_mutex_init(&test->lock, NULL);
	if (tool_init(&test->tool, CMTIME, interrupted, test))
		return;
	test->steps = test->options.tcp ? cmtime_tcp_steps : cmtime_cm_steps;
	test->next_qpn = (uint32_t)test->options.first_qpn;
	if (!make_memory(test) && !cmtime_loops_make(test))
		find_ends(test);
}

int cmtime_finish(struct cmtime *test)
{
	tool_run(&test->tool);
	cmtime_loops_finish(test);
	tool_fini(&test->tool);
	free(test->nodes);
	free(test->loops);
	pthread_mutex_destroy(&test->lock);
	return test->tool.status;
}
