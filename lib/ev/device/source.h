/* Where a connection comes from, when the user named a device, a port or a GID. */
#ifndef EVR_EV_SOURCE_H
#define EVR_EV_SOURCE_H

#include <stdbool.h>
#include <sys/socket.h>

struct evrdma_base;
struct rdma_cm_id;

struct evr_source {
	char *device;  /* NULL: any */
	int port_num;  /* 0: any */
	int gid_index; /* -1: any */
};

/* device is copied. 0, -EINVAL for a port or a GID without a device, or -ENOMEM. */
int evr_source_init(struct evr_source *source, const char *device, int port_num, int gid_index);
void evr_source_fini(struct evr_source *source);

/*
 * Finds an address of the source in the family, which is set to AF_UNSPEC when any may do: where
 * GIDs are no addresses, evr_source_matches() says later. Slow: it may open the device. 0; -ENODEV
 * for no such device or port; -EADDRNOTAVAIL when the GID is no address of the family.
 */
int evr_source_find(const struct evr_source *source, struct evrdma_base *base, int family,
	struct sockaddr_storage *addr);
bool evr_source_matches(const struct evr_source *source, const struct rdma_cm_id *cm);

#endif
