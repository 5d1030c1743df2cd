/* A place in what the user gave to a call: pieces of memory, one after the other. */
#ifndef EVR_RS_IOV_H
#define EVR_RS_IOV_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct evr_rs_iov {
	const struct iovec *next;
	size_t num;
	size_t offset; /* in the next one */
	size_t left;   /* bytes of all */
};

enum { EVR_RS_IOV_MAX = 1024 };

/* Of one piece, as much as a call can say that it has moved. */
static inline size_t evr_rs_iov_len(size_t len)
{
	return len < SSIZE_MAX ? len : SSIZE_MAX;
}

/* 0; -EINVAL: more than the system takes; -EFAULT: a piece that is none. */
int evr_rs_iov_init(struct evr_rs_iov *iov, const struct iovec *pieces, size_t num);
/* The next len bytes in one piece: where they are, or NULL. */
const void *evr_rs_iov_peek(const struct evr_rs_iov *iov, size_t len);
/* Copies from there, or to there, len bytes, at most what is left, and goes on. */
void evr_rs_iov_get(struct evr_rs_iov *iov, void *to, size_t len);
void evr_rs_iov_put(struct evr_rs_iov *iov, const void *from, size_t len);
void evr_rs_iov_skip(struct evr_rs_iov *iov, size_t len);

#endif
