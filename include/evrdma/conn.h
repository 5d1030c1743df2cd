/*
 * evrdma_conn: a reliable connection, as a bufferevent is for TCP.
 *
 * Messages keep their borders: each send arrives in one receive buffer of the peer's.
 */
#ifndef EVRDMA_CONN_H
#define EVRDMA_CONN_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <evrdma/buf.h>
#include <evrdma/error.h>
#include <evrdma/work.h>

#ifdef __cplusplus
extern "C" {
#endif

struct evdns_base;
struct ibv_wc;
struct rdma_addrinfo;
struct rdma_cm_id;
struct evrdma_base;
struct evrdma_conn;
struct evrdma_domain;
struct evrdma_request;
struct evrdma_srq;

/*
 * How a connection is made. Fill it with evrdma_conn_options_init(), then change what is to differ:
 * what that has not filled is refused. The structure grows at its end only.
 */
struct evrdma_conn_options {
	size_t size;                   /* set by evrdma_conn_options_init() */
	int connect_timeout_ms;        /* 10000: from the call to ESTABLISHED, names and all; at
	                                  least 1 */
	int drain_timeout_ms;          /* 1000: how long a disconnect may take, and how long to wait
	                                  at the end for flushed work; at least 1. A base that is
	                                  closed waits this long too, for peers that do not
	                                  answer */
	int keepalive_ms;              /* 0: off. Otherwise a peer that was not heard of for so
	                                  long is asked; when it does not answer for as long again,
	                                  the connection ends with ETIMEDOUT. The question is one of
	                                  the send_depth that may be under way, and a completion to
	                                  spin_us. As exact as the timers of the loop, a few
	                                  milliseconds */
	int idle_timeout_ms;           /* 0: off. Otherwise, when for so long no message came, and
	                                  no send, RDMA or atomic of this side was over, the
	                                  connection ends with ETIMEDOUT. RDMA of the peer is not
	                                  seen and does not count, nor does keepalive_ms */
	uint32_t send_depth;           /* 64: sends under way at once */
	uint32_t send_queue;           /* 0: how many more sends wait, in order, for their turn */
	uint32_t send_segs;            /* 1: segments in one send, no more than the device can */
	uint32_t inline_bytes;         /* 0: inline data of one send, limited by the device */
	uint32_t recv_depth;           /* 64: receive buffers posted at once */
	uint32_t low_water;            /* 0: WRITABLE comes when this many sends are free again;
	                                  at most send_depth and send_queue; 0 is a quarter of
	                                  send_depth */
	struct evrdma_pool *recv_pool; /* NULL: nothing can be received but into what the caller
	                                  posts with evrdma_conn_recv(). Otherwise recv_depth
	                                  buffers of this pool are kept posted */
	struct evrdma_srq *srq;        /* NULL; otherwise in place of recv_depth, which is not used
	                                  then, and recv_pool, which is NULL then: the buffers are
	                                  shared with others */
	struct evrdma_domain *domain;  /* NULL: the one that all without a domain share; of the
	                                  base, or of evrdma_domain_new_shared() */
	int port_space;                /* RDMA_PS_TCP (0x0106), or RDMA_PS_IB (0x013f) */
	int tos;                       /* -1: not set; 0 to 255: type of service */
	int ack_timeout;               /* -1: not set; 0 to 31: 4.096 us * 2^n for the peer's
	                                  acknowledgement */
	uint8_t retry_count;           /* 6: how often either side sends again what is not
	                                  acknowledged (0 to 7; on rxe 7 is for ever). That of
	                                  the side that connects counts; with an accept it is
	                                  not used */
	uint8_t rnr_retry_count;       /* 7: how often the peer sends again what finds no buffer
	                                  posted here (0 to 7, 7 is for ever); for what is sent
	                                  from here the peer's counts. iWARP never does */
	uint8_t responder_resources;   /* 1: RDMA reads and atomics of the peer's under way at once;
	                                  0: it may make none */
	uint8_t initiator_depth;       /* 1: RDMA reads and atomics of ours under way at once;
	                                  0: none is taken */
	const struct sockaddr *src;    /* NULL: any; the address to connect from, where the call
	                                  has none. Of the addresses of a name, those of its family
	                                  are tried */
	const char *device;            /* NULL: any; the RDMA device to connect from, by name */
	int port_num;                  /* 0: any; the port of that device, 1 to 255 */
	int gid_index;                 /* -1: any; the entry of the port's GID table whose address
	                                  is connected from */
	const void *private_data;      /* NULL: what travels with the connect or the accept; read
	                                  when evrdma_conn_new() is called */
	size_t private_data_len;       /* 0: at most 56 bytes with a connect over IPv4 and IPv6, 196
	                                  with an accept, or it ends with EINVAL (iWARP takes 255);
	                                  the peer sees it padded with zeroes. More than 255 are
	                                  refused at once */
	int min_rnr_timer_us;          /* 640: how long the peer waits before each time that
	                                  rnr_retry_count counts, 1 to 655360, rounded up to one of
	                                  the 32 times that there are: 10, 20, 30, 40, 60, 80, 120
	                                  and so on. -1: as the CM sets it, 655360. 640 is the next
	                                  above turn_budget_us of a base, in which a loop that is
	                                  busy posts buffers again: sooner the peer would send in
	                                  vain, later it would idle. Not on iWARP */
	int attempt_timeout_ms;        /* 1000: how long one address may take while others are left
	                                  to try; twice as long when its turn comes again. 0: until
	                                  it fails */
};

void evrdma_conn_options_init_sized(struct evrdma_conn_options *options, size_t size);

/* Fills the options with their defaults. Any thread. Since 0.1. */
#define evrdma_conn_options_init(options)                                                          \
	evrdma_conn_options_init_sized((options), sizeof(*(options)))

/* What happened to a connection. */
enum evrdma_conn_event {
	/* Established: it can send. It comes before the first receive, and once. */
	EVRDMA_CONN_CONNECTED,
	/* The peer, or evrdma_conn_disconnect(), ended it. No send is taken any more. */
	EVRDMA_CONN_DISCONNECTED,
	/* It could not be made, or broke; the error says why. No send is taken any more. */
	EVRDMA_CONN_ERROR,
	/* After a send gave -EAGAIN: low_water sends are free again. */
	EVRDMA_CONN_WRITABLE,
	/* The last callback, after evrdma_conn_close(): the connection is freed when it returns. */
	EVRDMA_CONN_CLOSED,
	/* While it is established: the hardware address under it is another one, as when a bond
	   fails over. What the peer sends may not arrive any more; to be sure, connect again. */
	EVRDMA_CONN_ADDR_CHANGED
};

/*
 * error is NULL but for EVRDMA_CONN_ERROR, and lives until the callback returns. Either
 * DISCONNECTED or ERROR comes, once; by then the library is releasing what the kernel holds for the
 * connection, whatever the callback does. Close it, in the callback or later.
 */
typedef void (*evrdma_conn_event_cb)(struct evrdma_conn *conn, enum evrdma_conn_event event,
	const struct evrdma_error *error, void *arg);

/* A receive that is complete, or will never be. */
struct evrdma_recv {
	struct evrdma_buf *buf; /* the buffer; evrdma_buf_ref() keeps it past the callback */
	void *data;             /* where the message is in it */
	size_t len;             /* bytes of message */
	int err;                /* 0, or why it failed: ECANCELED (the connection ended first),
	                           EMSGSIZE (the message is larger than the buffer), EIO (rxe: that,
	                           too, as IBV_WC_LOC_QP_OP_ERR; or its length cannot be, which ends
	                           a connection of a pool or srq with EIO); ENOMEM, EDQUOT and what
	                           verbs report: it could not be registered */
	int wc_status;          /* enum ibv_wc_status */
	int has_imm;            /* imm was sent along */
	uint32_t imm;           /* in host order */
	uint32_t src_qp;        /* datagrams: the sender's QP number */
	const void *grh;        /* datagrams: the 40 bytes of struct ibv_grh, or NULL */
	size_t written;         /* no message, but so many bytes that the peer has written, with
	                           imm, to memory that was exposed to it */
	const struct ibv_wc *wc; /* all that verbs say of it, or NULL */
};

/*
 * A message came. The library takes its reference back when the callback returns, and posts the
 * buffer again when it came from recv_pool; while a buffer is held another one of the pool takes
 * its place. That is done before what the callback sends leaves, and before more than a quarter of
 * the queue is told: a peer that finds no buffer waits for min_rnr_timer_us at least. Failed
 * receives are reported only for buffers given with evrdma_conn_recv().
 */
typedef void (*evrdma_conn_recv_cb)(
	struct evrdma_conn *conn, const struct evrdma_recv *recv, void *arg);

/*
 * A send is over, exactly once for each that was taken. error is NULL when the peer has the message
 * (on iWARP: when it was handed to the transport), otherwise the message may have arrived or not:
 * ECANCELED means that the connection ended first. buf is still valid.
 */
typedef void (*evrdma_conn_send_cb)(struct evrdma_conn *conn, struct evrdma_buf *buf,
	const struct evrdma_error *error, void *arg);

/*
 * Makes a connection object; options may be NULL for the defaults and is not kept. Nothing is asked
 * of the kernel yet. Returns NULL and sets errno: EINVAL (a value is out of range, the options were
 * never initialised, or the pool, the queue or the domain is another base's), ENOMEM, EPIPE (the
 * base is being closed). Since 0.1.
 */
struct evrdma_conn *evrdma_conn_new(
	struct evrdma_base *base, const struct evrdma_conn_options *options);

/* Sets the callbacks; each may be NULL. One arg serves them all. Since 0.1. */
void evrdma_conn_setcb(struct evrdma_conn *conn, evrdma_conn_recv_cb recv_cb,
	evrdma_conn_event_cb event_cb, void *arg);

/*
 * Connects to dst, from src when that is not NULL. Both are copied. Ends in CONNECTED or in ERROR,
 * within connect_timeout_ms: ETIMEDOUT (no answer), ECONNREFUSED (rejected: nobody listens, or the
 * peer said no), ENETUNREACH/EHOSTUNREACH/ENODEV (no device leads there), and what verbs report.
 * Returns 0; -EALREADY or -EISCONN when it was used before; -EINVAL without dst; -EAFNOSUPPORT for
 * an address that is neither IPv4, IPv6 nor AF_IB; -EPIPE after close. Since 0.1.
 */
int evrdma_conn_connect(
	struct evrdma_conn *conn, const struct sockaddr *src, const struct sockaddr *dst);

/*
 * The same by name, through the caller's evdns_base. That must live until CONNECTED or ERROR; of a
 * connection that is closed before, by evrdma_conn_close() or with its base, until CLOSED, or until
 * the base is closed: evdns needs it to cancel what it asks. It may be freed in these callbacks.
 * family is AF_UNSPEC, AF_INET or AF_INET6; port is in host order. The addresses are tried in turn
 * until one connects, each for attempt_timeout_ms; the last one's error is reported. A name that is
 * an address asks nobody; one of another family is EVUTIL_EAI_ADDRFAMILY.
 * Returns as above, -EINVAL without evdns or host, and -ENOMEM. Since 0.1.
 */
int evrdma_conn_connect_hostname(struct evrdma_conn *conn, struct evdns_base *evdns, int family,
	const char *host, uint16_t port);

/*
 * The same for the results of rdma_getaddrinfo(), which are copied: each one's source, destination
 * and connection data, in turn. Results for datagrams are passed over.
 * Returns as evrdma_conn_connect() does, -EINVAL (no result that a connection can use) and -ENOMEM.
 * Since 0.1.
 */
int evrdma_conn_connect_addrinfo(struct evrdma_conn *conn, const struct rdma_addrinfo *addresses);

/*
 * Accepts a request. conn is new, and on the base that the request is on. The request is gone when
 * 0 is returned. Ends in CONNECTED or ERROR, as a connect does; ECONNRESET at EVRDMA_STEP_ACCEPT is
 * a peer that gave up while its request waited.
 * Returns 0, -EALREADY, -EISCONN, -EPIPE, -EINVAL (it is a request for datagrams), -EXDEV when the
 * request is on another base, or why it has ended (evrdma_listener_request_cb).
 * Since 0.1.
 */
int evrdma_conn_accept(struct evrdma_conn *conn, struct evrdma_request *request);

/*
 * Disables reading, as bufferevent_disable() does, and enables it again; it is enabled at first.
 * While it is disabled no message is told, and no buffer is posted in place of one that is filled,
 * nor one that is given with evrdma_conn_recv(). What was told before has its place in the queue
 * again, from a recv_pool. What the peer sends meanwhile fills the buffers that are posted,
 * recv_depth at most; then the peer waits, as its rnr_retry_count says. On iWARP
 * nobody can wait: the connection breaks. What came is kept, with its buffers, and told in order
 * from the loop when reading is enabled, before anything newer. With an srq each message keeps one
 * of its pool's buffers while others are posted for the rest: nothing stops that peer but the
 * pool's limit, which then holds up all on the queue.
 *
 * All else goes on: sends, WRITABLE, timeouts, CONNECTED, and the end, DISCONNECTED or ERROR, which
 * is told at once; what came before it waits, and can be enabled until the connection is closed.
 * Closing ends that: what was kept is told no more, but buffers that were given with
 * evrdma_conn_recv() come back with ECANCELED, before CLOSED.
 *
 * Both return 0, also when nothing changes, and -ENOTCONN after close; disable -ENOMEM too, and has
 * changed nothing then. Since 0.1.
 */
int evrdma_conn_enable(struct evrdma_conn *conn);
int evrdma_conn_disable(struct evrdma_conn *conn);

/*
 * Posts a buffer to receive into. Legal from the start; posted before the connection is there, it
 * is ready before the peer can send. Its result comes to recv_cb, exactly once; also when it cannot
 * be registered, which before the connection is there ends that.
 * Returns 0; -EAGAIN when recv_depth buffers are posted, or filled and not told yet; -EINVAL with a
 * recv_pool or srq, or without a buffer; -ENOTCONN when the connection has ended. Since 0.1.
 */
int evrdma_conn_recv(struct evrdma_conn *conn, struct evrdma_buf *buf);

/*
 * Sends the first len bytes of buf, which may be 0. cb may be NULL. Sends made in one turn of the
 * loop go to the device together, at its end, or earlier where a base that spins goes on in its
 * turn. On iWARP, whose accepting side must not speak first (RFC 5044), the first sends of an
 * accepted connection wait for the peer's first message, 100 ms at most.
 * Returns 0; -EAGAIN when send_depth sends are under way and send_queue wait (WRITABLE follows);
 * -ENOTCONN before CONNECTED and after the end; -EMSGSIZE when len is more than the buffer; -EINVAL
 * without one; -EXDEV for a buffer of evrdma_buf_new_shared() whose domain the connection is not
 * in; -ENOMEM and -EDQUOT as for any work. Since 0.1.
 */
int evrdma_conn_send(struct evrdma_conn *conn, struct evrdma_buf *buf, size_t len,
	evrdma_conn_send_cb cb, void *arg);

/*
 * Work is over, exactly once for each that was taken, in the order of the calls; a read or an
 * atomic when its data is there. error as for a send.
 */
typedef void (*evrdma_conn_work_cb)(
	struct evrdma_conn *conn, const struct evrdma_error *error, void *arg);

/*
 * Asks for any work; sends are one kind of it, in one order with the others. The device carries it
 * out in that order too, but that what follows a read may overtake it (EVRDMA_WORK_OPT_FENCE). cb
 * may be NULL. What the peer's memory does not allow ends the connection, with EACCES.
 * Returns as evrdma_conn_send() does, and -EINVAL (what the operation does not take, more segments
 * than send_segs or, of a read, than the device reads into, one that is not inside its buffer,
 * inline_len without inline_data), -EMSGSIZE (more than inline_bytes), -EOPNOTSUPP (the device has
 * no such work; or a read or an atomic, and none was agreed on with the peer:
 * evrdma_conn_get_initiator_depth()), -ENOMEM (memory could not be registered), -EDQUOT (nor may
 * it, by max_pinned_bytes of the base), -EXDEV (evrdma_buf_new_shared() for another domain).
 * Since 0.1.
 */
int evrdma_conn_submit(struct evrdma_conn *conn, const struct evrdma_work *work,
	evrdma_conn_work_cb cb, void *arg);

/*
 * Fills in what the peer of this connection needs to reach the buffer, to be sent to it: whoever of
 * the same domain has the key may do there what the buffer's flags say, until the buffer is freed.
 * Returns 0; -EINVAL without a buffer or remote; -EACCES for a buffer without such flags; -ENOTCONN
 * before there is a device, which there is at CONNECTED, and after the end; -ENOMEM; -EDQUOT;
 * -EXDEV. Since 0.1.
 */
int evrdma_conn_expose(
	struct evrdma_conn *conn, struct evrdma_buf *buf, struct evrdma_remote *remote);

/*
 * How many reads and atomics of ours may be under way at once, as it was agreed on: initiator_depth
 * of our options, or less when the peer's responder_resources are fewer. 0: none is taken. Known
 * from CONNECTED on, before that 0. An iWARP device may not tell that the peer has fewer.
 * Since 0.1.
 */
unsigned evrdma_conn_get_initiator_depth(const struct evrdma_conn *conn);

/* How many more sends are taken now. Since 0.1. */
uint32_t evrdma_conn_send_space(const struct evrdma_conn *conn);

/*
 * Ends an established connection in an orderly way: no send is taken any more, those that were are
 * waited for, then the peer is told. DISCONNECTED follows when it has answered, or ERROR with
 * ETIMEDOUT when all that takes longer than drain_timeout_ms: at EVRDMA_STEP_DELIVER while a send
 * is not done, at EVRDMA_STEP_DISCONNECT when only the answer is missing; keepalive_ms and
 * idle_timeout_ms go on until the peer is told. To end it at once, close.
 * Returns 0, again while it goes on, which a second call does not change; -ENOTCONN before
 * CONNECTED and after the end. Since 0.1.
 */
int evrdma_conn_disconnect(struct evrdma_conn *conn);

/*
 * Moves the connection's CM events to another base on the same event_base. Its completions stay
 * with the base it was made on. Costs one system call. Returns 0, -ENOTCONN (there is no id to
 * move), -EXDEV (the other base has another event_base), -EPIPE (that base is being closed), why
 * that base cannot read its event channel any more, or the kernel's error; then nothing was moved.
 * Since 0.1.
 */
int evrdma_conn_migrate(struct evrdma_conn *conn, struct evrdma_base *base);

/*
 * Closes: what is under way is cancelled, the kernel's objects are destroyed in later turns of the
 * loop, and then the CLOSED event comes, last, with the callbacks that are set. Messages that had
 * come may be told still before it. The peer of an
 * established connection is told; on InfiniBand and RoCE its answer is not waited for, but the id
 * stays with the kernel until it came or the kernel gives up, for a minute or so, or a second after
 * the base was closed, but for more than 32 of them on a link that is down. On iWARP a connect or
 * accept has to be answered before its connection can be destroyed: the loop goes on meanwhile, but
 * CLOSED may take as long as the kernel waits for a silent peer, 10 seconds with siw. Legal in
 * every callback and state; a second call changes nothing. NULL is fine.
 * Since 0.1.
 */
void evrdma_conn_close(struct evrdma_conn *conn);

/*
 * The id underneath, NULL before there is one and after the end. It stays the library's.
 * Since 0.1.
 */
struct rdma_cm_id *evrdma_conn_get_cm_id(const struct evrdma_conn *conn);

/* The base that the connection was made on. Since 0.1. */
struct evrdma_base *evrdma_conn_get_base(const struct evrdma_conn *conn);

/* The addresses, AF_UNSPEC while they are not known. They live as long as the object. Since 0.1. */
const struct sockaddr *evrdma_conn_get_local_addr(const struct evrdma_conn *conn);
const struct sockaddr *evrdma_conn_get_peer_addr(const struct evrdma_conn *conn);

/* The longest text of an address, with its end. */
#define EVRDMA_ADDR_TEXT_MAX 72

/*
 * An address as text, for people: "10.0.0.1:4711", "[fe80::1%2]:4711", "gid fe80::1", or "-" for
 * NULL and for one that is not known. At most size bytes, which must not be 0, with their end; all
 * of it fits into EVRDMA_ADDR_TEXT_MAX. Returns text. Any thread. Since 0.1.
 */
const char *evrdma_addr_text(const struct sockaddr *addr, char *text, size_t size);

/*
 * What the peer sent along with its accept, its connect, or its reject: NULL and 0 when there was
 * nothing. The CM hands out a field of its transport, padded with zeroes: off iWARP 56 bytes with a
 * connect, 196 with an accept, 148 with a reject; so a message must carry its own length. len may
 * be NULL. Lives as long as the object. Since 0.1.
 */
const void *evrdma_conn_get_private_data(const struct evrdma_conn *conn, size_t *len);

#ifdef __cplusplus
}
#endif

#endif
