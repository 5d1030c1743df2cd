/*
 * Waiting for an rsocket: without sleeping for a short while, then on its channels. Whoever sleeps
 * is on the list of the rsocket, with a descriptor of its thread: another thread may take from the
 * channels what this one waits for.
 */
#include "rs/dgram.h"
#include "rs/helper.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "util/clock.h"

enum { ACK_BATCH = 256, WAIT_FDS = EVR_RS_SLEEP_FDS + 1 };

/* --- a descriptor of the thread's own -------------------------------------------------------- */

struct own_fd {
	int fd; /* -1: a child of fork() has not taken its parent's */
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static int key_error;
static atomic_bool has_key;

static void close_own(void *value)
{
	struct own_fd *own = value;

	if (own->fd >= 0)
		close(own->fd);
	free(own);
}

static void make_key(void)
{
	key_error = -pthread_key_create(&key, close_own);
	atomic_store(&has_key, !key_error);
}

static int open_own(struct own_fd *own)
{
	own->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return own->fd < 0 ? -errno : own->fd;
}

static int make_own(void)
{
	struct own_fd *own = calloc(1, sizeof(*own));
	int ret;

	if (!own)
		return -ENOMEM;
	ret = open_own(own);
	if (ret >= 0 && !pthread_setspecific(key, own))
		return ret;
	if (ret >= 0) {
		close(ret);
		ret = -ENOMEM;
	}
	free(own);
	return ret;
}

int evr_rs_sleeper_fd(void)
{
	struct own_fd *own;

	pthread_once(&once, make_key);
	if (key_error)
		return key_error;
	own = pthread_getspecific(key);
	if (!own)
		return make_own();
	return own->fd >= 0 ? own->fd : open_own(own);
}

/* At once: the number may soon be another file of the child's. */
void evr_rs_sleeper_begin_child(void)
{
	struct own_fd *own = atomic_load(&has_key) ? pthread_getspecific(key) : NULL;

	if (!own || own->fd < 0)
		return;
	close(own->fd);
	own->fd = -1;
}

void evr_rs_drain_sleeper(int fd)
{
	uint64_t count;
	ssize_t ret = read(fd, &count, sizeof(count));

	(void)ret;
}

/* --- sleeping and waking --------------------------------------------------------------------- */

void evr_rs_sleep_on(struct evr_rs *rs, struct evr_rs_sleeper *sleeper)
{
	TAILQ_INSERT_TAIL(&rs->sleepers, sleeper, link);
}

void evr_rs_sleep_off(struct evr_rs *rs, struct evr_rs_sleeper *sleeper)
{
	TAILQ_REMOVE(&rs->sleepers, sleeper, link);
}

void evr_rs_wake(struct evr_rs *rs)
{
	const uint64_t one = 1;
	struct evr_rs_sleeper *sleeper;

	TAILQ_FOREACH (sleeper, &rs->sleepers, link) {
		ssize_t ret = write(sleeper->fd, &one, sizeof(one));

		(void)ret;
	}
}

void evr_rs_fail(struct evr_rs *rs, int error)
{
	evr_stream_fail(&rs->stream, error);
	evr_rs_wake(rs);
}

/* What completed before the queue was armed raises no event, nor does a queue that fails. */
bool evr_rs_arm(struct evr_rs *rs)
{
	struct evr_rs_transport *transport = &rs->transport;
	int error = rs->stream.error;

	if (rs->state == EVR_RS_OPEN) {
		evr_rs_dgram_arm(rs);
		return evr_rs_take_arrivals(rs);
	}
	if (rs->state != EVR_RS_CONNECTED || !transport->cq)
		return false;
	if (!transport->armed && ibv_req_notify_cq(transport->cq, 0))
		evr_rs_fail(rs, -EIO);
	transport->armed = true;
	return evr_rs_take_arrivals(rs) || rs->stream.error != error;
}

int evr_rs_arrivals_fd(const struct evr_rs *rs)
{
	if (rs->dgram)
		return rs->dgram->epoll_fd;
	return rs->transport.channel ? rs->transport.channel->fd : -1;
}

int evr_rs_sleep_fds(const struct evr_rs *rs, struct pollfd fds[EVR_RS_SLEEP_FDS])
{
	bool hears = evr_rs_is_going(rs) && !rs->transport.lost;
	int arrivals = hears ? evr_rs_arrivals_fd(rs) : -1, num = 0;

	if (rs->channel && !rs->deaf && !rs->dgram)
		fds[num++] = (struct pollfd){ .fd = rs->channel->fd, .events = POLLIN };
	if (arrivals >= 0)
		fds[num++] = (struct pollfd){ .fd = arrivals, .events = POLLIN };
	return num;
}

void evr_rs_take_cq_event(struct evr_rs *rs)
{
	struct evr_rs_transport *transport = &rs->transport;
	struct ibv_cq *cq;
	void *context;

	if (rs->dgram)
		evr_rs_dgram_look(rs);
	if (!transport->channel)
		return;
	if (ibv_get_cq_event(transport->channel, &cq, &context)) {
		if (errno != EAGAIN && errno != EINTR)
			evr_rs_lose_cq(rs);
		return;
	}
	transport->armed = false;
	if (++transport->unacked < ACK_BATCH)
		return;
	ibv_ack_cq_events(transport->cq, transport->unacked);
	transport->unacked = 0;
}

/* Who was only woken took nothing that the others wait for, and would be woken by them in turn. */
void evr_rs_slept(struct evr_rs *rs, const struct pollfd *fds, int num)
{
	bool any = false;
	int i;

	for (i = 0; i < num && rs->state != EVR_RS_CLOSED; i++) {
		if (!fds[i].revents)
			continue;
		any = true;
		if (!rs->dgram && rs->channel && fds[i].fd == rs->channel->fd)
			evr_rs_read_events(rs);
		else if (fds[i].fd == evr_rs_arrivals_fd(rs))
			evr_rs_take_cq_event(rs);
	}
	if (rs->state == EVR_RS_CONNECTED)
		any |= evr_rs_poll_cq(rs);
	if (any)
		evr_rs_wake(rs);
}

/* --- a blocking call ------------------------------------------------------------------------- */

struct evr_rs_wait evr_rs_wait_until(uint64_t deadline_us)
{
	return (struct evr_rs_wait){ .deadline_us = deadline_us };
}

struct evr_rs_wait evr_rs_wait_for(int64_t limit_us)
{
	if (limit_us < 0)
		return evr_rs_wait_until(0);
	return evr_rs_wait_until(limit_us ? evr_clock_now_us() + (uint64_t)limit_us : UINT64_MAX);
}

static bool spins(struct evr_rs *rs, struct evr_rs_wait *wait, uint64_t now)
{
	if (!evr_rs_is_going(rs))
		return false;
	if (!wait->spin_us)
		wait->spin_us = now + evr_rs_polling_time_us();
	return now < wait->spin_us;
}

/* Who waits for longer waits again. */
static int timeout_of(const struct evr_rs_wait *wait, uint64_t now)
{
	return wait->deadline_us == UINT64_MAX ? -1 : evr_clock_ms_of(wait->deadline_us - now);
}

static int sleep_for(struct evr_rs *rs, int timeout_ms)
{
	struct evr_rs_sleeper sleeper = { .fd = evr_rs_sleeper_fd() };
	struct pollfd fds[WAIT_FDS];
	int num, ret = 0;

	if (sleeper.fd < 0)
		return sleeper.fd;
	evr_rs_sleep_on(rs, &sleeper);
	/* What this one took, and does not wait for, another may wait for by the number. */
	if (evr_rs_is_shown(rs))
		evr_rs_settle(rs);
	num = evr_rs_sleep_fds(rs, fds);
	fds[num] = (struct pollfd){ .fd = sleeper.fd, .events = POLLIN };
	pthread_mutex_unlock(&rs->lock);
	if (poll(fds, (nfds_t)num + 1, timeout_ms) < 0)
		ret = -errno;
	pthread_mutex_lock(&rs->lock);
	evr_rs_sleep_off(rs, &sleeper);
	if (ret)
		return ret;
	if (fds[num].revents)
		evr_rs_drain_sleeper(sleeper.fd);
	evr_rs_slept(rs, fds, num);
	return 0;
}

int evr_rs_wait(struct evr_rs *rs, struct evr_rs_wait *wait)
{
	uint64_t now = evr_clock_now_us();
	int ret;

	if (now >= wait->deadline_us)
		return -ETIMEDOUT;
	if (spins(rs, wait, now)) {
		pthread_mutex_unlock(&rs->lock);
		pthread_mutex_lock(&rs->lock);
	} else if (!evr_rs_arm(rs)) {
		ret = sleep_for(rs, timeout_of(wait, now));
		if (ret)
			return ret;
	}
	return rs->closed && !wait->closes ? -EBADF : 0;
}

int evr_rs_wait_again(struct evr_rs *rs, struct evr_rs_wait *wait)
{
	int ret = evr_rs_wait(rs, wait);

	return ret == -ETIMEDOUT ? -EAGAIN : ret;
}
