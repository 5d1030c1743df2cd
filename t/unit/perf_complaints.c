/* What a server of evrdma-perf says of its clients: all is told, in few lines. */
#include "unit/unit.h"

#include <arpa/inet.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "perf_complaints.h"

enum { SAID_MAX = 1 << 16 };

static struct tool tool = { .name = "server" };
static struct perf_complaints complaints;
static struct sockaddr_in client;
static FILE *said;

static void start(void)
{
	complaints = (struct perf_complaints){ .tool = &tool };
	tool.event_base = event_base_new();
	client.sin_family = AF_INET;
	said = tmpfile();
	ck_assert_ptr_nonnull(said);
	dup2(fileno(said), STDERR_FILENO);
}

static void stop(void)
{
	perf_complaints_end(&complaints);
	event_base_free(tool.event_base);
	fclose(said);
}

static void complain_of(long number)
{
	perf_complain(&complaints, (struct sockaddr *)&client, "kind %ld", number);
}

static void pass_a_second(void)
{
	event_base_loop(tool.event_base, EVLOOP_ONCE);
}

/* All of it, and how many lines. */
static int lines(char *text)
{
	size_t len = (size_t)pread(fileno(said), text, SAID_MAX - 1, 0);
	int n = 0;

	text[len] = '\0';
	for (size_t i = 0; i < len; i++)
		n += text[i] == '\n';
	return n;
}

START_TEST(the_same_is_told_once_and_then_how_often)
{
	static char text[SAID_MAX];

	for (int i = 0; i < 1000; i++)
		complain_of(1);
	ck_assert_int_eq(lines(text), 1);
	pass_a_second();
	ck_assert_int_eq(lines(text), 2);
	ck_assert_ptr_nonnull(strstr(text, "999 more: kind 1"));
	complain_of(1);
	ck_assert_int_eq(lines(text), 3);
	ck_assert_int_eq(tool.status, EXIT_FAILURE);
}
END_TEST

START_TEST(ever_different_ones_are_few_lines_and_none_is_left_out)
{
	static char text[SAID_MAX];

	for (int i = 0; i < 1000; i++)
		complain_of(i);
	ck_assert_int_eq(lines(text), PERF_COMPLAINTS_AT_ONCE);
	pass_a_second();
	ck_assert_int_eq(lines(text), PERF_COMPLAINTS_AT_ONCE + 1);
	ck_assert_ptr_nonnull(strstr(text, "996 more of other kinds"));
}
END_TEST

START_TEST(what_is_left_is_told_at_the_end)
{
	static char text[SAID_MAX];

	for (int i = 0; i < 6; i++)
		complain_of(i % 5);
	perf_complaints_end(&complaints);
	ck_assert_int_eq(lines(text), 6);
	ck_assert_ptr_nonnull(strstr(text, "1 more: kind 0"));
	ck_assert_ptr_nonnull(strstr(text, "1 more of other kinds"));
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		the_same_is_told_once_and_then_how_often,
		ever_different_ones_are_few_lines_and_none_is_left_out,
		what_is_left_is_told_at_the_end,
	};

	return unit_main("perf_complaints", tests, sizeof(tests) / sizeof(tests[0]), start, stop);
}
