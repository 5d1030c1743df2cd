#include "schedule/cover.h"

#include <stdio.h>
#include <string.h>

#include "schedule/impossible.h"

enum { MAX_STATES = 8, MAX_MARKS = 32 };

struct names {
	const char *kind;
	const char *states[MAX_STATES];
	const char *marks[MAX_MARKS];
};

/* Calls are in small letters, what comes is in capitals. */
static const struct names names[KINDS] = {
	[BASE] = {
		"base",
		{ "open", "leaving", "closing" },
		{
			[BASE_NEW_OBJECT] = "new object",
			[BASE_RUN_IN_LOOP] = "run in loop",
			[BASE_GET] = "get",
			[BASE_HAND_IN] = "hand in",
			[BASE_SHUTDOWN] = "shutdown",
			[BASE_CLOSE] = "close",
			[BASE_RAN_IN_LOOP] = "RAN IN LOOP",
			[BASE_DEVICE_EVENT] = "DEVICE EVENT",
			[BASE_CLOSED] = "CLOSED",
		},
	},
	[POOL] = {
		"pool",
		{ "there" },
		{
			[POOL_GET] = "get",
			[POOL_TRIM] = "trim",
			[POOL_FREE] = "free",
			[POOL_STARVED] = "STARVED",
		},
	},
	[SRQ] = {
		"SRQ",
		{ "there" },
		{
			[SRQ_SET_LIMIT] = "set limit",
			[SRQ_FREE] = "free",
			[SRQ_LIMIT] = "LIMIT",
		},
	},
	[FOREIGN] = {
		"foreign id",
		{ "there" },
		{
			[FOREIGN_RESOLVE] = "resolve",
			[FOREIGN_LISTEN] = "listen",
			[FOREIGN_ADOPT] = "adopt",
			[FOREIGN_DESTROY] = "destroy",
			[FOREIGN_EVENT] = "EVENT",
			[FOREIGN_PULLED] = "PULLED",
		},
	},
	[LISTENER] = {
		"listener",
		{ "enabled", "disabled", "ended", "closing" },
		{
			[LISTENER_ENABLE] = "enable",
			[LISTENER_DISABLE] = "disable",
			[LISTENER_GET] = "get",
			[LISTENER_CLOSE] = "close",
			[LISTENER_REQUEST] = "REQUEST",
			[LISTENER_LIMITED] = "LIMITED",
			[LISTENER_ERROR] = "ERROR",
			[LISTENER_CLOSED] = "CLOSED",
			[LISTENER_LISTENING] = "LISTENING",
			[LISTENER_PULLED] = "PULLED",
		},
	},
	[REQUEST] = {
		"request",
		{ "offered", "kept", "moving", "moved" },
		{
			[REQUEST_ACCEPT] = "accept",
			[REQUEST_ACCEPT_DGRAM] = "accept dgram",
			[REQUEST_REJECT] = "reject",
			[REQUEST_MOVE] = "move",
			[REQUEST_GET] = "get",
			[REQUEST_ARRIVED] = "ARRIVED",
			[REQUEST_PULLED] = "PULLED",
			[REQUEST_BASE_CLOSED] = "BASE CLOSED",
		},
	},
	[CONN] = {
		"conn",
		{ "new", "connecting", "accepting", "up", "leaving", "ended", "closing" },
		{
			[CONN_CONNECT] = "connect",
			[CONN_CONNECT_HOSTNAME] = "connect hostname",
			[CONN_CONNECT_ADDRINFO] = "connect addrinfo",
			[CONN_ACCEPT] = "accept",
			[CONN_RECV] = "recv",
			[CONN_ENABLE] = "enable",
			[CONN_DISABLE] = "disable",
			[CONN_SEND] = "send",
			[CONN_SUBMIT] = "submit",
			[CONN_EXPOSE] = "expose",
			[CONN_GET] = "get",
			[CONN_DISCONNECT] = "disconnect",
			[CONN_MIGRATE] = "migrate",
			[CONN_CLOSE] = "close",
			[CONN_CONNECTED] = "CONNECTED",
			[CONN_RECEIVED] = "RECEIVED",
			[CONN_RECV_FAILED] = "RECV FAILED",
			[CONN_SENT] = "SENT",
			[CONN_SEND_FAILED] = "SEND FAILED",
			[CONN_WRITABLE] = "WRITABLE",
			[CONN_DISCONNECTED] = "DISCONNECTED",
			[CONN_ERROR] = "ERROR",
			[CONN_CLOSED] = "CLOSED",
			[CONN_ADDR_CHANGED] = "ADDR CHANGED",
			[CONN_PULLED] = "PULLED",
		},
	},
	[DGRAM] = {
		"dgram",
		{ "new", "opening", "ready", "ended", "closing" },
		{
			[DGRAM_OPEN] = "open",
			[DGRAM_JOIN] = "join",
			[DGRAM_FIND] = "find",
			[DGRAM_SEND] = "send",
			[DGRAM_SEND_TO] = "send to",
			[DGRAM_REPLY] = "reply",
			[DGRAM_ACCEPT] = "accept",
			[DGRAM_GET] = "get",
			[DGRAM_CLOSE] = "close",
			[DGRAM_IS_READY] = "READY",
			[DGRAM_RECEIVED] = "RECEIVED",
			[DGRAM_SENT] = "SENT",
			[DGRAM_SEND_FAILED] = "SEND FAILED",
			[DGRAM_WRITABLE] = "WRITABLE",
			[DGRAM_ERROR] = "ERROR",
			[DGRAM_CLOSED] = "CLOSED",
			[DGRAM_PULLED] = "PULLED",
		},
	},
	[GROUP] = {
		"group",
		{ "joining", "member", "ended", "closing" },
		{
			[GROUP_SEND] = "send",
			[GROUP_GET] = "get",
			[GROUP_CLOSE] = "close",
			[GROUP_JOINED] = "JOINED",
			[GROUP_ERROR] = "ERROR",
			[GROUP_CLOSED] = "CLOSED",
			[GROUP_PULLED] = "PULLED",
		},
	},
	[PEER] = {
		"peer",
		{ "finding", "ready", "ended", "closing" },
		{
			[PEER_SEND] = "send",
			[PEER_GET] = "get",
			[PEER_CLOSE] = "close",
			[PEER_IS_READY] = "READY",
			[PEER_ERROR] = "ERROR",
			[PEER_CLOSED] = "CLOSED",
			[PEER_PULLED] = "PULLED",
		},
	},
	[ID] = {
		"id",
		{ "open", "busy", "closing" },
		{
			[ID_BIND] = "bind",
			[ID_LISTEN] = "listen",
			[ID_RESOLVE_ADDR] = "resolve addr",
			[ID_RESOLVE_ROUTE] = "resolve route",
			[ID_CONNECT] = "connect",
			[ID_ACCEPT] = "accept",
			[ID_REJECT] = "reject",
			[ID_JOIN] = "join",
			[ID_LEAVE] = "leave",
			[ID_DISCONNECT] = "disconnect",
			[ID_MIGRATE] = "migrate",
			[ID_ADOPT_AGAIN] = "adopt again",
			[ID_CLOSE] = "close",
			[ID_DONE] = "DONE",
			[ID_FAILED] = "FAILED",
			[ID_EVENT] = "EVENT",
			[ID_CLOSED] = "CLOSED",
			[ID_PULLED] = "PULLED",
		},
	},
};

static unsigned counts[KINDS][MAX_STATES][MAX_MARKS];

void cover(enum kind kind, unsigned state, unsigned mark)
{
	counts[kind][state][mark]++;
}

const char *cover_kind_name(enum kind kind)
{
	return names[kind].kind;
}

const char *cover_state_name(enum kind kind, unsigned state)
{
	return names[kind].states[state];
}

const char *cover_mark_name(enum kind kind, unsigned mark)
{
	return names[kind].marks[mark];
}

/* --- the table ------------------------------------------------------------------------------- */

static const char *reason(enum kind kind, unsigned state, unsigned mark)
{
	const struct impossible *i;

	for (i = impossible; i->reason; i++)
		if (i->kind == kind && i->mark == mark && i->states & 1u << state)
			return i->reason;
	return NULL;
}

static void print_cell(enum kind kind, unsigned state, unsigned mark)
{
	unsigned count = counts[kind][state][mark];

	if (!count && reason(kind, state, mark))
		printf("%12s", "-");
	else
		printf("%12u", count);
}

static void print_kind(enum kind kind)
{
	const struct names *n = &names[kind];
	unsigned state, mark;

	printf("#\n# %-18s", n->kind);
	for (state = 0; state < MAX_STATES && n->states[state]; state++)
		printf("%12s", n->states[state]);
	putchar('\n');
	for (mark = 0; mark < MAX_MARKS && n->marks[mark]; mark++) {
		printf("# %-18s", n->marks[mark]);
		for (state = 0; state < MAX_STATES && n->states[state]; state++)
			print_cell(kind, state, mark);
		putchar('\n');
	}
}

static unsigned check_pair(enum kind kind, unsigned state, unsigned mark)
{
	const char *why = reason(kind, state, mark);
	bool reached = counts[kind][state][mark];

	if (reached == !why)
		return 0;
	if (reached)
		printf("# wrong: %s in %s: %s was reached, but: %s\n", names[kind].kind,
			names[kind].states[state], names[kind].marks[mark], why);
	else
		printf("# wrong: %s in %s: %s was not reached\n", names[kind].kind,
			names[kind].states[state], names[kind].marks[mark]);
	return 1;
}

static unsigned check_kind(enum kind kind)
{
	const struct names *n = &names[kind];
	unsigned state, mark, wrong = 0;

	for (state = 0; state < MAX_STATES && n->states[state]; state++)
		for (mark = 0; mark < MAX_MARKS && n->marks[mark]; mark++)
			wrong += check_pair(kind, state, mark);
	return wrong;
}

unsigned cover_report(void)
{
	unsigned kind, wrong = 0;

	printf("# How often each call was made and each event came (in capitals), by the state of\n"
	       "# its object; - where that is impossible.\n");
	for (kind = 0; kind < KINDS; kind++)
		print_kind((enum kind)kind);
	for (kind = 0; kind < KINDS; kind++)
		wrong += check_kind((enum kind)kind);
	return wrong;
}
