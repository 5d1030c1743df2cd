/* What another one does, who has no thread, while a user of an end is in a call. */
#include "rs/random.h"

#include <rdma/rsocket.h>
#include <sys/socket.h>

enum { CLOSE_ONCE_IN = 150, SMALL = 300 };

typedef void meddle_fn(struct random_user *other, struct random_end *end);

static void send_here(struct random_user *other, struct random_end *end)
{
	random_push(other, end->peer, 1 + random_below(&other->random, SMALL));
}

static void send_there(struct random_user *other, struct random_end *end)
{
	random_push(other, end, 1 + random_below(&other->random, SMALL));
}

static void make_room(struct random_user *other, struct random_end *end)
{
	random_drain(other, end->peer);
}

static void ask(struct random_user *other, struct random_end *end)
{
	int value;
	socklen_t len = sizeof(value);

	(void)other;
	rgetsockopt(end->fd, SOL_SOCKET, SO_RCVBUF, &value, &len);
}

static void set_nonblocking(struct random_user *other, struct random_end *end)
{
	random_set_mode(other, end, true);
}

/* What has not been said may not keep it here. */
static void close_here(struct random_user *other, struct random_end *end)
{
	bool resets = random_once_in(&other->random, 2), waits;

	pthread_mutex_lock(&other->schedule->lock);
	waits = !end->nonblock;
	pthread_mutex_unlock(&other->schedule->lock);
	if (resets || !waits)
		random_close(other->schedule, end, resets ? 0 : -1);
}

static meddle_fn *const before[] = { send_here, make_room, send_there };
static meddle_fn *const after[] = { random_peek, send_there, ask, set_nonblocking };

/* Above all what the call waits for. */
static void bring_about(const struct random_user *user)
{
	struct random_user *other = user->other;

	if (user->wants & FOR_BYTES)
		send_here(other, user->end);
	else if (user->wants & FOR_ROOM)
		make_room(other, user->end);
	else
		RANDOM_OF(&other->random, before)(other, user->end);
}

void random_meddle(void *arg)
{
	const struct random_user *user = arg;
	struct random_user *other = user->other;

	if (random_once_in(&other->random, CLOSE_ONCE_IN)) {
		close_here(other, user->end);
		return;
	}
	bring_about(user);
	if (!random_once_in(&other->random, 4))
		RANDOM_OF(&other->random, after)(other, user->end);
}
