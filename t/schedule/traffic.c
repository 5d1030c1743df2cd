/* What goes over connections. */
#include "schedule/schedule.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	CONSTANT_AT = 64, /* in the memory that the peer reaches: what is never written */
	CONSTANT_LEN = 32,
	PART_AT = 128, /* four parts that are written */
	PART_LEN = 16,
};

/* --- receiving ------------------------------------------------------------------------------- */

static void unpost(struct side *side, struct evrdma_buf *buf)
{
	unsigned i;

	for (i = 0; i < side->posted_count; i++)
		if (side->posted[i] == buf)
			break;
	MUST(i < side->posted_count, "conn %u: a buffer comes back that was not posted, or twice",
		side->thing.number);
	side->posted[i] = side->posted[--side->posted_count];
}

static void find_peer(struct side *side, unsigned sender)
{
	if (!sender && side->thing.world->stranger && !side->peer)
		return;
	if (!side->peer)
		side->peer = (struct side *)thing_numbered(side->thing.world, CONN, sender);
	MUST(side->peer && side->peer->thing.number == sender,
		"conn %u received what was for somebody else", side->thing.number);
}

static void check_message(struct side *side, const struct evrdma_recv *recv)
{
	unsigned sender = 0, serial = 0;

	if (recv->written) {
		MUST(recv->has_imm && recv->imm == side->messages_received,
			"conn %u: a write came with %u in place of %u", side->thing.number,
			recv->imm, side->messages_received);
		return;
	}
	MUST(message_check(recv->data, recv->len, &sender, &serial),
		"conn %u: what came was not sent by anybody", side->thing.number);
	find_peer(side, sender);
	MUST(serial == side->messages_received, "conn %u: message %u came in place of %u",
		side->thing.number, serial, side->messages_received);
	MUST(!recv->has_imm || recv->imm == serial, "conn %u: message %u came with %u",
		side->thing.number, serial, recv->imm);
}

void side_on_recv(struct evrdma_conn *conn, const struct evrdma_recv *recv, void *arg)
{
	struct side *side = arg;
	struct world *w = side->thing.world;

	thing_event(&side->thing, recv->err ? CONN_RECV_FAILED : CONN_RECEIVED);
	MUST(conn == side->conn, "conn %u is told of another", side->thing.number);
	MUST(!side->not_reading || side->thing.state == CONN_CLOSING,
		"conn %u is told of a receive, and reads nothing", side->thing.number);
	MUST(evrdma_buf_get_user(recv->buf) == (side->receiving == BY_HAND ? side : NULL),
		"conn %u: a buffer is not the one that was posted", side->thing.number);
	if (side->receiving == BY_HAND)
		unpost(side, recv->buf);
	MUST(!recv->err || side->receiving == BY_HAND, "conn %u: a failed receive is told",
		side->thing.number);
	if (!recv->err) {
		MUST(side->was_up, "conn %u received before it was connected", side->thing.number);
		check_message(side, recv);
		side->messages_received++;
		if (random_once_in(&w->random, 6))
			world_hold(w, recv->buf);
	}
	world_act(w);
}

void side_recv(struct world *w)
{
	struct side *side = thing_pick(w, CONN, ANY_STATE);
	struct evrdma_buf *buf;
	int ret, want = 0;

	buf = side ? side_buf(side) : NULL;
	if (!buf)
		return;
	if (side->receiving != BY_HAND)
		want = -EINVAL;
	else if (side->thing.state == CONN_ENDED || side->thing.state == CONN_CLOSING)
		want = -ENOTCONN;
	else if (side->posted_count == side->options.recv_depth)
		want = -EAGAIN;
	thing_call(&side->thing, CONN_RECV);
	ret = evrdma_conn_recv(side->conn, buf);
	thing_returned(&side->thing, CONN_RECV, ret);
	MUST(ret == want, "conn %u: recv gives %d in place of %d", side->thing.number, ret, want);
	evrdma_buf_set_user(buf, side);
	if (!ret)
		side->posted[side->posted_count++] = buf;
	INSIDE(w, evrdma_buf_unref(buf));
}

static void read_or_not(struct side *side, unsigned mark, bool read)
{
	int want = side->thing.state == CONN_CLOSING ? -ENOTCONN : 0, ret;

	thing_call(&side->thing, mark);
	ret = read ? evrdma_conn_enable(side->conn) : evrdma_conn_disable(side->conn);
	thing_returned(&side->thing, mark, ret);
	MUST(ret == want || (!read && ret == -ENOMEM && world_excuses(side->thing.world, ret)),
		"conn %u: %s gives %d in place of %d", side->thing.number,
		cover_mark_name(CONN, mark), ret, want);
	if (ret)
		return;
	side->not_reading = !read;
	side->did_not_read |= !read;
}

void side_enable(struct world *w)
{
	struct side *side = thing_pick(w, CONN, ANY_STATE);

	if (side)
		read_or_not(side, CONN_ENABLE, true);
}

void side_disable(struct world *w)
{
	struct side *side = thing_pick(w, CONN, ANY_STATE);

	if (side)
		read_or_not(side, CONN_DISABLE, false);
}

/* --- sending --------------------------------------------------------------------------------- */

/* The bytes belong to the library meanwhile: nobody may have touched them. */
static void check_sent_buffer(const struct ticket *ticket)
{
	unsigned sender, serial;

	if (ticket->inlined || ticket->op != EVRDMA_OP_SEND)
		return;
	MUST(message_check(evrdma_buf_data(ticket->buf), ticket->len, &sender, &serial) &&
			sender == ticket->thing->number && serial == ticket->serial,
		"conn %u: the buffer of message %u was taken by somebody else",
		ticket->thing->number, ticket->serial);
}

static void check_write(struct side *peer, const struct ticket *ticket)
{
	const unsigned char *part = peer->bytes + PART_AT + ticket->slot * PART_LEN;
	unsigned i;

	/* With iWARP it has only left. */
	if (peer->last_writer[ticket->slot] != ticket->serial ||
		(!machine.exact && peer->thing.world->is_iwarp))
		return;
	for (i = 0; i < ticket->len; i++)
		MUST(part[i] == (unsigned char)(ticket->serial + i),
			"conn %u: what was written is not there", ticket->thing->number);
}

static void check_read(const struct ticket *ticket)
{
	const unsigned char *data = evrdma_buf_data(ticket->buf);
	unsigned i;

	for (i = 0; i < ticket->len; i++)
		MUST(data[i] == (unsigned char)(CONSTANT_AT + i),
			"conn %u: what was read is not what is there", ticket->thing->number);
}

static void check_atomic(struct side *peer, const struct ticket *ticket)
{
	uint64_t before;

	memcpy(&before, evrdma_buf_data(ticket->buf), sizeof(before));
	MUST(before == peer->counter, "conn %u: %llu was there, not %llu", ticket->thing->number,
		(unsigned long long)before, (unsigned long long)peer->counter);
	if (ticket->op == EVRDMA_OP_FETCH_ADD)
		peer->counter += ticket->add;
	else if (peer->counter == ticket->compare)
		peer->counter = ticket->add;
}

static void check_done(struct side *side, const struct ticket *ticket)
{
	switch (ticket->op) {
	case EVRDMA_OP_WRITE:
		check_write(side->peer, ticket);
		break;
	case EVRDMA_OP_READ:
		check_read(ticket);
		break;
	case EVRDMA_OP_COMPARE_SWAP:
	case EVRDMA_OP_FETCH_ADD:
		check_atomic(side->peer, ticket);
		break;
	default:
		break;
	}
}

static void over(struct evrdma_conn *conn, const struct evrdma_error *error, void *arg)
{
	struct ticket *ticket = arg;
	struct side *side = (struct side *)ticket->thing;

	thing_event(&side->thing, error ? CONN_SEND_FAILED : CONN_SENT);
	MUST(conn == side->conn, "conn %u is told of another", side->thing.number);
	MUST(!error || error->err > 0, "conn %u: work failed with %d", side->thing.number,
		error ? error->err : 0);
	ticket_over(ticket, &side->tickets);
	side->under_way--;
	check_sent_buffer(ticket);
	if (!error) {
		check_done(side, ticket);
		side->messages_told += ticket->op == EVRDMA_OP_SEND || ticket->with_imm;
	}
	world_act(side->thing.world);
	if (ticket->buf)
		INSIDE(ticket->thing->world, evrdma_buf_unref(ticket->buf));
	ticket->buf = NULL;
}

static void on_sent(struct evrdma_conn *conn, struct evrdma_buf *buf,
	const struct evrdma_error *error, void *arg)
{
	struct ticket *ticket = arg;

	MUST(!ticket->over && buf == ticket->buf, "conn %u: a send is over with another's buffer",
		ticket->thing->number);
	over(conn, error, arg);
}

/* Only when there is no room; and with keepalive the library uses the room as well. */
static void check_again(struct side *side, uint32_t space, int ret)
{
	uint32_t capacity = side->options.send_depth + side->options.send_queue;

	MUST((ret == -EAGAIN) == !space, "conn %u: a send gives %d with room for %u",
		side->thing.number, ret, space);
	MUST(side->options.keepalive_ms || space == capacity - side->under_way,
		"conn %u: room for %u with %u of %u under way", side->thing.number, space,
		side->under_way, capacity);
	side->want_writable |= ret == -EAGAIN;
}

/* The ticket exists before the call; it is dropped when the work is refused. */
static void submitted(
	struct side *side, struct ticket *ticket, unsigned mark, uint32_t space, int ret)
{
	bool up = side->thing.state == CONN_UP;

	thing_returned(&side->thing, mark, ret);
	if (up)
		check_again(side, space, ret);
	else
		MUST(ret < 0, "conn %u takes work and is not up", side->thing.number);
	if (!up && mark == CONN_SEND)
		MUST(ret == -ENOTCONN, "conn %u: a send gives %d", side->thing.number, ret);
	if (ret) {
		if (ticket->buf)
			INSIDE(ticket->thing->world, evrdma_buf_unref(ticket->buf));
		ticket_drop(ticket, &side->tickets);
		return;
	}
	side->under_way++;
	side->messages_sent += ticket->op == EVRDMA_OP_SEND || ticket->with_imm;
}

static struct side *pick_sender(struct world *w)
{
	return thing_pick(w, CONN, random_once_in(&w->random, 5) ? ANY_STATE : IN(CONN_UP));
}

static bool send_one(struct side *side)
{
	struct world *w = side->thing.world;
	struct evrdma_buf *buf = side_buf(side);
	struct ticket *ticket;
	uint32_t space;
	int ret;

	if (!buf)
		return false;
	ticket = ticket_new(&side->thing, &side->tickets);
	ticket->buf = buf;
	ticket->serial = side->messages_sent;
	ticket->len = message_len(w, BUF_SIZE);
	message_fill(evrdma_buf_data(buf), ticket->len, side->thing.number, ticket->serial);
	space = evrdma_conn_send_space(side->conn);
	thing_call(&side->thing, CONN_SEND);
	ret = evrdma_conn_send(side->conn, buf, ticket->len, on_sent, ticket);
	MUST(ret != -EINVAL || world_excuses(w, ret), "conn %u: a send gives %d",
		side->thing.number, ret);
	submitted(side, ticket, CONN_SEND, space, ret);
	return !ret;
}

void side_send(struct world *w)
{
	unsigned n = random_once_in(&w->random, 3) ? 1 + random_below(&w->random, 16) : 1;
	struct side *side = pick_sender(w);

	while (side && n-- && send_one(side))
		;
}

/* What the peer never exposed: the connection ends for that. */
static void read_nothing(struct world *w)
{
	struct side *side = pick_sender(w);
	struct evrdma_buf *buf = side ? side_buf(side) : NULL;
	struct evrdma_seg seg = { .buf = buf, .len = 8 };
	const struct evrdma_work work = { .op = EVRDMA_OP_READ, .segs = &seg, .seg_count = 1 };
	struct ticket *ticket;
	uint32_t space;

	if (!buf)
		return;
	ticket = ticket_new(&side->thing, &side->tickets);
	ticket->op = EVRDMA_OP_READ;
	ticket->buf = buf;
	space = evrdma_conn_send_space(side->conn);
	thing_call(&side->thing, CONN_SUBMIT);
	submitted(side, ticket, CONN_SUBMIT, space,
		evrdma_conn_submit(side->conn, &work, over, ticket));
}

/*
 * All at once, so that one has much to say when another fails. In a callback each message would
 * lead to more of them, without end.
 */
void side_flood(struct world *w)
{
	struct thing *thing;
	unsigned i, n;

	if (w->depth)
		return;
	if (random_once_in(&w->random, 2))
		read_nothing(w);
	FOR_EACH_THING(w, thing, i)
	{
		if (thing->kind != CONN || thing->gone || thing->state != CONN_UP)
			continue;
		for (n = 0; n < 8 && send_one((struct side *)thing); n++)
			;
	}
}

/* --- other work ------------------------------------------------------------------------------ */

struct attempt {
	struct evrdma_work work;
	struct evrdma_seg segs[3];
	unsigned char inline_data[32];
};

static void make_send(struct side *side, struct ticket *ticket, struct attempt *a)
{
	struct random *r = &side->thing.world->random;
	void *data = evrdma_buf_data(ticket->buf);
	unsigned n = 1 + random_below(r, side->options.send_segs), i;
	size_t at = 0;

	ticket->serial = side->messages_sent;
	ticket->inlined = side->options.inline_bytes && random_once_in(r, 2);
	ticket->len = message_len(side->thing.world, ticket->inlined ? 32 : BUF_SIZE);
	message_fill(data, ticket->len, side->thing.number, ticket->serial);
	if (ticket->inlined) {
		memcpy(a->inline_data, data, ticket->len);
		a->work.inline_data = a->inline_data;
		a->work.inline_len = ticket->len;
		a->work.seg_count = 0;
		return;
	}
	for (i = 0; i < n; i++) {
		size_t len = i + 1 == n ? ticket->len - at : (ticket->len - at) / 2;

		a->segs[i] = (struct evrdma_seg){ ticket->buf, at, len };
		at += len;
	}
	a->work.seg_count = n;
}

/* As it comes in a message of the peer's. */
static struct evrdma_remote remote_of(const struct side *side, uint64_t offset)
{
	unsigned char packed[EVRDMA_REMOTE_PACKED_BYTES];
	struct evrdma_remote remote;

	evrdma_remote_pack(&side->peer->remote, packed);
	evrdma_remote_unpack(&remote, packed);
	return evrdma_remote_at(&remote, offset);
}

static void make_write(struct side *side, struct ticket *ticket, struct attempt *a)
{
	struct world *w = side->thing.world;
	unsigned char *data = evrdma_buf_data(ticket->buf);
	unsigned i;

	ticket->serial = ++w->serials;
	ticket->slot = random_below(&w->random, 4);
	ticket->len = 1 + random_below(&w->random, PART_LEN);
	for (i = 0; i < ticket->len; i++)
		data[i] = (unsigned char)(ticket->serial + i);
	a->segs[0] = (struct evrdma_seg){ ticket->buf, 0, ticket->len };
	a->work.remote = remote_of(side, PART_AT + ticket->slot * PART_LEN);
}

static void make_read(struct side *side, struct ticket *ticket, struct attempt *a)
{
	ticket->len = 1 + random_below(&side->thing.world->random, CONSTANT_LEN);
	a->segs[0] = (struct evrdma_seg){ ticket->buf, 0, ticket->len };
	a->work.remote = remote_of(side, CONSTANT_AT);
}

static void make_atomic(struct side *side, struct ticket *ticket, struct attempt *a)
{
	ticket->add = 1 + random_below(&side->thing.world->random, 9);
	ticket->compare = side->peer->counter;
	a->segs[0] = (struct evrdma_seg){ ticket->buf, 0, 8 };
	a->work.remote = remote_of(side, 0);
	a->work.compare_add = ticket->op == EVRDMA_OP_FETCH_ADD ? ticket->add : ticket->compare;
	a->work.swap = ticket->add;
}

static bool make_work(struct side *side, struct ticket *ticket, struct attempt *a)
{
	static const enum evrdma_op ops[] = { EVRDMA_OP_SEND, EVRDMA_OP_SEND, EVRDMA_OP_SEND,
		EVRDMA_OP_WRITE, EVRDMA_OP_WRITE, EVRDMA_OP_READ, EVRDMA_OP_COMPARE_SWAP,
		EVRDMA_OP_FETCH_ADD };
	static void (*const makers[])(struct side *, struct ticket *, struct attempt *) = {
		[EVRDMA_OP_SEND] = make_send,
		[EVRDMA_OP_WRITE] = make_write,
		[EVRDMA_OP_READ] = make_read,
		[EVRDMA_OP_COMPARE_SWAP] = make_atomic,
		[EVRDMA_OP_FETCH_ADD] = make_atomic,
	};
	struct random *r = &side->thing.world->random;

	ticket->op = RANDOM_OF(r, ops);
	if (ticket->op != EVRDMA_OP_SEND && (!side->peer || !side->peer->was_exposed))
		ticket->op = EVRDMA_OP_SEND;
	memset(a, 0, sizeof(*a));
	a->work.op = ticket->op;
	a->work.segs = a->segs;
	a->work.seg_count = 1;
	makers[ticket->op](side, ticket, a);
	if (ticket->op == EVRDMA_OP_SEND || ticket->op == EVRDMA_OP_WRITE)
		ticket->with_imm = random_once_in(r, 3);
	if (ticket->with_imm) {
		a->work.flags |= EVRDMA_WORK_OPT_IMM;
		a->work.imm = side->messages_sent;
	}
	if (random_once_in(r, 6))
		a->work.flags |= EVRDMA_WORK_OPT_FENCE;
	return true;
}

/* What the arguments alone forbid: whatever the state, it is refused. */
static bool spoil(struct side *side, struct attempt *a)
{
	if (a->work.inline_data || !random_once_in(&side->thing.world->random, 12))
		return false;
	a->segs[0].offset = BUF_SIZE + 1;
	return true;
}

static bool is_refused(const struct side *side, const struct ticket *ticket, int ret)
{
	const struct world *w = side->thing.world;
	bool atomic = ticket->op == EVRDMA_OP_FETCH_ADD || ticket->op == EVRDMA_OP_COMPARE_SWAP;
	bool fetches = atomic || ticket->op == EVRDMA_OP_READ;

	if (ret == -EOPNOTSUPP && fetches && !evrdma_conn_get_initiator_depth(side->conn))
		return true;
	if (ret == -EOPNOTSUPP)
		return (atomic && !w->has_atomics) || (ticket->with_imm && !w->has_immediates);
	return ret == -EAGAIN || world_excuses(w, ret);
}

void side_submit(struct world *w)
{
	struct side *side = pick_sender(w);
	struct evrdma_buf *buf = side ? side_buf(side) : NULL;
	struct ticket *ticket;
	struct attempt a;
	uint32_t space;
	bool spoilt;
	int ret;

	if (!buf)
		return;
	ticket = ticket_new(&side->thing, &side->tickets);
	ticket->buf = buf;
	make_work(side, ticket, &a);
	spoilt = spoil(side, &a);
	space = evrdma_conn_send_space(side->conn);
	thing_call(&side->thing, CONN_SUBMIT);
	ret = evrdma_conn_submit(side->conn, &a.work, over, ticket);
	if (side->thing.state == CONN_UP) {
		MUST(!spoilt || ret == -EINVAL || is_refused(side, ticket, ret),
			"conn %u: bad work gives %d", side->thing.number, ret);
		MUST(spoilt || !ret || is_refused(side, ticket, ret), "conn %u: work gives %d",
			side->thing.number, ret);
	}
	if (!ret && ticket->op == EVRDMA_OP_WRITE)
		side->peer->last_writer[ticket->slot] = ticket->serial;
	submitted(side, ticket, CONN_SUBMIT, space, ret);
}

/* --- memory of ours, for the peer ------------------------------------------------------------ */

static void make_memory(struct side *side)
{
	const unsigned all = EVRDMA_BUF_OPT_REMOTE_READ | EVRDMA_BUF_OPT_REMOTE_WRITE |
			     EVRDMA_BUF_OPT_REMOTE_ATOMIC;
	void *data;
	unsigned i;

	side->memory = side_reference(side, MEMORY_SIZE, all, &data);
	side->bytes = data;
	for (i = 0; i < CONSTANT_LEN; i++)
		side->bytes[CONSTANT_AT + i] = (unsigned char)(CONSTANT_AT + i);
}

void side_expose(struct world *w)
{
	struct side *side = pick_sender(w);
	int ret;

	if (!side)
		return;
	if (!side->memory)
		make_memory(side);
	thing_call(&side->thing, CONN_EXPOSE);
	ret = evrdma_conn_expose(side->conn, side->memory, &side->remote);
	thing_returned(&side->thing, CONN_EXPOSE, ret);
	MUST(!ret || ret == -ENOTCONN || world_excuses(w, ret), "conn %u: expose gives %d",
		side->thing.number, ret);
	MUST(!ret || side->thing.state != CONN_UP || world_excuses(w, ret),
		"conn %u is up and exposes nothing", side->thing.number);
	side->was_exposed |= !ret;
}
