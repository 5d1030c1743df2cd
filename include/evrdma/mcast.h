/* evrdma_mcast: the membership of a datagram endpoint in a multicast group. */
#ifndef EVRDMA_MCAST_H
#define EVRDMA_MCAST_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <evrdma/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ibv_ah_attr;
struct evrdma_dgram;
struct evrdma_mcast;

/* Flags of a membership. */
#define EVRDMA_MCAST_OPT_SENDONLY 0x1u /* a full member that only sends: it is not attached to the
                                          group, so it receives nothing and causes no IGMP report */

enum evrdma_mcast_event {
	/* A member now: evrdma_dgram_send() takes the group. */
	EVRDMA_MCAST_JOINED,
	/* Could not join, or is a member no more; the error says why. Comes once at most. */
	EVRDMA_MCAST_ERROR,
	/* The last callback, after evrdma_mcast_close() or after the endpoint was closed or broke:
	   the membership is freed when it returns. */
	EVRDMA_MCAST_CLOSED
};

/* error is NULL but for EVRDMA_MCAST_ERROR, and lives until the callback returns. */
typedef void (*evrdma_mcast_event_cb)(struct evrdma_mcast *group, enum evrdma_mcast_event event,
	const struct evrdma_error *error, void *arg);

/*
 * Joins the group at addr (IPv4, IPv6, or AF_IB for a raw MGID) on an endpoint that is READY. A
 * zero address asks for an assigned group, where the fabric has them. flags are
 * EVRDMA_MCAST_OPT_*. Off InfiniBand the group is of the family of the address that the endpoint
 * was opened with. Ends in JOINED or ERROR:
 *   EINVAL      the kernel does not take this address here (off InfiniBand: assigned groups, MGIDs)
 *   ETIMEDOUT   nobody answered within join_timeout_ms of the endpoint; on InfiniBand the kernel
 *               says so too, when the subnet administrator has not answered it for seconds
 *   EOPNOTSUPP  the device cannot join this kind of group (the kernel's ENOTSUPP, 524, included)
 * Returns NULL and sets errno: ENOTCONN (the endpoint is not READY), EADDRINUSE (it has a
 * membership with this address, which is not closed), EAFNOSUPPORT (also: not the endpoint's
 * family), EINVAL (unknown flag, no address, or not one of a group: neither of 224.0.0.0/4, of
 * ff00::/8 nor a GID that begins with ff), ENOMEM, EPIPE (the base is being shut
 * down). Since 0.1.
 */
struct evrdma_mcast *evrdma_mcast_join(struct evrdma_dgram *dgram, const struct sockaddr *addr,
	unsigned flags, evrdma_mcast_event_cb cb, void *arg);

/*
 * Leaves the group; sends under way are not waited for. The CLOSED event comes later, last. Legal
 * in every callback; a second call changes nothing. NULL is fine. Since 0.1.
 */
void evrdma_mcast_close(struct evrdma_mcast *group);

/* How to reach the group: its GID, LID, service level. NULL before JOINED. Since 0.1. */
const struct ibv_ah_attr *evrdma_mcast_get_ah_attr(const struct evrdma_mcast *group);

/* The QP number and the key that datagrams to the group carry, 0 before JOINED. Since 0.1. */
uint32_t evrdma_mcast_get_qp_num(const struct evrdma_mcast *group);
uint32_t evrdma_mcast_get_qkey(const struct evrdma_mcast *group);

/* The address it was joined with. Since 0.1. */
const struct sockaddr *evrdma_mcast_get_addr(const struct evrdma_mcast *group);

#ifdef __cplusplus
}
#endif

#endif
