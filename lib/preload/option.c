/*
 * Options. Those that rsockets do not have, but TCP has, are taken and have no effect: what they
 * ask for is about a network that is not there. Those of UDP ask for something with each message,
 * which would be missed: they are refused.
 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <rdma/rsocket.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "preload/preload.h"
#include "preload/real.h"

enum { MS_PER_S = 1000, US_PER_MS = 1000 };

/* --- remembering ----------------------------------------------------------------------------- */

static struct evr_pre_option *find(struct evr_pre *pre, int level, int name)
{
	struct evr_pre_option *option;

	TAILQ_FOREACH (option, &pre->options, link)
		if (option->level == level && option->name == name)
			break;
	return option;
}

/* Without memory for it, it is as with those that rsockets do not have. */
void evr_pre_remember(struct evr_pre *pre, int level, int name, const void *value, socklen_t len)
{
	struct evr_pre_option *before = find(pre, level, name);
	struct evr_pre_option *option = malloc(sizeof(*option) + len);

	if (!option)
		return;
	option->level = level;
	option->name = name;
	option->len = len;
	memcpy(option->value, value, len);
	TAILQ_INSERT_TAIL(&pre->options, option, link);
	if (!before)
		return;
	TAILQ_REMOVE(&pre->options, before, link);
	free(before);
}

void evr_pre_apply_options(struct evr_pre *pre, int rs)
{
	struct evr_pre_option *option;

	TAILQ_FOREACH (option, &pre->options, link)
		rsetsockopt(rs, option->level, option->name, option->value, option->len);
}

/* --- timeouts -------------------------------------------------------------------------------- */

static bool is_timeout(int level, int name)
{
	return level == SOL_SOCKET && (name == SO_RCVTIMEO || name == SO_SNDTIMEO);
}

static int ms_of(struct timeval time)
{
	if (time.tv_sec >= INT_MAX / MS_PER_S)
		return 0;
	if (time.tv_sec < 0 || (!time.tv_sec && !time.tv_usec))
		return 0;
	return (int)time.tv_sec * MS_PER_S + (int)(time.tv_usec + US_PER_MS - 1) / US_PER_MS;
}

static int timeout_of_tcp(int tcp, int name)
{
	struct timeval time = { 0 };
	socklen_t len = sizeof(time);

	if (evr_pre_real()->getsockopt(tcp, SOL_SOCKET, name, &time, &len))
		return 0;
	return ms_of(time);
}

void evr_pre_take_timeouts(struct evr_pre *pre, int tcp)
{
	pre->recv_ms = timeout_of_tcp(tcp, SO_RCVTIMEO);
	pre->send_ms = timeout_of_tcp(tcp, SO_SNDTIMEO);
}

void evr_pre_give_timeouts(int from, int to)
{
	static const int names[] = { SO_RCVTIMEO, SO_SNDTIMEO };
	const struct evr_pre_real *real = evr_pre_real();
	struct timeval time;
	socklen_t len;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		len = sizeof(time);
		if (!real->getsockopt(from, SOL_SOCKET, names[i], &time, &len))
			real->setsockopt(to, SOL_SOCKET, names[i], &time, len);
	}
}

static int set_timeout(struct evr_pre *pre, int name, const void *value, socklen_t len)
{
	struct timeval time;

	if (len < sizeof(time))
		return -EINVAL;
	memcpy(&time, value, sizeof(time));
	if (time.tv_usec < 0 || time.tv_usec >= MS_PER_S * US_PER_MS)
		return -EDOM;
	*(name == SO_RCVTIMEO ? &pre->recv_ms : &pre->send_ms) = ms_of(time);
	return 0;
}

static void get_timeout(struct evr_pre *pre, int name, void *value, socklen_t *len)
{
	int ms = name == SO_RCVTIMEO ? pre->recv_ms : pre->send_ms;
	struct timeval time = {
		.tv_sec = ms / MS_PER_S,
		.tv_usec = ms % MS_PER_S * US_PER_MS,
	};

	if (*len > sizeof(time))
		*len = sizeof(time);
	memcpy(value, &time, *len);
}

/* --- what only the kernel's know ------------------------------------------------------------- */

/* Another socket of its kind says what is right. */
static int open_like(const struct evr_pre *pre)
{
	int kind = pre->state == EVR_PRE_DGRAM ? SOCK_DGRAM : SOCK_STREAM;

	return evr_pre_real()->socket(pre->domain, kind | SOCK_CLOEXEC, 0);
}

static int set_for_nothing(
	struct evr_pre *pre, int level, int name, const void *value, socklen_t len)
{
	int other = open_like(pre), ret;

	if (other < 0)
		return -errno;
	ret = evr_pre_real()->setsockopt(other, level, name, value, len) ? -errno : 0;
	evr_pre_real()->close(other);
	return ret;
}

static void tell_connected(int level, int name, void *value, socklen_t len)
{
	struct tcp_info *info = value;

	if (level == IPPROTO_TCP && name == TCP_INFO && len >= sizeof(info->tcpi_state))
		info->tcpi_state = TCP_ESTABLISHED;
}

static int get_default(struct evr_pre *pre, int level, int name, void *value, socklen_t *len)
{
	int other = open_like(pre), ret;

	if (other < 0)
		return -errno;
	ret = evr_pre_real()->getsockopt(other, level, name, value, len) ? -errno : 0;
	evr_pre_real()->close(other);
	if (!ret)
		tell_connected(level, name, value, *len);
	return ret;
}

/* --- the calls ------------------------------------------------------------------------------- */

static int set_stream(struct evr_pre *pre, int level, int name, const void *value, socklen_t len)
{
	if (is_timeout(level, name))
		return set_timeout(pre, name, value, len);
	if (!rsetsockopt(pre->rs, level, name, value, len))
		return 0;
	return errno == ENOTSUP ? set_for_nothing(pre, level, name, value, len) : -errno;
}

static int set_dgram(struct evr_pre *pre, int level, int name, const void *value, socklen_t len)
{
	if (is_timeout(level, name))
		return set_timeout(pre, name, value, len);
	if (!rsetsockopt(pre->rs, level, name, value, len))
		return 0;
	return errno == ENOTSUP ? -ENOPROTOOPT : -errno;
}

/* The rsocket gets what TCP has found good; its own are nothing for TCP. */
static int set_tcp(
	struct evr_pre *pre, int fd, int level, int name, const void *value, socklen_t len)
{
	if (level != SOL_RDMA && evr_pre_real()->setsockopt(fd, level, name, value, len))
		return -errno;
	if (pre->rs >= 0 && rsetsockopt(pre->rs, level, name, value, len) && level == SOL_RDMA)
		return -errno;
	evr_pre_remember(pre, level, name, value, len);
	if (is_timeout(level, name))
		evr_pre_take_timeouts(pre, fd);
	return 0;
}

static int set(struct evr_pre *pre, int fd, int level, int name, const void *value, socklen_t len)
{
	if (!value && len)
		return -EFAULT;
	switch (pre->state) {
	case EVR_PRE_UNDECIDED:
		return set_tcp(pre, fd, level, name, value, len);
	case EVR_PRE_CONNECTING:
	case EVR_PRE_LISTENER:
		return set_tcp(pre, pre->tcp, level, name, value, len);
	case EVR_PRE_SHARED:
		if (is_timeout(level, name))
			evr_pre_real()->setsockopt(fd, level, name, value, len);
		return set_tcp(pre, pre->tcp, level, name, value, len);
	case EVR_PRE_CARRIED:
		if (level != SOL_SOCKET)
			return set_for_nothing(pre, level, name, value, len);
		return evr_pre_real()->setsockopt(fd, level, name, value, len) ? -errno : 0;
	case EVR_PRE_STREAM:
		return set_stream(pre, level, name, value, len);
	case EVR_PRE_DGRAM:
		return set_dgram(pre, level, name, value, len);
	default:
		return evr_pre_real()->setsockopt(fd, level, name, value, len) ? -errno : 0;
	}
}

static int result(int ret)
{
	if (!ret)
		return 0;
	errno = -ret;
	return -1;
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	struct evr_pre *pre = evr_pre_get(fd);
	int saved = errno, ret;

	if (!pre)
		return evr_pre_real()->setsockopt(fd, level, name, value, len);
	pthread_mutex_lock(&pre->lock);
	ret = set(pre, fd, level, name, value, len);
	pthread_mutex_unlock(&pre->lock);
	errno = saved;
	return (int)evr_pre_leave(pre, result(ret));
}

static int get_int(int what, void *value, socklen_t *len)
{
	if (*len > sizeof(what))
		*len = sizeof(what);
	memcpy(value, &what, *len);
	return 0;
}

static int get_carried(
	struct evr_pre *pre, int fd, int level, int name, void *value, socklen_t *len)
{
	if (level != SOL_SOCKET)
		return get_default(pre, level, name, value, len);
	if (name == SO_DOMAIN)
		return get_int(pre->domain, value, len);
	if (name == SO_PROTOCOL)
		return get_int(IPPROTO_TCP, value, len);
	return evr_pre_real()->getsockopt(fd, level, name, value, len) ? -errno : 0;
}

static int get_rs(struct evr_pre *pre, int level, int name, void *value, socklen_t *len)
{
	if (is_timeout(level, name)) {
		get_timeout(pre, name, value, len);
		return 0;
	}
	if (level == SOL_SOCKET && name == SO_DOMAIN)
		return get_int(pre->domain, value, len);
	if (!rgetsockopt(pre->rs, level, name, value, len))
		return 0;
	return errno == ENOTSUP ? get_default(pre, level, name, value, len) : -errno;
}

static int get(struct evr_pre *pre, int fd, int level, int name, void *value, socklen_t *len)
{
	if (!value || !len)
		return -EFAULT;
	/* Of a connect that failed before the kernel knew of it. */
	if (pre->error && level == SOL_SOCKET && name == SO_ERROR)
		return get_int(atomic_exchange(&pre->error, 0), value, len);
	if (pre->state == EVR_PRE_CARRIED)
		return get_carried(pre, fd, level, name, value, len);
	if (pre->state == EVR_PRE_STREAM || pre->state == EVR_PRE_DGRAM ||
		(pre->rs >= 0 && level == SOL_RDMA))
		return get_rs(pre, level, name, value, len);
	fd = pre->tcp >= 0 ? pre->tcp : fd;
	return evr_pre_real()->getsockopt(fd, level, name, value, len) ? -errno : 0;
}

int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	struct evr_pre *pre = evr_pre_get(fd);
	int saved = errno, ret;

	if (!pre)
		return evr_pre_real()->getsockopt(fd, level, name, value, len);
	pthread_mutex_lock(&pre->lock);
	ret = get(pre, fd, level, name, value, len);
	pthread_mutex_unlock(&pre->lock);
	errno = saved;
	return (int)evr_pre_leave(pre, result(ret));
}
