/* Which calls were made, and which events came, in which state of which kind of object. */
#ifndef EVR_SCHEDULE_COVER_H
#define EVR_SCHEDULE_COVER_H

#include <stdbool.h>
#include <stdint.h>

/* A foreign id is one that was made with rdma_create_id(), and nobody has adopted. */
enum kind { BASE, POOL, SRQ, LISTENER, REQUEST, CONN, DGRAM, GROUP, PEER, ID, FOREIGN, KINDS };

/* What the user of an object can tell of its state. */
enum base_state { BASE_OPEN, BASE_LEAVING, BASE_CLOSING };
enum object_state { OBJECT_THERE }; /* pools, SRQs, foreign ids */
enum listener_state { LISTENER_ENABLED, LISTENER_DISABLED, LISTENER_ENDED, LISTENER_CLOSING };
enum request_state { REQUEST_OFFERED, REQUEST_KEPT, REQUEST_MOVING, REQUEST_MOVED };
enum conn_state {
	CONN_NEW,
	CONN_CONNECTING,
	CONN_ACCEPTING,
	CONN_UP,
	CONN_LEAVING, /* evrdma_conn_disconnect() was called */
	CONN_ENDED,
	CONN_CLOSING
};
enum dgram_state { DGRAM_NEW, DGRAM_OPENING, DGRAM_READY, DGRAM_ENDED, DGRAM_CLOSING };
enum group_state { GROUP_JOINING, GROUP_MEMBER, GROUP_ENDED, GROUP_CLOSING };
enum peer_state { PEER_FINDING, PEER_READY, PEER_ENDED, PEER_CLOSING };
enum id_state { ID_OPEN, ID_BUSY, ID_CLOSING };

/* Calls, then events, of each kind. */
enum base_mark {
	BASE_NEW_OBJECT,
	BASE_RUN_IN_LOOP,
	BASE_GET,
	BASE_HAND_IN,
	BASE_SHUTDOWN,
	BASE_CLOSE,
	BASE_RAN_IN_LOOP,
	BASE_DEVICE_EVENT,
	BASE_CLOSED,
	BASE_MARKS
};
enum pool_mark { POOL_GET, POOL_TRIM, POOL_FREE, POOL_STARVED, POOL_MARKS };
enum srq_mark { SRQ_SET_LIMIT, SRQ_FREE, SRQ_LIMIT, SRQ_MARKS };
enum foreign_mark {
	FOREIGN_RESOLVE,
	FOREIGN_LISTEN,
	FOREIGN_ADOPT,
	FOREIGN_DESTROY,
	FOREIGN_EVENT,
	FOREIGN_PULLED,
	FOREIGN_MARKS
};
enum listener_mark {
	LISTENER_ENABLE,
	LISTENER_DISABLE,
	LISTENER_GET,
	LISTENER_CLOSE,
	LISTENER_REQUEST,
	LISTENER_LIMITED,
	LISTENER_ERROR,
	LISTENER_CLOSED,
	LISTENER_LISTENING,
	LISTENER_PULLED,
	LISTENER_MARKS
};
enum request_mark {
	REQUEST_ACCEPT,
	REQUEST_ACCEPT_DGRAM,
	REQUEST_REJECT,
	REQUEST_MOVE,
	REQUEST_GET,
	REQUEST_ARRIVED,
	REQUEST_PULLED,
	REQUEST_BASE_CLOSED,
	REQUEST_MARKS
};
enum conn_mark {
	CONN_CONNECT,
	CONN_CONNECT_HOSTNAME,
	CONN_CONNECT_ADDRINFO,
	CONN_ACCEPT,
	CONN_RECV,
	CONN_ENABLE,
	CONN_DISABLE,
	CONN_SEND,
	CONN_SUBMIT,
	CONN_EXPOSE,
	CONN_GET,
	CONN_DISCONNECT,
	CONN_MIGRATE,
	CONN_CLOSE,
	CONN_CONNECTED,
	CONN_RECEIVED,
	CONN_RECV_FAILED,
	CONN_SENT,
	CONN_SEND_FAILED,
	CONN_WRITABLE,
	CONN_DISCONNECTED,
	CONN_ERROR,
	CONN_CLOSED,
	CONN_ADDR_CHANGED,
	CONN_PULLED,
	CONN_MARKS
};
enum dgram_mark {
	DGRAM_OPEN,
	DGRAM_JOIN,
	DGRAM_FIND,
	DGRAM_SEND,
	DGRAM_SEND_TO,
	DGRAM_REPLY,
	DGRAM_ACCEPT,
	DGRAM_GET,
	DGRAM_CLOSE,
	DGRAM_IS_READY,
	DGRAM_RECEIVED,
	DGRAM_SENT,
	DGRAM_SEND_FAILED,
	DGRAM_WRITABLE,
	DGRAM_ERROR,
	DGRAM_CLOSED,
	DGRAM_PULLED,
	DGRAM_MARKS
};
enum group_mark {
	GROUP_SEND,
	GROUP_GET,
	GROUP_CLOSE,
	GROUP_JOINED,
	GROUP_ERROR,
	GROUP_CLOSED,
	GROUP_PULLED,
	GROUP_MARKS
};
enum peer_mark {
	PEER_SEND,
	PEER_GET,
	PEER_CLOSE,
	PEER_IS_READY,
	PEER_ERROR,
	PEER_CLOSED,
	PEER_PULLED,
	PEER_MARKS
};
enum id_mark {
	ID_BIND,
	ID_LISTEN,
	ID_RESOLVE_ADDR,
	ID_RESOLVE_ROUTE,
	ID_CONNECT,
	ID_ACCEPT,
	ID_REJECT,
	ID_JOIN,
	ID_LEAVE,
	ID_DISCONNECT,
	ID_MIGRATE,
	ID_ADOPT_AGAIN,
	ID_CLOSE,
	ID_DONE,
	ID_FAILED,
	ID_EVENT,
	ID_CLOSED,
	ID_PULLED,
	ID_MARKS
};

void cover(enum kind kind, unsigned state, unsigned mark);

const char *cover_kind_name(enum kind kind);
const char *cover_state_name(enum kind kind, unsigned state);
const char *cover_mark_name(enum kind kind, unsigned mark);

/*
 * Prints the table as comments of TAP. Returns how many pairs are wrong, and names them: not
 * reached and not listed as impossible, or listed and reached.
 */
unsigned cover_report(void);

#endif
