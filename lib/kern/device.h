/* Which verbs device the kernel means, and what of this process is still alive on one. */
#ifndef EVR_KERN_DEVICE_H
#define EVR_KERN_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

/* A device by the two names the CM gives. An index is never used twice, a GUID may be. */
struct evr_device_key {
	uint64_t node_guid;
	uint32_t ibdev_index; /* EVR_UCMA_NO_INDEX when unknown */
};

bool evr_device_key_equal(const struct evr_device_key *a, const struct evr_device_key *b);

/*
 * Asked while the device is there: of one that is being removed the kernel says -ENODEV, as it does
 * without an index; -ENOENT when the driver does not say. Anything else is the caller's own want.
 */
int evr_device_find_driver(const struct evr_device_key *key, uint32_t *driver_id);

/*
 * Whether the verbs file descriptor still has protection domains, completion queues or channels, or
 * what else stands alone: 1 or 0, or -errno when the kernel cannot tell.
 */
int evr_device_in_use(int cmd_fd, uint32_t driver_id);

#endif
