#include "rs/iov.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

int evr_rs_iov_init(struct evr_rs_iov *iov, const struct iovec *pieces, size_t num)
{
	size_t i;

	*iov = (struct evr_rs_iov){ .next = pieces, .num = num };
	if (num > EVR_RS_IOV_MAX)
		return -EINVAL;
	if (num && !pieces)
		return -EFAULT;
	for (i = 0; i < num; i++) {
		if (pieces[i].iov_len && !pieces[i].iov_base)
			return -EFAULT;
		if (pieces[i].iov_len > (size_t)SSIZE_MAX - iov->left)
			return -EINVAL;
		iov->left += pieces[i].iov_len;
	}
	return 0;
}

static size_t in_this(const struct evr_rs_iov *iov, size_t len)
{
	size_t have = iov->next->iov_len - iov->offset;

	return have < len ? have : len;
}

static uint8_t *at(const struct evr_rs_iov *iov)
{
	return (uint8_t *)iov->next->iov_base + iov->offset;
}

static void skip_empty(struct evr_rs_iov *iov)
{
	while (iov->num && iov->offset == iov->next->iov_len) {
		iov->next++;
		iov->num--;
		iov->offset = 0;
	}
}

static void advance(struct evr_rs_iov *iov, size_t len)
{
	iov->offset += len;
	iov->left -= len;
	skip_empty(iov);
}

const void *evr_rs_iov_peek(const struct evr_rs_iov *iov, size_t len)
{
	struct evr_rs_iov copy = *iov;

	skip_empty(&copy);
	return copy.num && in_this(&copy, len) == len ? at(&copy) : NULL;
}

void evr_rs_iov_get(struct evr_rs_iov *iov, void *to, size_t len)
{
	uint8_t *bytes = to;
	size_t piece;

	for (skip_empty(iov); len; len -= piece, bytes += piece) {
		piece = in_this(iov, len);
		memcpy(bytes, at(iov), piece);
		advance(iov, piece);
	}
}

void evr_rs_iov_put(struct evr_rs_iov *iov, const void *from, size_t len)
{
	const uint8_t *bytes = from;
	size_t piece;

	for (skip_empty(iov); len; len -= piece, bytes += piece) {
		piece = in_this(iov, len);
		memcpy(at(iov), bytes, piece);
		advance(iov, piece);
	}
}

void evr_rs_iov_skip(struct evr_rs_iov *iov, size_t len)
{
	size_t piece;

	for (skip_empty(iov); len; len -= piece) {
		piece = in_this(iov, len);
		advance(iov, piece);
	}
}
