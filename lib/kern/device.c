#include "kern/device.h"
#include "kern/sys.h"
#include "kern/ucma.h"

#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>

/*
 * Whatever a program can hold on to either is one of these or hangs on one, but for objects of a
 * driver's own. Those that have some take all away with the device, and fail to tell.
 */
static const struct root {
	uint16_t object;
	bool is_everywhere;
} roots[] = {
	{ UVERBS_OBJECT_PD, true },
	{ UVERBS_OBJECT_CQ, true },
	{ UVERBS_OBJECT_COMP_CHANNEL, true },
	{ UVERBS_OBJECT_XRCD, false },
	{ UVERBS_OBJECT_DM, false },
	{ UVERBS_OBJECT_COUNTERS, false },
	{ UVERBS_OBJECT_FLOW_ACTION, false },
};

bool evr_device_key_equal(const struct evr_device_key *a, const struct evr_device_key *b)
{
	if (a->ibdev_index != EVR_UCMA_NO_INDEX && b->ibdev_index != EVR_UCMA_NO_INDEX)
		return a->ibdev_index == b->ibdev_index;
	return a->node_guid == b->node_guid;
}

/* The kernel lists as many handles as fit and counts what it lists: room for one will do. */
static int count_objects(int cmd_fd, uint32_t driver_id, uint16_t object)
{
	enum { NUM_ATTRS = 3 };
	uint32_t total = 0, first = 0;
	union {
		struct ib_uverbs_ioctl_hdr hdr;
		uint8_t bytes[sizeof(struct ib_uverbs_ioctl_hdr) +
			      NUM_ATTRS * sizeof(struct ib_uverbs_attr)];
	} cmd = { .bytes = { 0 } };
	struct ib_uverbs_attr *attr = cmd.hdr.attrs;
	int ret;

	cmd.hdr.length = sizeof(cmd);
	cmd.hdr.object_id = UVERBS_OBJECT_DEVICE;
	cmd.hdr.method_id = UVERBS_METHOD_INFO_HANDLES;
	cmd.hdr.num_attrs = NUM_ATTRS;
	cmd.hdr.driver_id = driver_id;
	attr[0] = (struct ib_uverbs_attr){
		.attr_id = UVERBS_ATTR_INFO_OBJECT_ID,
		.len = sizeof(uint64_t),
		.flags = UVERBS_ATTR_F_MANDATORY,
		.data = object,
	};
	attr[1] = (struct ib_uverbs_attr){
		.attr_id = UVERBS_ATTR_INFO_TOTAL_HANDLES,
		.len = sizeof(total),
		.flags = UVERBS_ATTR_F_MANDATORY,
		.data = (uint64_t)(uintptr_t)&total,
	};
	attr[2] = (struct ib_uverbs_attr){
		.attr_id = UVERBS_ATTR_INFO_HANDLES_LIST,
		.len = sizeof(first),
		.flags = UVERBS_ATTR_F_MANDATORY,
		.data = (uint64_t)(uintptr_t)&first,
	};
	ret = evr_sys->ioctl(cmd_fd, RDMA_VERBS_IOCTL, &cmd);
	return ret < 0 ? ret : (int)total;
}

int evr_device_find_driver(const struct evr_device_key *key, uint32_t *driver_id)
{
	if (key->ibdev_index == EVR_UCMA_NO_INDEX)
		return -ENODEV;
	return evr_sys->find_driver_id((int)key->ibdev_index, driver_id);
}

int evr_device_in_use(int cmd_fd, uint32_t driver_id)
{
	size_t i;
	int ret;

	for (i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
		ret = count_objects(cmd_fd, driver_id, roots[i].object);
		/* A kind that the driver does not have at all is one that nobody holds. */
		if (ret < 0 && !roots[i].is_everywhere)
			continue;
		if (ret)
			return ret > 0 ? 1 : ret;
	}
	return 0;
}
