/*
 * Random schedules of datagram rsockets: a few threads send between many of them, receive, wait,
 * and close, while ways are lost and the device may leave. Each message comes once at most, whole,
 * to whom it was sent, from who sent it; and who waits is woken by one that is sent when all is
 * quiet.
 */
#define _GNU_SOURCE
#include "rs/random.h"

#include "unit/rs_dgram_unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
	SOCKETS = 6,
	THREADS = 4,
	ACTIONS = 60,
	MESSAGES = 1 << 14,
	LONGEST = 1900, /* longer than the path takes */
	SHORT = 100,
	LOOK_US = 500,
	ASLEEP = 4,
	HANG_LOOKS = HANG_S * 1000000 / LOOK_US,
	AGAIN_LOOKS = 100,
	FOR_EVER = -1,
};

struct dgrams;

struct dgram {
	int fd;
	struct sockaddr_in addr;
	struct dgram *peer; /* to whom it is connected, or NULL */
	bool nonblock;	    /* so that its number shows what there is */
	bool closed;
	unsigned by_number; /* who wait by poll(2) */
};

struct message {
	uint32_t id, len;
	in_port_t from, to;
};

struct thread {
	struct dgrams *all;
	struct random random, other;
	pthread_t thread;
	pid_t tid;
	const struct dgram *waits; /* for a message there, for ever */
	unsigned turns;
	bool over;
	uint8_t bytes[LONGEST + 1], more[LONGEST + 1];
};

struct dgrams {
	uint64_t seed;
	struct random random;
	pthread_mutex_t lock;
	unsigned num, num_threads;
	struct dgram dgram[SOCKETS];
	struct thread threads[THREADS];
	uint32_t sent;	/* messages, */
	unsigned taken; /* and those that came: who waits may find that somebody else has had its
			   one */
	bool came[MESSAGES];
	bool removed;
	bool lossy; /* what is on its way may be lost */
};

static void describe(const struct dgrams *all)
{
	const struct dgram *dgram;
	unsigned i;

	for (i = 0; i < all->num; i++) {
		dgram = &all->dgram[i];
		printf("# %u, fd %d:%s%s%s\n", i, dgram->fd, dgram->nonblock ? " nonblocking" : "",
			dgram->peer ? " connected" : "", dgram->closed ? " closed" : "");
	}
	for (i = 0; i < all->num_threads; i++)
		printf("# thread: fd %d%s\n",
			all->threads[i].waits ? all->threads[i].waits->fd : -1,
			all->threads[i].over ? ", over" : "");
}

static void wrong(const struct dgrams *all, const char *what)
{
	printf("# seed %llu: %s%s\n", (unsigned long long)all->seed, what,
		all->removed ? ", the device has left" : "");
	describe(all);
	fflush(stdout);
	ck_abort_msg("seed %llu: %s", (unsigned long long)all->seed, what);
}

static void lock(struct dgrams *all)
{
	pthread_mutex_lock(&all->lock);
}

static void unlock(struct dgrams *all)
{
	pthread_mutex_unlock(&all->lock);
}

/* --- messages -------------------------------------------------------------------------------- */

static void write_message(
	uint8_t *bytes, size_t len, uint32_t id, const struct dgram *from, const struct dgram *to)
{
	const struct message message = {
		.id = id,
		.len = (uint32_t)len,
		.from = from->addr.sin_port,
		.to = to->addr.sin_port,
	};
	size_t i;

	memcpy(bytes, &message, sizeof(message));
	for (i = sizeof(message); i < len; i++)
		bytes[i] = (uint8_t)(i * 7 + id);
}

static void check_message(struct dgrams *all, const struct dgram *at, const uint8_t *bytes,
	size_t len, const struct sockaddr_in *from)
{
	struct message message;
	size_t i;

	if (len < sizeof(message))
		wrong(all, "a message is too short");
	memcpy(&message, bytes, sizeof(message));
	if (message.len != len || message.id >= MESSAGES)
		wrong(all, "a message is of another length");
	for (i = sizeof(message); i < len; i++)
		if (bytes[i] != (uint8_t)(i * 7 + message.id))
			wrong(all, "another byte than was sent");
	if (message.to != at->addr.sin_port)
		wrong(all, "a message comes to somebody else");
	if (message.from != from->sin_port)
		wrong(all, "a message comes from somebody else");
	if (at->peer && at->peer->addr.sin_port != from->sin_port)
		wrong(all, "a message comes from another one than the peer");
}

static void count_message(struct dgrams *all, const uint8_t *bytes)
{
	struct message message;

	memcpy(&message, bytes, sizeof(message));
	lock(all);
	if (all->came[message.id])
		wrong(all, "a message comes twice");
	all->came[message.id] = true;
	all->taken++;
	unlock(all);
}

/* --- calls ----------------------------------------------------------------------------------- */

/* 0: one has come; or an errno. */
static int receive(struct dgrams *all, struct dgram *at, uint8_t *bytes, int flags)
{
	struct sockaddr_in from = { 0 };
	socklen_t len = sizeof(from);
	ssize_t ret = rrecvfrom(at->fd, bytes, LONGEST + 1, flags, (struct sockaddr *)&from, &len);

	if (ret < 0)
		return errno;
	check_message(all, at, bytes, (size_t)ret, &from);
	if (!(flags & MSG_PEEK))
		count_message(all, bytes);
	return 0;
}

static int send_to(
	struct dgrams *all, struct dgram *from, struct dgram *to, uint8_t *bytes, size_t len)
{
	bool connected = from->peer == to;
	uint32_t id;

	lock(all);
	id = all->sent++;
	unlock(all);
	if (id >= MESSAGES)
		return 0;
	write_message(bytes, len, id, from, to);
	if (rsendto(from->fd, bytes, len, MSG_DONTWAIT,
		    connected ? NULL : (const struct sockaddr *)&to->addr,
		    connected ? 0 : sizeof(to->addr)) >= 0)
		return 0;
	return errno;
}

/* Who waits by the number would wait for another's, and who waits for its peer for ever. */
static void close_one(struct dgrams *all, struct dgram *dgram)
{
	bool may;

	lock(all);
	may = !dgram->closed && !dgram->by_number && !(dgram->peer && dgram->peer->by_number);
	dgram->closed |= may;
	unlock(all);
	if (!may)
		return;
	random_keep_number(dgram->fd);
	if (rclose(dgram->fd))
		wrong(all, "rclose() fails");
}

static bool is_closed(struct dgrams *all, const struct dgram *dgram)
{
	bool closed;

	lock(all);
	closed = dgram->closed;
	unlock(all);
	return closed;
}

static void check_error(struct dgrams *all, const struct dgram *dgram, const char *call, int error)
{
	char text[100];

	/* UDP tells of a port that is closed by now. */
	if (!error || error == EAGAIN || error == ECONNREFUSED ||
		(error == EBADF && is_closed(all, dgram)))
		return;
	snprintf(text, sizeof(text), "%s gives %s for no reason", call, strerror(error));
	wrong(all, text);
}

static struct dgram *any(struct dgrams *all, struct random *random)
{
	return &all->dgram[random_below(random, all->num)];
}

static void send_somewhere(struct dgrams *all, struct random *random, uint8_t *bytes)
{
	size_t most = random_once_in(random, 4) ? LONGEST : SHORT;
	size_t len = sizeof(struct message) +
		     random_below(random, (unsigned)(most - sizeof(struct message)));
	struct dgram *from = any(all, random), *to = any(all, random);

	if (from->peer && random_once_in(random, 2))
		to = from->peer;
	check_error(all, from, "sending", send_to(all, from, to, bytes, len));
}

static void receive_somewhere(struct dgrams *all, struct random *random, uint8_t *bytes)
{
	struct dgram *at = any(all, random);
	int flags = MSG_DONTWAIT | (random_once_in(random, 3) ? MSG_PEEK : 0);

	check_error(all, at, "receiving", receive(all, at, bytes, flags));
}

/* --- a thread -------------------------------------------------------------------------------- */

static bool begin_to_wait(struct thread *thread, struct dgram *at, bool for_ever, bool by_number)
{
	struct dgrams *all = thread->all;
	bool may;

	lock(all);
	may = !at->closed && !(by_number && at->peer && at->peer->closed);
	if (may) {
		at->by_number += by_number;
		thread->waits = for_ever ? at : NULL;
	}
	thread->turns++;
	unlock(all);
	return may;
}

static void end_wait(struct thread *thread, struct dgram *at, bool by_number)
{
	lock(thread->all);
	at->by_number -= by_number;
	thread->waits = NULL;
	thread->turns++;
	unlock(thread->all);
}

static int draw_timeout(struct random *random)
{
	int timeout_ms = (int)random_below(random, 6);

	return timeout_ms > 2 ? FOR_EVER : timeout_ms;
}

static void wait_for_one(struct thread *thread)
{
	struct dgram *at = any(thread->all, &thread->random);
	int timeout_ms = draw_timeout(&thread->random), ret;
	bool by_number = at->nonblock && random_once_in(&thread->random, 2);
	struct pollfd pfd = { .fd = at->fd, .events = POLLIN };

	if (!begin_to_wait(thread, at, timeout_ms == FOR_EVER, by_number))
		return;
	ret = by_number ? poll(&pfd, 1, timeout_ms) : rpoll(&pfd, 1, timeout_ms);
	if (ret < 0 || (!ret && timeout_ms == FOR_EVER))
		wrong(thread->all, "waiting fails");
	if (pfd.revents & POLLNVAL && !is_closed(thread->all, at))
		wrong(thread->all, "POLLNVAL, and it is open");
	end_wait(thread, at, by_number);
}

static void receive_blocking(struct thread *thread)
{
	struct dgram *at = any(thread->all, &thread->random);
	int error;

	if (!begin_to_wait(thread, at, !at->nonblock, false))
		return;
	error = receive(thread->all, at, thread->bytes, 0);
	check_error(thread->all, at, "receiving", error);
	end_wait(thread, at, false);
}

static void ask(struct thread *thread)
{
	struct dgram *at = any(thread->all, &thread->random);
	struct sockaddr_in addr;
	socklen_t len = sizeof(addr);

	if (!rgetsockname(at->fd, (struct sockaddr *)&addr, &len) &&
		addr.sin_port != at->addr.sin_port)
		wrong(thread->all, "another name");
}

static void send_one(struct thread *thread)
{
	send_somewhere(thread->all, &thread->random, thread->bytes);
}

static void receive_one(struct thread *thread)
{
	receive_somewhere(thread->all, &thread->random, thread->bytes);
}

static void close_any(struct thread *thread)
{
	if (random_once_in(&thread->random, 10))
		close_one(thread->all, any(thread->all, &thread->random));
}

/* As often as they are here. */
static void (*const actions[])(struct thread *thread) = {
	send_one,
	send_one,
	send_one,
	send_one,
	receive_one,
	receive_one,
	receive_one,
	wait_for_one,
	wait_for_one,
	receive_blocking,
	ask,
	close_any,
};

/* Beside it. */
static void meddle(void *arg)
{
	struct thread *thread = arg;

	if (random_once_in(&thread->other, 200))
		close_one(thread->all, any(thread->all, &thread->other));
	else if (random_once_in(&thread->other, 2))
		send_somewhere(thread->all, &thread->other, thread->more);
	else
		receive_somewhere(thread->all, &thread->other, thread->more);
}

static void *run(void *arg)
{
	struct thread *thread = arg;
	unsigned left = 1 + random_below(&thread->random, ACTIONS);

	lock(thread->all);
	thread->tid = gettid();
	unlock(thread->all);
	random_come_often(random_next(&thread->random), meddle, thread);
	while (left--)
		RANDOM_OF(&thread->random, actions)(thread);
	random_come_often(0, NULL, NULL);
	lock(thread->all);
	thread->over = true;
	unlock(thread->all);
	return NULL;
}

/* --- looking --------------------------------------------------------------------------------- */

static bool all_sleep(struct dgrams *all)
{
	bool asleep = true;
	unsigned i;

	lock(all);
	for (i = 0; i < all->num_threads; i++)
		asleep &= all->threads[i].over ||
			  (all->threads[i].tid && random_sleeps(all->threads[i].tid));
	unlock(all);
	return asleep;
}

static unsigned turns_of(struct dgrams *all, bool *over)
{
	unsigned i, turns;

	lock(all);
	turns = all->taken;
	*over = true;
	for (i = 0; i < all->num_threads; i++) {
		turns += all->threads[i].turns;
		*over &= all->threads[i].over;
	}
	unlock(all);
	return turns;
}

/* Where somebody waits, or NULL. */
static struct dgram *waited_for(struct dgrams *all)
{
	const struct dgram *dgram = NULL;
	unsigned i;

	lock(all);
	for (i = 0; i < all->num_threads && !dgram; i++)
		dgram = all->threads[i].waits;
	unlock(all);
	return dgram ? &all->dgram[dgram - all->dgram] : NULL;
}

static struct dgram *sender_for(struct dgrams *all, const struct dgram *to)
{
	unsigned i, at = random_below(&all->random, all->num);

	if (to->peer)
		return is_closed(all, to->peer) ? NULL : to->peer;
	for (i = 0; i < all->num; i++) {
		struct dgram *from = &all->dgram[(at + i) % all->num];

		if (!is_closed(all, from))
			return from;
	}
	return NULL;
}

/* Whether anything was done for who waits there: a message, or its end. */
static bool wake(struct dgrams *all, struct dgram *at)
{
	struct dgram *from = sender_for(all, at);
	static uint8_t bytes[LONGEST];
	size_t len = random_once_in(&all->random, 3) ? LONGEST : SHORT;

	if (from && !random_once_in(&all->random, 8))
		return !send_to(all, from, at, bytes, len);
	close_one(all, at);
	return is_closed(all, at);
}

/* With a queue pair goes what is sent to it, until who sends asks again by UDP; so it is sent
 * again. */
static void lose_something(struct dgrams *all)
{
	switch (random_below(&all->random, 12)) {
	case 0:
		fake_hold(FAKE_ROUTE);
		break;
	case 1:
		fake_time_out(FAKE_ROUTE);
		fake_release(FAKE_ROUTE);
		break;
	case 2:
		fake_release(FAKE_ROUTE);
		break;
	case 3:
		fake_fail_next("ibv_create_ah", ETIMEDOUT);
		break;
	case 4:
		fake_fail_next("ibv_post_send", ENOMEM);
		all->lossy = true;
		break;
	case 5:
		all->lossy = true;
		if (!all->removed)
			fake_device_remove(FAKE_ROCE);
		all->removed = true;
		break;
	default:
		break;
	}
}

/* A message to one that is closed by now may have been told instead: then it is tried again. */
static bool wake_somebody(struct dgrams *all)
{
	struct dgram *at = waited_for(all);

	lose_something(all);
	return at && wake(all, at);
}

static void watch(struct dgrams *all)
{
	unsigned still = 0, seen = 0, turns;
	bool over;

	for (;;) {
		turns = turns_of(all, &over);
		if (over)
			return;
		still = turns == seen && all_sleep(all) ? still + 1 : 0;
		seen = turns;
		if (still == HANG_LOOKS)
			wrong(all, "who waits for a message sleeps on");
		if (still == ASLEEP || (all->lossy && still % AGAIN_LOOKS == AGAIN_LOOKS - 1))
			still = wake_somebody(all) ? still : 0;
		usleep(LOOK_US);
	}
}

/* --- one of them ----------------------------------------------------------------------------- */

static void connect_two(struct dgram *a, struct dgram *b)
{
	ck_assert_ok(rconnect(a->fd, (struct sockaddr *)&b->addr, sizeof(b->addr)));
	ck_assert_ok(rconnect(b->fd, (struct sockaddr *)&a->addr, sizeof(a->addr)));
	a->peer = b;
	b->peer = a;
}

static void make_dgrams(struct dgrams *all)
{
	unsigned i;

	all->num = 2 + 2 * random_below(&all->random, SOCKETS / 2);
	for (i = 0; i < all->num; i++) {
		struct dgram *dgram = &all->dgram[i];

		dgram->nonblock = random_once_in(&all->random, 2);
		dgram->fd = dgram_open_one(dgram->nonblock ? SOCK_NONBLOCK : 0);
		dgram->addr = dgram_bind_to(dgram->fd, DGRAM_HOST);
		if (i % 2 && random_once_in(&all->random, 3))
			connect_two(dgram, dgram - 1);
	}
}

static void start(struct dgrams *all)
{
	unsigned i;

	all->num_threads = 1 + random_below(&all->random, THREADS);
	for (i = 0; i < all->num_threads; i++) {
		struct thread *thread = &all->threads[i];

		thread->all = all;
		thread->random.state = random_next(&all->random);
		thread->other.state = random_next(&all->random);
		ck_assert_int_eq(pthread_create(&thread->thread, NULL, run, thread), 0);
	}
}

static void end(struct dgrams *all)
{
	unsigned i;

	for (i = 0; i < all->num_threads; i++)
		pthread_join(all->threads[i].thread, NULL);
	for (i = 0; i < all->num; i++) {
		close_one(all, &all->dgram[i]);
		close(all->dgram[i].fd);
	}
	fake_release(FAKE_ROUTE);
}

void random_dgrams(uint64_t seed)
{
	struct dgrams *all = calloc(1, sizeof(*all));

	ck_assert_ptr_nonnull(all);
	all->seed = seed;
	all->random.state = seed;
	pthread_mutex_init(&all->lock, NULL);
	make_dgrams(all);
	start(all);
	watch(all);
	end(all);
	pthread_mutex_destroy(&all->lock);
	free(all);
}
