/* Device list, contexts, and what they can be asked. */
#include "fake/fake_verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VECTORS = 2 };

static struct fake_device *device_of(struct ibv_device *device)
{
	return fake_of(device, fake_device, verbs);
}

#undef ibv_get_device_list
struct ibv_device **ibv_get_device_list(int *count)
{
	struct ibv_device **list;
	int kind, n = 0;

	FAKE_GUARD();
	if (count)
		*count = 0;
	FAKE_VERB_NULL(NULL, "ibv_get_device_list");
	list = fake_alloc((FAKE_KINDS + 1) * sizeof(struct ibv_device *));
	for (kind = 0; kind < FAKE_KINDS; kind++)
		if (fake_device((enum fake_kind)kind)->present)
			list[n++] = &fake_device((enum fake_kind)kind)->verbs;
	if (count)
		*count = n;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

__be64 ibv_get_device_guid(struct ibv_device *device)
{
	return device_of(device)->guid;
}

int ibv_get_device_index(struct ibv_device *device)
{
	return device_of(device)->index;
}

static int query_port(
	struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr, size_t size)
{
	FAKE_GUARD();
	FAKE_VERB(fake_context_of(context), "ibv_query_port");
	if (port_num != 1)
		return EINVAL;
	memset(attr, 0, size);
	memcpy(attr, &fake_context_of(context)->device->port,
		size < sizeof(struct ibv_port_attr) ? size : sizeof(struct ibv_port_attr));
	return 0;
}

static void context_fini(struct fake_node *node)
{
	struct fake_context *context = fake_of(node, fake_context, node);

	fake_async_purge(context, NULL);
	fake_bell_close(&context->async_bell);
	close(context->v.context.cmd_fd);
	pthread_mutex_destroy(&context->v.context.mutex);
	if (!context->gone)
		context->device->contexts--;
}

static void set_operations(struct verbs_context *v)
{
	v->sz = sizeof(*v);
	v->query_port = query_port;
	v->create_qp_ex = fake_create_qp_ex;
	v->create_srq_ex = fake_create_srq_ex;
	v->get_srq_num = fake_get_srq_num;
	v->open_xrcd = fake_open_xrcd;
	v->close_xrcd = fake_close_xrcd;
	v->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	v->context.ops.poll_cq = fake_poll_cq;
	v->context.ops.req_notify_cq = fake_req_notify_cq;
	v->context.ops.post_send = fake_post_send;
	v->context.ops.post_recv = fake_post_recv;
	v->context.ops.post_srq_recv = fake_post_srq_recv;
}

struct ibv_context *ibv_open_device(struct ibv_device *verbs)
{
	struct fake_device *device = device_of(verbs);
	struct fake_context *context;
	struct fake_bell async, command;

	FAKE_GUARD();
	FAKE_VERB_NULL(NULL, "ibv_open_device");
	if (!device->present) {
		errno = ENODEV;
		return NULL;
	}
	if (fake_bell_open(&async, O_CLOEXEC))
		return NULL;
	if (fake_bell_open(&command, O_CLOEXEC)) {
		close(async.fd);
		errno = EMFILE;
		return NULL;
	}
	context = fake_node_new(sizeof(*context), FAKE_CONTEXT, NULL);
	context->device = device;
	device->contexts++;
	TAILQ_INIT(&context->async);
	context->async_bell = async;
	context->node.fini = context_fini;
	set_operations(&context->v);
	context->v.context.device = verbs;
	context->v.context.cmd_fd = command.fd;
	context->v.context.async_fd = context->async_bell.fd;
	context->v.context.num_comp_vectors =
		device->profile->comp_vectors ? device->profile->comp_vectors : VECTORS;
	pthread_mutex_init(&context->v.context.mutex, NULL);
	return &context->v.context;
}

/* The program goes on with what it has; the kernel has it no more. */
static void disassociate(struct fake_context *context)
{
	const struct ibv_async_event fatal = { .event_type = IBV_EVENT_DEVICE_FATAL };

	fake_async_raise(context, &fatal);
	fake_channels_end(context);
	fake_qps_detach(context);
	fake_nodes_lose(context);
	context->gone = true;
	context->device->contexts--;
}

void fake_verbs_device_removed(struct fake_device *device)
{
	struct fake_context *context;
	struct fake_node *node = NULL;

	while ((node = fake_node_next(FAKE_CONTEXT, node))) {
		context = fake_of(node, fake_context, node);
		if (context->device == device && !context->gone)
			disassociate(context);
	}
}

int fake_lost_descriptors(void)
{
	struct fake_node *node = NULL;
	int n = 0;

	FAKE_GUARD();
	while ((node = fake_node_next(FAKE_CONTEXT, node)))
		n += node->lost ? 2 : 0;
	while ((node = fake_node_next(FAKE_CHANNEL, node)))
		n += node->lost;
	return n;
}

static unsigned objects_on(const struct fake_context *context)
{
	unsigned kind, n = 0;

	for (kind = 0; kind < FAKE_OBJECTS; kind++)
		n += context->objects[kind];
	return n;
}

/* In reality the kernel takes what is left and the library's memory is lost. */
int ibv_close_device(struct ibv_context *verbs)
{
	struct fake_context *context = fake_context_of(verbs);

	FAKE_GUARD();
	fake_fault_release(FAKE_VERBS, "ibv_close_device");
	if (context->gone) {
		fake_nodes_free(context);
		return 0;
	}
	if (objects_on(context)) {
		fake_misuse("a context was closed with %u objects on it", objects_on(context));
		return 0;
	}
	fake_node_free(&context->node);
	return 0;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	FAKE_GUARD();
	FAKE_VERB(fake_context_of(context), "ibv_query_device");
	*attr = fake_context_of(context)->device->attr;
	return 0;
}

#undef ibv_query_port
int ibv_query_port(
	struct ibv_context *context, uint8_t port_num, struct _compat_ibv_port_attr *attr)
{
	return query_port(context, port_num, (struct ibv_port_attr *)attr,
		offsetof(struct ibv_port_attr, flags));
}

static int minus_one(int err)
{
	errno = err;
	return -1;
}

int ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid)
{
	struct fake_device *device = fake_context_of(context)->device;
	int err;

	FAKE_GUARD();
	err = fake_verb_fault(fake_context_of(context), "ibv_query_gid");
	if (err)
		return minus_one(err);
	if (port_num != 1 || index < 0 || index >= device->gid_count)
		return minus_one(EINVAL);
	*gid = device->gids[index];
	return 0;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey)
{
	int err;

	FAKE_GUARD();
	err = fake_verb_fault(fake_context_of(context), "ibv_query_pkey");
	if (err)
		return minus_one(err);
	if (port_num != 1 || index)
		return minus_one(EINVAL);
	*pkey = 0xffff;
	return 0;
}

int ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey)
{
	return port_num == 1 && pkey == 0xffff ? 0 : -1;
}

static bool is_gap(const union ibv_gid *gid)
{
	static const union ibv_gid none;

	return !memcmp(gid, &none, sizeof(none));
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t index,
	struct ibv_gid_entry *entry, uint32_t flags, size_t size)
{
	struct fake_device *device = fake_context_of(context)->device;

	FAKE_GUARD();
	FAKE_VERB(fake_context_of(context), "ibv_query_gid_ex");
	if (port_num != 1 || flags || size < sizeof(*entry))
		return EINVAL;
	if (index >= (uint32_t)device->gid_count || is_gap(&device->gids[index]))
		return ENODATA;
	memset(entry, 0, size);
	entry->gid = device->gids[index];
	entry->gid_index = index;
	entry->port_num = 1;
	entry->gid_type = IBV_GID_TYPE_IB;
	if (device->kind == FAKE_ROCE)
		entry->gid_type = fake_gid_is_v2(device, index) ? IBV_GID_TYPE_ROCE_V2
								: IBV_GID_TYPE_ROCE_V1;
	return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max,
	uint32_t flags, size_t size)
{
	uint32_t n = (uint32_t)fake_context_of(context)->device->gid_count;
	uint32_t i, found = 0;
	int err;

	for (i = 0; i < n && found < max; i++) {
		err = _ibv_query_gid_ex(context, 1, i, &entries[found], flags, size);
		if (err && err != ENODATA)
			return -err;
		found += !err;
	}
	return found;
}

/* --- the ioctl that tells which objects live on a context --- */

static struct fake_context *context_of_fd(int fd)
{
	struct fake_node *node = NULL;

	while ((node = fake_node_next(FAKE_CONTEXT, node)))
		if (fake_of(node, fake_context, node)->v.context.cmd_fd == fd)
			return fake_of(node, fake_context, node);
	return NULL;
}

static int object_kind(uint64_t object, enum fake_object *kind)
{
	switch (object) {
	case UVERBS_OBJECT_PD:
		*kind = FAKE_PD;
		return 0;
	case UVERBS_OBJECT_COMP_CHANNEL:
		*kind = FAKE_CHANNEL;
		return 0;
	case UVERBS_OBJECT_CQ:
		*kind = FAKE_CQ;
		return 0;
	case UVERBS_OBJECT_QP:
		*kind = FAKE_QP;
		return 0;
	case UVERBS_OBJECT_XRCD:
		*kind = FAKE_XRCD;
		return 0;
	case UVERBS_OBJECT_SRQ:
		*kind = FAKE_SRQ;
		return 0;
	case UVERBS_OBJECT_AH:
		*kind = FAKE_AH;
		return 0;
	case UVERBS_OBJECT_MR:
		*kind = FAKE_MR;
		return 0;
	}
	return -ENOMSG;
}

static struct ib_uverbs_attr *attr_of(struct ib_uverbs_ioctl_hdr *hdr, unsigned number)
{
	unsigned i;

	for (i = 0; i < hdr->num_attrs; i++)
		if (hdr->attrs[i].attr_id == number)
			return &hdr->attrs[i];
	return NULL;
}

static int info_handles(struct fake_context *context, struct ib_uverbs_ioctl_hdr *hdr)
{
	struct ib_uverbs_attr *object = attr_of(hdr, UVERBS_ATTR_INFO_OBJECT_ID);
	struct ib_uverbs_attr *total = attr_of(hdr, UVERBS_ATTR_INFO_TOTAL_HANDLES);
	struct ib_uverbs_attr *list = attr_of(hdr, UVERBS_ATTR_INFO_HANDLES_LIST);
	enum fake_object kind;
	uint32_t max, n;
	int err;

	if (!object || object->len != sizeof(uint64_t) || !total || total->len < sizeof(n) ||
		!list || !list->len || list->len % sizeof(uint32_t))
		return -EINVAL;
	err = object_kind(object->data, &kind);
	if (err)
		return err;
	max = list->len / (uint32_t)sizeof(uint32_t);
	n = fake_node_handles(kind, context, (uint32_t *)(uintptr_t)list->data, max);
	if (n > max)
		n = max;
	memcpy((void *)(uintptr_t)total->data, &n, sizeof(n));
	return 0;
}

enum { FIRST_DRIVER_ID = 100 };

int fake_verbs_driver(int index, uint32_t *driver_id)
{
	int kind;

	for (kind = 0; kind < FAKE_KINDS; kind++) {
		const struct fake_device *device = fake_device((enum fake_kind)kind);

		if (!device->present || device->index != index)
			continue;
		*driver_id = (uint32_t)(FIRST_DRIVER_ID + kind);
		return 0;
	}
	return -ENODEV;
}

int fake_verbs_ioctl(int fd, unsigned long request, void *arg)
{
	struct fake_context *context = context_of_fd(fd);
	struct ib_uverbs_ioctl_hdr *hdr = arg;

	if (!context)
		return -EBADF;
	if (context->gone)
		return -EIO;
	if (request != RDMA_VERBS_IOCTL)
		return -ENOTTY;
	if (hdr->length != sizeof(*hdr) + hdr->num_attrs * sizeof(hdr->attrs[0]))
		return -EINVAL;
	if (hdr->object_id != UVERBS_OBJECT_DEVICE || hdr->method_id != UVERBS_METHOD_INFO_HANDLES)
		return -EPROTONOSUPPORT;
	if (hdr->driver_id != FIRST_DRIVER_ID + (uint32_t)context->device->kind)
		return -EINVAL;
	return info_handles(context, hdr);
}
