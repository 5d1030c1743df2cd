#include "common.h"
#include "address.h"
#include "capability.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/resource.h>

#include <event2/dns.h>
#include <event2/event.h>

/* What finding and opening a device takes, at the most. */
#define FILES_WANTED 8

enum { NS_PER_S = 1000000000 };

static const char *log_name;

static const char no_permission[] =
	"there is no permission on the devices in /dev/infiniband; ask for it, or be root";
static const char no_device[] = "add an RDMA device and load rdma_ucm (see rdma link)";
static const char more_files[] = "allow more open files (ulimit -n), or make fewer connections";
static const char more_memory[] =
	"allow more locked memory (ulimit -l), or ask for fewer or smaller messages";

static const struct tool_advice common_advice[] = {
	{ EVRDMA_STEP_NAME, 0,
		"give a name that /etc/hosts or the name servers of /etc/resolv.conf know, or an "
		"address" },
	{ EVRDMA_STEP_NONE, EMFILE, more_files },
	{ EVRDMA_STEP_NONE, ENFILE, "the system has too many open files" },
	{ EVRDMA_STEP_DEVICE, EPERM, more_memory },
	{ EVRDMA_STEP_NONE, EACCES, no_permission },
	{ EVRDMA_STEP_NONE, EPERM, no_permission },
	{ EVRDMA_STEP_NONE, ENOMEM, more_memory },
	{ EVRDMA_STEP_NONE, ETIMEDOUT,
		"see whether the other side is up and the network leads there, or wait longer "
		"(-T)" },
	{ EVRDMA_STEP_ADDR, EADDRNOTAVAIL, "give -b an address of this machine (see ip address)" },
	{ EVRDMA_STEP_LISTEN, EADDRNOTAVAIL,
		"give -b an address of this machine (see ip address)" },
	{ EVRDMA_STEP_ADDR, 0,
		"give addresses that an RDMA device has or leads to (see rdma link, ip address)" },
	{ EVRDMA_STEP_ROUTE, 0,
		"give addresses that an RDMA device has or leads to (see rdma link, ip address)" },
	{ EVRDMA_STEP_DEVICE, 0,
		"the device may not have that many resources: ask for fewer connections or "
		"messages" },
	{ EVRDMA_STEP_REMOVAL, 0, "start again when the device is back (see rdma link)" },
	{ EVRDMA_STEP_NONE, ENODEV, no_device },
	{ EVRDMA_STEP_NONE, ENOENT, no_device },
	{ EVRDMA_STEP_NONE, 0, NULL },
};

static int advice_fits(const struct tool_advice *advice, const struct evrdma_error *error)
{
	if (advice->step != EVRDMA_STEP_NONE && advice->step != error->step)
		return 0;
	return !advice->err || advice->err == error->err;
}

static const char *find_advice(const struct tool_advice *table, const struct evrdma_error *error)
{
	for (; table && table->text; table++)
		if (advice_fits(table, error))
			return table->text;
	return NULL;
}

uint64_t tool_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

int tool_complain(const char *name, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", name);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return -1;
}

void tool_fail(struct tool *tool, const char *format, ...)
{
	char text[512];
	va_list args;

	if (tool->stopping)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	tool_complain(tool->name, "%s", text);
	tool->status = EXIT_FAILURE;
	tool_stop(tool);
}

static int few_files_left(void)
{
	int files[FILES_WANTED];
	int n = 0;

	while (n < FILES_WANTED && (files[n] = dup(STDERR_FILENO)) >= 0)
		n++;
	for (int i = 0; i < n; i++)
		close(files[i]);
	return n < FILES_WANTED;
}

/* What keeps the libraries from seeing a device; to them it is not there. */
static const char *find_hindrance(const struct evrdma_error *error)
{
	if (error->err != ENODEV && error->err != ENOENT)
		return NULL;
	if (few_files_left())
		return more_files;
	return capability_denied() ? no_permission : NULL;
}

static const char *find_remedy(const struct evrdma_error *error, const struct tool_advice *advice)
{
	const char *remedy = find_hindrance(error);

	if (remedy)
		return remedy;
	remedy = find_advice(advice, error);
	return remedy ? remedy : find_advice(common_advice, error);
}

void tool_fail_error(struct tool *tool, const char *what, const struct evrdma_error *error,
	const struct tool_advice *advice)
{
	if (tool->stopping)
		return;
	tool_tell_error(tool, what, error, advice);
	tool_stop(tool);
}

const char *tool_error_text(
	char *text, const struct evrdma_error *error, const struct tool_advice *advice)
{
	char what[EVRDMA_ERROR_TEXT_MAX];
	const char *remedy = find_remedy(error, advice);

	snprintf(text, TOOL_ERROR_TEXT_MAX, "%s%s%s", evrdma_error_text(error, what, sizeof(what)),
		remedy ? "; " : "", remedy ? remedy : "");
	return text;
}

void tool_tell_error(struct tool *tool, const char *what, const struct evrdma_error *error,
	const struct tool_advice *advice)
{
	char text[TOOL_ERROR_TEXT_MAX];

	tool->status = EXIT_FAILURE;
	tool_complain(tool->name, "%s: %s", what, tool_error_text(text, error, advice));
}

void tool_fail_call(struct tool *tool, const char *what, enum evrdma_step step, int err,
	const struct tool_advice *advice)
{
	const struct evrdma_error error = { .err = err, .step = step, .cm_event = -1 };

	tool_fail_error(tool, what, &error, advice);
}

void tool_hold(struct tool *tool)
{
	tool->pending++;
}

void tool_release(struct tool *tool)
{
	tool->pending--;
	if (tool->stopping && !tool->pending && tool->event_base)
		event_base_loopbreak(tool->event_base);
}

static void base_closed(struct evrdma_base *base, void *arg)
{
	tool_release(arg);
}

/* A second signal ends the program at once. */
static void stop_signals(struct tool *tool)
{
	for (size_t i = 0; i < sizeof(tool->signals) / sizeof(tool->signals[0]); i++)
		if (tool->signals[i])
			event_del(tool->signals[i]);
}

void tool_stop(struct tool *tool)
{
	if (tool->stopping)
		return;
	tool_hold(tool);
	tool->stopping = 1;
	stop_signals(tool);
	if (tool->lookup)
		address_lookup_cancel(tool->lookup);
	for (int i = 0; i < tool->n_bases; i++)
		evrdma_base_close(tool->bases[i], base_closed, tool);
	tool_release(tool);
}

static void signal_came(evutil_socket_t number, short what, void *arg)
{
	struct tool *tool = arg;

	tool->interrupted_cb(tool->arg);
}

static int add_signal(struct tool *tool, struct event **event, int number)
{
	*event = evsignal_new(tool->event_base, number, signal_came, tool);
	return *event ? evsignal_add(*event, NULL) : -1;
}

/* libevent ends the program after an error; what else it has to say we say ourselves. */
static void log_came(int severity, const char *text)
{
	if (severity == EVENT_LOG_ERR)
		tool_complain(log_name, "event loop: %s; %s", text, more_files);
}

/* As many as this process may have, not as it begins with: each connection has its own. */
static void allow_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

int tool_init(struct tool *tool, const char *name, tool_interrupted_cb cb, void *arg)
{
	memset(tool, 0, sizeof(*tool));
	tool->name = name;
	tool->interrupted_cb = cb;
	tool->arg = arg;
	setvbuf(stdout, NULL, _IOLBF, 0);
	allow_files();
	log_name = name;
	event_set_log_callback(log_came);
	tool->event_base = event_base_new();
	if (!tool->event_base || add_signal(tool, &tool->signals[0], SIGINT) ||
		add_signal(tool, &tool->signals[1], SIGTERM))
		tool_fail(tool, "cannot make an event loop; %s", more_files);
	return tool->status ? -1 : 0;
}

void tool_fini(struct tool *tool)
{
	for (size_t i = 0; i < sizeof(tool->signals) / sizeof(tool->signals[0]); i++)
		if (tool->signals[i])
			event_free(tool->signals[i]);
	if (tool->evdns)
		evdns_base_free(tool->evdns, 0);
	if (tool->event_base)
		event_base_free(tool->event_base);
}

static void base_failed(struct tool *tool, int err)
{
	const struct evrdma_error error = { .err = err, .cm_event = -1 };
	const char *remedy = find_remedy(&error, NULL);

	tool_fail(tool, "RDMA: %s%s%s", strerror(err), remedy ? "; " : "", remedy ? remedy : "");
}

struct evrdma_base *tool_add_base(struct tool *tool, const struct evrdma_base_options *options)
{
	struct evrdma_base *base = evrdma_base_new(tool->event_base, options);

	if (!base) {
		base_failed(tool, errno);
		return NULL;
	}
	tool->bases[tool->n_bases++] = base;
	tool_hold(tool);
	return base;
}

/* Stopped before anything was held, there is nothing that would end the loop. */
int tool_run(struct tool *tool)
{
	if (!tool->stopping || tool->pending)
		event_base_dispatch(tool->event_base);
	tool->status = tool_end_output(tool->name, tool->status);
	return tool->status;
}

int tool_end_output(const char *name, int status)
{
	if (status || (!fflush(stdout) && !ferror(stdout)))
		return status;
	tool_complain(name, "standard output: not all that was to be printed could be written");
	return EXIT_FAILURE;
}
