#include "conform/member.h"

#include <rdma/rdma_cma.h>
#include <string.h>

enum { TIMEOUT_MS = 20000 };

static uint8_t byte_of(size_t i)
{
	return (uint8_t)(i * 11 + 5);
}

/* --- callbacks ------------------------------------------------------------------------------ */

static void on_event(struct evrdma_dgram *dgram, enum evrdma_dgram_event event,
	const struct evrdma_error *error, void *arg)
{
	struct member *m = arg;

	ck_assert(!m->f->in_call && !m->closed);
	ck_assert_int_eq(!error, event != EVRDMA_DGRAM_ERROR);
	m->ready += event == EVRDMA_DGRAM_READY;
	m->writable += event == EVRDMA_DGRAM_WRITABLE;
	m->errors += event == EVRDMA_DGRAM_ERROR;
	ck_assert_uint_le(m->errors, 1);
	if (error) {
		m->err = error->err;
		m->step = error->step;
	}
	if (event != EVRDMA_DGRAM_CLOSED)
		return;
	m->closed++;
	m->dgram = NULL;
	ck_assert_uint_eq(m->groups_closed, m->groups);
	ck_assert_uint_eq(m->sends_taken, m->sent_ok + m->sent_cancelled);
}

static void on_group_event(struct evrdma_mcast *group, enum evrdma_mcast_event event,
	const struct evrdma_error *error, void *arg)
{
	struct member *m = arg;

	ck_assert(!m->f->in_call && !m->closed);
	ck_assert_int_eq(!error, event != EVRDMA_MCAST_ERROR);
	m->joined += event == EVRDMA_MCAST_JOINED;
	m->group_errors += event == EVRDMA_MCAST_ERROR;
	if (error)
		m->group_err = error->err;
	if (event != EVRDMA_MCAST_CLOSED)
		return;
	m->groups_closed++;
	if (m->group == group)
		m->group = NULL;
}

static void on_recv(struct evrdma_dgram *dgram, const struct evrdma_recv *recv, void *arg)
{
	struct member *m = arg;
	const uint8_t *data = recv->data;
	size_t i;

	ck_assert(!m->f->in_call && !m->closed);
	ck_assert_int_eq(recv->err, 0);
	m->received++;
	m->len = recv->len;
	m->has_imm = recv->has_imm;
	m->imm = recv->imm;
	m->src_qp = recv->src_qp;
	m->has_grh = recv->grh;
	for (i = 0; i < recv->len; i++)
		ck_assert_uint_eq(data[i], byte_of(i));
}

static void on_sent(struct evrdma_dgram *dgram, struct evrdma_buf *buf,
	const struct evrdma_error *error, void *arg)
{
	struct member *m = arg;

	ck_assert(!m->f->in_call && !m->closed);
	if (error)
		m->sent_cancelled++;
	else
		m->sent_ok++;
}

/* --- life ----------------------------------------------------------------------------------- */

static void make(struct member *m)
{
	struct evrdma_dgram_options options;

	evrdma_dgram_options_init(&options);
	options.send_depth = m->send_depth;
	options.recv_pool = m->f->pool;
	options.flags = m->flags;
	options.port_space = m->port_space;
	if (m->join_timeout_ms)
		options.join_timeout_ms = m->join_timeout_ms;
	m->dgram = evrdma_dgram_new(m->f->base, &options);
	ck_assert_ptr_nonnull(m->dgram);
	evrdma_dgram_setcb(m->dgram, on_recv, on_event, m);
}

void member_init(struct member *m, struct fixture *f, unsigned flags)
{
	*m = (struct member){ .f = f,
		.ip = testbed.ip,
		.send_depth = 64,
		.flags = flags,
		.port_space = RDMA_PS_UDP };
	make(m);
}

void member_open(struct member *m)
{
	struct sockaddr_in src;

	fixture_address(&src, m->ip, 0);
	m->f->in_call = true;
	ck_assert_int_eq(evrdma_dgram_open(m->dgram, (struct sockaddr *)&src, NULL), 0);
	m->f->in_call = false;
}

void member_reopen(struct member *m)
{
	evrdma_dgram_close(m->dgram);
	member_run_until_closed(m);
	m->closed = 0;
	make(m);
	member_open(m);
}

void member_join(
	struct member *m, struct fixture *f, unsigned flags, const char *group, unsigned join_flags)
{
	member_init(m, f, flags);
	member_open(m);
	member_run_until_ready(m);
	member_join_too(m, group, join_flags);
}

void member_try_join(struct member *m, const struct sockaddr *group, unsigned join_flags)
{
	struct evrdma_mcast *joining;

	m->f->in_call = true;
	joining = evrdma_mcast_join(m->dgram, group, join_flags, on_group_event, m);
	m->f->in_call = false;
	ck_assert_ptr_nonnull(joining);
	m->groups++;
	if (!m->group)
		m->group = joining;
}

int member_send(struct member *m, size_t len, const uint32_t *imm)
{
	struct evrdma_buf *buf = evrdma_pool_get(m->f->pool);
	uint8_t *data = evrdma_buf_data(buf);
	size_t i;
	int ret;

	for (i = 0; i < len; i++)
		data[i] = byte_of(i);
	m->f->in_call = true;
	ret = evrdma_dgram_send(m->dgram, m->group, buf, len, imm, on_sent, m);
	m->f->in_call = false;
	evrdma_buf_unref(buf);
	m->sends_taken += !ret;
	return ret;
}

/* --- waiting -------------------------------------------------------------------------------- */

/* A count of the member's and what it is to reach. */
static struct {
	const unsigned *count;
	unsigned wanted;
} awaited;

static bool awaited_is_reached(struct fixture *f)
{
	return *awaited.count >= awaited.wanted;
}

static void run_until(struct member *m, const unsigned *count, unsigned wanted)
{
	awaited.count = count;
	awaited.wanted = wanted;
	fixture_run_until(m->f, awaited_is_reached, TIMEOUT_MS);
	ck_assert_uint_eq(*count, wanted);
}

void member_join_too(struct member *m, const char *group, unsigned join_flags)
{
	struct sockaddr_in sin;

	fixture_address(&sin, group, 0);
	member_try_join(m, (struct sockaddr *)&sin, join_flags);
	member_run_until_joined(m);
}

void member_run_until_joined(struct member *m)
{
	run_until(m, &m->joined, m->joined + 1);
}

void member_run_until_ready(struct member *m)
{
	run_until(m, &m->ready, m->ready + 1);
}

void member_run_until_failed(struct member *m)
{
	run_until(m, &m->errors, 1);
}

void member_run_until_writable(struct member *m)
{
	run_until(m, &m->writable, 1);
}

void member_run_until_closed(struct member *m)
{
	run_until(m, &m->closed, 1);
}

void member_run_until_group_failed(struct member *m)
{
	run_until(m, &m->group_errors, 1);
}

void member_run_until_group_closed(struct member *m)
{
	run_until(m, &m->groups_closed, m->groups_closed + 1);
}

void member_run_until_received(struct member *m, unsigned n)
{
	run_until(m, &m->received, n);
}
