#include "config.h"

/* An rsocket from its making to its end. */
#include "rs/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rs/dgram.h"
#include "rs/option.h"

/* --- parts ----------------------------------------------------------------------------------- */

int evr_rs_new(const struct evr_rs_options *options, int domain, struct evr_rs **out)
{
	int ret = evr_rs_watch_forks();
	struct evr_rs *rs;

	if (ret)
		return ret;
	rs = calloc(1, sizeof(*rs));
	if (!rs)
		return -ENOMEM;
	pthread_mutex_init(&rs->lock, NULL);
	atomic_init(&rs->refs, 1);
	rs->fd = rs->other_fd = -1;
	rs->domain = domain;
	rs->options = *options;
	TAILQ_INIT(&rs->listener.requested);
	TAILQ_INIT(&rs->listener.accepting);
	TAILQ_INIT(&rs->listener.accepted);
	TAILQ_INIT(&rs->mappings);
	TAILQ_INIT(&rs->sleepers);
	*out = rs;
	return 0;
}

/*
 * The smallest buffer that there is: a byte or two in it make the other end not writable. A program
 * that another thread begins just now gets neither end.
 */
static int make_pair(int ends[2], int flags)
{
	int least = 1;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0, ends))
		return -errno;
	setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &least, sizeof(least));
	if (!(flags & SOCK_CLOEXEC))
		fcntl(ends[0], F_SETFD, 0);
	return 0;
}

int evr_rs_open_pair(struct evr_rs *rs, int flags)
{
	int ends[2], ret;

	if (rs->fd >= 0)
		return 0;
	ret = make_pair(ends, flags);
	if (ret)
		return ret;
	rs->fd = ends[0];
	rs->other_fd = ends[1];
	return 0;
}

/* The flags of the number go with it. */
static int take_number(struct evr_rs *rs, int fd)
{
	int descriptor = fcntl(rs->fd, F_GETFD), file = fcntl(rs->fd, F_GETFL);

	if (descriptor < 0 || file < 0 || fcntl(fd, F_SETFL, file))
		return -errno;
	return dup3(fd, rs->fd, descriptor & FD_CLOEXEC ? O_CLOEXEC : 0) < 0 ? -errno : 0;
}

int evr_rs_renew_pair(struct evr_rs *rs)
{
	int ends[2], ret;

	if (!rs->shown.hangup || rs->fd < 0)
		return 0;
	ret = make_pair(ends, SOCK_CLOEXEC);
	if (ret)
		return ret;
	ret = take_number(rs, ends[0]);
	close(ends[0]);
	if (ret) {
		close(ends[1]);
		return ret;
	}
	if (rs->other_fd >= 0)
		close(rs->other_fd);
	rs->other_fd = ends[1];
	memset(&rs->shown, 0, sizeof(rs->shown));
	return 0;
}

int evr_rs_open_channel(struct rdma_event_channel **out)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	int flags;

	if (!channel)
		return -errno;
	flags = fcntl(channel->fd, F_GETFL);
	if (flags < 0 || fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK)) {
		int ret = -errno;

		rdma_destroy_event_channel(channel);
		return ret;
	}
	*out = channel;
	return 0;
}

bool evr_rs_has_port(const struct evr_rs *rs)
{
	const struct sockaddr_storage *bound = &rs->bound;

	if (bound->ss_family == AF_INET6)
		return ((const struct sockaddr_in6 *)bound)->sin6_port;
	return bound->ss_family == AF_INET && ((const struct sockaddr_in *)bound)->sin_port;
}

static int bind_again(struct evr_rs *rs)
{
	if (!rs->bound.ss_family)
		return 0;
	return rdma_bind_addr(rs->id, (struct sockaddr *)&rs->bound) ? -errno : 0;
}

int evr_rs_open_id(struct evr_rs *rs)
{
	int ret = evr_rs_open_channel(&rs->channel);

	if (ret)
		return ret;
	if (rdma_create_id(rs->channel, &rs->id, rs, RDMA_PS_TCP)) {
		ret = -errno;
		goto close_channel;
	}
	evr_rs_apply_options(rs);
	ret = bind_again(rs);
	if (ret)
		goto destroy_id;
	rs->state = EVR_RS_NEW;
	rs->error = 0;
	rs->deaf = 0;
	return 0;
destroy_id:
	rdma_destroy_id(rs->id);
close_channel:
	rdma_destroy_event_channel(rs->channel);
	rs->channel = NULL;
	rs->id = NULL;
	return ret;
}

/* --- the end --------------------------------------------------------------------------------- */

void evr_rs_end(struct evr_rs *rs)
{
	evr_rs_unwatch(rs);
	evr_rs_keepalive_stop(rs);
	evr_rs_listener_end(rs);
	evr_rs_unmap_all(rs);
	if (rs->unanswered)
		evr_rs_linger(rs);
	rs->unanswered = false;
	evr_rs_dgram_end(rs);
	evr_rs_transport_stop(&rs->transport);
	if (rs->id)
		rdma_destroy_id(rs->id);
	rs->id = NULL;
	if (rs->channel)
		rdma_destroy_event_channel(rs->channel);
	rs->channel = NULL;
}

int evr_rs_reopen(struct evr_rs *rs)
{
	evr_rs_end(rs);
	evr_rs_transport_fini(&rs->transport);
	return evr_rs_open_id(rs);
}

static bool leaves_end_to_other(struct evr_rs *rs)
{
	if (!rs->ends_apart)
		return false;
	rs->ends_apart = false;
	atomic_store(&rs->refs, 1);
	return evr_rs_end_apart(rs);
}

void evr_rs_put(struct evr_rs *rs)
{
	if (atomic_fetch_sub(&rs->refs, 1) != 1 || leaves_end_to_other(rs))
		return;
	evr_rs_end(rs);
	evr_rs_transport_fini(&rs->transport);
	evr_rs_dgram_fini(rs);
	if (rs->other_fd >= 0)
		close(rs->other_fd);
	if (rs->fd >= 0)
		close(rs->fd);
	pthread_mutex_destroy(&rs->lock);
	free(rs->route);
	free(rs);
}

/* Whoever holds it sees that it has ended. */
static void end_stale(struct evr_rs *stale)
{
	if (!stale)
		return;
	pthread_mutex_lock(&stale->lock);
	stale->closed = true;
	stale->fd = -1;
	evr_rs_close_unwaited(stale);
	evr_rs_wake(stale);
	pthread_mutex_unlock(&stale->lock);
	evr_rs_put(stale);
}

int evr_rs_publish(struct evr_rs *rs)
{
	struct evr_rs *stale;
	int ret = evr_rs_table_add(rs->fd, rs, &stale);

	if (ret)
		evr_rs_put(rs);
	else
		end_stale(stale);
	return ret;
}

/* --- the call -------------------------------------------------------------------------------- */

static int kind_of(int type)
{
	return type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
}

static int check_domain(int domain, int type)
{
	if (domain == AF_IB && kind_of(type) == SOCK_STREAM)
		return 0;
	return domain == AF_INET || domain == AF_INET6 ? 0 : -EAFNOSUPPORT;
}

static int check_type(int type, int protocol)
{
	switch (kind_of(type)) {
	case SOCK_STREAM:
		return protocol == 0 || protocol == IPPROTO_TCP ? 0 : -ENOTSUP;
	case SOCK_DGRAM:
		return protocol == 0 || protocol == IPPROTO_UDP ? 0 : -ENOTSUP;
	default:
		return -ENOTSUP;
	}
}

static int make(int domain, int type, struct evr_rs **out)
{
	struct evr_rs *rs;
	int ret = evr_rs_new(evr_rs_defaults(), domain, &rs);

	if (ret)
		return ret;
	rs->nonblock = type & SOCK_NONBLOCK;
	ret = kind_of(type) == SOCK_DGRAM ? evr_rs_dgram_new(rs) : evr_rs_open_id(rs);
	if (!ret)
		ret = evr_rs_open_pair(rs, type & (SOCK_NONBLOCK | SOCK_CLOEXEC));
	if (ret)
		evr_rs_put(rs);
	else
		*out = rs;
	return ret;
}

int rsocket(int domain, int type, int protocol)
{
	struct evr_rs *rs = NULL;
	int ret = check_domain(domain, type), fd = -1;

	if (!ret)
		ret = check_type(type, protocol);
	if (!ret)
		ret = make(domain, type, &rs);
	if (!ret) {
		fd = rs->fd;
		ret = evr_rs_publish(rs);
	}
	return (int)evr_rs_result(ret ? ret : fd);
}
