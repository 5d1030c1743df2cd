/* Ids: birth, death, moving house, options. */
#include "fake/fake_cm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"

/* What siw gives the peer's answer. */
enum { ANSWER_US = 10000000 };

struct fake_table fake_ids;

struct fake_id *fake_id_new(struct fake_file *file, uint64_t uid, uint16_t ps, uint8_t qp_type)
{
	struct fake_id *id = fake_alloc(sizeof(*id));

	id->file = file;
	id->uid = uid;
	id->ps = ps;
	id->qp_type = qp_type;
	TAILQ_INIT(&id->mcs);
	id->number = fake_table_add(&fake_ids, id);
	fake_born(FAKE_ID);
	return id;
}

void fake_id_free(struct fake_id *id)
{
	if (!id->closed)
		fake_conn_abandon(id);
	fake_events_drop(id, NULL);
	fake_mcs_free(id);
	fake_port_leave(id);
	fake_table_remove(&fake_ids, id->number);
	free(id->services);
	free(id);
	fake_died(FAKE_ID);
}

struct fake_id *fake_id_alive(uint32_t number)
{
	struct fake_id *id = fake_table_find(&fake_ids, number);

	return id && !id->closed ? id : NULL;
}

/* What DESTROY_ID looks up: a closed id is still there. */
static int find_any(struct fake_file *file, uint32_t number, struct fake_id **id)
{
	*id = fake_table_find(&fake_ids, number);
	if (!*id)
		return -ENOENT;
	fake_happens_after(*id);
	fake_happens_before(*id);
	return (*id)->file == file ? 0 : -EINVAL;
}

int fake_id_find(struct fake_file *file, uint32_t number, struct fake_id **id)
{
	int err = find_any(file, number, id);

	return !err && (*id)->closed ? -ENXIO : err;
}

int fake_id_find_bound(struct fake_file *file, uint32_t number, struct fake_id **id)
{
	int err = fake_id_find(file, number, id);

	return !err && !(*id)->device ? -EINVAL : err;
}

int fake_create_id(struct fake_file *file, const void *in, size_t out_len)
{
	const struct rdma_ucm_create_id *cmd = in;
	struct rdma_ucm_create_id_resp resp;
	uint8_t qp_type;

	if (out_len < sizeof(resp))
		return -ENOSPC;
	switch (cmd->ps) {
	case RDMA_PS_TCP:
		qp_type = IBV_QPT_RC;
		break;
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB:
		/* The kernel's IB_QPT_UD and IB_QPT_RC are the verbs' numbers. */
		qp_type = IBV_QPT_UD;
		break;
	case RDMA_PS_IB:
		qp_type = cmd->qp_type;
		break;
	default:
		return -EINVAL;
	}
	resp.id = fake_id_new(file, cmd->uid, cmd->ps, qp_type)->number;
	fake_respond(cmd->response, &resp, sizeof(resp), out_len);
	return 0;
}

int fake_destroy_id(struct fake_file *file, const void *in, size_t out_len)
{
	const struct rdma_ucm_destroy_id *cmd = in;
	struct rdma_ucm_destroy_id_resp resp;
	struct fake_id *id;
	int err;

	if (out_len < sizeof(resp))
		return -ENOSPC;
	err = find_any(file, cmd->id, &id);
	if (err)
		return err;
	resp.events_reported = id->events_reported;
	fake_wait_for_answer(id);
	fake_id_free(id);
	fake_respond(cmd->response, &resp, sizeof(resp), out_len);
	return 0;
}

/* Written to the new file; the command names the old one. */
int fake_migrate_id(struct fake_file *file, const void *in, size_t out_len)
{
	const struct rdma_ucm_migrate_id *cmd = in;
	struct rdma_ucm_migrate_resp resp;
	struct fake_file *old = fake_file_of((int)cmd->fd);
	struct fake_id *id;
	int err;

	if (!old)
		return fcntl((int)cmd->fd, F_GETFD) < 0 ? -ENOENT : -EINVAL;
	err = fake_id_find(old, cmd->id, &id);
	if (err)
		return err;
	resp.events_reported = id->events_reported;
	if (old != file) {
		fake_events_move(id, old, file);
		id->file = file;
	}
	fake_respond(cmd->response, &resp, sizeof(resp), out_len);
	return 0;
}

static int set_reuseaddr(struct fake_id *id, bool on)
{
	if (!(on && id->state != FAKE_LISTEN) && id->state != FAKE_IDLE)
		return -EINVAL;
	id->reuseaddr = on;
	return 0;
}

static int set_afonly(struct fake_id *id, bool on)
{
	if (id->state != FAKE_IDLE && id->state != FAKE_ADDR_BOUND)
		return -EINVAL;
	id->afonly = on;
	id->afonly_set = true;
	return 0;
}

static int set_ack_timeout(struct fake_id *id, uint8_t timeout)
{
	if (id->qp_type != IBV_QPT_RC && id->qp_type != IBV_QPT_XRC_SEND)
		return -EINVAL;
	id->ack_timeout = timeout;
	id->has_ack_timeout = true;
	return 0;
}

static int set_id_option(struct fake_id *id, uint32_t name, const void *value, size_t len)
{
	int number = 0;

	switch (name) {
	case RDMA_OPTION_ID_TOS:
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		if (len != sizeof(uint8_t))
			return -EINVAL;
		if (name == RDMA_OPTION_ID_ACK_TIMEOUT)
			return set_ack_timeout(id, *(const uint8_t *)value);
		id->tos = *(const uint8_t *)value;
		return 0;
	case RDMA_OPTION_ID_REUSEADDR:
	case RDMA_OPTION_ID_AFONLY:
		if (len != sizeof(number))
			return -EINVAL;
		memcpy(&number, value, sizeof(number));
		return name == RDMA_OPTION_ID_AFONLY ? set_afonly(id, number != 0)
						     : set_reuseaddr(id, number != 0);
	}
	return -ENOSYS;
}

/* A ready-made path stands in for the answer to RESOLVE_ROUTE. */
static int set_ib_path(struct fake_id *id, const void *value, size_t len)
{
	const struct ib_path_rec_data *path = value;
	uint32_t wanted = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL;
	size_t i, n = len / sizeof(*path);

	if (len % sizeof(*path))
		return -EINVAL;
	for (i = 0; i < n && path[i].flags != wanted; i++)
		;
	if (i == n || !id->device || id->state != FAKE_ADDR_RESOLVED)
		return -EINVAL;
	id->state = FAKE_ROUTE_RESOLVED;
	fake_event_post(id, FAKE_EV_ROUTE_RESOLVED, 0);
	return 0;
}

int fake_set_option(struct fake_file *file, const void *in, size_t out_len)
{
	const struct rdma_ucm_set_option *cmd = in;
	const void *value = (const void *)(uintptr_t)cmd->optval;
	struct fake_id *id;
	int err = fake_id_find(file, cmd->id, &id);

	if (err)
		return err;
	if (cmd->optlen && !value)
		return -EFAULT;
	if (cmd->level == RDMA_OPTION_ID)
		return set_id_option(id, cmd->optname, value, cmd->optlen);
	if (cmd->level == RDMA_OPTION_IB && cmd->optname == RDMA_OPTION_IB_PATH)
		return set_ib_path(id, value, cmd->optlen);
	return -ENOSYS;
}

/*
 * The kernel drops its id without a word to the peer: the device is gone. Of an iWARP peer's answer
 * nobody is told any more, but the driver goes on to wait for it.
 */
static void remove_device_from(struct fake_id *id)
{
	if (fake_is_iwarp(id) && id->conn == FAKE_REQ_SENT)
		id->held_until_us = evr_clock_now_us() + ANSWER_US;
	fake_event_post(id, FAKE_EV_DEVICE_REMOVAL, 0);
	/* The kernel ends the id right then, which on iWARP has the queue pair. */
	if (fake_is_iwarp(id))
		fake_qp_fail(id->qp_num);
	id->conn = FAKE_CONN_NONE;
	id->closed = true;
}

void fake_cm_device_removed(struct fake_device *device)
{
	struct fake_id *id;
	uint32_t i;

	FAKE_FOREACH_ID(id, i)
	if (id->device == device && !id->closed)
		remove_device_from(id);
}
