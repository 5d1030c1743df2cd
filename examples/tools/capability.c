#include "capability.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

static int any_device(int (*fits)(struct ibv_device *device), int if_unknown)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	int found = 0;

	if (!devices)
		return if_unknown;
	for (int i = 0; devices[i] && !found; i++)
		found = fits(devices[i]);
	ibv_free_device_list(devices);
	return found;
}

static int any_infiniband_port(struct ibv_context *context)
{
	struct ibv_device_attr device;
	struct ibv_port_attr port;

	if (ibv_query_device(context, &device))
		return 1;
	for (int i = 1; i <= device.phys_port_cnt; i++)
		if (ibv_query_port(context, (uint8_t)i, &port) ||
			port.link_layer != IBV_LINK_LAYER_ETHERNET)
			return 1;
	return 0;
}

static int has_ib_transport(struct ibv_device *device)
{
	return device->transport_type == IBV_TRANSPORT_IB;
}

static int has_infiniband_port(struct ibv_device *device)
{
	struct ibv_context *context;
	int found;

	if (!has_ib_transport(device))
		return 0;
	context = ibv_open_device(device);
	if (!context)
		return 1;
	found = any_infiniband_port(context);
	ibv_close_device(context);
	return found;
}

static int has_xrc(struct ibv_device *device)
{
	struct ibv_context *context = ibv_open_device(device);
	struct ibv_device_attr attr;
	int found;

	if (!context)
		return 1;
	found = ibv_query_device(context, &attr) || attr.device_cap_flags & IBV_DEVICE_XRC;
	ibv_close_device(context);
	return found;
}

static int is_any(struct ibv_device *device)
{
	return device != NULL;
}

int capability_device(void)
{
	return any_device(is_any, 0);
}

int capability_xrc(void)
{
	return any_device(has_xrc, 1);
}

int capability_infiniband(void)
{
	return any_device(has_infiniband_port, 1);
}

int capability_ib_transport(void)
{
	return any_device(has_ib_transport, 1);
}

static int is_denied(const char *name)
{
	char path[sizeof("/dev/infiniband/") + IBV_SYSFS_NAME_MAX];

	snprintf(path, sizeof(path), "/dev/infiniband/%s", name);
	return faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) && errno == EACCES;
}

static int is_device_denied(struct ibv_device *device)
{
	return is_denied(device->dev_name);
}

int capability_denied(void)
{
	return is_denied("rdma_cm") || any_device(is_device_denied, 0);
}

int capability_is_iwarp(const struct rdma_cm_id *id)
{
	return id && id->verbs && id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
}
