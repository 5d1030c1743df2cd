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

static void unpost(struct connection *connection, struct evrdma_buf *buf)
{
	unsigned i;

	for (i = 0; i < connection->posted_count; i++)
		if (connection->posted[i] == buf)
			break;
	MUST(i < connection->posted_count,
		"conn %u: a buffer comes back that was not posted, or twice",
		connection->object.number);
	connection->posted[i] = connection->posted[--connection->posted_count];
}

/* Of several addresses one may be the stranger's, after another's accept came to nothing. */
static bool may_be_strange(const struct connection *connection)
{
	return connection->object.schedule->stranger &&
	       (!connection->peer || !connection->peer->was_up);
}

static void find_peer(struct connection *connection, unsigned sender)
{
	if (!sender && may_be_strange(connection)) {
		connection->peer = NULL;
		return;
	}
	if (!connection->peer)
		connection->peer = (struct connection *)object_numbered(
			connection->object.schedule, CONN, sender);
	MUST(connection->peer && connection->peer->object.number == sender,
		"conn %u received what was for somebody else", connection->object.number);
}

static void check_message(struct connection *connection, const struct evrdma_recv *recv)
{
	unsigned sender = 0, serial = 0;

	if (recv->written) {
		MUST(recv->has_imm && recv->imm == connection->messages_received,
			"conn %u: a write came with %u in place of %u", connection->object.number,
			recv->imm, connection->messages_received);
		return;
	}
	MUST(message_check(recv->data, recv->len, &sender, &serial),
		"conn %u: what came was not sent by anybody", connection->object.number);
	find_peer(connection, sender);
	MUST(serial == connection->messages_received, "conn %u: message %u came in place of %u",
		connection->object.number, serial, connection->messages_received);
	MUST(!recv->has_imm || recv->imm == serial, "conn %u: message %u came with %u",
		connection->object.number, serial, recv->imm);
}

void connection_on_recv(struct evrdma_conn *conn, const struct evrdma_recv *recv, void *arg)
{
	struct connection *connection = arg;
	struct schedule *s = connection->object.schedule;

	object_event(&connection->object, recv->err ? CONN_RECV_FAILED : CONN_RECEIVED);
	MUST(conn == connection->conn, "conn %u is told of another", connection->object.number);
	MUST(!connection->not_reading || connection->object.state == CONN_CLOSING,
		"conn %u is told of a receive, and reads nothing", connection->object.number);
	MUST(evrdma_buf_get_user(recv->buf) ==
			(connection->receiving == BY_HAND ? connection : NULL),
		"conn %u: a buffer is not the one that was posted", connection->object.number);
	if (connection->receiving == BY_HAND)
		unpost(connection, recv->buf);
	MUST(!recv->err || connection->receiving == BY_HAND, "conn %u: a failed receive is told",
		connection->object.number);
	if (!recv->err) {
		MUST(connection->was_up, "conn %u received before it was connected",
			connection->object.number);
		check_message(connection, recv);
		connection->messages_received++;
		if (random_once_in(&s->random, 6))
			schedule_hold(s, recv->buf);
	}
	schedule_act(s);
}

void connection_recv(struct schedule *s)
{
	struct connection *connection = object_pick(s, CONN, ANY_STATE);
	struct evrdma_buf *buf;
	int ret, want = 0;

	buf = connection ? connection_buf(connection) : NULL;
	if (!buf)
		return;
	if (connection->receiving != BY_HAND)
		want = -EINVAL;
	else if (connection->object.state == CONN_ENDED || connection->object.state == CONN_CLOSING)
		want = -ENOTCONN;
	else if (connection->posted_count == connection->options.recv_depth)
		want = -EAGAIN;
	object_call(&connection->object, CONN_RECV);
	ret = evrdma_conn_recv(connection->conn, buf);
	object_returned(&connection->object, CONN_RECV, ret);
	MUST(ret == want, "conn %u: recv gives %d in place of %d", connection->object.number, ret,
		want);
	evrdma_buf_set_user(buf, connection);
	if (!ret)
		connection->posted[connection->posted_count++] = buf;
	INSIDE(s, evrdma_buf_unref(buf));
}

static void read_or_not(struct connection *connection, unsigned mark, bool read)
{
	int want = connection->object.state == CONN_CLOSING ? -ENOTCONN : 0, ret;

	object_call(&connection->object, mark);
	ret = read ? evrdma_conn_enable(connection->conn) : evrdma_conn_disable(connection->conn);
	object_returned(&connection->object, mark, ret);
	MUST(ret == want || (!read && ret == -ENOMEM &&
				    schedule_excuses(connection->object.schedule, ret)),
		"conn %u: %s gives %d in place of %d", connection->object.number,
		cover_mark_name(CONN, mark), ret, want);
	if (ret)
		return;
	connection->not_reading = !read;
	connection->did_not_read |= !read;
}

void connection_enable(struct schedule *s)
{
	struct connection *connection = object_pick(s, CONN, ANY_STATE);

	if (connection)
		read_or_not(connection, CONN_ENABLE, true);
}

void connection_disable(struct schedule *s)
{
	struct connection *connection = object_pick(s, CONN, ANY_STATE);

	if (connection)
		read_or_not(connection, CONN_DISABLE, false);
}

/* --- sending --------------------------------------------------------------------------------- */

/* The bytes belong to the library meanwhile: nobody may have touched them. */
static void check_sent_buffer(const struct ticket *ticket)
{
	unsigned sender, serial;

	if (ticket->inlined || ticket->op != EVRDMA_OP_SEND)
		return;
	MUST(message_check(evrdma_buf_data(ticket->buf), ticket->len, &sender, &serial) &&
			sender == ticket->object->number && serial == ticket->serial,
		"conn %u: the buffer of message %u was taken by somebody else",
		ticket->object->number, ticket->serial);
}

static void check_write(struct connection *peer, const struct ticket *ticket)
{
	const unsigned char *part = peer->bytes + PART_AT + ticket->slot * PART_LEN;
	unsigned i;

	/* With iWARP it has only left. */
	if (peer->last_writer[ticket->slot] != ticket->serial ||
		(!machine.exact && peer->object.schedule->is_iwarp))
		return;
	for (i = 0; i < ticket->len; i++)
		MUST(part[i] == (unsigned char)(ticket->serial + i),
			"conn %u: what was written is not there", ticket->object->number);
}

static void check_read(const struct ticket *ticket)
{
	const unsigned char *data = evrdma_buf_data(ticket->buf);
	unsigned i;

	for (i = 0; i < ticket->len; i++)
		MUST(data[i] == (unsigned char)(CONSTANT_AT + i),
			"conn %u: what was read is not what is there", ticket->object->number);
}

static void check_atomic(struct connection *peer, const struct ticket *ticket)
{
	uint64_t before;

	memcpy(&before, evrdma_buf_data(ticket->buf), sizeof(before));
	MUST(before == peer->counter, "conn %u: %llu was there, not %llu", ticket->object->number,
		(unsigned long long)before, (unsigned long long)peer->counter);
	if (ticket->op == EVRDMA_OP_FETCH_ADD)
		peer->counter += ticket->add;
	else if (peer->counter == ticket->compare)
		peer->counter = ticket->add;
}

static void check_done(struct connection *connection, const struct ticket *ticket)
{
	switch (ticket->op) {
	case EVRDMA_OP_WRITE:
		check_write(connection->peer, ticket);
		break;
	case EVRDMA_OP_READ:
		check_read(ticket);
		break;
	case EVRDMA_OP_COMPARE_SWAP:
	case EVRDMA_OP_FETCH_ADD:
		check_atomic(connection->peer, ticket);
		break;
	default:
		break;
	}
}

static void over(struct evrdma_conn *conn, const struct evrdma_error *error, void *arg)
{
	struct ticket *ticket = arg;
	struct connection *connection = (struct connection *)ticket->object;

	object_event(&connection->object, error ? CONN_SEND_FAILED : CONN_SENT);
	MUST(conn == connection->conn, "conn %u is told of another", connection->object.number);
	MUST(!error || error->err > 0, "conn %u: work failed with %d", connection->object.number,
		error ? error->err : 0);
	ticket_over(ticket, &connection->tickets);
	connection->under_way--;
	check_sent_buffer(ticket);
	if (!error) {
		check_done(connection, ticket);
		connection->messages_told += ticket->op == EVRDMA_OP_SEND || ticket->with_imm;
	}
	schedule_act(connection->object.schedule);
	if (ticket->buf)
		INSIDE(ticket->object->schedule, evrdma_buf_unref(ticket->buf));
	ticket->buf = NULL;
}

static void on_sent(struct evrdma_conn *conn, struct evrdma_buf *buf,
	const struct evrdma_error *error, void *arg)
{
	struct ticket *ticket = arg;

	MUST(!ticket->over && buf == ticket->buf, "conn %u: a send is over with another's buffer",
		ticket->object->number);
	over(conn, error, arg);
}

/* Only when there is no room; and with keepalive the library uses the room as well. */
static void check_again(struct connection *connection, uint32_t space, int ret)
{
	uint32_t capacity = connection->options.send_depth + connection->options.send_queue;

	MUST((ret == -EAGAIN) == !space, "conn %u: a send gives %d with room for %u",
		connection->object.number, ret, space);
	MUST(connection->options.keepalive_ms || space == capacity - connection->under_way,
		"conn %u: room for %u with %u of %u under way", connection->object.number, space,
		connection->under_way, capacity);
	connection->want_writable |= ret == -EAGAIN;
}

/* The ticket exists before the call; it is dropped when the work is refused. */
static void submitted(struct connection *connection, struct ticket *ticket, unsigned mark,
	uint32_t space, int ret)
{
	bool up = connection->object.state == CONN_UP;

	object_returned(&connection->object, mark, ret);
	if (up)
		check_again(connection, space, ret);
	else
		MUST(ret < 0, "conn %u takes work and is not up", connection->object.number);
	if (!up && mark == CONN_SEND)
		MUST(ret == -ENOTCONN, "conn %u: a send gives %d", connection->object.number, ret);
	if (ret) {
		if (ticket->buf)
			INSIDE(ticket->object->schedule, evrdma_buf_unref(ticket->buf));
		ticket_drop(ticket, &connection->tickets);
		return;
	}
	connection->under_way++;
	if (ticket->op == EVRDMA_OP_SEND || ticket->with_imm)
		ticket->message = ++connection->messages_sent;
}

static struct connection *pick_sender(struct schedule *s)
{
	return object_pick(s, CONN, random_once_in(&s->random, 5) ? ANY_STATE : IN(CONN_UP));
}

static bool send_one(struct connection *connection)
{
	struct schedule *s = connection->object.schedule;
	struct evrdma_buf *buf = connection_buf(connection);
	struct ticket *ticket;
	uint32_t space;
	int ret;

	if (!buf)
		return false;
	ticket = ticket_new(&connection->object, &connection->tickets);
	ticket->buf = buf;
	ticket->serial = connection->messages_sent;
	ticket->len = message_len(s, BUF_SIZE);
	message_fill(evrdma_buf_data(buf), ticket->len, connection->object.number, ticket->serial);
	space = evrdma_conn_send_space(connection->conn);
	object_call(&connection->object, CONN_SEND);
	ret = evrdma_conn_send(connection->conn, buf, ticket->len, on_sent, ticket);
	MUST(ret != -EINVAL || schedule_excuses(s, ret), "conn %u: a send gives %d",
		connection->object.number, ret);
	submitted(connection, ticket, CONN_SEND, space, ret);
	return !ret;
}

void connection_send(struct schedule *s)
{
	unsigned n = random_once_in(&s->random, 3) ? 1 + random_below(&s->random, 16) : 1;
	struct connection *connection = pick_sender(s);

	while (connection && n-- && send_one(connection))
		;
}

/* What the peer never exposed: the connection ends for that. */
static void read_nothing(struct schedule *s)
{
	struct connection *connection = pick_sender(s);
	struct evrdma_buf *buf = connection ? connection_buf(connection) : NULL;
	struct evrdma_seg seg = { .buf = buf, .len = 8 };
	const struct evrdma_work work = { .op = EVRDMA_OP_READ, .segs = &seg, .seg_count = 1 };
	struct ticket *ticket;
	uint32_t space;

	if (!buf)
		return;
	ticket = ticket_new(&connection->object, &connection->tickets);
	ticket->op = EVRDMA_OP_READ;
	ticket->buf = buf;
	space = evrdma_conn_send_space(connection->conn);
	object_call(&connection->object, CONN_SUBMIT);
	submitted(connection, ticket, CONN_SUBMIT, space,
		evrdma_conn_submit(connection->conn, &work, over, ticket));
}

/*
 * All at once, so that one has much to say when another fails. In a callback each message would
 * lead to more of them, without end.
 */
void connection_flood(struct schedule *s)
{
	struct object *object;
	unsigned i, n;

	if (s->depth)
		return;
	if (random_once_in(&s->random, 2))
		read_nothing(s);
	FOR_EACH_OBJECT(s, object, i)
	{
		if (object->kind != CONN || object->gone || object->state != CONN_UP)
			continue;
		for (n = 0; n < 8 && send_one((struct connection *)object); n++)
			;
	}
}

/* --- what must not be left undone ------------------------------------------------------------- */

static bool waits_for_nothing(const struct connection *connection)
{
	const struct ticket *ticket;

	TAILQ_FOREACH (ticket, &connection->tickets, link)
		if (ticket->op != EVRDMA_OP_SEND && ticket->op != EVRDMA_OP_WRITE)
			return false;
	return connection->object.state == CONN_UP || connection->object.state == CONN_LEAVING;
}

/* The peer has the last of it, so all of it is done: nothing else will ever say so. */
void connection_check_told(const struct connection *connection)
{
	const struct connection *peer = connection->peer;
	const struct ticket *last = TAILQ_LAST(&connection->tickets, tickets);

	if (!machine.exact || !last || !peer || peer->peer != connection ||
		!waits_for_nothing(connection))
		return;
	MUST(!last->message || last->message > peer->messages_received,
		"conn %u: message %u arrived, and is not told as sent", connection->object.number,
		last->message - 1);
}

/* --- other work ------------------------------------------------------------------------------ */

struct attempt {
	struct evrdma_work work;
	struct evrdma_seg segs[3];
	unsigned char inline_data[32];
};

static void make_send(struct connection *connection, struct ticket *ticket, struct attempt *a)
{
	struct random *r = &connection->object.schedule->random;
	void *data = evrdma_buf_data(ticket->buf);
	unsigned n = 1 + random_below(r, connection->options.send_segs), i;
	size_t at = 0;

	ticket->serial = connection->messages_sent;
	ticket->inlined = connection->options.inline_bytes && random_once_in(r, 2);
	ticket->len = message_len(connection->object.schedule, ticket->inlined ? 32 : BUF_SIZE);
	message_fill(data, ticket->len, connection->object.number, ticket->serial);
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
static struct evrdma_remote remote_of(const struct connection *connection, uint64_t offset)
{
	unsigned char packed[EVRDMA_REMOTE_PACKED_BYTES];
	struct evrdma_remote remote;

	evrdma_remote_pack(&connection->peer->remote, packed);
	evrdma_remote_unpack(&remote, packed);
	return evrdma_remote_at(&remote, offset);
}

static void make_write(struct connection *connection, struct ticket *ticket, struct attempt *a)
{
	struct schedule *s = connection->object.schedule;
	unsigned char *data = evrdma_buf_data(ticket->buf);
	unsigned i;

	ticket->serial = ++s->serials;
	ticket->slot = random_below(&s->random, 4);
	ticket->len = 1 + random_below(&s->random, PART_LEN);
	for (i = 0; i < ticket->len; i++)
		data[i] = (unsigned char)(ticket->serial + i);
	a->segs[0] = (struct evrdma_seg){ ticket->buf, 0, ticket->len };
	a->work.remote = remote_of(connection, PART_AT + ticket->slot * PART_LEN);
}

static void make_read(struct connection *connection, struct ticket *ticket, struct attempt *a)
{
	ticket->len = 1 + random_below(&connection->object.schedule->random, CONSTANT_LEN);
	a->segs[0] = (struct evrdma_seg){ ticket->buf, 0, ticket->len };
	a->work.remote = remote_of(connection, CONSTANT_AT);
}

static void make_atomic(struct connection *connection, struct ticket *ticket, struct attempt *a)
{
	ticket->add = 1 + random_below(&connection->object.schedule->random, 9);
	ticket->compare = connection->peer->counter;
	a->segs[0] = (struct evrdma_seg){ ticket->buf, 0, 8 };
	a->work.remote = remote_of(connection, 0);
	a->work.compare_add = ticket->op == EVRDMA_OP_FETCH_ADD ? ticket->add : ticket->compare;
	a->work.swap = ticket->add;
}

static bool make_work(struct connection *connection, struct ticket *ticket, struct attempt *a)
{
	static const enum evrdma_op ops[] = { EVRDMA_OP_SEND, EVRDMA_OP_SEND, EVRDMA_OP_SEND,
		EVRDMA_OP_WRITE, EVRDMA_OP_WRITE, EVRDMA_OP_READ, EVRDMA_OP_COMPARE_SWAP,
		EVRDMA_OP_FETCH_ADD };
	static void (*const makers[])(struct connection *, struct ticket *, struct attempt *) = {
		[EVRDMA_OP_SEND] = make_send,
		[EVRDMA_OP_WRITE] = make_write,
		[EVRDMA_OP_READ] = make_read,
		[EVRDMA_OP_COMPARE_SWAP] = make_atomic,
		[EVRDMA_OP_FETCH_ADD] = make_atomic,
	};
	struct random *r = &connection->object.schedule->random;

	ticket->op = RANDOM_OF(r, ops);
	if (ticket->op != EVRDMA_OP_SEND && (!connection->peer || !connection->peer->was_exposed))
		ticket->op = EVRDMA_OP_SEND;
	memset(a, 0, sizeof(*a));
	a->work.op = ticket->op;
	a->work.segs = a->segs;
	a->work.seg_count = 1;
	makers[ticket->op](connection, ticket, a);
	if (ticket->op == EVRDMA_OP_SEND || ticket->op == EVRDMA_OP_WRITE)
		ticket->with_imm = random_once_in(r, 3);
	if (ticket->with_imm) {
		a->work.flags |= EVRDMA_WORK_OPT_IMM;
		a->work.imm = connection->messages_sent;
	}
	if (random_once_in(r, 6))
		a->work.flags |= EVRDMA_WORK_OPT_FENCE;
	return true;
}

/* What the arguments alone forbid: whatever the state, it is refused. */
static bool spoil(struct connection *connection, struct attempt *a)
{
	if (a->work.inline_data || !random_once_in(&connection->object.schedule->random, 12))
		return false;
	a->segs[0].offset = BUF_SIZE + 1;
	return true;
}

static bool is_refused(const struct connection *connection, const struct ticket *ticket, int ret)
{
	const struct schedule *s = connection->object.schedule;
	bool atomic = ticket->op == EVRDMA_OP_FETCH_ADD || ticket->op == EVRDMA_OP_COMPARE_SWAP;
	bool fetches = atomic || ticket->op == EVRDMA_OP_READ;

	if (ret == -EOPNOTSUPP && fetches && !evrdma_conn_get_initiator_depth(connection->conn))
		return true;
	if (ret == -EOPNOTSUPP)
		return (atomic && !s->has_atomics) || (ticket->with_imm && !s->has_immediates);
	return ret == -EAGAIN || schedule_excuses(s, ret);
}

void connection_submit(struct schedule *s)
{
	struct connection *connection = pick_sender(s);
	struct evrdma_buf *buf = connection ? connection_buf(connection) : NULL;
	struct ticket *ticket;
	struct attempt a;
	uint32_t space;
	bool spoilt;
	int ret;

	if (!buf)
		return;
	ticket = ticket_new(&connection->object, &connection->tickets);
	ticket->buf = buf;
	make_work(connection, ticket, &a);
	spoilt = spoil(connection, &a);
	space = evrdma_conn_send_space(connection->conn);
	object_call(&connection->object, CONN_SUBMIT);
	ret = evrdma_conn_submit(connection->conn, &a.work, over, ticket);
	if (connection->object.state == CONN_UP) {
		MUST(!spoilt || ret == -EINVAL || is_refused(connection, ticket, ret),
			"conn %u: bad work gives %d", connection->object.number, ret);
		MUST(spoilt || !ret || is_refused(connection, ticket, ret),
			"conn %u: work gives %d", connection->object.number, ret);
	}
	if (!ret && ticket->op == EVRDMA_OP_WRITE)
		connection->peer->last_writer[ticket->slot] = ticket->serial;
	submitted(connection, ticket, CONN_SUBMIT, space, ret);
}

/* --- memory of ours, for the peer ------------------------------------------------------------ */

static void make_memory(struct connection *connection)
{
	const unsigned all = EVRDMA_BUF_OPT_REMOTE_READ | EVRDMA_BUF_OPT_REMOTE_WRITE |
			     EVRDMA_BUF_OPT_REMOTE_ATOMIC;
	void *data;
	unsigned i;

	connection->memory = connection_reference(connection, MEMORY_SIZE, all, &data);
	connection->bytes = data;
	for (i = 0; i < CONSTANT_LEN; i++)
		connection->bytes[CONSTANT_AT + i] = (unsigned char)(CONSTANT_AT + i);
}

void connection_expose(struct schedule *s)
{
	struct connection *connection = pick_sender(s);
	int ret;

	if (!connection)
		return;
	if (!connection->memory)
		make_memory(connection);
	object_call(&connection->object, CONN_EXPOSE);
	ret = evrdma_conn_expose(connection->conn, connection->memory, &connection->remote);
	object_returned(&connection->object, CONN_EXPOSE, ret);
	MUST(!ret || ret == -ENOTCONN || schedule_excuses(s, ret), "conn %u: expose gives %d",
		connection->object.number, ret);
	MUST(ret == -ENOTCONN || connection->object.state < CONN_ENDED,
		"conn %u has ended, and expose gives %d", connection->object.number, ret);
	MUST(!ret || connection->object.state != CONN_UP || schedule_excuses(s, ret),
		"conn %u is up and exposes nothing", connection->object.number);
	connection->was_exposed |= !ret;
}
