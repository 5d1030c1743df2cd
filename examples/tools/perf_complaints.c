#include "perf_complaints.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "address.h"

static void say_more(struct perf_complaints *complaints)
{
	for (int i = 0; i < PERF_COMPLAINTS_AT_ONCE; i++) {
		struct perf_complaint *said = &complaints->said[i];

		if (said->more)
			tool_complain(complaints->tool->name, "so it is with %ld more: %s",
				said->more, said->text);
		said->more = 0;
		said->text[0] = '\0';
	}
	if (complaints->others)
		tool_complain(complaints->tool->name, "and %ld more of other kinds",
			complaints->others);
	complaints->others = 0;
}

static void second_is_over(evutil_socket_t unused, short what, void *arg)
{
	say_more(arg);
}

/* Without a timer each is a line. */
static int begin_second(struct perf_complaints *complaints)
{
	const struct timeval second = { 1, 0 };

	if (!complaints->timer)
		complaints->timer =
			evtimer_new(complaints->tool->event_base, second_is_over, complaints);
	if (!complaints->timer)
		return -1;
	return evtimer_pending(complaints->timer, NULL) ? 0
							: evtimer_add(complaints->timer, &second);
}

/* Whether it is only counted in this second. */
static int is_counted(struct perf_complaints *complaints, const char *text)
{
	struct perf_complaint *said = complaints->said, *end = said + PERF_COMPLAINTS_AT_ONCE;

	if (begin_second(complaints))
		return 0;
	while (said < end && said->text[0] && strcmp(said->text, text))
		said++;
	if (said == end) {
		complaints->others++;
		return 1;
	}
	if (said->text[0]) {
		said->more++;
		return 1;
	}
	strcpy(said->text, text);
	return 0;
}

void perf_complain(
	struct perf_complaints *complaints, const struct sockaddr *addr, const char *format, ...)
{
	char text[TOOL_ERROR_TEXT_MAX], name[ADDRESS_TEXT_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	complaints->tool->status = EXIT_FAILURE;
	if (!is_counted(complaints, text))
		tool_complain(
			complaints->tool->name, "client %s: %s", address_text(name, addr), text);
}

void perf_complaints_end(struct perf_complaints *complaints)
{
	say_more(complaints);
	if (complaints->timer)
		event_free(complaints->timer);
	complaints->timer = NULL;
}
