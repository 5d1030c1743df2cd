/* Binding to addresses and ports, and finding who listens on them. */
#include "fake/fake_cm.h"

#include <errno.h>
#include <string.h>
#include <sys/queue.h>

/* Those that Linux gives where nothing else is set. */
enum { FIRST_DYNAMIC_PORT = 32768, DYNAMIC_PORTS = 28232 };

static uint16_t family_of(const void *addr)
{
	return ((const struct sockaddr *)addr)->sa_family;
}

/* Who is bound to the ports that share a place, the oldest id first: a test may have tens of
 * thousands of ids. */
static LIST_HEAD(fake_ports, fake_id) ports[4096];

static struct fake_ports *ports_at(const struct sockaddr_storage *addr)
{
	return &ports[fake_addr_port(addr) % (sizeof(ports) / sizeof(ports[0]))];
}

static void join_port(struct fake_id *id)
{
	struct fake_ports *at = ports_at(&id->src);
	struct fake_id *other, *before = NULL;

	LIST_FOREACH (other, at, port_link) {
		if (other->number > id->number)
			break;
		before = other;
	}
	if (before)
		LIST_INSERT_AFTER(before, id, port_link);
	else
		LIST_INSERT_HEAD(at, id, port_link);
	id->bound = true;
}

void fake_port_leave(struct fake_id *id)
{
	if (id->bound)
		LIST_REMOVE(id, port_link);
}

int fake_port_check(const struct fake_id *id, bool reuseaddr)
{
	const struct fake_id *other;

	LIST_FOREACH (other, ports_at(&id->src), port_link) {
		if (other == id || other->closed || other->ps != id->ps ||
			fake_addr_port(&other->src) != fake_addr_port(&id->src))
			continue;
		if (reuseaddr && other->reuseaddr)
			continue;
		if (id->afonly && other->afonly && id->src.ss_family != other->src.ss_family)
			continue;
		if (fake_addr_any(&id->src) || fake_addr_any(&other->src))
			return -EADDRNOTAVAIL;
		if (fake_addr_same(&id->src, &other->src))
			return -EADDRINUSE;
	}
	return 0;
}

/* Where the search for a port begins: behind the last one given. */
static int next_dynamic;

void fake_ports_reset(void)
{
	next_dynamic = 0;
}

static int take_port(struct fake_id *id)
{
	int i, err = -EADDRNOTAVAIL;

	if (fake_addr_port(&id->src))
		return fake_port_check(id, id->reuseaddr);
	for (i = 0; err && i < DYNAMIC_PORTS; i++) {
		fake_addr_set_port(id, &id->src, (uint16_t)(FIRST_DYNAMIC_PORT + next_dynamic));
		next_dynamic = (next_dynamic + 1) % DYNAMIC_PORTS;
		err = fake_port_check(id, false);
	}
	return err;
}

/* An id looks for the interface of an address once; on RoCE there has to be a GID of it, too. */
static struct fake_device *find_device(struct fake_id *id, const void *addr, int *err)
{
	struct fake_device *owner = fake_addr_owner(addr);

	*err = fake_addr_plain(addr) || family_of(addr) == AF_IB || id->found ? -ENODEV
									      : -EADDRNOTAVAIL;
	if (id->found && id->found->kind == FAKE_IWARP)
		return id->found;
	if (id->found && owner != id->found)
		return NULL;
	id->found = owner;
	return owner;
}

static int bind_device(struct fake_id *id, const void *addr)
{
	int err;
	struct fake_device *device = find_device(id, addr, &err);

	if (!device)
		return err;
	if (id->ps == RDMA_PS_IPOIB && device->kind != FAKE_IB)
		return -EINVAL;
	id->device = device;
	if (id->ps == RDMA_PS_UDP && fake_addr_loopback(addr))
		device->is_loopback = true;
	return 0;
}

int fake_bind_id(struct fake_id *id, const void *addr)
{
	size_t size = fake_addr_size(addr);
	int err = 0;

	if (id->state != FAKE_IDLE)
		return -EINVAL;
	memset(&id->src, 0, sizeof(id->src));
	memcpy(&id->src, addr, size);
	if (!id->afonly_set)
		id->afonly = family_of(addr) == AF_INET;
	if (!fake_addr_any(addr))
		err = bind_device(id, addr);
	if (!err)
		err = take_port(id);
	if (err) {
		id->device = NULL;
		memset(&id->src, 0, sizeof(id->src));
		return err;
	}
	join_port(id);
	id->dst.ss_family = family_of(addr);
	id->state = FAKE_ADDR_BOUND;
	return 0;
}

void fake_bind_any(struct fake_id *id, int family, int *err)
{
	struct sockaddr_storage any = { .ss_family = (sa_family_t)family };

	*err = fake_bind_id(id, &any);
}

int fake_bind_ip(struct fake_file *file, const void *in, size_t out_len)
{
	const struct rdma_ucm_bind_ip *cmd = in;
	struct fake_id *id;
	int err;

	if (cmd->addr.sin6_family != AF_INET && cmd->addr.sin6_family != AF_INET6)
		return -EINVAL;
	err = fake_id_find(file, cmd->id, &id);
	return err ? err : fake_bind_id(id, &cmd->addr);
}

int fake_bind(struct fake_file *file, const void *in, size_t out_len)
{
	const struct rdma_ucm_bind *cmd = in;
	struct fake_id *id;
	int err;

	if (cmd->reserved || !cmd->addr_size || cmd->addr_size != fake_addr_size(&cmd->addr))
		return -EINVAL;
	err = fake_id_find(file, cmd->id, &id);
	return err ? err : fake_bind_id(id, &cmd->addr);
}

/* --- listeners --- */

/* IPv6's :: listens for IPv4 as well unless told not to. */
static bool listens_on(const struct fake_id *listener, const void *addr)
{
	if (listener->src.ss_family != family_of(addr))
		return fake_addr_any(&listener->src) && !listener->afonly &&
		       listener->src.ss_family == AF_INET6 && family_of(addr) == AF_INET;
	return fake_addr_any(&listener->src) || fake_addr_any(addr) ||
	       fake_addr_same(&listener->src, addr);
}

/* The two ends of XRC differ. */
static bool fits_type(const struct fake_id *listener, const struct fake_id *from)
{
	if (from->qp_type == IBV_QPT_XRC_SEND)
		return listener->qp_type == IBV_QPT_XRC_RECV;
	return listener->qp_type == from->qp_type;
}

struct fake_id *fake_listener_find(const struct fake_id *from)
{
	struct fake_id *id;

	LIST_FOREACH (id, ports_at(&from->dst), port_link)
		if (id->state == FAKE_LISTEN && !id->closed &&
			(!id->device || id->device == from->device) &&
			fake_service(id, &id->src) == fake_service(from, &from->dst) &&
			fits_type(id, from) && listens_on(id, &from->dst))
			break;
	return id;
}
