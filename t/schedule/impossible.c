#include "schedule/impossible.h"

#define IN(state) (1u << (state))
#define BUT(states) (~(states))

static const char closed_by_user[] = "an object is closed by its user, then it is told";
static const char told_before_close[] = "a user who has closed is told of nothing but the end";
static const char ends_once[] = "the end is told once";
static const char not_the_callers[] = "a request that moves is nobody's until it arrives";
static const char kernel_waits[] = "here the kernel does nothing while a callback runs";
static const char needs_connection[] = "only a connection that is up can have this";
static const char after_up[] = "work is taken only when the connection is up";
static const char needs_ready[] = "only an endpoint that is ready can have this";
static const char in_receive[] = "a reply is made when something is received";
static const char no_members[] = "groups and peers are made on an endpoint that is ready";

enum {
	CONN_BEFORE = IN(CONN_NEW) | IN(CONN_CONNECTING) | IN(CONN_ACCEPTING),
	CONN_TALKING = IN(CONN_UP) | IN(CONN_LEAVING),
	DGRAM_BEFORE = IN(DGRAM_NEW) | IN(DGRAM_OPENING),
	REQUEST_THEIRS = IN(REQUEST_MOVING),
};

const struct impossible impossible[] = {
	{ BASE, BASE_CLOSED, BUT(IN(BASE_CLOSING)), closed_by_user },
	{ BASE, BASE_DEVICE_EVENT, IN(BASE_CLOSING), told_before_close },

	{ LISTENER, LISTENER_REQUEST, BUT(IN(LISTENER_ENABLED)), "it was disabled, or is over" },
	{ LISTENER, LISTENER_LIMITED, IN(LISTENER_ENDED) | IN(LISTENER_CLOSING),
		"nobody is let in any more" },
	{ LISTENER, LISTENER_ERROR, IN(LISTENER_CLOSING), told_before_close },
	{ LISTENER, LISTENER_LISTENING, BUT(IN(LISTENER_ENDED)), "it comes back after its end" },
	{ LISTENER, LISTENER_CLOSED, BUT(IN(LISTENER_CLOSING)), closed_by_user },

	{ REQUEST, REQUEST_ACCEPT, REQUEST_THEIRS, not_the_callers },
	{ REQUEST, REQUEST_ACCEPT_DGRAM, REQUEST_THEIRS, not_the_callers },
	{ REQUEST, REQUEST_REJECT, REQUEST_THEIRS, not_the_callers },
	{ REQUEST, REQUEST_MOVE, REQUEST_THEIRS, not_the_callers },
	{ REQUEST, REQUEST_GET, REQUEST_THEIRS, not_the_callers },
	{ REQUEST, REQUEST_ARRIVED, BUT(REQUEST_THEIRS), "only what was sent arrives" },
	{ REQUEST, REQUEST_PULLED, IN(REQUEST_OFFERED), kernel_waits },

	{ CONN, CONN_CONNECTED, BUT(IN(CONN_CONNECTING) | IN(CONN_ACCEPTING)),
		"it is told once, after the call that asked" },
	{ CONN, CONN_RECEIVED, CONN_BEFORE, "CONNECTED comes before the first message" },
	{ CONN, CONN_RECV_FAILED, IN(CONN_NEW), "nothing is posted yet" },
	{ CONN, CONN_SENT, CONN_BEFORE, after_up },
	{ CONN, CONN_SEND_FAILED, CONN_BEFORE, after_up },
	{ CONN, CONN_WRITABLE, BUT(CONN_TALKING), needs_connection },
	{ CONN, CONN_DISCONNECTED, BUT(CONN_TALKING), needs_connection },
	{ CONN, CONN_ADDR_CHANGED, BUT(CONN_TALKING), needs_connection },
	{ CONN, CONN_ERROR, IN(CONN_NEW), "nothing was asked for" },
	{ CONN, CONN_ERROR, IN(CONN_ENDED), ends_once },
	{ CONN, CONN_ERROR, IN(CONN_CLOSING), told_before_close },
	{ CONN, CONN_CLOSED, BUT(IN(CONN_CLOSING)), closed_by_user },

	{ DGRAM, DGRAM_SEND, DGRAM_BEFORE, no_members },
	{ DGRAM, DGRAM_SEND_TO, DGRAM_BEFORE, no_members },
	{ DGRAM, DGRAM_REPLY, DGRAM_BEFORE, in_receive },
	{ DGRAM, DGRAM_IS_READY, BUT(IN(DGRAM_OPENING)), "it is told once, after the open" },
	{ DGRAM, DGRAM_RECEIVED, DGRAM_BEFORE, needs_ready },
	{ DGRAM, DGRAM_SENT, DGRAM_BEFORE, needs_ready },
	{ DGRAM, DGRAM_SEND_FAILED, DGRAM_BEFORE, needs_ready },
	{ DGRAM, DGRAM_WRITABLE, BUT(IN(DGRAM_READY)), needs_ready },
	{ DGRAM, DGRAM_ERROR, IN(DGRAM_NEW), "nothing was asked for" },
	{ DGRAM, DGRAM_ERROR, IN(DGRAM_ENDED), ends_once },
	{ DGRAM, DGRAM_ERROR, IN(DGRAM_CLOSING), told_before_close },
	{ DGRAM, DGRAM_CLOSED, BUT(IN(DGRAM_CLOSING)), closed_by_user },

	{ GROUP, GROUP_JOINED, BUT(IN(GROUP_JOINING)), "it is told once, after the join" },
	{ GROUP, GROUP_ERROR, IN(GROUP_ENDED), ends_once },
	{ GROUP, GROUP_ERROR, IN(GROUP_CLOSING), told_before_close },

	{ PEER, PEER_IS_READY, BUT(IN(PEER_FINDING)), "it is told once, when it was looked for" },
	{ PEER, PEER_ERROR, IN(PEER_ENDED), ends_once },
	{ PEER, PEER_ERROR, IN(PEER_CLOSING), told_before_close },

	{ ID, ID_ADOPT_AGAIN, IN(ID_CLOSING), "there is no id any more" },
	{ ID, ID_DONE, IN(ID_CLOSING), "what is under way is cancelled" },
	{ ID, ID_EVENT, IN(ID_CLOSING), told_before_close },
	{ ID, ID_CLOSED, BUT(IN(ID_CLOSING)), closed_by_user },
	{ 0 },
};
