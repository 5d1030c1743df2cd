/*
 * Which sockets are taken. A rule is a line of four words:
 *
 *	PROGRAM DOMAIN TYPE PROTOCOL
 *
 * PROGRAM is what the name of the program begins with; DOMAIN is inet, inet6 or ib, TYPE stream or
 * dgram, PROTOCOL tcp or udp, in capitals or not, also as AF_INET, SOCK_STREAM, IPPROTO_TCP; * is
 * all of a kind, but datagrams are taken only where TYPE says so. Without any rule all streams are
 * taken.
 */
#ifndef EVR_PRELOAD_RULES_H
#define EVR_PRELOAD_RULES_H

#include <stdbool.h>
#include <stdio.h>

struct evr_pre_rules;

/* Lines that are no rule are passed over. NULL: there is no memory. */
struct evr_pre_rules *evr_pre_rules_read(FILE *file);
void evr_pre_rules_free(struct evr_pre_rules *rules);
bool evr_pre_rules_match(const struct evr_pre_rules *rules, const char *program, int domain,
	int type, int protocol);

#endif
