#include "schedule/resources.h"

#include <errno.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <rdma/rdma_netlink.h>
#include <string.h>

const char *const resource_names[RESOURCES] = { "pd", "cq", "qp", "cm_id", "mr", "ctx", "srq" };

static void add(uint64_t counts[RESOURCES], struct nlattr *entry)
{
	struct nlattr *name =
		nla_find(nla_data(entry), nla_len(entry), RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME);
	struct nlattr *now =
		nla_find(nla_data(entry), nla_len(entry), RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR);
	int i;

	if (!name || !now)
		return;
	for (i = 0; i < RESOURCES; i++)
		if (!strcmp(nla_get_string(name), resource_names[i]))
			counts[i] += nla_get_u64(now);
}

static int on_device(struct nl_msg *msg, void *counts)
{
	struct nlattr *summary = nlmsg_find_attr(nlmsg_hdr(msg), 0, RDMA_NLDEV_ATTR_RES_SUMMARY);
	struct nlattr *entry;
	int left;

	if (summary)
		nla_for_each_nested(entry, summary, left) add(counts, entry);
	return NL_OK;
}

int resources_count(uint64_t counts[RESOURCES])
{
	struct nl_sock *sock = nl_socket_alloc();
	int ret;

	memset(counts, 0, RESOURCES * sizeof(*counts));
	if (!sock)
		return -ENOMEM;
	nl_socket_modify_cb(sock, NL_CB_VALID, NL_CB_CUSTOM, on_device, counts);
	ret = nl_connect(sock, NETLINK_RDMA);
	if (!ret)
		ret = nl_send_simple(sock, RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_GET),
			NLM_F_DUMP, NULL, 0);
	if (ret >= 0)
		ret = nl_recvmsgs_default(sock);
	nl_socket_free(sock);
	return ret < 0 ? -EIO : 0;
}
