/*
 * Puts and gets values of 11-kv-server, on 16 connections with 10,000 operations under way, and
 * looks at every byte that it gets.
 *
 *   12-kv-client rdma|tcp ADDRESS:PORT [OPERATIONS]     (40000 when not given, 10000 at least)
 *
 * By RDMA a get is a read of the server's table. The device has only some reads under way at once
 * and the send queue takes 64; what is beyond waits in the library's queue, send_queue long, and
 * goes out by itself. Only the puts are counted here: each takes a buffer of the server's, which
 * has KV_PUTS for a connection, and iWARP does not wait for one. With as many under way it gets
 * instead.
 */
#include "11-key-value.h"

#include <evrdma/evrdma.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/util.h>
#include <stdio.h>
#include <stdlib.h>

enum { LINKS = 16, OPS = 10000, LINK_OPS = OPS / LINKS, SEND_DEPTH = 64, SHUTDOWN_MS = 2000 };
enum { READS = 16 /* at once, which devices commonly can */, PUT_EACH = 4 };

/* A connection, of the one kind or the other. */
static struct link {
	struct evrdma_conn *conn;
	struct bufferevent *bev;
	struct evrdma_remote table;
	uint32_t puts; /* that wait for their answer */
} links[LINKS];

/* Something under way; when it is over the next one of the same room takes its place. */
static struct op {
	struct link *link;
	size_t area; /* offset of its memory, which holds a slot */
	uint32_t key;
	int is_put;
	int left; /* what it waits for: of a put by RDMA the answer, and that its memory is ours */
	uint64_t least; /* the version that the server had answered with when this began */
} ops[OPS];

static struct event_base *loop;
static struct evrdma_base *base;
static struct evrdma_buf *areas;
static void *memory;
static uint64_t answered[KV_KEYS]; /* the version of the last put */
static uint32_t total = 4 * OPS, started, finished, most_under_way, torn, largest;
static uint32_t filling, filled; /* keys that were put before all else: begun, and answered */
static uint64_t bytes;
static int ready, status = 1, is_ending;

static void end(void)
{
	int i;

	if (is_ending++)
		return;
	if (base)
		evrdma_base_shutdown(base, SHUTDOWN_MS, NULL, NULL);
	for (i = 0; i < LINKS; i++)
		if (links[i].bev)
			bufferevent_free(links[i].bev);
}

static void fail(const char *why)
{
	if (!is_ending)
		fprintf(stderr, "%s\n", why);
	end();
}

static void *area_of(const struct op *op)
{
	return (char *)memory + op->area;
}

/* --- what a value is made of ---------------------------------------------------------------- */

/* Its first bytes are a number, from which and the key all others follow. */
static unsigned char byte_at(uint32_t key, uint32_t number, uint32_t i)
{
	return (unsigned char)((number + i) * 167 + key + (i >> 8));
}

static void fill(unsigned char *value, uint32_t len, uint32_t key, uint32_t number)
{
	uint32_t i;

	memcpy(value, &number, sizeof(number));
	for (i = sizeof(number); i < len; i++)
		value[i] = byte_at(key, number, i);
}

static int is_right(const struct kv_head *head)
{
	const unsigned char *value = (const unsigned char *)(head + 1);
	uint32_t i, number, key = be32toh(head->key), len = be32toh(head->len);

	if (len < sizeof(number))
		return 0;
	memcpy(&number, value, sizeof(number));
	for (i = sizeof(number); i < len; i++)
		if (value[i] != byte_at(key, number, i))
			return 0;
	bytes += len;
	largest = len > largest ? len : largest;
	return 1;
}

/* Of the classes of room each has half as many operations as the one before it. */
static uint32_t class_of(uint32_t i)
{
	uint32_t class = 0;

	for (i++; !(i & 1) && class < KV_CLASSES - 1; i >>= 1)
		class++;
	return class;
}

/* --- the operations ------------------------------------------------------------------------- */

static int put_by_rdma(struct op *op, size_t len);
static int read_slot(struct op *op);

static int submit(struct op *op, uint32_t number)
{
	struct kv_request *request = area_of(op);
	uint32_t len = op->is_put ? (uint32_t)kv_room(op->key) - number / PUT_EACH % 8 : 0;

	if (!op->is_put && op->link->conn)
		return read_slot(op);
	request->tag = htobe32((uint32_t)(op - ops));
	request->key = htobe32(op->key);
	request->len = htobe32(len);
	if (len)
		fill((unsigned char *)(request + 1), len, op->key, number);
	op->link->puts += (uint32_t)op->is_put;
	op->left = op->link->conn ? 2 : 1;
	if (op->link->conn)
		return put_by_rdma(op, sizeof(*request) + len);
	return evbuffer_add(bufferevent_get_output(op->link->bev), request, sizeof(*request) + len);
}

static void start(struct op *op)
{
	uint32_t number = started, under_way;

	if (started == total || is_ending)
		return;
	under_way = ++started - finished;
	most_under_way = under_way > most_under_way ? under_way : most_under_way;
	op->is_put = number % PUT_EACH == PUT_EACH - 1 && op->link->puts < KV_PUTS;
	op->key = (number * 2654435761u >> 16) % KV_PLACES * KV_CLASSES +
		class_of((uint32_t)(op - ops));
	op->least = answered[op->key];
	if (submit(op, number))
		fail("the connection takes no more");
}

static void report(void)
{
	printf("%u operations, %u under way at most\n", finished, most_under_way);
	printf("%llu bytes got and checked, values to %u bytes, %u met a put halfway\n",
		(unsigned long long)bytes, largest, torn);
	status = 0;
	end();
}

static void start_all(void)
{
	int i;

	for (i = 0; i < OPS; i++)
		start(&ops[i]);
}

static void fill_next(struct op *op)
{
	if (filling == KV_KEYS)
		return;
	op->key = filling++;
	op->is_put = 1;
	if (submit(op, op->key))
		fail("the connection takes no more");
}

/* Each key has a value of ours before the first get: by those that have the room for any. */
static void fill_all(void)
{
	uint32_t i;

	for (i = 0; i < OPS; i++)
		if (class_of(i) == KV_CLASSES - 1)
			fill_next(&ops[i]);
}

static void finish(struct op *op)
{
	if (is_ending)
		return;
	if (filled < KV_KEYS && ++filled == KV_KEYS)
		start_all();
	else if (filled < KV_KEYS)
		fill_next(op);
	else if (++finished == total)
		report();
	else
		start(op);
}

static void got(struct op *op, const struct kv_head *head)
{
	if (be64toh(head->version) < op->least)
		fail("a value is older than one that was put before");
	else if (!is_right(head))
		fail("a value is not what was put");
	else
		finish(op);
}

/* The answers come in the order of the puts of one connection, but not of all that there are. */
static void on_put_answered(struct op *op, const struct kv_head *head)
{
	uint64_t version = be64toh(head->version);

	if (version <= op->least || be32toh(head->key) != op->key)
		fail("a put was answered as if it had not been made");
	else if (version > answered[op->key])
		answered[op->key] = version;
	op->link->puts--;
	if (!--op->left)
		finish(op);
}

/* The op that an answer is for, or NULL when the server made that up. */
static struct op *op_of(const struct kv_answer *answer, struct link *link)
{
	uint32_t tag = be32toh(answer->tag);

	return tag < OPS && ops[tag].link == link ? &ops[tag] : NULL;
}

/* --- by RDMA -------------------------------------------------------------------------------- */

static void on_sent(struct evrdma_conn *conn, const struct evrdma_error *error, void *arg)
{
	struct op *op = arg;

	if (!error && !is_ending && !--op->left)
		finish(op);
}

static int put_by_rdma(struct op *op, size_t len)
{
	struct evrdma_seg seg = { .buf = areas, .offset = op->area, .len = len };
	struct evrdma_work work = { .op = EVRDMA_OP_SEND, .segs = &seg, .seg_count = 1 };

	return evrdma_conn_submit(op->link->conn, &work, on_sent, op);
}

/* An error ends the connection, which is told of it. */
static void on_slot(struct evrdma_conn *conn, const struct evrdma_error *error, void *arg)
{
	struct op *op = arg;

	if (error || is_ending)
		return;
	if (kv_is_whole(area_of(op), op->key)) {
		got(op, area_of(op));
	} else {
		torn++;
		if (read_slot(op))
			fail("the connection takes no more");
	}
}

static int read_slot(struct op *op)
{
	struct evrdma_seg seg = { .buf = areas, .offset = op->area, .len = kv_slot_bytes(op->key) };
	struct evrdma_work work = {
		.op = EVRDMA_OP_READ,
		.segs = &seg,
		.seg_count = 1,
		.remote = evrdma_remote_at(&op->link->table, kv_offset(op->key)),
	};

	return evrdma_conn_submit(op->link->conn, &work, on_slot, op);
}

static void on_table(struct link *link, const struct evrdma_recv *recv)
{
	evrdma_remote_unpack(&link->table, recv->data);
	if (++ready == LINKS)
		fill_all();
}

static void on_recv(struct evrdma_conn *conn, const struct evrdma_recv *recv, void *arg)
{
	const struct kv_answer *answer = recv->data;
	struct op *op = NULL;

	if (recv->err || is_ending)
		return;
	if (recv->len == EVRDMA_REMOTE_PACKED_BYTES) {
		on_table(arg, recv);
		return;
	}
	if (recv->len == sizeof(*answer) + sizeof(struct kv_head))
		op = op_of(answer, arg);
	if (op && op->is_put)
		on_put_answered(op, (const struct kv_head *)(answer + 1));
	else
		fail("this is no answer of a key-value server");
}

static void on_event(struct evrdma_conn *conn, enum evrdma_conn_event event,
	const struct evrdma_error *error, void *arg)
{
	char why[EVRDMA_ERROR_TEXT_MAX];

	if (event == EVRDMA_CONN_ERROR)
		fail(evrdma_error_text(error, why, sizeof(why)));
	else if (event == EVRDMA_CONN_DISCONNECTED)
		fail("the server has left");
	else if (event == EVRDMA_CONN_CONNECTED && !evrdma_conn_get_initiator_depth(conn))
		fail("the server lets nobody read");
}

static int connect_rdma(const struct sockaddr *addr)
{
	struct evrdma_conn_options options;
	int i;

	base = evrdma_base_new(loop, NULL);
	if (!base)
		return -1;
	evrdma_conn_options_init(&options);
	options.recv_pool = evrdma_pool_new(base, 64, 0);
	options.recv_depth = KV_PUTS + 1; /* their answers, and where the table is */
	options.send_depth = SEND_DEPTH;
	options.send_queue = LINK_OPS - SEND_DEPTH;
	options.initiator_depth = READS;
	for (i = 0; i < LINKS; i++) {
		links[i].conn = evrdma_conn_new(base, &options);
		if (!links[i].conn)
			return -1;
		evrdma_conn_setcb(links[i].conn, on_recv, on_event, &links[i]);
		if (evrdma_conn_connect(links[i].conn, NULL, addr))
			return -1;
	}
	return 0;
}

/* --- by TCP --------------------------------------------------------------------------------- */

/* Over TCP no value can be torn: the loop that answers a get also carries out the puts. */
static void on_answer(struct op *op, const struct kv_head *head, size_t len)
{
	if (op && op->is_put && len == sizeof(*head))
		on_put_answered(op, head);
	else if (op && !op->is_put && len == sizeof(*head) + be32toh(head->len) &&
		kv_is_whole(head, op->key))
		got(op, head);
	else
		fail("this is no answer of a key-value server");
}

static void on_read(struct bufferevent *bev, void *link)
{
	static union {
		struct kv_head head;
		char room[sizeof(struct kv_head) + KV_MOST_ROOM];
	} slot;
	struct evbuffer *input = bufferevent_get_input(bev);
	struct kv_answer answer;
	size_t len;

	while (!is_ending && evbuffer_copyout(input, &answer, sizeof(answer)) == sizeof(answer)) {
		len = be32toh(answer.len);
		if (len < sizeof(slot.head) || len > sizeof(slot)) {
			fail("this is no answer of a key-value server");
			return;
		}
		if (evbuffer_get_length(input) < sizeof(answer) + len)
			return;
		evbuffer_drain(input, sizeof(answer));
		evbuffer_remove(input, &slot, len);
		on_answer(op_of(&answer, link), &slot.head, len);
	}
}

static void on_change(struct bufferevent *bev, short what, void *link)
{
	if (what & BEV_EVENT_ERROR)
		fail(evutil_socket_error_to_string(EVUTIL_SOCKET_ERROR()));
	else if (what & BEV_EVENT_EOF)
		fail("the server has left");
	else if (what & BEV_EVENT_CONNECTED && ++ready == LINKS)
		fill_all();
}

static int connect_tcp(const struct sockaddr *addr, int len)
{
	int i;

	for (i = 0; i < LINKS; i++) {
		links[i].bev = bufferevent_socket_new(
			loop, -1, BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
		if (!links[i].bev)
			return -1;
		bufferevent_setcb(links[i].bev, on_read, NULL, on_change, &links[i]);
		bufferevent_enable(links[i].bev, EV_READ | EV_WRITE);
		if (bufferevent_socket_connect(links[i].bev, addr, len))
			return -1;
	}
	return 0;
}

/* --- both ----------------------------------------------------------------------------------- */

static void release(void *data, size_t size, void *arg)
{
	free(data);
}

static int make_ops(void)
{
	size_t size = 0;
	uint32_t i;

	for (i = 0; i < OPS; i++) {
		ops[i].link = &links[i / LINK_OPS];
		ops[i].area = size;
		size += kv_slot_bytes(class_of(i));
	}
	memory = calloc(1, size);
	areas = evrdma_buf_new_reference(memory, size, 0, release, NULL);
	return areas ? 0 : -1;
}

static int run(int by_tcp, const struct sockaddr *addr, int len)
{
	loop = event_base_new();
	if (!loop || make_ops())
		return perror("no memory"), 1;
	if (by_tcp ? connect_tcp(addr, len) : connect_rdma(addr)) {
		perror("cannot connect");
		end();
	}
	event_base_dispatch(loop); /* returns when all is closed */
	evrdma_buf_unref(areas);
	event_base_free(loop);
	return status;
}

int main(int argc, char **argv)
{
	struct sockaddr_storage addr;
	int len = sizeof(addr), help = argc > 1 && !strcmp(argv[1], "-h");
	int by_tcp = argc > 1 && !strcmp(argv[1], "tcp");

	if (argc > 3)
		total = (uint32_t)strtoul(argv[3], NULL, 10);
	if (help || argc < 3 || argc > 4 || (!by_tcp && strcmp(argv[1], "rdma") != 0) ||
		total < OPS || evutil_parse_sockaddr_port(argv[2], (void *)&addr, &len))
		return fprintf(help ? stdout : stderr,
			       "usage: 12-kv-client rdma|tcp ADDRESS:PORT [OPERATIONS]\n"
			       "OPERATIONS: at least %d, %d when not given\n", OPS, 4 * OPS), !help;
	return run(by_tcp, (struct sockaddr *)&addr, len);
}
