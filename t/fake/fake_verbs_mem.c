/* Protection domains, memory regions, address handles. */
#include "fake/fake_verbs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "fake/fake_cm.h"

struct ibv_pd *ibv_alloc_pd(struct ibv_context *verbs)
{
	struct fake_context *context = fake_context_of(verbs);
	struct fake_pd *pd;

	FAKE_GUARD();
	FAKE_VERB_NULL(context, "ibv_alloc_pd");
	if (fake_node_count(FAKE_PD, context) >= (unsigned)context->device->attr.max_pd) {
		errno = ENOMEM;
		return NULL;
	}
	pd = fake_node_new(sizeof(*pd), FAKE_PD, context);
	pd->pd.context = verbs;
	pd->pd.handle = pd->node.handle;
	return &pd->pd;
}

int ibv_dealloc_pd(struct ibv_pd *verbs)
{
	struct fake_pd *pd = fake_pd_of(verbs);

	FAKE_GUARD();
	FAKE_RELEASE(pd->node.context, "ibv_dealloc_pd");
	if (pd->users)
		return EBUSY;
	fake_node_free(&pd->node);
	return 0;
}

/* --- memory regions: keys carry a tag, so that an lkey is never a small number --- */

enum { KEY_TAG = 0x5a };

static struct fake_table regions;

void fake_mem_reset(void)
{
	fake_table_free(&regions);
}

static void mr_fini(struct fake_node *node)
{
	struct fake_mr *mr = fake_of(node, fake_mr, node);

	fake_table_remove(&regions, mr->mr.lkey >> 8);
	fake_pd_of(mr->mr.pd)->users--;
}

static struct ibv_mr *reg_mr(
	struct ibv_pd *verbs, void *addr, size_t len, uint64_t iova, unsigned access)
{
	struct fake_pd *pd = fake_pd_of(verbs);
	struct fake_context *context = pd->node.context;
	struct fake_mr *mr;

	FAKE_GUARD();
	FAKE_VERB_NULL(context, "ibv_reg_mr");
	errno = EINVAL;
	if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
		!(access & IBV_ACCESS_LOCAL_WRITE))
		return NULL;
	errno = ENOMEM;
	if (fake_node_count(FAKE_MR, context) >= (unsigned)context->device->attr.max_mr)
		return NULL;
	mr = fake_node_new(sizeof(*mr), FAKE_MR, context);
	mr->node.fini = mr_fini;
	mr->mr.context = verbs->context;
	mr->mr.pd = verbs;
	mr->mr.addr = addr;
	mr->mr.length = len;
	mr->mr.handle = mr->node.handle;
	mr->mr.lkey = mr->mr.rkey = fake_table_add(&regions, mr) << 8 | KEY_TAG;
	mr->iova = iova;
	mr->access = (int)access;
	pd->users++;
	return &mr->mr;
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t len, int access)
{
	return reg_mr(pd, addr, len, (uintptr_t)addr, (unsigned)access);
}

#undef ibv_reg_mr_iova
struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova, int access)
{
	return reg_mr(pd, addr, len, iova, (unsigned)access);
}

struct ibv_mr *ibv_reg_mr_iova2(
	struct ibv_pd *pd, void *addr, size_t len, uint64_t iova, unsigned access)
{
	return reg_mr(pd, addr, len, iova, access);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	FAKE_GUARD();
	FAKE_RELEASE(fake_context_of(mr->context), "ibv_dereg_mr");
	fake_node_free(&fake_of(mr, fake_mr, mr)->node);
	return 0;
}

struct fake_mr *fake_mr_find(const struct ibv_pd *pd, uint32_t key)
{
	struct fake_mr *mr = fake_table_find(&regions, key >> 8);

	return mr && mr->mr.lkey == key && mr->mr.pd == pd ? mr : NULL;
}

void *fake_mr_at(struct fake_mr *mr, uint64_t addr, uint64_t len, int access)
{
	if (!mr || (mr->access & access) != access)
		return NULL;
	if (addr < mr->iova || len > mr->mr.length || addr - mr->iova > mr->mr.length - len)
		return NULL;
	return (char *)mr->mr.addr + (addr - mr->iova);
}

/* --- address handles --- */

static void ah_fini(struct fake_node *node)
{
	fake_pd_of(fake_of(node, fake_ah, node)->ah.pd)->users--;
}

static unsigned asked_in_vain;

unsigned fake_asked_in_vain(void)
{
	unsigned times = asked_in_vain;

	asked_in_vain = 0;
	return times;
}

/* The kernel, which asks the network for the hardware address, and lets its caller wait. */
static bool has_neighbour(const struct fake_context *context, const struct ibv_ah_attr *attr)
{
	struct sockaddr_in in = { .sin_family = AF_INET };

	if (!context->device->present || context->device->kind != FAKE_ROCE ||
		attr->grh.dgid.raw[0] == 0xff ||
		!IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)&attr->grh.dgid))
		return true;
	memcpy(&in.sin_addr, attr->grh.dgid.raw + 12, sizeof(in.sin_addr));
	if (ntohl(in.sin_addr.s_addr) >> 28 == 0xe || fake_addr_owner(&in) ||
		fake_addr_silent(&in))
		return true;
	asked_in_vain++;
	return false;
}

enum { MOST_SL = 15 };

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct fake_context *context = fake_pd_of(pd)->node.context;
	struct fake_ah *ah;

	FAKE_GUARD();
	FAKE_VERB_NULL(context, "ibv_create_ah");
	errno = EINVAL;
	/* On Ethernet a priority that nobody has asked for. */
	if (context->device->kind == FAKE_ROCE && attr->sl)
		return NULL;
	if (attr->port_num != 1 || attr->sl > MOST_SL ||
		(attr->is_global && attr->grh.sgid_index >= context->device->gid_count))
		return NULL;
	/* An Ethernet port has no other way to address than by GID. */
	if (context->device->kind == FAKE_ROCE && !attr->is_global)
		return NULL;
	errno = ETIMEDOUT;
	if (!has_neighbour(context, attr))
		return NULL;
	ah = fake_node_new(sizeof(*ah), FAKE_AH, context);
	ah->node.fini = ah_fini;
	ah->attr = *attr;
	ah->ah.context = pd->context;
	ah->ah.pd = pd;
	ah->ah.handle = ah->node.handle;
	fake_pd_of(pd)->users++;
	return &ah->ah;
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	FAKE_GUARD();
	FAKE_RELEASE(fake_context_of(ah->context), "ibv_destroy_ah");
	fake_node_free(&fake_of(ah, fake_ah, ah)->node);
	return 0;
}

/* libibverbs believes in IPv6 where the first byte says so, unless the IPv4 checksum fits too. */
static bool is_ipv4(const uint8_t *header)
{
	const uint8_t *ipv4 = header + 20;

	if (header[0] >> 4 != 6)
		return ipv4[0] >> 4 == 4;
	return ipv4[0] == 0x45 && !fake_ip_checksum(ipv4);
}

static void sender_of(const struct ibv_grh *grh, union ibv_gid *gid)
{
	const uint8_t *bytes = (const uint8_t *)grh;

	if (!is_ipv4(bytes)) {
		*gid = grh->sgid;
		return;
	}
	memset(gid, 0, sizeof(*gid));
	gid->raw[10] = gid->raw[11] = 0xff;
	memcpy(&gid->raw[12], bytes + 20 + 12, 4);
}

static void set_hops(const struct ibv_grh *grh, struct ibv_global_route *route)
{
	const uint8_t *bytes = (const uint8_t *)grh;
	uint32_t flow = ntohl(grh->version_tclass_flow);

	route->flow_label = flow & 0xfffff;
	route->hop_limit = is_ipv4(bytes) ? bytes[20 + 8] : grh->hop_limit;
	route->traffic_class = is_ipv4(bytes) ? bytes[20 + 1] : (uint8_t)(flow >> 20);
}

/* None of our GIDs is that of a group. */
static bool is_for_group(const struct ibv_grh *grh)
{
	const uint8_t *bytes = (const uint8_t *)grh;

	return is_ipv4(bytes) ? bytes[20 + 16] >> 4 == 0xe : grh->dgid.raw[0] == 0xff;
}

static uint8_t gid_index_for(const struct fake_device *device, const union ibv_gid *peer)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return fake_gid_index(device, memcmp(peer->raw, mapped, sizeof(mapped)) != 0);
}

int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
	struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	struct ibv_grh header; /* the user's may lie at any address */

	FAKE_GUARD();
	fake_fault_release(FAKE_VERBS, "ibv_init_ah_from_wc");
	memset(attr, 0, sizeof(*attr));
	attr->dlid = wc->slid;
	attr->sl = wc->sl;
	attr->src_path_bits = wc->dlid_path_bits;
	attr->port_num = port_num;
	if (!(wc->wc_flags & IBV_WC_GRH))
		return 0;
	memcpy(&header, (const void *)grh, sizeof(header));
	if (is_for_group(&header)) {
		errno = EINVAL;
		return -1;
	}
	attr->is_global = 1;
	sender_of(&header, &attr->grh.dgid);
	attr->grh.sgid_index = gid_index_for(fake_context_of(context)->device, &attr->grh.dgid);
	set_hops(&header, &attr->grh);
	return 0;
}

struct ibv_ah *ibv_create_ah_from_wc(
	struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port_num)
{
	struct ibv_ah_attr attr;

	if (ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr))
		return NULL;
	return ibv_create_ah(pd, &attr);
}
