/* evrdma_dgram: an unreliable datagram endpoint; peers and multicast groups are made on it. */
#ifndef EVRDMA_DGRAM_H
#define EVRDMA_DGRAM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <evrdma/buf.h>
#include <evrdma/conn.h>
#include <evrdma/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct evrdma_dgram;
struct evrdma_mcast;
struct evrdma_peer;
struct evrdma_request;

/* The bytes in front of every received datagram, which its buffer must have room for. */
#define EVRDMA_DGRAM_HEADER_BYTES 40

/* Flags of an endpoint. */
#define EVRDMA_DGRAM_OPT_NO_LOOPBACK 0x1u /* own multicast datagrams do not come back; EOPNOTSUPP
                                             from a device that cannot (rxe and siw cannot) */

/* How an endpoint is made. Fill it with evrdma_dgram_options_init(); it grows at its end only. */
struct evrdma_dgram_options {
	size_t size;                   /* set by evrdma_dgram_options_init() */
	int resolve_timeout_ms;        /* 2000: to find the device; at least 1 */
	int drain_timeout_ms;          /* 1000: how long to wait for flushed work at the end; at
	                                  least 1 */
	uint32_t send_depth;           /* 64: sends under way at once */
	uint32_t send_queue;           /* 0: how many more sends wait, in order, for their turn */
	uint32_t recv_depth;           /* 64: receive buffers posted at once; 0: it only sends */
	uint32_t low_water;            /* 0: WRITABLE comes when this many sends are free again;
	                                  0 is a quarter of send_depth */
	struct evrdma_pool *recv_pool; /* needed if recv_depth is not 0: so many buffers of this
	                                  pool are kept posted, from READY on. NULL if it is 0 */
	struct evrdma_srq *srq;        /* NULL; otherwise in place of recv_depth, which is not used
	                                  then, and recv_pool, which is NULL then: the buffers are
	                                  shared with others */
	struct evrdma_domain *domain;  /* NULL: the one that all without a domain share */
	int port_space;                /* RDMA_PS_UDP (0x0111), or RDMA_PS_IPOIB (0x0002) */
	unsigned flags;                /* EVRDMA_DGRAM_OPT_* */
	int join_timeout_ms;           /* 10000: of each group, from its join to JOINED; at least
	                                  1 */
};

void evrdma_dgram_options_init_sized(struct evrdma_dgram_options *options, size_t size);

/* Fills the options with their defaults. Any thread. Since 0.1. */
#define evrdma_dgram_options_init(options)                                                         \
	evrdma_dgram_options_init_sized((options), sizeof(*(options)))

enum evrdma_dgram_event {
	/* The device is found and the QP is there: groups can be joined and peers be looked for,
	   and the MTU is known. */
	EVRDMA_DGRAM_READY,
	/* It could not be made, or broke; the error says why. Comes once at most. */
	EVRDMA_DGRAM_ERROR,
	/* After a send gave -EAGAIN: low_water sends are free again. */
	EVRDMA_DGRAM_WRITABLE,
	/* The last callback, after evrdma_dgram_close(): freed when it returns. */
	EVRDMA_DGRAM_CLOSED,
	/* The hardware address under it is another one, as when a bond fails over. Peers may have
	   to look for it again. */
	EVRDMA_DGRAM_ADDR_CHANGED
};

/* error is NULL but for EVRDMA_DGRAM_ERROR, and lives until the callback returns. */
typedef void (*evrdma_dgram_event_cb)(struct evrdma_dgram *dgram, enum evrdma_dgram_event event,
	const struct evrdma_error *error, void *arg);

/* A datagram came; recv->data is behind the header. The buffer's rules are a connection's. */
typedef void (*evrdma_dgram_recv_cb)(
	struct evrdma_dgram *dgram, const struct evrdma_recv *recv, void *arg);

/* A send is over, exactly once for each that was taken. error is NULL when it left. */
typedef void (*evrdma_dgram_send_cb)(struct evrdma_dgram *dgram, struct evrdma_buf *buf,
	const struct evrdma_error *error, void *arg);

/*
 * Makes an endpoint; options may be NULL (which only sends) and is not kept. Returns NULL and sets
 * errno: EINVAL (a value is out of range, recv_depth without recv_pool, or the pool, the queue or
 * the domain is another base's), ENOMEM, EPIPE (the base is being closed). Since 0.1.
 */
struct evrdma_dgram *evrdma_dgram_new(
	struct evrdma_base *base, const struct evrdma_dgram_options *options);

/* Sets the callbacks; each may be NULL. One arg serves them all. Since 0.1. */
void evrdma_dgram_setcb(struct evrdma_dgram *dgram, evrdma_dgram_recv_cb recv_cb,
	evrdma_dgram_event_cb event_cb, void *arg);

/*
 * Finds the device: the one that has the address src, or the one that leads to dst (a multicast
 * group, say). Either may be NULL, not both; with both, dst is looked for from src. Copied.
 * Ends in READY or ERROR:
 * EADDRNOTAVAIL (src is not ours), ENODEV (no RDMA device), ETIMEDOUT, what verbs report.
 * Returns 0; -EINVAL with neither; -EALREADY when it was called before; -EAFNOSUPPORT; -EPIPE.
 * Since 0.1.
 */
int evrdma_dgram_open(
	struct evrdma_dgram *dgram, const struct sockaddr *src, const struct sockaddr *dst);

/* The largest datagram in bytes, 0 before READY. Since 0.1. */
size_t evrdma_dgram_get_mtu(const struct evrdma_dgram *dgram);

/* The QP number, which receivers see as the sender's; 0 before READY. Since 0.1. */
uint32_t evrdma_dgram_get_qp_num(const struct evrdma_dgram *dgram);

/*
 * Sends the first len bytes of buf to a group that was joined on this endpoint, with imm (host
 * order) when that is not NULL. cb may be NULL.
 * Returns 0; -EAGAIN when send_depth sends are under way and send_queue wait (WRITABLE follows);
 * -EINVAL without a buffer; -EMSGSIZE when len is more than the MTU or the buffer; -ENOTCONN before
 * the group's JOINED and after its end; -EXDEV for a group of another endpoint. Since 0.1.
 */
int evrdma_dgram_send(struct evrdma_dgram *dgram, struct evrdma_mcast *group,
	struct evrdma_buf *buf, size_t len, const uint32_t *imm, evrdma_dgram_send_cb cb,
	void *arg);

/* The same to a peer that is READY. Since 0.1. */
int evrdma_dgram_send_to(struct evrdma_dgram *dgram, struct evrdma_peer *peer,
	struct evrdma_buf *buf, size_t len, const uint32_t *imm, evrdma_dgram_send_cb cb,
	void *arg);

/*
 * The same to whoever sent a datagram, from the callback that brings it. How to reach him is kept
 * for 30 seconds. Off InfiniBand, the first reply waits until the kernel knows his hardware
 * address, and the loop goes on meanwhile; if he has none, as a forged address, cb is told after
 * some seconds, with step EVRDMA_STEP_ADDR, and further replies fail at once for 10 seconds. Sends
 * to others may come before it.
 * Returns as above; -EINVAL when recv is no datagram; -EBUSY when replies that wait for an address
 * fill half of send_depth and send_queue; -ETIMEDOUT, -EHOSTUNREACH, -ENETUNREACH: he was asked
 * for in vain; what verbs report. Since 0.1.
 */
int evrdma_dgram_reply(struct evrdma_dgram *dgram, const struct evrdma_recv *recv,
	struct evrdma_buf *buf, size_t len, const uint32_t *imm, evrdma_dgram_send_cb cb,
	void *arg);

/*
 * The address that a datagram came from, without a port: IPv4 or IPv6, on InfiniBand AF_IB. It is
 * what the datagram says, and nobody has checked it. 0, or -ENODATA when it has no header, or one
 * that is of neither. Since 0.1.
 */
int evrdma_dgram_get_sender(const struct evrdma_dgram *dgram, const struct evrdma_recv *recv,
	struct sockaddr_storage *addr);

/*
 * Answers a request of a listener in RDMA_PS_UDP: the peer learns the QP of this endpoint, with up
 * to 136 bytes of private data, and may send to it. The request is gone when 0 is returned.
 * evrdma_request_reject() says no.
 * Returns 0; -ENOTCONN before READY and after the end; -EXDEV for a request on another base or
 * another device; -EINVAL for too much data, or a request for a connection; -EPIPE; -ETIMEDOUT (it
 * is late); the kernel's error. Since 0.1.
 */
int evrdma_dgram_accept(struct evrdma_dgram *dgram, struct evrdma_request *request,
	const void *data, size_t len);

/*
 * Closes: its groups are left and closed first, and its peers, each with its CLOSED event, then the
 * endpoint. Until then come the callbacks of sends, datagrams that the device has already, and
 * nothing else: neither JOINED nor READY of who was still waited for, nor an ERROR. Legal in every
 * callback; a second call changes nothing. NULL is fine. Since 0.1.
 */
void evrdma_dgram_close(struct evrdma_dgram *dgram);

/* The id underneath, NULL before open and after the end. It stays the library's. Since 0.1. */
struct rdma_cm_id *evrdma_dgram_get_cm_id(const struct evrdma_dgram *dgram);

#ifdef __cplusplus
}
#endif

#endif
