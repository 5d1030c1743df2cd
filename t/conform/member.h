/* A datagram endpoint with its groups, and what happened to them. */
#ifndef EVR_CONFORM_MEMBER_H
#define EVR_CONFORM_MEMBER_H

#include "conform/fixture.h"

#define GROUP_A "239.7.7.1"
#define GROUP_B "239.7.8.2"

struct member {
	struct fixture *f;
	const char *ip; /* testbed.ip */
	uint32_t send_depth;
	unsigned flags;
	int port_space;
	int join_timeout_ms; /* 0: the default */
	struct evrdma_dgram *dgram;
	struct evrdma_mcast *group; /* the first one joined */
	unsigned ready, writable, errors, closed;
	unsigned groups, joined, group_errors, groups_closed;
	int err, group_err;
	enum evrdma_step step;

	unsigned sends_taken, sent_ok, sent_cancelled;
	unsigned received;
	/* of the last one received */
	size_t len;
	bool has_imm, has_grh;
	uint32_t imm, src_qp;
};

/* Makes the endpoint; flags are EVRDMA_DGRAM_OPT_*. */
void member_init(struct member *m, struct fixture *f, unsigned flags);
/* Makes it anew, with what was changed since, and opens it. */
void member_reopen(struct member *m);
void member_open(struct member *m);
/* All at once, until it is a member of the group. */
void member_join(struct member *m, struct fixture *f, unsigned flags, const char *group,
	unsigned join_flags);
/* One more group on an endpoint that is ready. */
void member_join_too(struct member *m, const char *group, unsigned join_flags);
void member_try_join(struct member *m, const struct sockaddr *group, unsigned join_flags);
/* To the first group, in a pattern that the receiving member checks. */
int member_send(struct member *m, size_t len, const uint32_t *imm);

void member_run_until_ready(struct member *m);
void member_run_until_joined(struct member *m);
void member_run_until_failed(struct member *m);
void member_run_until_writable(struct member *m);
void member_run_until_closed(struct member *m);
void member_run_until_group_failed(struct member *m);
void member_run_until_group_closed(struct member *m);
void member_run_until_received(struct member *m, unsigned n);

#endif
