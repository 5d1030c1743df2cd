/* Mappings: memory that the peer may write to at its will, and writing into the peer's. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "rs/stream.h"

struct evr_rs_mapping {
	TAILQ_ENTRY(evr_rs_mapping) link;
	struct ibv_mr *mr;
	uint64_t offset;
	uint32_t index;
};

static void free_mapping(struct evr_rs *rs, struct evr_rs_mapping *mapping)
{
	TAILQ_REMOVE(&rs->mappings, mapping, link);
	if (mapping->mr)
		ibv_dereg_mr(mapping->mr);
	free(mapping);
}

void evr_rs_unmap_all(struct evr_rs *rs)
{
	struct evr_rs_mapping *mapping;

	while ((mapping = TAILQ_FIRST(&rs->mappings)))
		free_mapping(rs, mapping);
}

/* --- showing --------------------------------------------------------------------------------- */

static int register_memory(
	struct evr_rs *rs, struct evr_rs_mapping *mapping, void *buf, size_t len, int prot)
{
	int access = IBV_ACCESS_LOCAL_WRITE;

	if (prot & PROT_WRITE)
		access |= IBV_ACCESS_REMOTE_WRITE;
	errno = 0;
	mapping->mr = ibv_reg_mr(rs->transport.id->qp->pd, buf, len, access);
	if (!mapping->mr)
		return errno ? -errno : -EIO;
	return 0;
}

static int show(struct evr_rs *rs, struct evr_rs_mapping *mapping)
{
	const struct evr_iomap_entry entry = {
		.offset = mapping->offset,
		.sge = {
			.addr = (uintptr_t)mapping->mr->addr,
			.rkey = mapping->mr->rkey,
			.len = (uint32_t)mapping->mr->length,
		},
	};
	int index = evr_stream_map(&rs->stream, &entry);

	if (index < 0)
		return index;
	mapping->index = (uint32_t)index;
	evr_rs_pump(rs);
	return 0;
}

static int make(struct evr_rs *rs, void *buf, size_t len, int prot, uint64_t offset)
{
	struct evr_rs_mapping *mapping = calloc(1, sizeof(*mapping));
	int ret;

	if (!mapping)
		return -ENOMEM;
	mapping->offset = offset;
	TAILQ_INSERT_TAIL(&rs->mappings, mapping, link);
	ret = register_memory(rs, mapping, buf, len, prot);
	if (!ret)
		ret = show(rs, mapping);
	if (ret)
		free_mapping(rs, mapping);
	return ret;
}

static off_t map(struct evr_rs *rs, void *buf, size_t len, int prot, off_t offset)
{
	int ret = evr_rs_check_connected(rs);

	if (!ret && rs->stream.error)
		ret = rs->stream.error;
	if (!ret && !rs->transport.id)
		ret = -ENOTCONN;
	if (ret)
		return ret == -EAGAIN ? -ENOTCONN : ret;
	if (!buf || !len || len > EVR_SGE_MAX || offset < -1)
		return -EINVAL;
	if (offset == -1)
		offset = (off_t)(uintptr_t)buf;
	ret = make(rs, buf, len, prot, (uint64_t)offset);
	return ret ? ret : offset;
}

static int check_map(const struct evr_rs *rs, int prot, int flags)
{
	if (rs->dgram)
		return -EOPNOTSUPP;
	return flags || (prot & ~(PROT_WRITE | PROT_READ)) ? -EINVAL : 0;
}

off_t riomap(int socket, void *buf, size_t len, int prot, int flags, off_t offset)
{
	struct evr_rs *rs = evr_rs_enter(socket);
	int ret;

	if (!rs)
		return -1;
	ret = check_map(rs, prot, flags);
	return evr_rs_leave(rs, ret ? ret : map(rs, buf, len, prot, offset));
}

static int unmap(struct evr_rs *rs, void *buf, size_t len)
{
	struct evr_rs_mapping *mapping;

	if (rs->dgram)
		return -EOPNOTSUPP;
	TAILQ_FOREACH (mapping, &rs->mappings, link) {
		if (mapping->mr->addr != buf || mapping->mr->length != len)
			continue;
		evr_stream_unmap(&rs->stream, mapping->index);
		free_mapping(rs, mapping);
		return 0;
	}
	return -EINVAL;
}

int riounmap(int socket, void *buf, size_t len)
{
	struct evr_rs *rs = evr_rs_enter(socket);

	return rs ? (int)evr_rs_leave(rs, unmap(rs, buf, len)) : -1;
}

/* --- writing --------------------------------------------------------------------------------- */

size_t riowrite(int socket, const void *buf, size_t count, off_t offset, int flags)
{
	const struct iovec piece = { .iov_base = (void *)buf, .iov_len = count };
	struct evr_rs_send send = { .direct = true, .offset = (uint64_t)offset };
	int ret = evr_rs_iov_init(&send.from, &piece, 1);

	return (size_t)(ret ? evr_rs_result(ret) : evr_rs_send_pieces(socket, &send, flags));
}
