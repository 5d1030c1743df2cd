/*
 * What the program's numbers stand for. What changes a number and its entry together, so that no
 * other descriptor is met under that number, holds the lock of the numbers; what an entry held is
 * put when the lock is given back, for that may take a while, and other locks.
 *
 * A child of vfork() has its numbers for itself, and the table with its parent: there, numbers are
 * the kernel's alone.
 */
#include "config.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "preload/attempt.h"
#include "preload/preload.h"
#include "preload/real.h"
#include "util/fdmap.h"

static struct evr_fdmap table;
static pthread_mutex_t numbers = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pid_t owner;

static void hold(void *value)
{
	struct evr_pre *pre = value;

	atomic_fetch_add(&pre->refs, 1);
}

struct evr_pre *evr_pre_get(int fd)
{
	return evr_fdmap_get(&table, fd, hold);
}

/* Another one's, or nobody's yet. */
static bool is_mine(void)
{
	return owner == getpid();
}

static bool is_known(int fd)
{
	return evr_fdmap_peek(&table, fd) && is_mine();
}

static int next_number(const struct evr_pre *pre, int fd)
{
	return evr_fdmap_next(&table, fd, pre);
}

/* --- taking out ------------------------------------------------------------------------------ */

/* Under the lock of the numbers; the entry's reference is the list's then. */
static void take_out(struct evr_pre_list *gone, int fd)
{
	struct evr_pre *pre = evr_fdmap_set(&table, fd, NULL);

	if (!pre)
		return;
	if (pre->is_gone) {
		atomic_fetch_sub(&pre->refs, 1);
		return;
	}
	pre->is_gone = true;
	TAILQ_INSERT_TAIL(gone, pre, gone);
}

static void begin_change(struct evr_pre_list *gone)
{
	TAILQ_INIT(gone);
	pthread_mutex_lock(&numbers);
}

static void end_change(struct evr_pre_list *gone)
{
	struct evr_pre *pre;

	while ((pre = TAILQ_FIRST(gone))) {
		TAILQ_REMOVE(gone, pre, gone);
		pre->is_gone = false;
		pthread_mutex_unlock(&numbers);
		evr_pre_put(pre);
		pthread_mutex_lock(&numbers);
	}
	pthread_mutex_unlock(&numbers);
}

/* --- fork ------------------------------------------------------------------------------------ */

static void before_fork(void)
{
	pthread_mutex_lock(&numbers);
	evr_pre_attempts_lock();
}

static void in_parent(void)
{
	evr_pre_attempts_unlock();
	pthread_mutex_unlock(&numbers);
}

/*
 * What rsockets there are stay the parent's. Their descriptors stay open, so that none of the
 * child's own gets one of their numbers.
 */
static void in_child(void)
{
	int fd;

	owner = getpid();
	evr_fdmap_unlock_all(&table);
	evr_pre_attempts_reset();
	pthread_mutex_unlock(&numbers);
	for (fd = next_number(NULL, 0); fd >= 0; fd = next_number(NULL, fd + 1))
		evr_pre_leave_to_parent(evr_fdmap_peek(&table, fd));
}

static void begin(void)
{
	owner = getpid();
	pthread_atfork(before_fork, in_parent, in_child);
}

/* --- numbers --------------------------------------------------------------------------------- */

bool evr_pre_may_add(void)
{
	pthread_once(&once, begin);
	return is_mine();
}

int evr_pre_add(int fd, struct evr_pre *pre)
{
	int ret = evr_fdmap_make(&table, fd);

	pthread_once(&once, begin);
	if (ret)
		return ret;
	evr_pre_put(evr_fdmap_set(&table, fd, pre));
	return 0;
}

int evr_pre_fresh(int fd)
{
	struct evr_pre_list gone;

	if (fd < 0 || !is_known(fd))
		return fd;
	begin_change(&gone);
	take_out(&gone, fd);
	end_change(&gone);
	return fd;
}

int evr_pre_close(int fd)
{
	struct evr_pre_list gone;
	int ret;

	if (!is_known(fd))
		return evr_pre_real()->close(fd);
	evr_pre_unwatch(fd);
	begin_change(&gone);
	take_out(&gone, fd);
	ret = evr_pre_real()->close(fd);
	end_change(&gone);
	return ret;
}

/* Under the lock of the numbers: meanwhile the descriptor is not exchanged. */
static int copy(struct evr_pre_list *gone, struct evr_pre *pre, int from, int cmd, void *lowest)
{
	int fd = evr_pre_real()->fcntl(from, cmd, lowest), ret;

	if (fd < 0)
		return -errno;
	ret = evr_fdmap_make(&table, fd);
	if (ret) {
		evr_pre_real()->close(fd);
		return ret;
	}
	take_out(gone, fd);
	evr_fdmap_set(&table, fd, pre);
	return fd;
}

int evr_pre_copy(int from, int cmd, void *lowest)
{
	struct evr_pre *pre = evr_pre_may_add() ? evr_pre_get(from) : NULL;
	struct evr_pre_list gone;
	int ret;

	if (!pre)
		return evr_pre_real()->fcntl(from, cmd, lowest);
	begin_change(&gone);
	ret = copy(&gone, pre, from, cmd, lowest);
	end_change(&gone);
	if (ret >= 0)
		return ret;
	evr_pre_put(pre);
	errno = -ret;
	return -1;
}

static int replace(int from, int fd, int flags)
{
	return flags < 0 ? evr_pre_real()->dup2(from, fd) : evr_pre_real()->dup3(from, fd, flags);
}

/* There is a place for the new one before anything happens. */
static int replace_both(int from, int fd, int flags)
{
	struct evr_pre *pre = evr_pre_get(from);
	struct evr_pre_list gone;
	int ret = pre ? evr_fdmap_make(&table, fd) : 0;

	if (ret) {
		evr_pre_put(pre);
		errno = ret == -EMFILE ? EBADF : -ret;
		return -1;
	}
	begin_change(&gone);
	ret = replace(from, fd, flags);
	if (ret >= 0) {
		take_out(&gone, fd);
		evr_fdmap_set(&table, fd, pre);
	}
	end_change(&gone);
	if (ret < 0)
		evr_pre_put(pre);
	return ret;
}

/* What the number stood for ends only if it is really replaced. */
int evr_pre_replace(int from, int fd, int flags)
{
	if (from == fd || (!is_known(from) && !is_known(fd)))
		return replace(from, fd, flags);
	if (evr_pre_real()->fcntl(from, F_GETFD) >= 0)
		evr_pre_unwatch(fd);
	return replace_both(from, fd, flags);
}

static int first_in(unsigned int first, unsigned int last)
{
	int fd = first < EVR_FDMAP_MAX ? next_number(NULL, (int)first) : -1;

	return fd >= 0 && (unsigned int)fd <= last ? fd : -1;
}

static int next_in(int fd, unsigned int last)
{
	return first_in((unsigned int)fd + 1, last);
}

static int close_range_of_mine(unsigned int first, unsigned int last, int flags)
{
	struct evr_pre_list gone;
	int fd, ret;

	for (fd = first_in(first, last); fd >= 0; fd = next_in(fd, last))
		evr_pre_unwatch(fd);
	begin_change(&gone);
	ret = evr_pre_real()->close_range(first, last, flags);
	for (fd = ret ? -1 : first_in(first, last); fd >= 0; fd = next_in(fd, last))
		take_out(&gone, fd);
	end_change(&gone);
	return ret;
}

int evr_pre_close_range(unsigned int first, unsigned int last, int flags)
{
	if (!evr_pre_real()->close_range) {
		errno = ENOSYS;
		return -1;
	}
	if (first > last || !is_mine() || flags & CLOSE_RANGE_CLOEXEC)
		return evr_pre_real()->close_range(first, last, flags);
	return close_range_of_mine(first, last, flags);
}

/* Where the kernel has no such call, and the C library reads the list of those that are open. */
void evr_pre_close_from(unsigned int first)
{
	int fd;

	if (!evr_pre_close_range(first, ~0U, 0))
		return;
	for (fd = first_in(first, ~0U); fd >= 0; fd = next_in(fd, ~0U))
		evr_pre_close(fd);
	if (evr_pre_real()->closefrom)
		evr_pre_real()->closefrom((int)first);
}

/* --- exchanging the descriptor --------------------------------------------------------------- */

/* FD_CLOEXEC is the number's, O_NONBLOCK the descriptor's. */
static void move_one(int fd, int to)
{
	const struct evr_pre_real *real = evr_pre_real();
	int cloexec = real->fcntl(fd, F_GETFD) & FD_CLOEXEC;
	int nonblock = real->fcntl(fd, F_GETFL) & O_NONBLOCK;

	real->fcntl(to, F_SETFL, (real->fcntl(to, F_GETFL) & ~O_NONBLOCK) | nonblock);
	real->dup3(to, fd, cloexec ? O_CLOEXEC : 0);
}

/* Who is told by what watches a number finds the state that belongs to what he was told. */
void evr_pre_move(struct evr_pre *pre, int to, enum evr_pre_state state)
{
	int fd;

	pthread_mutex_lock(&numbers);
	evr_pre_watches_stop(pre);
	for (fd = next_number(pre, 0); fd >= 0; fd = next_number(pre, fd + 1))
		move_one(fd, to);
	pre->state = state;
	evr_pre_watches_go_on(pre);
	pthread_mutex_unlock(&numbers);
}

void evr_pre_forget(struct evr_pre *pre)
{
	struct evr_pre_list gone;
	int fd;

	pre->state = EVR_PRE_PLAIN;
	begin_change(&gone);
	for (fd = next_number(pre, 0); fd >= 0; fd = next_number(pre, fd + 1))
		take_out(&gone, fd);
	end_change(&gone);
}
