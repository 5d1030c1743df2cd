/* What RDMA netlink knows about character devices and their drivers. */
#ifndef EVR_KERN_NLDEV_H
#define EVR_KERN_NLDEV_H

#include <stddef.h>
#include <stdint.h>

/* Writes the path of the CM's character device. Asking also loads the module that makes it. */
int evr_nldev_find_cm_device(char *path, size_t size);
/* -ENOENT when the driver does not say. */
int evr_nldev_find_driver_id(int ibdev_index, uint32_t *driver_id);

#endif
