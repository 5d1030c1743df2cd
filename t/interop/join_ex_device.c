/* The cases of rdma_join_multicast_ex() on a device: join_ex.sh starts it. */
#include "interop/join_ex.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct join_ex_testbed join_ex_testbed;

static const char *env(const char *name)
{
	const char *value = getenv(name);

	if (!value) {
		fprintf(stderr, "%s is not set: run t/interop/join_ex.sh\n", name);
		exit(2);
	}
	return value;
}

/* /proc/net/igmp has a line for each group, its address as a number in this machine's order. */
static bool is_listed(const char *group)
{
	FILE *list = fopen("/proc/net/igmp", "r");
	unsigned long wanted = inet_addr(group);
	char line[256], *end;
	bool found = false;

	ck_assert_ptr_nonnull(list);
	while (fgets(line, sizeof(line), list))
		found |= strtoul(line, &end, 16) == wanted && end != line && line[0] == '\t';
	fclose(list);
	return found;
}

/* Each test is a process of its own. */
static void check_nothing_left(void)
{
	char command[256], left[512];
	FILE *listing;
	size_t n;

	snprintf(command, sizeof(command),
		"for k in qp cq mr pd cm_id; do rdma resource show $k; done | grep ' pid %d '",
		(int)getpid());
	listing = popen(command, "r");
	ck_assert_ptr_nonnull(listing);
	n = fread(left, 1, sizeof(left) - 1, listing);
	left[n] = '\0';
	pclose(listing);
	ck_assert_msg(!n, "%s", left);
}

int main(void)
{
	join_ex_testbed.ip = env("EVR_IP4");
	join_ex_testbed.has_groups = strcmp(env("EVR_KIND"), "siw") != 0;
	join_ex_testbed.own_core = !strcmp(env("EVR_CORE"), "ours");
	join_ex_testbed.is_listed = is_listed;
	return join_ex_run(NULL, check_nothing_left);
}
