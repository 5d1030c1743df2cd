/* Socket addresses as values. */
#ifndef EVR_EV_ADDR_H
#define EVR_EV_ADDR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* 0 for a family without RDMA. */
socklen_t evr_addr_len(const struct sockaddr *addr);
/* 0, or -EAFNOSUPPORT; NULL gives AF_UNSPEC. */
int evr_addr_copy(struct sockaddr_storage *to, const struct sockaddr *from);

/* In network order; that of an AF_IB address is the end of its service id. */
void evr_addr_set_port(struct sockaddr_storage *addr, uint16_t port);
/* Whether one is given. */
bool evr_addr_has_port(const struct sockaddr_storage *addr);
/* Where none is, and the one that the CM chose is taken, so many others are tried. */
enum { EVR_OTHER_PORTS = 9 };

/* Whether two are of one host, whatever their ports. */
bool evr_addr_same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b);
/* A multicast address, or the zero that asks for an assigned one. */
bool evr_addr_is_group(const struct sockaddr_storage *addr);

#endif
