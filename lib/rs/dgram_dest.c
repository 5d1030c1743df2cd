/* Whom a datagram rsocket sends to or heard of, and the way there. */
#include "rs/dgram.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/number.h"

enum {
	RESOLVING_MAX = 16, /* at once */
	TIMEOUT_MS = 2000,
	LEAST_MTU = 128, /* shifted by what verbs have for it */
	QPN_LEAST = 2,	 /* those below, and the last one, are not for messages */
	SPARED = 16,	 /* so many times as long as one was waited for in vain */
};

static struct evr_rs_dests *list_of(struct evr_rs *rs, const union evr_rs_addr *addr)
{
	return &rs->dgram->by_addr[evr_rs_addr_hash(addr) % EVR_RS_DEST_LISTS];
}

/* --- the way there --------------------------------------------------------------------------- */

static void stop_resolving(struct evr_rs *rs, struct evr_rs_dest *dest)
{
	if (!dest->id)
		return;
	rdma_destroy_id(dest->id);
	dest->id = NULL;
	rs->dgram->num_resolving--;
}

static void forget_way(struct evr_rs *rs, struct evr_rs_dest *dest)
{
	stop_resolving(rs, dest);
	evr_rs_ah_put(dest->ah);
	dest->ah = NULL;
}

static int ask_for_addr(struct evr_rs *rs, struct evr_rs_dest *dest)
{
	union evr_rs_addr from = dest->ud->addr, to = dest->addr;

	if (rdma_create_id(rs->channel, &dest->id, dest, RDMA_PS_UDP)) {
		dest->id = NULL;
		return -errno;
	}
	rs->dgram->num_resolving++;
	evr_rs_dgram_watch(rs, rs->channel->fd, rs);
	return rdma_resolve_addr(dest->id, &from.sa, &to.sa, TIMEOUT_MS) ? -errno : 0;
}

/* Until there is a way it goes by UDP, and what it says next is a reason to try again. */
static void resolve(struct evr_rs *rs, struct evr_rs_dest *dest)
{
	uint64_t now;

	if (dest->ah || dest->id || !dest->qpn || dest->rank == EVR_RS_HEARD)
		return;
	now = evr_clock_now_us();
	if (now < dest->again_us || now < rs->dgram->ways_us)
		return;
	if (!dest->ud || !dest->ud->id || rs->dgram->num_resolving == RESOLVING_MAX)
		return;
	dest->again_us = now + EVR_RS_AGAIN_US;
	if (ask_for_addr(rs, dest))
		stop_resolving(rs, dest);
	evr_rs_dgram_expect(rs);
}

/*
 * Nobody is looked for who was not sent to: strangers take no ids and address handles. A queue pair
 * that took the place of another may be on another machine.
 */
void evr_rs_dest_told(struct evr_rs *rs, struct evr_rs_dest *dest, uint32_t qpn)
{
	if (qpn < QPN_LEAST || qpn >= EVR_DGRAM_QPN_MAX)
		return;
	dest->heard_us = evr_clock_now_us();
	if (dest->qpn != qpn)
		forget_way(rs, dest);
	dest->qpn = qpn;
	resolve(rs, dest);
}

/*
 * The kernel looks for the neighbour once more, and a call of ours waits for that: for a second, if
 * he is none or gone. Who brings many such to us does not stop us for long: all go by UDP then.
 */
static struct evr_rs_ah *make_ah(struct evr_rs *rs, const struct evr_rs_dest *dest)
{
	uint64_t before = evr_clock_now_us(), now;
	struct evr_rs_ah *ah;

	if (before < rs->dgram->ways_us)
		return NULL;
	ah = evr_rs_ah_new(dest->id, dest->ud->id->qp->pd);
	if (!ah) {
		now = evr_clock_now_us();
		rs->dgram->ways_us = now + (now - before) * SPARED;
	}
	return ah;
}

static void resolved(struct evr_rs *rs, struct evr_rs_dest *dest)
{
	const struct ibv_sa_path_rec *path = dest->id->route.path_rec;

	if (dest->ud && dest->ud->id && path) {
		dest->mtu = evr_smaller(dest->ud->mtu, (uint32_t)LEAST_MTU << path->mtu);
		dest->ah = make_ah(rs, dest);
	}
	stop_resolving(rs, dest);
}

void evr_rs_dest_event(
	struct evr_rs *rs, struct evr_rs_dest *dest, const struct evr_rs_event *event)
{
	switch (event->type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (rdma_resolve_route(dest->id, TIMEOUT_MS))
			stop_resolving(rs, dest);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		resolved(rs, dest);
		break;
	case RDMA_CM_EVENT_ADDR_CHANGE:
		break;
	default:
		stop_resolving(rs, dest);
		break;
	}
}

/* --- which address it is sent from ----------------------------------------------------------- */

/* What the kernel would take, for which it has to be asked. */
static int ask_for_source(const union evr_rs_addr *to, union evr_rs_addr *from)
{
	int family = to->sa.sa_family, ret = 0;
	int fd = evr_rs_udp_open(family, 0);
	union evr_rs_addr name;
	socklen_t len = evr_rs_addr_for(to, family, &name);

	if (fd < 0)
		return fd;
	if (connect(fd, &name.sa, len))
		ret = -errno;
	len = sizeof(*from);
	if (!ret && getsockname(fd, &from->sa, &len))
		ret = -errno;
	close(fd);
	return ret;
}

static int find_source(struct evr_rs *rs, const union evr_rs_addr *to, union evr_rs_addr *from)
{
	union evr_rs_addr name;
	socklen_t len = sizeof(name);
	int ret = getsockname(rs->dgram->udp_fd, &name.sa, &len) ? -errno : 0;

	if (!ret)
		ret = evr_rs_addr_set(from, rs->domain, &name.sa, len);
	if (!ret && evr_rs_addr_is_any(from))
		ret = ask_for_source(to, from);
	if (!ret && from->sa.sa_family == to->sa.sa_family)
		evr_rs_addr_set_port(from, 0);
	else
		ret = ret ? ret : -EAFNOSUPPORT;
	return ret;
}

/* What UDP makes of an address to which there is no way is told by UDP. */
static void find_ud(struct evr_rs *rs, struct evr_rs_dest *dest)
{
	union evr_rs_addr from;

	if (dest->ud && dest->ud->id)
		return;
	if (dest->ud || (evr_rs_addr_is_host(&dest->addr) && !find_source(rs, &dest->addr, &from)))
		dest->ud = evr_rs_ud_get(rs, dest->ud ? &dest->ud->addr : &from);
}

/* --- who is known, and who is forgotten ------------------------------------------------------- */

static void unlist(struct evr_rs *rs, struct evr_rs_dest *dest)
{
	TAILQ_REMOVE(&rs->dgram->known[dest->rank].dests, dest, used);
	rs->dgram->known[dest->rank].num--;
}

static void drop(struct evr_rs *rs, struct evr_rs_dest *dest)
{
	forget_way(rs, dest);
	unlist(rs, dest);
	TAILQ_REMOVE(list_of(rs, &dest->addr), dest, link);
	free(dest);
}

static void list(struct evr_rs *rs, struct evr_rs_dest *dest, enum evr_rs_rank rank)
{
	struct evr_rs_dgram *dgram = rs->dgram;

	if (dgram->known[rank].num == EVR_RS_DESTS_MAX)
		drop(rs, TAILQ_LAST(&dgram->known[rank].dests, evr_rs_dests));
	TAILQ_INSERT_HEAD(&dgram->known[rank].dests, dest, used);
	dgram->known[rank].num++;
	dest->rank = rank;
}

static void list_again(struct evr_rs *rs, struct evr_rs_dest *dest, enum evr_rs_rank rank)
{
	unlist(rs, dest);
	list(rs, dest, rank > dest->rank ? rank : dest->rank);
}

void evr_rs_dest_use(struct evr_rs *rs, struct evr_rs_dest *dest, enum evr_rs_rank rank)
{
	list_again(rs, dest, rank);
	find_ud(rs, dest);
	resolve(rs, dest);
}

void evr_rs_dest_heard(struct evr_rs *rs, struct evr_rs_dest *dest)
{
	dest->heard_us = evr_clock_now_us();
	if (dest->rank == EVR_RS_SENT_TO)
		list_again(rs, dest, EVR_RS_PROVEN);
}

/* --- finding --------------------------------------------------------------------------------- */

struct evr_rs_dest *evr_rs_dest_find(struct evr_rs *rs, const union evr_rs_addr *addr)
{
	struct evr_rs_dest *dest;

	TAILQ_FOREACH (dest, list_of(rs, addr), link)
		if (evr_rs_addr_equal(&dest->addr, addr))
			return dest;
	return NULL;
}

static struct evr_rs_dest *make(struct evr_rs *rs, const union evr_rs_addr *addr)
{
	struct evr_rs_dest *dest = calloc(1, sizeof(*dest));

	if (!dest)
		return NULL;
	dest->addr = *addr;
	list(rs, dest, EVR_RS_HEARD);
	TAILQ_INSERT_HEAD(list_of(rs, addr), dest, link);
	return dest;
}

struct evr_rs_dest *evr_rs_dest_get(struct evr_rs *rs, const union evr_rs_addr *addr)
{
	struct evr_rs_dest *dest = evr_rs_dest_find(rs, addr);

	return dest ? dest : make(rs, addr);
}

/* --- the end --------------------------------------------------------------------------------- */

/* What they told may have gone with the device, and they tell it again. */
static void leave(struct evr_rs *rs, struct evr_rs_dest *dest)
{
	forget_way(rs, dest);
	dest->qpn = 0;
}

void evr_rs_dests_leave(struct evr_rs *rs, const struct evr_rs_ud *ud)
{
	struct evr_rs_dest *dest;
	int i;

	for (i = 0; i < EVR_RS_RANKS; i++)
		TAILQ_FOREACH (dest, &rs->dgram->known[i].dests, used)
			if (dest->ud == ud)
				leave(rs, dest);
}

void evr_rs_dests_end(struct evr_rs *rs)
{
	struct evr_rs_dest *dest;
	int i;

	for (i = 0; i < EVR_RS_RANKS; i++)
		while ((dest = TAILQ_FIRST(&rs->dgram->known[i].dests)))
			drop(rs, dest);
}
