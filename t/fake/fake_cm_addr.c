/* Addresses: whose they are, and resolving them. */
#include "fake/fake_cm.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

static uint16_t family_of(const void *addr)
{
	return ((const struct sockaddr *)addr)->sa_family;
}

size_t fake_addr_size(const void *addr)
{
	switch (family_of(addr)) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	case AF_IB:
		return sizeof(struct sockaddr_ib);
	}
	return 0;
}

/* The address proper: 4 or 16 bytes. */
static const void *raw_of(const void *addr, size_t *len)
{
	*len = family_of(addr) == AF_INET ? 4 : 16;
	switch (family_of(addr)) {
	case AF_INET:
		return &((const struct sockaddr_in *)addr)->sin_addr;
	case AF_INET6:
		return &((const struct sockaddr_in6 *)addr)->sin6_addr;
	}
	return &((const struct sockaddr_ib *)addr)->sib_addr;
}

bool fake_addr_same(const void *a, const void *b)
{
	size_t len;
	const void *raw = raw_of(a, &len);

	return family_of(a) == family_of(b) && !memcmp(raw, raw_of(b, &len), len);
}

bool fake_addr_any(const void *addr)
{
	static const uint8_t zeroes[16];
	size_t len;
	const void *raw = raw_of(addr, &len);

	return !memcmp(raw, zeroes, len);
}

bool fake_addr_loopback(const void *addr)
{
	size_t len;
	const uint8_t *raw = raw_of(addr, &len);

	return len == 4 ? raw[0] == 127 : IN6_IS_ADDR_LOOPBACK((const struct in6_addr *)raw);
}

static bool is_multicast(const void *addr)
{
	size_t len;
	const uint8_t *raw = raw_of(addr, &len);

	return len == 4 ? raw[0] >= 224 && raw[0] < 240 : raw[0] == 0xff;
}

uint64_t fake_service(const struct fake_id *id, const void *addr)
{
	if (family_of(addr) == AF_IB)
		return be64toh(((const struct sockaddr_ib *)addr)->sib_sid);
	return (uint64_t)id->ps << 16 | fake_addr_port(addr);
}

uint16_t fake_addr_port(const void *addr)
{
	switch (family_of(addr)) {
	case AF_INET:
		return ntohs(((const struct sockaddr_in *)addr)->sin_port);
	case AF_INET6:
		return ntohs(((const struct sockaddr_in6 *)addr)->sin6_port);
	}
	return (uint16_t)be64toh(((const struct sockaddr_ib *)addr)->sib_sid);
}

void fake_addr_set_port(const struct fake_id *id, void *addr, uint16_t port)
{
	struct sockaddr_ib *ib = addr;

	if (family_of(addr) == AF_INET)
		((struct sockaddr_in *)addr)->sin_port = htons(port);
	else if (family_of(addr) == AF_INET6)
		((struct sockaddr_in6 *)addr)->sin6_port = htons(port);
	else
		ib->sib_sid = htobe64((uint64_t)id->ps << 16 | port);
}

/* How an address of the device compares: 2 its own, 1 on its network, 0 elsewhere. */
static int nearness(const struct fake_device *device, const void *addr)
{
	size_t len;
	const uint8_t *raw = raw_of(addr, &len);
	const void *own = len == 4 ? (const void *)&device->ip : (const void *)&device->ip6;

	if (!device->present)
		return 0;
	if (family_of(addr) == AF_IB)
		return device->kind == FAKE_IB && !memcmp(raw, device->gids[0].raw, 16) ? 2 : 0;
	if (!memcmp(raw, own, len))
		return 2;
	return !memcmp(raw, own, len == 4 ? 3 : 8);
}

static struct fake_device *device_near(const void *addr, int least)
{
	int kind;

	if (fake_addr_loopback(addr) && family_of(addr) != AF_IB)
		return fake_device_first();
	for (kind = 0; kind < FAKE_KINDS; kind++)
		if (nearness(fake_device((enum fake_kind)kind), addr) >= least)
			return fake_device((enum fake_kind)kind);
	return NULL;
}

struct fake_device *fake_addr_owner(const void *addr)
{
	return device_near(addr, 2);
}

bool fake_addr_silent(const void *addr)
{
	size_t len;
	const uint8_t *raw = raw_of(addr, &len);

	return family_of(addr) != AF_IB && raw[len - 1] == 250 && device_near(addr, 1) &&
	       !fake_addr_loopback(addr);
}

bool fake_addr_plain(const void *addr)
{
	size_t len;
	const uint8_t *raw = raw_of(addr, &len);

	return len == 4 && raw[0] == 198 && (raw[1] & 0xfe) == 18;
}

/* --- resolving --- */

/* Which device leads there; on arrival, and -errno as the event's status. */
static int route_to(const struct fake_id *id, struct fake_device **device)
{
	const void *dst = &id->dst;

	*device = id->device;
	if (fake_addr_any(dst) || fake_addr_loopback(dst) || is_multicast(dst)) {
		if (!*device)
			*device = fake_device_first();
		return *device ? 0 : -ENODEV;
	}
	if (fake_addr_plain(dst))
		return -ENODEV;
	*device = device_near(dst, 1);
	if (!*device)
		return -ENODEV;
	return fake_addr_owner(dst) || fake_addr_silent(dst) ? 0 : -ETIMEDOUT;
}

static bool reachable(const struct fake_id *id)
{
	const void *dst = &id->dst;

	if (fake_addr_any(dst) || fake_addr_loopback(dst) || is_multicast(dst) ||
		fake_addr_plain(dst))
		return true;
	return device_near(dst, 1) && (!id->device || nearness(id->device, dst));
}

static int resolve_id(struct fake_id *id, const void *src, const void *dst)
{
	struct fake_packet packet = { .kind = FAKE_ADDR, .from = id->number, .to = id->number };
	int err = 0;

	if (id->state == FAKE_IDLE && src && family_of(src))
		err = fake_bind_id(id, src);
	else if (id->state == FAKE_IDLE)
		fake_bind_any(id, family_of(dst), &err);
	if (err)
		return err;
	if ((id->state != FAKE_ADDR_BOUND && id->state != FAKE_ADDRINFO_RESOLVED) ||
		id->src.ss_family != family_of(dst))
		return -EINVAL;
	memset(&id->dst, 0, sizeof(id->dst));
	memcpy(&id->dst, dst, fake_addr_size(dst));
	if (!reachable(id))
		return family_of(dst) == AF_IB ? -ENODEV : -ENETUNREACH;
	id->state = FAKE_ADDR_QUERY;
	packet.status = fake_wire_status(FAKE_ADDR);
	fake_wire_send(&packet);
	return 0;
}

/* The old commands have no room for AF_IB. */
static bool is_ip(const void *addr)
{
	return family_of(addr) == AF_INET || family_of(addr) == AF_INET6;
}

int fake_resolve_ip(struct fake_file *file, const void *in, size_t out_len)
{
	const struct rdma_ucm_resolve_ip *cmd = in;
	struct fake_id *id;
	int err;

	if ((cmd->src_addr.sin6_family && !is_ip(&cmd->src_addr)) || !is_ip(&cmd->dst_addr))
		return -EINVAL;
	err = fake_id_find(file, cmd->id, &id);
	return err ? err : resolve_id(id, &cmd->src_addr, &cmd->dst_addr);
}

int fake_resolve_addr(struct fake_file *file, const void *in, size_t out_len)
{
	const struct rdma_ucm_resolve_addr *cmd = in;
	struct fake_id *id;
	int err;

	if (cmd->reserved || (cmd->src_size && cmd->src_size != fake_addr_size(&cmd->src_addr)) ||
		!cmd->dst_size || cmd->dst_size != fake_addr_size(&cmd->dst_addr))
		return -EINVAL;
	err = fake_id_find(file, cmd->id, &id);
	return err ? err : resolve_id(id, cmd->src_size ? &cmd->src_addr : NULL, &cmd->dst_addr);
}

/* The source a packet to there would have; the port stays. */
static void fill_source(struct fake_id *id)
{
	uint16_t port = fake_addr_port(&id->src);

	if (!fake_addr_any(&id->src))
		return;
	if (fake_addr_loopback(&id->dst))
		memcpy(&id->src, &id->dst, sizeof(id->src));
	else if (id->src.ss_family == AF_INET)
		((struct sockaddr_in *)&id->src)->sin_addr = id->device->ip;
	else if (id->src.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&id->src)->sin6_addr = id->device->ip6;
	else
		memcpy(&((struct sockaddr_ib *)&id->src)->sib_addr, id->device->gids[0].raw, 16);
	fake_addr_set_port(id, &id->src, port);
}

void fake_addr_arrive(const struct fake_packet *packet)
{
	struct fake_id *id = fake_id_alive(packet->to);
	struct fake_device *device;
	int status = packet->status;

	if (!id || id->state != FAKE_ADDR_QUERY)
		return;
	if (!status)
		status = route_to(id, &device);
	if (!status && id->ps == RDMA_PS_IPOIB && device->kind != FAKE_IB)
		status = -EINVAL;
	if (status) {
		id->state = FAKE_ADDR_BOUND;
		fake_event_post(id, FAKE_EV_ADDR_ERROR, status);
		return;
	}
	id->device = device;
	id->state = FAKE_ADDR_RESOLVED;
	fill_source(id);
	fake_event_post(id, FAKE_EV_ADDR_RESOLVED, 0);
}

int fake_resolve_route(struct fake_file *file, const void *in, size_t out_len)
{
	const struct rdma_ucm_resolve_route *cmd = in;
	struct fake_packet packet = { .kind = FAKE_ROUTE };
	struct fake_id *id;
	int err = fake_id_find_bound(file, cmd->id, &id);

	if (err)
		return err;
	if (!cmd->timeout_ms ||
		(id->state != FAKE_ADDR_RESOLVED && id->state != FAKE_ADDRINFO_RESOLVED))
		return -EINVAL;
	id->state = FAKE_ROUTE_QUERY;
	packet.to = packet.from = id->number;
	packet.status = fake_wire_status(FAKE_ROUTE);
	fake_wire_send(&packet);
	return 0;
}

void fake_route_arrive(const struct fake_packet *packet)
{
	struct fake_id *id = fake_id_alive(packet->to);

	if (!id || id->state != FAKE_ROUTE_QUERY)
		return;
	id->state = packet->status ? FAKE_ADDR_RESOLVED : FAKE_ROUTE_RESOLVED;
	fake_event_post(
		id, packet->status ? FAKE_EV_ROUTE_ERROR : FAKE_EV_ROUTE_RESOLVED, packet->status);
}
