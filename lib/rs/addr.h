/* Addresses of datagrams. Inside, IPv4 is AF_INET, also that which IPv6 has mapped. */
#ifndef EVR_RS_ADDR_H
#define EVR_RS_ADDR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "proto/dgram.h"

union evr_rs_addr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/*
 * From what a user or the kernel gives: with a scope only where it is a part of the address.
 * -EINVAL: it is too short; -EAFNOSUPPORT: of another domain than the socket.
 */
int evr_rs_addr_set(
	union evr_rs_addr *addr, int domain, const struct sockaddr *from, socklen_t len);
/* As a socket of that domain has it; returns its length. */
socklen_t evr_rs_addr_for(const union evr_rs_addr *addr, int domain, union evr_rs_addr *to);
/* The same, as much as there is room for. */
socklen_t evr_rs_addr_copy(
	const union evr_rs_addr *addr, int domain, struct sockaddr *to, socklen_t room);

uint16_t evr_rs_addr_port(const union evr_rs_addr *addr);
void evr_rs_addr_set_port(union evr_rs_addr *addr, uint16_t port);
bool evr_rs_addr_equal(const union evr_rs_addr *a, const union evr_rs_addr *b);
uint32_t evr_rs_addr_hash(const union evr_rs_addr *addr);
bool evr_rs_addr_is_any(const union evr_rs_addr *addr);
/* One host's, not a group's or everybody's. */
bool evr_rs_addr_is_host(const union evr_rs_addr *addr);

/* 4 or 6, and the bytes of it as they are sent. */
uint8_t evr_rs_addr_version(const union evr_rs_addr *addr);
void evr_rs_addr_bytes(const union evr_rs_addr *addr, uint8_t bytes[16]);
/* Who a packet says that it is from. */
void evr_rs_addr_from_header(union evr_rs_addr *addr, const struct evr_dgram_header *header);

#endif
