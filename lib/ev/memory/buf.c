#include "ev/memory/buf.h"

#include <errno.h>
#include <stdlib.h>

#include "ev/device/pd.h"
#include "util/list.h"

/* A buffer over memory of the user's. */
struct reference {
	struct evrdma_buf buf;
	struct evr_region region;
	evrdma_buf_cleanup_cb cleanup;
	void *arg;
};

enum { PEER_ACCESS = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC };

static const unsigned known_flags =
	EVRDMA_BUF_OPT_REMOTE_READ | EVRDMA_BUF_OPT_REMOTE_WRITE | EVRDMA_BUF_OPT_REMOTE_ATOMIC;

/* An atomic operation writes, and not every device takes the one without the other. */
static bool flags_valid(unsigned flags)
{
	if (flags & ~known_flags)
		return false;
	return !(flags & EVRDMA_BUF_OPT_REMOTE_ATOMIC) || flags & EVRDMA_BUF_OPT_REMOTE_WRITE;
}

int evr_buf_access(unsigned flags)
{
	int access = IBV_ACCESS_LOCAL_WRITE;

	if (!flags_valid(flags))
		return -EINVAL;
	if (flags & EVRDMA_BUF_OPT_REMOTE_READ)
		access |= IBV_ACCESS_REMOTE_READ;
	if (flags & EVRDMA_BUF_OPT_REMOTE_WRITE)
		access |= IBV_ACCESS_REMOTE_WRITE;
	if (flags & EVRDMA_BUF_OPT_REMOTE_ATOMIC)
		access |= IBV_ACCESS_REMOTE_ATOMIC;
	return access;
}

static void reference_unused(struct evrdma_buf *buf)
{
	struct reference *reference = evr_container_of(buf, struct reference, buf);

	evr_region_fini(&reference->region);
	if (reference->cleanup)
		reference->cleanup(buf->data, buf->size, reference->arg);
	free(reference);
}

static struct reference *new_reference(
	void *data, size_t size, unsigned flags, evrdma_buf_cleanup_cb cleanup, void *arg)
{
	struct reference *reference;
	int access = evr_buf_access(flags);

	if (!data || !size || access < 0) {
		errno = EINVAL;
		return NULL;
	}
	reference = calloc(1, sizeof(*reference));
	if (!reference)
		return NULL;
	evr_region_init(&reference->region, data, size, access);
	reference->buf = (struct evrdma_buf){
		.region = &reference->region,
		.data = data,
		.size = size,
		.refs = 1,
		.unused = reference_unused,
	};
	reference->cleanup = cleanup;
	reference->arg = arg;
	return reference;
}

struct evrdma_buf *evrdma_buf_new_reference(
	void *data, size_t size, unsigned flags, evrdma_buf_cleanup_cb cleanup, void *arg)
{
	struct reference *reference = new_reference(data, size, flags, cleanup, arg);

	return reference ? &reference->buf : NULL;
}

struct evrdma_buf *evrdma_buf_new_shared(struct evrdma_domain *domain, void *data, size_t size,
	unsigned flags, evrdma_buf_cleanup_cb cleanup, void *arg)
{
	struct reference *reference;

	if (!domain || !domain->shared) {
		errno = EINVAL;
		return NULL;
	}
	reference = new_reference(data, size, flags, cleanup, arg);
	if (!reference)
		return NULL;
	evr_region_share(&reference->region, domain->shared);
	reference->buf.shared = true;
	return &reference->buf;
}

struct evrdma_buf *evrdma_buf_ref(struct evrdma_buf *buf)
{
	return evr_buf_ref(buf);
}

void evrdma_buf_unref(struct evrdma_buf *buf)
{
	evr_buf_unref(buf);
}

void *evrdma_buf_data(struct evrdma_buf *buf)
{
	return buf->data;
}

size_t evrdma_buf_size(const struct evrdma_buf *buf)
{
	return buf->size;
}

void evrdma_buf_set_user(struct evrdma_buf *buf, void *user)
{
	buf->user = user;
}

void *evrdma_buf_get_user(const struct evrdma_buf *buf)
{
	return buf->user;
}

int evr_buf_rkey(struct evrdma_buf *buf, struct evr_pd *pd, uint32_t *rkey)
{
	const struct ibv_mr *mr;
	int ret = buf->region->access & PEER_ACCESS ? evr_region_get_mr(buf->region, pd, 0, &mr)
						    : -EACCES;

	if (!ret)
		*rkey = mr->rkey;
	return ret;
}
