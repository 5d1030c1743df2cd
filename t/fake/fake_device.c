/* The devices, as both halves see them. */
#include "fake/fake_core.h"

#include <arpa/inet.h>
#include <endian.h>
#include <stdio.h>
#include <string.h>

struct fake_recipe {
	const char *name;
	const char *ip;
	const char *ip6;
	const char *link_gid;
	uint64_t guid;
	enum ibv_node_type node;
	enum ibv_transport_type transport;
	uint8_t link_layer;
	enum ibv_mtu mtu;
	uint16_t lid;
};

static const struct fake_recipe recipes[FAKE_KINDS] = {
	[FAKE_ROCE] = { "fake0", FAKE_ROCE_IP, FAKE_ROCE_IP6, "fe80::5054:ff:fe00:1",
		0x505400fffe000001, IBV_NODE_CA, IBV_TRANSPORT_IB, IBV_LINK_LAYER_ETHERNET,
		IBV_MTU_1024, 0 },
	[FAKE_IWARP] = { "fakeiw0", FAKE_IWARP_IP, FAKE_IWARP_IP6, "5254:0:2::", 0x505400fffe000002,
		IBV_NODE_RNIC, IBV_TRANSPORT_IWARP, IBV_LINK_LAYER_ETHERNET, IBV_MTU_1024, 0 },
	[FAKE_IB] = { "fakeib0", FAKE_IB_IP, FAKE_IB_IP6, FAKE_IB_GID, 0x0002c90300000001,
		IBV_NODE_CA, IBV_TRANSPORT_IB, IBV_LINK_LAYER_INFINIBAND, IBV_MTU_2048, 7 },
};

enum { MELLANOX = 0x15b3 };

static struct fake_device devices[FAKE_KINDS];
static int last_index;

static void limit(int *value, int most)
{
	if (most)
		*value = most < 0 ? 0 : most;
}

static void set_limits(struct ibv_device_attr *attr, const struct fake_profile *profile)
{
	limit(&attr->max_qp_wr, profile->max_qp_wr);
	limit(&attr->max_cqe, profile->max_cqe);
	limit(&attr->max_sge, profile->max_sge);
	limit(&attr->max_sge_rd, profile->max_sge_rd);
	limit(&attr->max_srq, profile->max_srq);
	limit(&attr->max_srq_wr, profile->max_srq < 0 ? -1 : profile->max_srq_wr);
	limit(&attr->max_srq_sge, profile->max_srq < 0 ? -1 : profile->max_sge);
	limit(&attr->max_qp_rd_atom, profile->max_rd_atom);
	limit(&attr->max_qp_init_rd_atom, profile->max_rd_atom);
	limit(&attr->max_mcast_grp, profile->max_mcast_grp);
	if (profile->no_atomics)
		attr->atomic_cap = IBV_ATOMIC_NONE;
}

static void set_attr(struct fake_device *device)
{
	struct ibv_device_attr *attr = &device->attr;

	memset(attr, 0, sizeof(*attr));
	strcpy(attr->fw_ver, "0.0.1");
	attr->node_guid = device->guid;
	attr->sys_image_guid = device->guid;
	attr->max_mr_size = UINT64_MAX;
	attr->page_size_cap = 4096;
	attr->max_qp = 4096;
	attr->max_qp_wr = 16384;
	attr->max_sge = 32;
	attr->max_sge_rd = 32;
	attr->max_cq = 4096;
	attr->max_cqe = 32767;
	attr->max_mr = 65536;
	attr->max_pd = 4096;
	attr->max_qp_rd_atom = 128;
	attr->max_qp_init_rd_atom = 128;
	attr->max_res_rd_atom = 128 * 4096;
	attr->atomic_cap = device->kind == FAKE_IWARP ? IBV_ATOMIC_NONE : IBV_ATOMIC_HCA;
	attr->max_mcast_grp = device->kind == FAKE_IWARP ? 0 : 8192;
	attr->max_mcast_qp_attach = 56;
	attr->max_total_mcast_qp_attach = 8192 * 56;
	attr->max_ah = 32767;
	attr->max_srq = 960;
	attr->max_srq_wr = 16384;
	attr->max_srq_sge = 27;
	attr->max_pkeys = 1;
	if (device->kind == FAKE_IB)
		attr->device_cap_flags |= IBV_DEVICE_XRC;
	attr->phys_port_cnt = 1;
	set_limits(attr, device->profile);
}

static void set_port(struct fake_device *device, const struct fake_recipe *recipe)
{
	struct ibv_port_attr *port = &device->port;

	memset(port, 0, sizeof(*port));
	port->state = IBV_PORT_ACTIVE;
	port->max_mtu = IBV_MTU_4096;
	port->active_mtu = recipe->mtu;
	port->gid_tbl_len = device->gid_count;
	port->max_msg_sz = 0x800000;
	port->pkey_tbl_len = 1;
	port->lid = recipe->lid;
	port->active_width = 1;
	port->active_speed = 1;
	port->phys_state = 5;
	port->link_layer = recipe->link_layer;
}

static void put_ip_gids(const struct fake_device *device, union ibv_gid *ip, union ibv_gid *ip6)
{
	ip->raw[10] = ip->raw[11] = 0xff;
	memcpy(&ip->raw[12], &device->ip, sizeof(device->ip));
	memcpy(ip6->raw, &device->ip6, sizeof(device->ip6));
}

/* With gaps: the link's of RoCE v1 and v2, nothing, then each address in the same two ways. */
static void set_ip_gids(struct fake_device *device)
{
	union ibv_gid *gids = device->gids;

	if (!device->profile->gids_have_gaps) {
		put_ip_gids(device, &gids[1], &gids[2]);
		device->ip_gid = 1;
		device->ip6_gid = 2;
		device->gid_count = 3;
		return;
	}
	gids[1] = gids[0];
	put_ip_gids(device, &gids[3], &gids[5]);
	put_ip_gids(device, &gids[4], &gids[6]);
	device->ip_gid = 4;
	device->ip6_gid = 6;
	device->gid_count = FAKE_GIDS;
}

/* Of two entries of one address the first is RoCE v1's, and no address is anything but link 0. */
bool fake_gid_is_v2(const struct fake_device *device, unsigned index)
{
	if (!device->profile->gids_have_gaps)
		return true;
	return index == 1 || index == device->ip_gid || index == device->ip6_gid;
}

uint8_t fake_gid_index(const struct fake_device *device, bool ip6)
{
	return ip6 ? device->ip6_gid : device->ip_gid;
}

int fake_gid_of_ip(enum fake_kind kind)
{
	return devices[kind].ip_gid;
}

static void set_gids(struct fake_device *device, const struct fake_recipe *recipe)
{
	union ibv_gid *gids = device->gids;

	memset(gids, 0, sizeof(device->gids));
	inet_pton(AF_INET6, recipe->link_gid, gids[0].raw);
	device->gid_count = 1;
	if (device->kind == FAKE_ROCE)
		set_ip_gids(device);
}

static void set_names(struct ibv_device *verbs, const struct fake_recipe *recipe, int index)
{
	memset(verbs, 0, sizeof(*verbs));
	verbs->node_type = recipe->node;
	verbs->transport_type = recipe->transport;
	snprintf(verbs->name, sizeof(verbs->name), "%s", recipe->name);
	snprintf(verbs->dev_name, sizeof(verbs->dev_name), "uverbs%d", index);
	snprintf(verbs->dev_path, sizeof(verbs->dev_path), "/sys/class/infiniband_verbs/uverbs%d",
		index);
	snprintf(verbs->ibdev_path, sizeof(verbs->ibdev_path), "/sys/class/infiniband/%s",
		recipe->name);
}

void fake_device_add(enum fake_kind kind)
{
	const struct fake_recipe *recipe = &recipes[kind];
	struct fake_device *device = &devices[kind];

	FAKE_GUARD();
	if (device->present || device->contexts)
		fake_die("device %s is still there", recipe->name);
	device->kind = kind;
	device->profile = fake_profile_of(kind);
	device->ip_gid = device->ip6_gid = 0;
	device->is_loopback = false;
	device->index = last_index++;
	device->guid = htobe64(recipe->guid);
	inet_pton(AF_INET, recipe->ip, &device->ip);
	inet_pton(AF_INET6, recipe->ip6, &device->ip6);
	set_names(&device->verbs, recipe, device->index);
	set_attr(device);
	set_gids(device, recipe);
	set_port(device, recipe);
	device->ece = (struct ibv_ece){ 0 };
	if (device->profile->ece != FAKE_NO_ECE)
		device->ece.vendor_id = MELLANOX;
	device->present = true;
}

void fake_device_remove(enum fake_kind kind)
{
	FAKE_GUARD();
	if (!devices[kind].present)
		return;
	devices[kind].present = false;
	fake_cm_device_removed(&devices[kind]);
	if (devices[kind].profile->disassociates)
		fake_verbs_device_removed(&devices[kind]);
}

unsigned fake_devices_open(void)
{
	unsigned n = 0;
	int kind;

	for (kind = 0; kind < FAKE_KINDS; kind++)
		n += devices[kind].present && devices[kind].contexts;
	return n;
}

bool fake_device_gone(enum fake_kind kind)
{
	FAKE_GUARD();

	return !devices[kind].present && !devices[kind].contexts;
}

struct ibv_device_attr *fake_device_attr(enum fake_kind kind)
{
	return &devices[kind].attr;
}

struct ibv_port_attr *fake_port_attr(enum fake_kind kind)
{
	return &devices[kind].port;
}

struct ibv_ece *fake_device_ece(enum fake_kind kind)
{
	return &devices[kind].ece;
}

struct fake_device *fake_device(enum fake_kind kind)
{
	return &devices[kind];
}

struct fake_device *fake_device_first(void)
{
	int kind;

	for (kind = 0; kind < FAKE_KINDS; kind++)
		if (devices[kind].present)
			return &devices[kind];
	return NULL;
}

void fake_devices_reset(void)
{
	memset(devices, 0, sizeof(devices));
	last_index = 0;
	fake_device_add(FAKE_ROCE);
}
