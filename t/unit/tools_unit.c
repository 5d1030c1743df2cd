#include "unit/tools_unit.h"

#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TURNS_MAX = 5000, TURN_NS = 1000000 };

struct end {
	int (*finish)(void *tool);
	void *tool;
};

void tools_args_set(struct tools_args *args, const char *text)
{
	char *rest = args->text;
	char *word;

	snprintf(args->text, sizeof(args->text), "%s", text);
	args->argc = 0;
	while ((word = strsep(&rest, " ")) && args->argc < TOOLS_ARGS_MAX - 1)
		args->argv[args->argc++] = word;
	args->argv[args->argc] = NULL;
	optind = 0;
}

bool tools_wait_live(enum fake_object object, unsigned n)
{
	const struct timespec turn = { .tv_nsec = TURN_NS };

	for (int i = 0; i < TURNS_MAX; i++) {
		if (fake_live(object) >= n)
			return true;
		nanosleep(&turn, NULL);
	}
	return false;
}

static void *run(void *arg)
{
	struct end *end = arg;
	int status = end->finish(end->tool);

	free(end);
	return (void *)(intptr_t)status;
}

void tools_thread_start(pthread_t *thread, int (*finish)(void *tool), void *tool)
{
	struct end *end = malloc(sizeof(*end));

	ck_assert_ptr_nonnull(end);
	*end = (struct end){ .finish = finish, .tool = tool };
	ck_assert_int_eq(pthread_create(thread, NULL, run, end), 0);
}

int tools_thread_join(pthread_t thread)
{
	void *status;

	ck_assert_int_eq(pthread_join(thread, &status), 0);
	return (int)(intptr_t)status;
}
