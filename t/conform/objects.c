#include "conform/objects.h"

#include <netlink/attr.h>
#include <netlink/errno.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <rdma/rdma_netlink.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAX_DEVICES = 16 };

struct devices {
	uint32_t index[MAX_DEVICES];
	int num;
};

/* What is asked for, and the table that is the answer; in the order of the testbed's counts. */
static const struct kind {
	int command;
	int table;
} kinds[TESTBED_COUNTS] = {
	{ RDMA_NLDEV_CMD_RES_QP_GET, RDMA_NLDEV_ATTR_RES_QP },
	{ RDMA_NLDEV_CMD_RES_CQ_GET, RDMA_NLDEV_ATTR_RES_CQ },
	{ RDMA_NLDEV_CMD_RES_MR_GET, RDMA_NLDEV_ATTR_RES_MR },
	{ RDMA_NLDEV_CMD_RES_PD_GET, RDMA_NLDEV_ATTR_RES_PD },
	{ RDMA_NLDEV_CMD_RES_CM_ID_GET, RDMA_NLDEV_ATTR_RES_CM_ID },
};

struct answer {
	const struct kind *kind;
	int *count;
};

/* The kernel knows an object by the thread that made it, as long as there is that thread. */
static bool is_ours(struct nlattr *entry)
{
	struct nlattr *pid = nla_find(nla_data(entry), nla_len(entry), RDMA_NLDEV_ATTR_RES_PID);
	char path[64];

	if (!pid)
		return false;
	snprintf(path, sizeof(path), "/proc/self/task/%u", nla_get_u32(pid));
	return !access(path, F_OK);
}

static int on_table(struct nl_msg *msg, void *arg)
{
	struct answer *answer = arg;
	struct nlattr *table = nlmsg_find_attr(nlmsg_hdr(msg), 0, answer->kind->table);
	struct nlattr *entry;
	int left;

	if (table)
		nla_for_each_nested(entry, table, left) *answer->count += is_ours(entry);
	return NL_OK;
}

static int on_device(struct nl_msg *msg, void *arg)
{
	struct nlattr *index = nlmsg_find_attr(nlmsg_hdr(msg), 0, RDMA_NLDEV_ATTR_DEV_INDEX);
	struct devices *devices = arg;

	if (index && devices->num < MAX_DEVICES)
		devices->index[devices->num++] = nla_get_u32(index);
	return NL_OK;
}

/* Sends the request and gives each answer to take(). */
static int exchange(struct nl_sock *sock, struct nl_msg *msg, nl_recvmsg_msg_cb_t take, void *arg)
{
	int ret;

	nl_socket_modify_cb(sock, NL_CB_VALID, NL_CB_CUSTOM, take, arg);
	ret = nl_send_auto(sock, msg);
	nlmsg_free(msg);
	return ret < 0 ? ret : nl_recvmsgs_default(sock);
}

static struct nl_msg *request(int command)
{
	return nlmsg_alloc_simple(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command), NLM_F_DUMP);
}

static int find_devices(struct nl_sock *sock, struct devices *devices)
{
	struct nl_msg *msg = request(RDMA_NLDEV_CMD_GET);

	return msg ? exchange(sock, msg, on_device, devices) : -NLE_NOMEM;
}

/* A device that went since it was found has none. */
static int count_kind(struct nl_sock *sock, uint32_t device, const struct kind *kind, int *count)
{
	struct nl_msg *msg = request(kind->command);
	struct answer answer = { kind, count };
	int ret;

	if (!msg)
		return -NLE_NOMEM;
	nla_put_u32(msg, RDMA_NLDEV_ATTR_DEV_INDEX, device);
	ret = exchange(sock, msg, on_table, &answer);
	return ret == -NLE_INVAL || ret == -NLE_NODEV ? 0 : ret;
}

static int count_all(struct nl_sock *sock, int counts[TESTBED_COUNTS])
{
	struct devices devices = { .num = 0 };
	int ret = nl_connect(sock, NETLINK_RDMA);
	int i, k;

	if (!ret)
		ret = find_devices(sock, &devices);
	for (i = 0; ret >= 0 && i < devices.num; i++)
		for (k = 0; ret >= 0 && k < TESTBED_COUNTS; k++)
			ret = count_kind(sock, devices.index[i], &kinds[k], &counts[k]);
	return ret < 0 ? ret : 0;
}

int objects_count(int counts[TESTBED_COUNTS])
{
	struct nl_sock *sock = nl_socket_alloc();
	int ret;

	memset(counts, 0, TESTBED_COUNTS * sizeof(*counts));
	if (!sock)
		return -NLE_NOMEM;
	ret = count_all(sock, counts);
	nl_socket_free(sock);
	return ret;
}
