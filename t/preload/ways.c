#include "config.h"

#include "preload/ways.h"

#include <check.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

ssize_t ways_send(int way, int fd, char *buf, size_t len, struct sockaddr_in *to)
{
	struct iovec pieces[] = { { buf, 3 }, { buf + 3, len - 3 } };
	socklen_t to_len = to ? sizeof(*to) : 0;
	struct mmsghdr msg = { .msg_hdr = { .msg_name = to,
				       .msg_namelen = to_len,
				       .msg_iov = pieces,
				       .msg_iovlen = 2 } };

	switch (way) {
	case 0:
		return write(fd, buf, len);
	case 1:
		return writev(fd, pieces, 2);
	case 2:
		return send(fd, buf, len, MSG_NOSIGNAL);
	case 3:
		return sendto(fd, buf, len, 0, (struct sockaddr *)to, to_len);
	case 4:
		return sendmsg(fd, &msg.msg_hdr, 0);
	default:
		return sendmmsg(fd, &msg, 1, 0) == 1 ? (ssize_t)msg.msg_len : -1;
	}
}

ssize_t ways_receive(int way, int fd, char *buf, size_t len, struct sockaddr_in *from)
{
	char control[64];
	struct iovec pieces[] = { { buf, 4 }, { buf + 4, len - 4 } };
	socklen_t size = from ? sizeof(*from) : 0, from_len = size;
	struct mmsghdr msg = { .msg_hdr = { .msg_name = from,
				       .msg_namelen = size,
				       .msg_iov = pieces,
				       .msg_iovlen = 2,
				       .msg_control = control,
				       .msg_controllen = sizeof(control) } };
	ssize_t ret;

	switch (way) {
	case 0:
		return read(fd, buf, len);
	case 1:
		return readv(fd, pieces, 2);
	case 2:
		return recv(fd, buf, len, 0);
	case 3:
		ret = recvfrom(fd, buf, len, 0, (struct sockaddr *)from, from ? &from_len : NULL);
		ck_assert_uint_eq(from_len, size);
		return ret;
	case 4:
		ret = recvmsg(fd, &msg.msg_hdr, 0);
		break;
	default:
		ret = recvmmsg(fd, &msg, 1, 0, NULL) == 1 ? (ssize_t)msg.msg_len : -1;
	}
	ck_assert_uint_eq(msg.msg_hdr.msg_namelen, size);
	ck_assert_uint_eq(msg.msg_hdr.msg_controllen, 0);
	return ret;
}
