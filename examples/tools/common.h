/* What the tools share: one loop with bases on it, errors told in one line. */
#ifndef TOOLS_COMMON_H
#define TOOLS_COMMON_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <evrdma/evrdma.h>

struct event;
struct event_base;
struct evdns_base;
struct address_lookup;

#define TOOL_BASES_MAX 2

/* A signal came: say with tool_fail() what is missing. */
typedef void (*tool_interrupted_cb)(void *arg);

struct tool {
	const char *name; /* what messages on stderr begin with */
	struct event_base *event_base;
	struct evdns_base *evdns;      /* made when the first name is looked up */
	struct address_lookup *lookup; /* the one under way */
	struct evrdma_base *bases[TOOL_BASES_MAX];
	int n_bases;
	int pending; /* bases and look-ups that are not over */
	int stopping;
	int status; /* what main() returns */
	struct event *signals[2];
	tool_interrupted_cb interrupted_cb;
	void *arg;
};

/* What to do about an error; the first entry that fits is told. The table ends with a NULL text. */
struct tool_advice {
	enum evrdma_step step; /* EVRDMA_STEP_NONE fits every step */
	int err;	       /* 0 fits every error */
	const char *text;
};

/* Returns 0, or -1 after saying why. tool_fini() is due either way. */
int tool_init(struct tool *tool, const char *name, tool_interrupted_cb cb, void *arg);
void tool_fini(struct tool *tool);

/* Adds a base, which tool_stop() will close. Returns NULL after a tool_fail(). */
struct evrdma_base *tool_add_base(struct tool *tool, const struct evrdma_base_options *options);

/* Runs the loop until everything is closed, and ends the output. Returns the status. */
int tool_run(struct tool *tool);

/* The status; after a run that went well that of a failure, and says so, if not all was printed. */
int tool_end_output(const char *name, int status);

/* Closes everything; the loop ends after the last closed event. A second call changes nothing. */
void tool_stop(struct tool *tool);

/* Counts something that the loop must outlive, or is over. */
void tool_hold(struct tool *tool);
void tool_release(struct tool *tool);

/* Makes the status 1, says why on stderr in one line, and stops. Only the first failure is told. */
void tool_fail(struct tool *tool, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same about an error of the library's: what was tried, the error, what to do about it. */
void tool_fail_error(struct tool *tool, const char *what, const struct evrdma_error *error,
	const struct tool_advice *advice);

/* The same for a tool that goes on: nothing is stopped, and every one is told. */
void tool_tell_error(struct tool *tool, const char *what, const struct evrdma_error *error,
	const struct tool_advice *advice);

#define TOOL_ERROR_TEXT_MAX (EVRDMA_ERROR_TEXT_MAX + 256)

/* Its text, without what; text has TOOL_ERROR_TEXT_MAX bytes, and is returned. */
const char *tool_error_text(
	char *text, const struct evrdma_error *error, const struct tool_advice *advice);

/* tool_fail_error() about a call that returned err, a positive errno. */
void tool_fail_call(struct tool *tool, const char *what, enum evrdma_step step, int err,
	const struct tool_advice *advice);

/* Of a clock that never goes back. */
uint64_t tool_now_ns(void);

/* Prints "name: " and a message to stderr, with a newline. Returns -1. */
int tool_complain(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
