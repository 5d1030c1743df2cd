/* What a connection carries beside messages, its queue, and the memory that it takes. */
#include "conform/sweep.h"

#include <errno.h>
#include <string.h>

enum { MEMORY = 4096, SEGS = 3, INLINE = 32, SLAB = 4096, LIMIT_BYTES = 2 * SLAB };

/* --- every kind of work ---------------------------------------------------------------------- */

static unsigned char memory[MEMORY] __attribute__((aligned(4096)));

static void on_cleanup(void *data, size_t size, void *arg)
{
	((struct run *)arg)->closed++;
}

static bool expose(struct run *r, struct evrdma_remote *remote)
{
	const unsigned all = EVRDMA_BUF_OPT_REMOTE_READ | EVRDMA_BUF_OPT_REMOTE_WRITE |
			     EVRDMA_BUF_OPT_REMOTE_ATOMIC;
	struct evrdma_buf *buf = run_hold(
		r, run_made(r, evrdma_buf_new_reference(memory, MEMORY, all, on_cleanup, r)));

	if (!buf || !run_ok(r, evrdma_conn_expose(r->server, buf, remote)))
		return false;
	evrdma_buf_set_user(buf, remote);
	return evrdma_buf_get_user(buf) == remote;
}

static void submit(struct run *r, const struct evrdma_work *work)
{
	if (!r->finished)
		r->asked += run_ok(r, evrdma_conn_submit(r->client, work, pair_on_work, r));
}

static void submit_memory(struct run *r, struct evrdma_buf *buf, const struct evrdma_remote *remote)
{
	const struct evrdma_seg segs[SEGS] = { { buf, 0, 8 }, { buf, 16, 8 }, { buf, 32, 8 } };
	struct evrdma_work work = {
		.op = EVRDMA_OP_WRITE, .segs = segs, .seg_count = SEGS, .remote = *remote
	};

	submit(r, &work);
	work.op = EVRDMA_OP_READ;
	submit(r, &work);
	work.op = EVRDMA_OP_FETCH_ADD;
	work.seg_count = 1;
	work.compare_add = 5;
	submit(r, &work);
	work.op = EVRDMA_OP_COMPARE_SWAP;
	work.swap = 9;
	submit(r, &work);
	work.op = EVRDMA_OP_WRITE;
	work.flags = EVRDMA_WORK_OPT_IMM;
	work.imm = 7;
	submit(r, &work);
}

static void submit_all(struct run *r)
{
	const struct evrdma_work message = { .op = EVRDMA_OP_SEND,
		.flags = EVRDMA_WORK_OPT_FENCE,
		.inline_data = "all",
		.inline_len = 4 };
	unsigned char packed[EVRDMA_REMOTE_PACKED_BYTES];
	struct evrdma_remote remote;
	struct evrdma_buf *buf;

	if (!expose(r, &remote))
		return;
	evrdma_remote_pack(&remote, packed);
	evrdma_remote_unpack(&remote, packed);
	remote = evrdma_remote_at(&remote, 0);
	buf = run_have(r, evrdma_pool_get(r->pool));
	if (!buf)
		return;
	memset(evrdma_buf_data(buf), 0, SWEEP_LEN);
	submit_memory(r, buf, &remote);
	evrdma_buf_unref(buf);
	submit(r, &message);
}

/* The immediate data of the write, then the message. */
static void hear_all(struct run *r, struct evrdma_conn *conn, const struct evrdma_recv *recv)
{
	if (recv->err || r->finished)
		return;
	if (recv->has_imm)
		r->up += recv->imm == 7 && recv->written == 8;
	else
		r->through = r->up == 3 && !strcmp(recv->data, "all") && memory[0] == 5 &&
			     evrdma_conn_get_initiator_depth(r->client) == 1;
	if (r->through)
		evrdma_conn_close(r->client);
}

static void work_of_every_kind(struct run *r)
{
	memset(memory, 0, sizeof(memory));
	pair_init(r);
	r->options.send_segs = SEGS;
	r->options.inline_bytes = INLINE;
	r->options.send_depth = 8;
	r->on_up = submit_all;
	r->on_recv = hear_all;
	pair_start(r);
}

/* --- the queue ------------------------------------------------------------------------------- */

static bool was_full;

static void submit_until_full(struct run *r)
{
	const struct evrdma_work message = {
		.op = EVRDMA_OP_SEND, .inline_data = "one of many", .inline_len = 12
	};
	int ret;

	while (!(ret = evrdma_conn_submit(r->client, &message, pair_on_work, r)))
		r->asked++;
	was_full = ret == -EAGAIN;
	if (!was_full)
		run_fail(r, -ret);
}

static void disconnect(struct run *r)
{
	run_ok(r, evrdma_conn_disconnect(r->client));
}

static void pass_over(struct run *r, struct evrdma_conn *conn, const struct evrdma_recv *recv)
{
}

static void expect_all_over(struct run *r, struct evrdma_conn *conn)
{
	r->through = was_full && r->asked == 6 && r->over == 6;
	run_finish(r);
}

static void queue_is_full(struct run *r)
{
	pair_init(r);
	r->options.send_depth = 2;
	r->options.send_queue = 4;
	r->options.low_water = 3;
	r->options.inline_bytes = INLINE;
	r->on_up = submit_until_full;
	r->on_writable = disconnect;
	r->on_recv = pass_over;
	r->on_down = expect_all_over;
	pair_start(r);
}

/* --- memory ---------------------------------------------------------------------------------- */

static void trim(struct run *r)
{
	struct evrdma_pool_stats stats;
	size_t bytes = evrdma_pool_trim(r->pool);

	evrdma_pool_get_stats(r->pool, &stats);
	r->through = stats.gets && bytes % SLAB == 0;
	evrdma_pool_free(r->pool);
	evrdma_conn_close(r->client);
}

/* Slabs of few buffers, on huge pages if there are any, some of them from the start. */
static void pool_is_trimmed(struct run *r)
{
	struct evrdma_pool_options options;

	pair_init(r);
	evrdma_pool_options_init(&options);
	options.min_bufs = 2;
	options.slab_bytes = SLAB;
	options.alignment = SLAB / 4;
	options.flags = EVRDMA_POOL_OPT_HUGE_PAGES;
	r->on_answer = trim;
	r->pool = run_have(r, evrdma_pool_new_with_options(r->base, SWEEP_LEN, &options));
	if (r->pool)
		pair_start(r);
}

/* The base may pin the slab that the connection receives into, and one more. */
static void send_too_much(struct run *r)
{
	static unsigned char much[LIMIT_BYTES];
	struct evrdma_buf *buf = run_hold(
		r, run_made(r, evrdma_buf_new_reference(much, LIMIT_BYTES, 0, on_cleanup, r)));
	int ret = buf ? evrdma_conn_send(r->client, buf, 1, NULL, NULL) : 0;

	if (ret == -EDQUOT) {
		r->through = true;
		evrdma_conn_close(r->client);
	} else if (buf) {
		run_fail(r, -ret);
	}
}

static void accept_with_pool(struct run *r, struct evrdma_request *request)
{
	r->options.recv_pool = r->pool;
	pair_accept(r, request);
}

static void on_starved(struct evrdma_pool *pool, int err, void *arg)
{
	run_note(arg, err);
}

static void memory_is_limited(struct run *r)
{
	struct evrdma_pool_options pool_options;
	struct evrdma_base_options options;

	pair_init(r);
	evrdma_base_options_init(&options);
	options.max_pinned_bytes = LIMIT_BYTES;
	evrdma_pool_options_init(&pool_options);
	pool_options.slab_bytes = SLAB;
	r->on_up = send_too_much;
	r->on_request = accept_with_pool;
	r->connects = run_add_base(r, &options);
	if (r->connects)
		r->options.recv_pool = run_have(
			r, evrdma_pool_new_with_options(r->connects, SWEEP_LEN, &pool_options));
	if (!r->options.recv_pool)
		return;
	evrdma_pool_set_starved_cb(r->options.recv_pool, on_starved, r);
	pair_start(r);
}

/* --- memory of several bases ----------------------------------------------------------------- */

/* What names it keeps it. */
static void give_domain_up(struct run *r)
{
	evrdma_domain_free(r->options.domain);
	r->options.domain = NULL;
}

static bool expose_both(struct run *r, struct evrdma_buf *buf)
{
	struct evrdma_remote one, other;

	return run_ok(r, evrdma_conn_expose(r->server, buf, &one)) &&
	       run_ok(r, evrdma_conn_expose(r->client, buf, &other)) && one.key == other.key;
}

static void send_shared(struct run *r)
{
	struct evrdma_buf *buf =
		run_hold(r, run_made(r, evrdma_buf_new_shared(r->options.domain, memory, MEMORY,
						EVRDMA_BUF_OPT_REMOTE_READ, on_cleanup, r)));
	const struct evrdma_seg seg = { buf, MEMORY - SWEEP_LEN, SWEEP_LEN };
	const struct evrdma_work work = { .op = EVRDMA_OP_SEND, .segs = &seg, .seg_count = 1 };

	give_domain_up(r);
	if (buf && expose_both(r, buf))
		submit(r, &work);
}

static void hear_shared(struct run *r, struct evrdma_conn *conn, const struct evrdma_recv *recv)
{
	if (recv->err || r->finished)
		return;
	r->through = conn == r->server && recv->len == SWEEP_LEN;
	evrdma_conn_close(r->client);
}

static void memory_is_shared(struct run *r)
{
	pair_init(r);
	r->on_up = send_shared;
	r->on_recv = hear_shared;
	r->on_request = accept_with_pool;
	r->after = give_domain_up;
	r->connects = run_add_base(r, NULL);
	if (r->connects)
		r->options.recv_pool = run_have(r, evrdma_pool_new(r->connects, SWEEP_LEN, 0));
	if (r->options.recv_pool)
		r->options.domain = run_have(r, evrdma_domain_new_shared());
	if (r->options.domain)
		pair_start(r);
}

/* --- reading --------------------------------------------------------------------------------- */

/* Until all that was sent waits; then it is told. */
static void look_what_waits(evutil_socket_t fd, short what, void *arg)
{
	struct run *r = arg;
	struct evrdma_traffic_stats stats;

	if (r->finished || !r->server)
		return;
	evrdma_conn_get_stats(r->server, &stats);
	if (stats.receives_waiting < 2)
		run_after_ms(r, 1, look_what_waits);
	else
		run_ok(r, evrdma_conn_enable(r->server));
}

static void send_unread(struct run *r)
{
	if (!run_ok(r, evrdma_conn_disable(r->server)))
		return;
	pair_send(r, r->client);
	pair_send(r, r->client);
	run_after_ms(r, 1, look_what_waits);
}

static void hear_two(struct run *r, struct evrdma_conn *conn, const struct evrdma_recv *recv)
{
	if (recv->err || r->finished || conn != r->server)
		return;
	if (++r->up < 4)
		return;
	r->through = true;
	evrdma_conn_close(conn);
}

static void reading_is_disabled(struct run *r)
{
	pair_init(r);
	r->on_up = send_unread;
	r->on_recv = hear_two;
	pair_start(r);
}

/* There what waits has no bound. */
static void reading_is_disabled_on_a_shared_queue(struct run *r)
{
	struct evrdma_pool *pool;
	struct evrdma_srq *srq;

	pair_init(r);
	pool = run_have(r, evrdma_pool_new(r->base, SWEEP_LEN, 8));
	srq = pool ? run_have(r, evrdma_srq_new(r->base, pool, 4)) : NULL;
	if (!srq)
		return;
	r->options.recv_pool = NULL;
	r->options.srq = srq;
	r->on_up = send_unread;
	r->on_recv = hear_two;
	pair_start(r);
	evrdma_srq_free(srq);
}

const struct scenario sweep_work[] = {
	{ "work of every kind", work_of_every_kind, FAKE_ATOMICS | FAKE_IMMEDIATES },
	{ "queue is full", queue_is_full },
	{ "pool is trimmed", pool_is_trimmed },
	{ "memory is limited", memory_is_limited },
	{ "memory is shared", memory_is_shared },
	{ "reading is disabled", reading_is_disabled },
	{ "reading is disabled on a shared queue", reading_is_disabled_on_a_shared_queue,
		FAKE_SRQS },
	{ NULL, NULL },
};
