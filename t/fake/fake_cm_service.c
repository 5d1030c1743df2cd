/* What newer kernels have: services of the subnet's administrator, and events that are written. */
#include "fake/fake_cm.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { BY_NUMBER = 1, BY_NAME = 2, MOST_SERVICES = 600 };

/* A record as it goes over the wire and to the program. */
struct fake_service_rec {
	uint64_t id;
	uint8_t gid[16];
	uint16_t pkey;
	uint8_t reserved[2];
	uint32_t lease;
	uint8_t key[16];
	char name[64];
	uint8_t data[64];
};

struct resolve_ib_service {
	uint32_t id;
	uint32_t reserved;
	struct fake_wanted wanted;
};

struct query_ib_service_resp {
	uint32_t num_service_recs;
	uint32_t reserved;
};

struct write_cm_event {
	uint32_t id;
	uint32_t reserved;
	uint32_t event;
	uint32_t status;
	uint64_t arg;
};

static struct fake_service_rec services[MOST_SERVICES];
static uint32_t num_services;
static bool newer;

uint32_t fake_num_commands(void)
{
	return newer ? FAKE_CMD_WRITE_CM_EVENT + 1 : FAKE_CMD_RESOLVE_IB_SERVICE;
}

void fake_newer_kernel(bool on)
{
	FAKE_GUARD();
	newer = on;
}

void fake_services_reset(void)
{
	num_services = 0;
	newer = false;
}

/* One record for each number and GID: a later one takes the place of an earlier. */
static struct fake_service_rec *place_of(const struct fake_service_rec *rec)
{
	uint32_t i;

	for (i = 0; i < num_services; i++)
		if (services[i].id == rec->id &&
			!memcmp(services[i].gid, rec->gid, sizeof(rec->gid)))
			return &services[i];
	if (num_services == MOST_SERVICES)
		fake_die("too many services");
	return &services[num_services++];
}

/* The name fills its field when it is that long, and ends without a NUL then. */
void fake_service_add(uint64_t id, const char *name, const char *gid)
{
	struct fake_service_rec rec = { .id = htobe64(id), .pkey = UINT16_MAX };

	FAKE_GUARD();
	if (name)
		memcpy(rec.name, name, strnlen(name, sizeof(rec.name)));
	if (inet_pton(AF_INET6, gid, rec.gid) != 1)
		fake_die("%s is no GID", gid);
	*place_of(&rec) = rec;
}

static bool matches(const struct fake_wanted *wanted, const struct fake_service_rec *rec)
{
	if (wanted->flags & BY_NUMBER && htobe64(wanted->service_id) != rec->id)
		return false;
	return !(wanted->flags & BY_NAME) ||
	       !strncmp(wanted->service_name, rec->name, sizeof(rec->name));
}

int fake_resolve_ib_service(struct fake_file *file, const void *in, size_t out_len)
{
	const struct resolve_ib_service *cmd = in;
	struct fake_packet packet = { .kind = FAKE_SERVICE, .wanted = cmd->wanted };
	struct fake_id *id;
	int err = fake_id_find(file, cmd->id, &id);

	if (err)
		return err;
	if (!id->device || id->state != FAKE_ADDR_BOUND)
		return -EINVAL;
	if (id->device->kind != FAKE_IB)
		return -EOPNOTSUPP;
	id->state = FAKE_ADDRINFO_QUERY;
	packet.to = packet.from = id->number;
	packet.status = fake_wire_status(FAKE_SERVICE);
	fake_wire_send(&packet);
	return 0;
}

/* An id keeps the first answer it gets. */
static int keep(struct fake_id *id, const struct fake_wanted *wanted)
{
	uint32_t i;

	if (id->services)
		return -EALREADY;
	id->services = fake_alloc(sizeof(services));
	for (i = 0; i < num_services; i++)
		if (matches(wanted, &services[i]))
			id->services[id->num_services++] = services[i];
	if (id->num_services)
		return 0;
	free(id->services);
	id->services = NULL;
	return -ENOENT;
}

static void set_destination(struct fake_id *id)
{
	struct sockaddr_ib *dst = (struct sockaddr_ib *)&id->dst;

	dst->sib_family = AF_IB;
	dst->sib_pkey = id->services->pkey;
	dst->sib_sid = id->services->id;
	memcpy(&dst->sib_addr, id->services->gid, sizeof(dst->sib_addr));
}

void fake_service_arrive(const struct fake_packet *packet)
{
	struct fake_id *id = fake_id_alive(packet->to);
	int status = packet->status;

	if (!id || id->state != FAKE_ADDRINFO_QUERY)
		return;
	if (!status)
		status = keep(id, &packet->wanted);
	if (!status)
		set_destination(id);
	id->state = status ? FAKE_ADDR_BOUND : FAKE_ADDRINFO_RESOLVED;
	fake_event_post(id, status ? FAKE_EV_ADDRINFO_ERROR : FAKE_EV_ADDRINFO_RESOLVED, status);
}

/* Where there is room for no record, the kernel does not even tell how many there are. */
int fake_query_ib_service(
	const struct fake_id *id, const struct rdma_ucm_query *cmd, size_t out_len)
{
	struct query_ib_service_resp resp = { .num_service_recs = id->num_services };
	size_t room;

	if (!newer)
		return -ENOSYS;
	if (out_len < sizeof(resp))
		return -ENOSPC;
	if (!id->services)
		return -ENODATA;
	room = (out_len - sizeof(resp)) / sizeof(*id->services);
	if (!room)
		return 0;
	fake_respond(cmd->response, &resp, sizeof(resp), out_len);
	fake_respond(cmd->response + sizeof(resp), id->services,
		id->num_services * sizeof(*id->services), room * sizeof(*id->services));
	return 0;
}

/* It comes to a child that was not accepted as well. */
int fake_write_cm_event(struct fake_file *file, const void *in, size_t out_len)
{
	const struct write_cm_event *cmd = in;
	struct fake_event *event;
	struct fake_id *id;
	int err;

	if (cmd->event != FAKE_EV_USER && cmd->event != FAKE_EV_INTERNAL)
		return -EINVAL;
	err = fake_id_find(file, cmd->id, &id);
	if (err)
		return err;
	event = fake_event_new(id, cmd->event, (int)cmd->status);
	memcpy(&event->resp.param, &cmd->arg, sizeof(cmd->arg));
	fake_event_force(event);
	return 0;
}
