#include "perf_complaints.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "address.h"

static void say_more(struct perf_complaints *complaints)
{
	if (complaints->more)
		tool_complain(complaints->tool->name, "so it is with %ld more: %s",
			complaints->more, complaints->text);
	complaints->more = 0;
	complaints->text[0] = '\0';
}

static void second_is_over(evutil_socket_t unused, short what, void *arg)
{
	say_more(arg);
}

/* Without a timer each is a line. */
static void begin_second(struct perf_complaints *complaints, const char *text)
{
	const struct timeval second = { 1, 0 };

	if (!complaints->timer)
		complaints->timer =
			evtimer_new(complaints->tool->event_base, second_is_over, complaints);
	if (complaints->timer && !event_add(complaints->timer, &second))
		strcpy(complaints->text, text);
}

void perf_complain(
	struct perf_complaints *complaints, const struct sockaddr *addr, const char *format, ...)
{
	char text[PERF_COMPLAINT_MAX], name[ADDRESS_TEXT_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	complaints->tool->status = EXIT_FAILURE;
	if (!strcmp(text, complaints->text)) {
		complaints->more++;
		return;
	}
	say_more(complaints);
	tool_complain(complaints->tool->name, "client %s: %s", address_text(name, addr), text);
	begin_second(complaints, text);
}

void perf_complaints_end(struct perf_complaints *complaints)
{
	say_more(complaints);
	if (complaints->timer)
		event_free(complaints->timer);
	complaints->timer = NULL;
}
