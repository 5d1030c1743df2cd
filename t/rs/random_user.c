/* What a user of an rsocket does, as it is drawn. */
#define _GNU_SOURCE
#include "rs/random.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rdma/rsocket.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PAUSE_US = 2000, SMALL = 300, FOR_EVER = -1 };

struct action {
	void (*run)(struct random_user *user, const struct action *action);
	size_t len;
	int flags;
	bool pieces, on;
	short events;
	int timeout_ms;
	unsigned pick;
};

static const struct action much_at_once = { .len = RANDOM_PIECE, .flags = MSG_DONTWAIT };

/* --- a call ---------------------------------------------------------------------------------- */

static void lock(struct random_user *user)
{
	pthread_mutex_lock(&user->schedule->lock);
}

static void unlock(struct random_user *user)
{
	pthread_mutex_unlock(&user->schedule->lock);
}

static void wait_for(struct random_user *user, const char *call, int wants, uint64_t bytes)
{
	user->call = call;
	user->wants = wants;
	user->want = bytes;
	user->in_call = false;
	user->turns++;
}

/* When an end of the other side is seen the clock decides: it is no part of what repeats. */
static void note(struct random_user *user, int64_t ret, int error)
{
	struct random_schedule *s = user->schedule;

	user->wants = 0;
	user->turns++;
	if (s->traced)
		printf("# end %u: %s: %lld, %d\n", user->end->number, user->call, (long long)ret,
			ret < 0 ? error : 0);
	if (random_is_over(user->end))
		return;
	s->digest = s->digest * 1000003 + (uint64_t)ret * 331 + (ret < 0 ? (uint64_t)error : 0);
}

static struct iovec *cut(struct random_user *user, size_t len, struct iovec pieces[2])
{
	pieces[0] = (struct iovec){ .iov_base = user->bytes, .iov_len = len / 3 };
	pieces[1] = (struct iovec){
		.iov_base = user->bytes + len / 3,
		.iov_len = len - len / 3,
	};
	return pieces;
}

/* --- receiving ------------------------------------------------------------------------------- */

/* Of a device that goes nobody may have been told when what is sent is lost with it. */
static bool may_arrive(const struct random_user *user)
{
	return !user->schedule->held && !user->end->gone;
}

/* Whether the end is this user's to receive from. */
static bool begin_to_receive(
	struct random_user *user, const struct action *action, struct random_receipt *receipt)
{
	struct random_end *end = user->end;
	bool all = action->flags & MSG_WAITALL && !(action->flags & MSG_PEEK);

	if (end->closed || end->receiving)
		return false;
	*receipt = (struct random_receipt){
		.modes = end->modes,
		.may_wait = !end->nonblock && !(action->flags & MSG_DONTWAIT),
		.all = all,
		.peek = action->flags & MSG_PEEK,
		.ready = may_arrive(user) && end->peer->out.sent > end->peer->out.taken,
		.told = end->told,
		.len = action->len,
	};
	end->receiving = true;
	end->relying += !receipt->may_wait;
	wait_for(user, receipt->may_wait ? "rrecv()" : "rrecv() that must not wait",
		receipt->may_wait ? FOR_BYTES : 0, all ? action->len : 1);
	user->in_call = true;
	return true;
}

static ssize_t call_to_receive(struct random_user *user, const struct action *action)
{
	struct iovec pieces[2];

	if (action->pieces)
		return rreadv(user->end->fd, cut(user, action->len, pieces), 2);
	return rrecv(user->end->fd, user->bytes, action->len, action->flags);
}

/* What was received, or less than 0 and errno, EBUSY where another one receives. */
static ssize_t receive_once(struct random_user *user, const struct action *action)
{
	struct random_receipt receipt;
	bool mine;

	lock(user);
	mine = begin_to_receive(user, action, &receipt);
	unlock(user);
	errno = EBUSY;
	if (!mine)
		return -1;
	receipt.got = call_to_receive(user, action);
	receipt.error = errno;
	lock(user);
	random_received(user->schedule, user->end, user->bytes, &receipt);
	note(user, receipt.got, receipt.error);
	user->end->receiving = false;
	user->end->relying -= !receipt.may_wait;
	unlock(user);
	if (receipt.got < 0)
		errno = receipt.error;
	return receipt.got;
}

static void receive(struct random_user *user, const struct action *action)
{
	receive_once(user, action);
}

size_t random_drain(struct random_user *user, struct random_end *end)
{
	size_t total = 0;
	ssize_t got;

	user->end = end;
	while ((got = receive_once(user, &much_at_once)) > 0)
		total += (size_t)got;
	return total;
}

void random_peek(struct random_user *user, struct random_end *end)
{
	const struct action action = { .len = SMALL, .flags = MSG_DONTWAIT | MSG_PEEK };

	user->end = end;
	receive_once(user, &action);
}

/* --- sending --------------------------------------------------------------------------------- */

static bool begin_to_send(
	struct random_user *user, const struct action *action, struct random_sending *sending)
{
	struct random_end *end = user->end;

	if (end->closed || end->sending)
		return false;
	*sending = (struct random_sending){
		.modes = end->modes,
		.may_wait = !end->nonblock && !(action->flags & MSG_DONTWAIT),
		.len = action->len,
	};
	end->sending = true;
	end->relying += !sending->may_wait;
	end->out.offered = end->out.sent + action->len;
	random_fill(end, user->bytes, action->len);
	wait_for(user, sending->may_wait ? "rsend()" : "rsend() that must not wait",
		sending->may_wait ? FOR_ROOM : 0, 0);
	user->in_call = true;
	return true;
}

static ssize_t call_to_send(struct random_user *user, const struct action *action)
{
	struct iovec pieces[2];

	if (action->pieces)
		return rwritev(user->end->fd, cut(user, action->len, pieces), 2);
	return rsend(user->end->fd, user->bytes, action->len, action->flags & MSG_DONTWAIT);
}

/* What was sent, or less than 0 and errno, EBUSY where another one sends. */
static ssize_t send_once(struct random_user *user, const struct action *action)
{
	struct random_sending sending;
	bool mine;

	lock(user);
	mine = begin_to_send(user, action, &sending);
	unlock(user);
	errno = EBUSY;
	if (!mine)
		return -1;
	sending.sent = call_to_send(user, action);
	sending.error = errno;
	lock(user);
	random_sent(user->schedule, user->end, &sending);
	note(user, sending.sent, sending.error);
	user->end->sending = false;
	user->end->relying -= !sending.may_wait;
	unlock(user);
	errno = sending.error;
	return sending.sent;
}

static void send_some(struct random_user *user, const struct action *action)
{
	send_once(user, action);
}

static void send_all_that_goes(struct random_user *user, const struct action *action)
{
	unsigned i;

	for (i = 0; i < 8 && send_once(user, &much_at_once) > 0; i++)
		;
}

size_t random_push(struct random_user *user, struct random_end *end, size_t len)
{
	const struct action action = {
		.len = len < RANDOM_PIECE ? len : RANDOM_PIECE,
		.flags = MSG_DONTWAIT,
	};
	ssize_t sent;

	user->end = end;
	sent = send_once(user, &action);
	return sent > 0 ? (size_t)sent : 0;
}

/* --- waiting --------------------------------------------------------------------------------- */

static int wants_of(const struct action *action)
{
	return (action->events & POLLIN ? FOR_BYTES : 0) |
	       (action->events & POLLOUT ? FOR_ROOM : 0);
}

/* What the calls below give: -1 with EBADF where it was closed, or how many have something. */
static int by_rpoll(struct random_user *user, const struct action *action)
{
	struct pollfd pfd = { .fd = user->end->fd, .events = action->events };
	int ret = rpoll(&pfd, 1, action->timeout_ms);

	user->hung_up = pfd.revents & POLLHUP;
	errno = EBADF;
	return pfd.revents & POLLNVAL ? -1 : ret;
}

static int select_with(struct random_user *user, const struct action *action,
	int (*call)(int, fd_set *, fd_set *, fd_set *, struct timeval *))
{
	struct timeval time = { .tv_usec = action->timeout_ms * 1000 };
	fd_set in, out;

	FD_ZERO(&in);
	FD_ZERO(&out);
	if (action->events & POLLIN)
		FD_SET(user->end->fd, &in);
	if (action->events & POLLOUT)
		FD_SET(user->end->fd, &out);
	return call(
		user->end->fd + 1, &in, &out, NULL, action->timeout_ms == FOR_EVER ? NULL : &time);
}

static int by_rselect(struct random_user *user, const struct action *action)
{
	return select_with(user, action, rselect);
}

static int by_select(struct random_user *user, const struct action *action)
{
	return select_with(user, action, select);
}

static int by_poll(struct random_user *user, const struct action *action)
{
	struct pollfd pfd = { .fd = user->end->fd, .events = action->events };

	return poll(&pfd, 1, action->timeout_ms);
}

static int by_copy(struct random_user *user, const struct action *action)
{
	struct pollfd pfd = { .fd = user->end->copy, .events = action->events };

	return poll(&pfd, 1, action->timeout_ms);
}

static int open_set(int fd, uint32_t events)
{
	struct epoll_event event = { .events = events };
	int set = epoll_create1(EPOLL_CLOEXEC);

	epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
	return set;
}

static int by_epoll(struct random_user *user, const struct action *action)
{
	uint32_t how = action->on ? EPOLLET : 0;
	int set = open_set(user->end->fd, (uint32_t)action->events | how), ret;
	struct epoll_event event;

	ret = epoll_wait(set, &event, 1, action->timeout_ms);
	close(set);
	return ret;
}

static int by_shared_set(struct random_user *user, const struct action *action)
{
	struct epoll_event event;

	if (user->end->in_repoll)
		return repoll_wait(user->end->set, &event, 1, action->timeout_ms);
	return epoll_wait(user->end->set, &event, 1, action->timeout_ms);
}

/* Of bytes, or of room. */
static int by_edge(struct random_user *user, const struct action *action)
{
	bool room = action->events & POLLOUT;
	uint32_t events = room ? EPOLLOUT | EPOLLET : EPOLLIN | EPOLLRDHUP | EPOLLET;
	int *edges = &user->edges[room];
	struct epoll_event event;

	if (*edges < 0)
		*edges = open_set(user->end->fd, events);
	return epoll_wait(*edges, &event, 1, action->timeout_ms);
}

/* Whether this may wait. number: what is counted while it does, or NULL: it is a call of ours. */
static bool begin_to_wait(
	struct random_user *user, const struct action *action, const char *call, unsigned *number)
{
	struct random_end *end = user->end;

	if (end->closed || (number && !end->nonblock && !end->in_repoll))
		return false;
	if (number) {
		end->relying++;
		++*number;
	}
	user->hung_up = false;
	wait_for(user, call, action->timeout_ms == FOR_EVER ? wants_of(action) : 0, 1);
	return true;
}

static void check_waited(struct random_user *user, const struct action *action, int ret, int error)
{
	if (ret < 0 && !(error == EBADF && user->end->closed))
		random_wrong(user->schedule, user->end, "waiting fails");
	if (!ret && action->timeout_ms == FOR_EVER)
		random_wrong(user->schedule, user->end, "a wait ends with nothing");
	if (user->hung_up && !random_may_hang_up(user->end))
		random_wrong(user->schedule, user->end, "it hangs up, and nobody has ended it");
}

static void wait_by(struct random_user *user, const struct action *action, const char *name,
	int (*call)(struct random_user *user, const struct action *action), unsigned *number)
{
	int ret, error;
	bool may;

	lock(user);
	may = begin_to_wait(user, action, name, number);
	unlock(user);
	if (!may)
		return;
	ret = call(user, action);
	error = errno;
	lock(user);
	check_waited(user, action, ret, error);
	note(user, number ? 0 : ret, error);
	if (number) {
		user->end->relying--;
		--*number;
	}
	unlock(user);
}

static void wait_in_rpoll(struct random_user *user, const struct action *action)
{
	wait_by(user, action, "rpoll()", by_rpoll, NULL);
}

static void wait_in_rselect(struct random_user *user, const struct action *action)
{
	wait_by(user, action, "rselect()", by_rselect, NULL);
}

static void wait_in_select(struct random_user *user, const struct action *action)
{
	wait_by(user, action, "select()", by_select, &user->end->by_number);
}

static void wait_in_poll(struct random_user *user, const struct action *action)
{
	wait_by(user, action, "poll()", by_poll, &user->end->by_number);
}

static void wait_in_epoll(struct random_user *user, const struct action *action)
{
	wait_by(user, action, "epoll_wait()", by_epoll, &user->end->by_number);
}

/* Beside others who wait for the same one. */
static void wait_in_shared_set(struct random_user *user, const struct action *action)
{
	struct action shared = *action;

	if (user->end->set < 0)
		return;
	shared.events = user->end->set_events;
	wait_by(user, &shared, "epoll_wait() of the same set", by_shared_set,
		&user->end->by_number);
}

static void wait_for_copy(struct random_user *user, const struct action *action)
{
	wait_by(user, action, "poll() of a copy", by_copy, &user->end->by_copy);
}

/* As it has to be used: the next edge is awaited when the last call found nothing. */
static void wait_for_next_edge(struct random_user *user, const struct action *action, ssize_t last,
	short events, const char *name)
{
	struct action edge = *action;

	if (!last || errno != EAGAIN)
		return;
	edge.events = events;
	wait_by(user, &edge, name, by_edge, &user->end->by_number);
}

static void wait_for_edge(struct random_user *user, const struct action *action)
{
	ssize_t got;

	while ((got = receive_once(user, &much_at_once)) > 0)
		;
	wait_for_next_edge(user, action, got, POLLIN, "epoll_wait() for an edge");
}

static void wait_for_edge_of_room(struct random_user *user, const struct action *action)
{
	ssize_t sent;

	while ((sent = send_once(user, &much_at_once)) > 0)
		;
	wait_for_next_edge(user, action, sent, POLLOUT, "epoll_wait() for an edge of room");
}

/* --- all the rest ---------------------------------------------------------------------------- */

void random_set_mode(struct random_user *user, struct random_end *end, bool nonblock)
{
	int ret = 0;

	lock(user);
	if (!end->closed && (nonblock || !end->relying) && !user->schedule->alone) {
		ret = rfcntl(end->fd, F_SETFL, O_RDWR | (nonblock ? O_NONBLOCK : 0));
		end->nonblock = nonblock;
		end->modes++;
	}
	if (ret)
		random_wrong(user->schedule, end, "the mode cannot be set");
	note(user, ret, errno);
	unlock(user);
}

static void set_mode(struct random_user *user, const struct action *action)
{
	random_set_mode(user, user->end, action->on);
}

/* Who asks is told of a reset, once. */
static void take_error(struct random_user *user, const struct action *action)
{
	struct random_end *end = user->end;
	socklen_t len = sizeof(int);
	int error = 0;

	lock(user);
	if (!end->closed && !end->receiving) {
		rgetsockopt(end->fd, SOL_SOCKET, SO_ERROR, &error, &len);
		if (error && !end->gone && (end->told || !end->peer->closed))
			random_wrong(user->schedule, end, "an error for no reason");
		end->told |= error != 0;
	}
	note(user, error, 0);
	unlock(user);
}

static void set_option(struct random_user *user, const struct action *action)
{
	static const int options[][2] = {
		{ SOL_SOCKET, SO_RCVBUF },
		{ SOL_SOCKET, SO_SNDBUF },
		{ SOL_SOCKET, SO_KEEPALIVE },
		{ IPPROTO_TCP, TCP_NODELAY },
	};
	const int *option = options[action->pick % 4];
	int value = option[1] == SO_RCVBUF || option[1] == SO_SNDBUF ? 4096 : action->on;

	lock(user);
	if (!user->end->closed)
		rsetsockopt(user->end->fd, option[0], option[1], &value, sizeof(value));
	note(user, 0, 0);
	unlock(user);
}

static void shut_down(struct random_user *user, const struct action *action)
{
	struct random_end *end = user->end;
	bool may;

	lock(user);
	may = !end->closed && action->pick % 8 == 0;
	if (may)
		end->out.shut = true;
	wait_for(user, "rshutdown()", 0, 0);
	unlock(user);
	if (may)
		rshutdown(end->fd, SHUT_WR);
}

static void pause_a_while(struct random_user *user, const struct action *action)
{
	if (!user->schedule->alone)
		usleep(action->pick % PAUSE_US);
}

/*
 * Whoever waits by its number would wait for another's then, and who waits for its copy for as long
 * as it lingers.
 */
bool random_begin_to_close(struct random_schedule *s, struct random_end *end, int linger_s)
{
	bool may;

	pthread_mutex_lock(&s->lock);
	may = !end->closed && !end->by_number && !(linger_s > 0 && end->by_copy);
	if (may) {
		end->closed = true;
		end->was_shut = end->out.shut;
		end->out.reset = !linger_s && !end->out.shut;
		end->out.shut = true;
	}
	pthread_mutex_unlock(&s->lock);
	return may;
}

void random_finish(struct random_schedule *s, struct random_end *end, int linger_s)
{
	const struct linger linger = { .l_onoff = 1, .l_linger = linger_s };

	if (linger_s >= 0)
		rsetsockopt(end->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	random_keep_number(end->fd);
	if (rclose(end->fd))
		random_wrong(s, end, "rclose() fails");
}

bool random_close(struct random_schedule *s, struct random_end *end, int linger_s)
{
	bool may = random_begin_to_close(s, end, linger_s);

	if (may)
		random_finish(s, end, linger_s);
	return may;
}

/* --- what is drawn --------------------------------------------------------------------------- */

/* As often as they are here. */
static void (*const actions[])(struct random_user *user, const struct action *action) = {
	receive,
	receive,
	receive,
	receive,
	send_some,
	send_some,
	send_some,
	send_some,
	send_all_that_goes,
	wait_in_rpoll,
	wait_in_rpoll,
	wait_in_rpoll,
	wait_in_rselect,
	wait_in_select,
	wait_in_poll,
	wait_in_poll,
	wait_in_epoll,
	wait_for_edge,
	wait_for_edge_of_room,
	wait_in_shared_set,
	wait_in_shared_set,
	wait_for_copy,
	set_mode,
	set_mode,
	take_error,
	set_option,
	shut_down,
	pause_a_while,
};

static struct action draw(struct random *random)
{
	static const short events[] = { POLLIN, POLLIN, POLLOUT, POLLOUT, POLLIN | POLLOUT };
	static const int flags[] = { 0, 0, MSG_PEEK, MSG_WAITALL, MSG_WAITALL, MSG_DONTWAIT,
		MSG_PEEK | MSG_DONTWAIT };
	struct action action;

	action.run = RANDOM_OF(random, actions);
	action.len = 1 + random_below(random, random_once_in(random, 3) ? RANDOM_PIECE : SMALL);
	action.flags = RANDOM_OF(random, flags);
	action.pieces = random_once_in(random, 4);
	action.on = random_once_in(random, 2);
	action.events = RANDOM_OF(random, events);
	action.timeout_ms = (int)random_below(random, 8) - 1;
	action.timeout_ms = action.timeout_ms > 2 ? FOR_EVER : action.timeout_ms;
	action.pick = (unsigned)random_next(random);
	if (action.pieces)
		action.flags = 0;
	return action;
}

/* Who is alone never waits, and ends things by itself. */
static void do_alone(struct random_user *user, struct action *action)
{
	struct random_schedule *s = user->schedule;

	user->end = &s->ends[random_below(&user->random, s->num_ends)];
	action->flags |= MSG_DONTWAIT;
	action->pieces = false;
	action->timeout_ms = 0;
	if (!user->end->closed && random_once_in(&user->random, 100))
		random_close(s, user->end, action->on ? 0 : -1);
	else
		action->run(user, action);
}

static bool goes_on(struct random_user *user)
{
	bool goes;

	lock(user);
	goes = user->left && (user->schedule->alone || !user->end->closed);
	user->left -= goes;
	user->over = !goes;
	unlock(user);
	return goes;
}

/* Who does what comes between. */
static struct random_user *make_other(struct random_user *user)
{
	struct random_user *other = calloc(1, sizeof(*other));

	if (!other)
		random_wrong(user->schedule, user->end, "there is no memory");
	other->schedule = user->schedule;
	other->end = user->end;
	other->random.state = random_next(&user->random);
	return other;
}

void *random_user_run(void *arg)
{
	struct random_user *user = arg;
	int i;

	lock(user);
	user->tid = gettid();
	unlock(user);
	if (!user->schedule->alone) {
		user->other = make_other(user);
		random_come_often(random_next(&user->random), random_meddle, user);
	}
	while (goes_on(user)) {
		struct action action = draw(&user->random);

		if (user->schedule->alone)
			do_alone(user, &action);
		else
			action.run(user, &action);
	}
	for (i = 0; i < 2; i++)
		if (user->edges[i] >= 0)
			close(user->edges[i]);
	random_come_often(0, NULL, NULL);
	free(user->other);
	return NULL;
}
