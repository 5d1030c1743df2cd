/* Where RDMA leads: what can be known without asking the network. */
#ifndef EVR_PRELOAD_ROUTE_H
#define EVR_PRELOAD_ROUTE_H

#include <stdbool.h>
#include <sys/socket.h>

/* An IPv4 address in the clothes of IPv6 becomes one of IPv4, and the other way round. */
void evr_pre_unmap(struct sockaddr_storage *addr);
void evr_pre_map(struct sockaddr_storage *addr);
/* The loopback's: no RDMA device has it. */
bool evr_pre_is_local(const struct sockaddr_storage *addr);
/* What the socket is bound to. 0 or -errno. */
int evr_pre_own_addr(int tcp, struct sockaddr_storage *addr);
/* The address that a connection of the socket would come from; -ENODEV: the loopback's. */
int evr_pre_source(int tcp, const struct sockaddr_storage *to, struct sockaddr_storage *from);

#endif
