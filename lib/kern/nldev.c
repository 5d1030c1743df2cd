#include "kern/nldev.h"

#include <errno.h>
#include <linux/netlink.h>
#include <netlink/attr.h>
#include <netlink/errno.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <rdma/rdma_netlink.h>
#include <stdio.h>
#include <string.h>

enum { ANY_DEVICE = -1, NAME_MAX_BYTES = 64 };

struct chardev {
	char name[NAME_MAX_BYTES];
	uint32_t driver_id;
	int has_driver_id;
};

/* Of a device or of a request that it does not know the kernel says one of several things. */
static int errno_from_nl(int nlerr)
{
	switch (-nlerr) {
	case NLE_NOMEM:
		return -ENOMEM;
	case NLE_PERM:
	case NLE_NOACCESS:
		return -EPERM;
	case NLE_NODEV:
	case NLE_INVAL:
	case NLE_OPNOTSUPP:
	case NLE_OBJ_NOTFOUND:
		return -ENODEV;
	default:
		return errno ? -errno : -EIO;
	}
}

/* The attribute is 32 bits wide on the wire and 64 in the header's comment: take both. */
static void parse_driver_id(struct chardev *dev, const struct nlattr *attr)
{
	if (!attr || nla_len(attr) < (int)sizeof(uint32_t))
		return;
	dev->driver_id =
		nla_len(attr) == sizeof(uint64_t) ? (uint32_t)nla_get_u64(attr) : nla_get_u32(attr);
	dev->has_driver_id = 1;
}

static int parse_chardev(struct nl_msg *msg, void *arg)
{
	struct nlattr *tb[RDMA_NLDEV_ATTR_MAX] = { 0 };
	struct chardev *dev = arg;

	if (nlmsg_parse(nlmsg_hdr(msg), 0, tb, RDMA_NLDEV_ATTR_MAX - 1, NULL) < 0)
		return NL_STOP;
	if (tb[RDMA_NLDEV_ATTR_CHARDEV_NAME])
		nla_strlcpy(dev->name, tb[RDMA_NLDEV_ATTR_CHARDEV_NAME], sizeof(dev->name));
	parse_driver_id(dev, tb[RDMA_NLDEV_ATTR_UVERBS_DRIVER_ID]);
	return NL_STOP;
}

static struct nl_msg *chardev_request(const char *type, int ibdev_index)
{
	const int op = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET_CHARDEV);
	struct nl_msg *msg = nlmsg_alloc_simple(op, 0);

	if (!msg)
		return NULL;
	if (nla_put_string(msg, RDMA_NLDEV_ATTR_CHARDEV_TYPE, type) < 0)
		goto fail;
	if (ibdev_index != ANY_DEVICE &&
		nla_put_u32(msg, RDMA_NLDEV_ATTR_DEV_INDEX, (uint32_t)ibdev_index) < 0)
		goto fail;
	return msg;
fail:
	nlmsg_free(msg);
	return NULL;
}

static int exchange(struct nl_sock *sock, const char *type, int ibdev_index, struct chardev *dev)
{
	struct nl_msg *msg;
	int ret;

	nl_socket_disable_auto_ack(sock);
	ret = nl_socket_modify_cb(sock, NL_CB_VALID, NL_CB_CUSTOM, parse_chardev, dev);
	if (ret < 0)
		return errno_from_nl(ret);
	ret = nl_connect(sock, NETLINK_RDMA);
	if (ret < 0)
		return errno_from_nl(ret);
	msg = chardev_request(type, ibdev_index);
	if (!msg)
		return -ENOMEM;
	ret = nl_send_auto(sock, msg);
	nlmsg_free(msg);
	if (ret >= 0)
		ret = nl_recvmsgs_default(sock);
	return ret < 0 ? errno_from_nl(ret) : 0;
}

static int get_chardev(const char *type, int ibdev_index, struct chardev *dev)
{
	struct nl_sock *sock = nl_socket_alloc();
	int ret;

	if (!sock)
		return -ENOMEM;
	errno = 0;
	ret = exchange(sock, type, ibdev_index, dev);
	nl_socket_free(sock);
	return ret;
}

int evr_nldev_find_cm_device(char *path, size_t size)
{
	struct chardev dev = { 0 };
	int ret = get_chardev("rdma_cm", ANY_DEVICE, &dev);

	if (ret)
		return ret;
	if (!dev.name[0] || strchr(dev.name, '/'))
		return -ENODEV;
	ret = snprintf(path, size, "/dev/infiniband/%s", dev.name);
	return (size_t)ret < size ? 0 : -ENAMETOOLONG;
}

int evr_nldev_find_driver_id(int ibdev_index, uint32_t *driver_id)
{
	struct chardev dev = { 0 };
	int ret = get_chardev("uverbs", ibdev_index, &dev);

	if (ret)
		return ret;
	if (!dev.has_driver_id)
		return -ENOENT;
	*driver_id = dev.driver_id;
	return 0;
}
