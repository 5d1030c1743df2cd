/* What the devices of this machine are, for options that not every kind has. */
#ifndef TOOLS_CAPABILITY_H
#define TOOLS_CAPABILITY_H

struct rdma_cm_id;

/* Returns whether there is a device here. */
int capability_device(void);

/*
 * Returns whether a device here has a port on an InfiniBand network, or may have: one that cannot
 * be opened is not ruled out. Opens the devices, which takes milliseconds each.
 */
int capability_infiniband(void);

/* Returns whether a device here is InfiniBand's or RoCE's. */
int capability_ib_transport(void);

/* Returns whether a device here has XRC, or cannot be asked. Opens the devices. */
int capability_xrc(void);

/* Returns whether the permissions keep us from opening a device, or the CM's. */
int capability_denied(void);

/* Returns whether the id is on an iWARP device; an id that is NULL or on no device is not. */
int capability_is_iwarp(const struct rdma_cm_id *id);

#endif
