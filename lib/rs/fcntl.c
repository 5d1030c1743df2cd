/* The flags of an rsocket's number. O_NONBLOCK is in both places: its own, and the descriptor's. */
#include "rs/helper.h"
#include "rs/ready.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>

/* One that could not show what comes stays blocking. */
static int set_flags(struct evr_rs *rs, long flags)
{
	bool before = rs->nonblock;
	int ret;

	rs->nonblock = flags & O_NONBLOCK;
	ret = evr_rs_watch(rs);
	if (!ret && fcntl(rs->fd, F_SETFL, flags))
		ret = -errno;
	if (ret)
		rs->nonblock = before;
	if (before && !evr_rs_is_shown(rs))
		evr_rs_show_nothing(rs);
	return ret;
}

static int own_result(int ret)
{
	return ret < 0 ? -errno : ret;
}

static int control(struct evr_rs *rs, int cmd, long arg)
{
	switch (cmd) {
	case F_GETFL:
	case F_GETFD:
		return own_result(fcntl(rs->fd, cmd));
	case F_SETFL:
		return set_flags(rs, arg);
	case F_SETFD:
		return own_result(fcntl(rs->fd, cmd, arg));
	default:
		return -EINVAL;
	}
}

int rfcntl(int socket, int cmd, ...)
{
	struct evr_rs *rs = evr_rs_enter(socket);
	va_list args;
	long arg = 0;

	if (!rs)
		return -1;
	if (cmd == F_SETFL || cmd == F_SETFD) {
		va_start(args, cmd);
		arg = va_arg(args, long);
		va_end(args);
	}
	return (int)evr_rs_leave(rs, control(rs, cmd, arg));
}
