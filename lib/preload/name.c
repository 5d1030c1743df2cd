/* Addresses, and shutdown(2). */
#include "config.h"

#include <errno.h>
#include <rdma/rsocket.h>
#include <string.h>

#include "preload/preload.h"
#include "preload/real.h"
#include "preload/route.h"
#include "util/sockaddr.h"

void evr_pre_say_name(const struct evr_pre *pre, struct sockaddr_storage *name,
	struct sockaddr *addr, socklen_t *len)
{
	socklen_t whole;

	if (pre->domain == AF_INET6)
		evr_pre_map(name);
	whole = evr_sockaddr_len((struct sockaddr *)name);
	memcpy(addr, name, *len < whole ? *len : whole);
	*len = whole;
}

static int tell(const struct evr_pre *pre, struct sockaddr_storage name, struct sockaddr *addr,
	socklen_t *len)
{
	if (!addr || !len) {
		errno = EFAULT;
		return -1;
	}
	evr_pre_say_name(pre, &name, addr, len);
	return 0;
}

static int ask(const struct evr_pre *pre, int (*call)(int, struct sockaddr *, socklen_t *),
	struct sockaddr *addr, socklen_t *len)
{
	struct sockaddr_storage name = { 0 };
	socklen_t size = sizeof(name);

	if (call(pre->rs, (struct sockaddr *)&name, &size))
		return -1;
	return tell(pre, name, addr, len);
}

static int not_connected(void)
{
	errno = ENOTCONN;
	return -1;
}

/* In what follows the lock is held: meanwhile it does not become another thing. */
static int peer_name(const struct evr_pre *pre, int fd, struct sockaddr *addr, socklen_t *len)
{
	if (pre->state == EVR_PRE_CONNECTING || pre->state == EVR_PRE_SHARED)
		return not_connected();
	if (pre->state == EVR_PRE_CARRIED)
		return tell(pre, pre->to, addr, len);
	if (evr_pre_moves_bytes(pre))
		return ask(pre, rgetpeername, addr, len);
	return evr_pre_real()->getpeername(fd, addr, len);
}

int getpeername(int fd, struct sockaddr *addr, socklen_t *len)
{
	struct evr_pre *pre = evr_pre_enter(fd);
	int ret;

	if (!pre)
		return evr_pre_real()->getpeername(fd, addr, len);
	pthread_mutex_lock(&pre->lock);
	ret = peer_name(pre, fd, addr, len);
	pthread_mutex_unlock(&pre->lock);
	return (int)evr_pre_leave(pre, ret);
}

static int own_name(const struct evr_pre *pre, int fd, struct sockaddr *addr, socklen_t *len)
{
	if (pre->state == EVR_PRE_CARRIED)
		return tell(pre, pre->own, addr, len);
	if (pre->tcp >= 0 && (pre->state == EVR_PRE_LISTENER || pre->rs < 0))
		return evr_pre_real()->getsockname(pre->tcp, addr, len);
	if (pre->state == EVR_PRE_CONNECTING || evr_pre_moves_bytes(pre))
		return ask(pre, rgetsockname, addr, len);
	return evr_pre_real()->getsockname(fd, addr, len);
}

int getsockname(int fd, struct sockaddr *addr, socklen_t *len)
{
	struct evr_pre *pre = evr_pre_enter(fd);
	int ret;

	if (!pre)
		return evr_pre_real()->getsockname(fd, addr, len);
	pthread_mutex_lock(&pre->lock);
	ret = own_name(pre, fd, addr, len);
	pthread_mutex_unlock(&pre->lock);
	return (int)evr_pre_leave(pre, ret);
}

/* Of a listener only reading can end: TCP's at once, the broker's when it sees the other end go. */
static int shut_down_shared(const struct evr_pre *pre, int fd, int how)
{
	int ret = evr_pre_real()->shutdown(fd, how == SHUT_RD ? SHUT_RDWR : how);

	if (!ret)
		evr_pre_real()->shutdown(pre->tcp, how);
	return ret;
}

/* TCP's socket keeps the address of a stream. */
int bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct evr_pre *pre = evr_pre_get(fd);

	if (pre && pre->state == EVR_PRE_DGRAM)
		return (int)evr_pre_leave(pre, rbind(pre->rs, addr, len));
	evr_pre_put(pre);
	return evr_pre_real()->bind(fd, addr, len);
}

static int shut_down(struct evr_pre *pre, int fd, int how)
{
	int ret;

	if (pre->state == EVR_PRE_CONNECTING) {
		ret = evr_pre_abandon(pre, how);
		if (ret)
			errno = -ret;
		return ret ? -1 : 0;
	}
	if (pre->state == EVR_PRE_CARRIED)
		return evr_pre_real()->shutdown(fd, how);
	if (pre->state == EVR_PRE_SHARED)
		return shut_down_shared(pre, fd, how);
	if (pre->state == EVR_PRE_LISTENER) {
		rshutdown(pre->rs, how);
		return evr_pre_real()->shutdown(pre->tcp, how);
	}
	return evr_pre_moves_bytes(pre) ? rshutdown(pre->rs, how)
					: evr_pre_real()->shutdown(fd, how);
}

int shutdown(int fd, int how)
{
	struct evr_pre *pre = evr_pre_get(fd);
	int ret;

	if (!pre)
		return evr_pre_real()->shutdown(fd, how);
	pthread_mutex_lock(&pre->lock);
	ret = shut_down(pre, fd, how);
	pthread_mutex_unlock(&pre->lock);
	return (int)evr_pre_leave(pre, ret);
}
