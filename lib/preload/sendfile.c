/* Calls that move bytes between descriptors in the kernel, where those of rsockets never are. */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "preload/preload.h"
#include "preload/real.h"

enum { PIECE = 64 * 1024 };

static bool is_ours(int fd)
{
	struct evr_pre *pre = evr_pre_enter_io(fd, MSG_DONTWAIT);

	evr_pre_put(pre);
	return pre;
}

static int refuse(int error)
{
	errno = error;
	return -1;
}

/* --- sendfile -------------------------------------------------------------------------------- */

static ssize_t send_piece(struct evr_pre *pre, void *buf, size_t len)
{
	struct iovec piece = { .iov_base = buf, .iov_len = len };
	const struct msghdr msg = { .msg_iov = &piece, .msg_iovlen = 1 };

	return evr_pre_send(pre, &msg, 0);
}

/* How much went; what was read and did not go is read again by the next call. */
static ssize_t send_from(struct evr_pre *pre, int in, off_t at, size_t count, char *buf)
{
	size_t done = 0;
	ssize_t len, ret = 0;

	while (done < count) {
		size_t piece = count - done < PIECE ? count - done : PIECE;

		len = pread(in, buf, piece, at + (off_t)done);
		ret = len > 0 ? send_piece(pre, buf, (size_t)len) : len;
		if (ret <= 0)
			break;
		done += (size_t)ret;
		if (ret < len)
			break;
	}
	return done ? (ssize_t)done : ret;
}

static ssize_t send_file(struct evr_pre *pre, int in, off_t *offset, size_t count)
{
	off_t at = offset ? *offset : lseek(in, 0, SEEK_CUR);
	ssize_t ret;
	char *buf;

	if (at < 0)
		return refuse(errno == ESPIPE || offset ? EINVAL : errno);
	buf = malloc(PIECE);
	if (!buf)
		return refuse(ENOMEM);
	ret = send_from(pre, in, at, count, buf);
	free(buf);
	if (ret > 0 && offset)
		*offset += ret;
	else if (ret > 0)
		lseek(in, at + ret, SEEK_SET);
	return ret;
}

ssize_t sendfile(int out, int in, off_t *offset, size_t count)
{
	struct evr_pre *pre;

	if (is_ours(in))
		return refuse(EINVAL);
	pre = evr_pre_enter_io(out, 0);
	if (pre && pre->state == EVR_PRE_DGRAM)
		return evr_pre_leave(pre, refuse(EINVAL));
	return pre ? evr_pre_leave(pre, send_file(pre, in, offset, count))
		   : evr_pre_real()->sendfile(out, in, offset, count);
}

/* Where an offset has 64 bits anyway. */
#if __SIZEOF_LONG__ == 8
ssize_t sendfile64(int out, int in, off64_t *offset, size_t count)
{
	return sendfile(out, in, (off_t *)offset, count);
}
#endif

/* --- splice ---------------------------------------------------------------------------------- */

/* Programs that splice read and write where that fails so. */
ssize_t splice(int in, off64_t *in_offset, int out, off64_t *out_offset, size_t len,
	unsigned int flags)
{
	if (is_ours(in) || is_ours(out))
		return refuse(EINVAL);
	return evr_pre_real()->splice(in, in_offset, out, out_offset, len, flags);
}
