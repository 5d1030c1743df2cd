/* The cases of rdma_join_multicast_ex(), and where they run. */
#ifndef INTEROP_JOIN_EX_H
#define INTEROP_JOIN_EX_H

#include <check.h>
#include <stdbool.h>

struct join_ex_testbed {
	const char *ip;	 /* an address of the device */
	bool has_groups; /* false: it knows no multicast, like iWARP */
	bool own_core;	 /* false: null pointers are not looked at */
	/* Whether the kernel's list of IGMP memberships has the group; NULL: there is none. */
	bool (*is_listed)(const char *group);
};

extern struct join_ex_testbed join_ex_testbed;

/* The cases that the testbed can have, between the fixtures; what main() returns. */
int join_ex_run(SFun setup, SFun teardown);

#endif
