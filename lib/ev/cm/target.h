/* Where a connection may lead: addresses that are tried in turn. */
#ifndef EVR_EV_TARGET_H
#define EVR_EV_TARGET_H

#include <event2/util.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

struct rdma_addrinfo;

enum { EVR_TARGET_DATA_MAX = 255 };

struct evr_conn_target {
	struct sockaddr_storage src; /* AF_UNSPEC: any */
	struct sockaddr_storage dst;
	int port_space; /* 0: the connection's */
	unsigned turns; /* that it had, and was postponed */
	unsigned ports; /* that it was tried from, beside the first */
	size_t data_len;
	unsigned char data[EVR_TARGET_DATA_MAX]; /* goes before the private data */
};

struct evr_targets {
	struct evr_conn_target *list;
	size_t count;
	size_t at;
};

/*
 * Each takes copies in place of what was there. src may be NULL. 0; -ENOMEM; -EAFNOSUPPORT for no
 * address that RDMA knows; -EINVAL for no result that a connection can use.
 */
int evr_targets_set(
	struct evr_targets *targets, const struct sockaddr *src, const struct sockaddr *dst);
int evr_targets_set_names(struct evr_targets *targets, const struct sockaddr *src,
	const struct evutil_addrinfo *addresses);
int evr_targets_set_results(struct evr_targets *targets, const struct sockaddr *src,
	const struct rdma_addrinfo *results);
void evr_targets_fini(struct evr_targets *targets);

/* The one that is tried. */
struct evr_conn_target *evr_targets_get(struct evr_targets *targets);
/* It failed. Goes on to the next one; false when there is none. */
bool evr_targets_next(struct evr_targets *targets);
/* Whether it may be tried from another port: none was given, and that is not done for ever. */
bool evr_targets_other_port(struct evr_targets *targets);
/*
 * How long it may take when the first turn of each takes turn_ms, and each later one twice as long
 * as the one before: who is slow is found in the end, who is dead costs little. 0: as long as it
 * takes, for no other is left.
 */
int evr_targets_turn_ms(const struct evr_targets *targets, int turn_ms);
/* Its turn is over without an answer: it has another one after the others. */
void evr_targets_postpone(struct evr_targets *targets);
/* There is no next one any more. */
void evr_targets_settle(struct evr_targets *targets);

#endif
