/*
 * Keepalives: an empty write that the peer's device answers, once nothing has passed for the whole
 * of a period. That no answer comes ends the connection, by the device's own retries. Each rsocket
 * that wants it has a timer, which the helper watches.
 */
#include "rs/helper.h"

#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

static bool is_wanted(const struct evr_rs *rs)
{
	return rs->options.keepalive && rs->state == EVR_RS_CONNECTED && rs->fd >= 0;
}

/* What has passed, in both directions. */
static uint32_t count(const struct evr_rs *rs)
{
	return (uint32_t)rs->stream.credit_in.received << 16 | rs->stream.credit_out.sent;
}

static int set_period(struct evr_rs *rs)
{
	const struct itimerspec period = {
		.it_value.tv_sec = rs->options.keepidle_s,
		.it_interval.tv_sec = rs->options.keepidle_s,
	};

	rs->keepalive.count = count(rs);
	return timerfd_settime(rs->keepalive.fd, 0, &period, NULL) ? -errno : 0;
}

static int start(struct evr_rs *rs)
{
	int ret;

	rs->keepalive.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (rs->keepalive.fd < 0)
		return -errno;
	ret = evr_rs_helper_add_timer(rs, rs->keepalive.fd);
	if (ret)
		close(rs->keepalive.fd);
	rs->keepalive.on = !ret;
	return ret;
}

void evr_rs_keepalive_stop(struct evr_rs *rs)
{
	if (!rs->keepalive.on)
		return;
	evr_rs_helper_remove_timer(rs->keepalive.fd);
	close(rs->keepalive.fd);
	rs->keepalive.on = false;
}

int evr_rs_keepalive_update(struct evr_rs *rs)
{
	int ret = 0;

	if (!is_wanted(rs)) {
		evr_rs_keepalive_stop(rs);
		return 0;
	}
	if (!rs->keepalive.on)
		ret = start(rs);
	return ret ? ret : set_period(rs);
}

void evr_rs_keepalive_due(struct evr_rs *rs)
{
	uint32_t passed = count(rs);
	uint64_t times;

	if (!rs->keepalive.on || read(rs->keepalive.fd, &times, sizeof(times)) < 0)
		return;
	if (passed == rs->keepalive.count) {
		evr_stream_keepalive(&rs->stream);
		evr_rs_pump(rs);
	}
	rs->keepalive.count = passed;
}
