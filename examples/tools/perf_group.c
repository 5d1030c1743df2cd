/*
 * The multicast side of evrdma-perf: a sender of numbered datagrams to a group, and receivers that
 * count what came. A datagram is zeroes but for its first bytes, big endian: its number, or all
 * ones at the end, then two bytes of the port and six of how many there are. A group has no ports:
 * datagrams of another are passed over, and so are those of another sender than the first. The end
 * is sent several times, as it may be lost too.
 */
#include "perf.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

enum { ENDS = 5, END_MS = 20, RECV_DEPTH = 1024, RECV_BYTES = 4096 };

#define END_NUMBER UINT64_MAX
#define TOTAL_BITS 48

struct perf_group {
	struct perf *perf;
	struct evrdma_dgram *dgram;
	struct evrdma_mcast *member;
	struct evrdma_pool *pool;
	struct event *end_timer;
	uint64_t sent;
	uint64_t done;
	int ends; /* that were sent */
	/* Whose run is received. */
	uint32_t sender_qp;
	struct sockaddr_storage sender;
	struct perf_result result;
};

static int is_over(const struct perf_group *group)
{
	return group->perf->tool.stopping;
}

static int check(struct perf_group *group, int ret)
{
	return perf_check(group->perf, EVRDMA_STEP_TRANSFER, ret);
}

static void finish(struct perf_group *group)
{
	if (group->end_timer)
		event_del(group->end_timer);
	perf_watch_stop(&group->perf->watch);
	perf_print(&group->perf->options, &group->result, 1);
	tool_stop(&group->perf->tool);
}

/* --- the sender ------------------------------------------------------------------------------ */

static void mark(const struct perf_group *group, struct evrdma_buf *buf, uint64_t number)
{
	const struct perf_options *options = &group->perf->options;
	uint64_t what = (uint64_t)options->port << TOTAL_BITS | (uint64_t)options->count;
	const uint64_t wire[2] = { htobe64(number), htobe64(what) };

	memcpy(evrdma_buf_data(buf), wire, sizeof(wire));
}

static int send_one(struct perf_group *group, uint64_t number, evrdma_dgram_send_cb cb)
{
	struct evrdma_buf *buf = evrdma_pool_get(group->pool);
	int ret;

	if (!buf)
		return -errno;
	mark(group, buf, number);
	ret = evrdma_dgram_send(
		group->dgram, group->member, buf, group->result.size, NULL, cb, group);
	evrdma_buf_unref(buf);
	return ret;
}

static void pump(struct perf_group *group);

static void send_done(struct evrdma_dgram *unused, struct evrdma_buf *buf,
	const struct evrdma_error *error, void *arg)
{
	struct perf_group *group = arg;

	if (is_over(group))
		return;
	if (error) {
		ends_fail_error(&group->perf->ends, error);
		return;
	}
	group->done++;
	group->perf->watch.progress++;
	pump(group);
}

static void end_again(evutil_socket_t unused, short what, void *arg)
{
	struct perf_group *group = arg;

	if (is_over(group))
		return;
	if (group->ends++ == ENDS)
		finish(group);
	else
		check(group, send_one(group, END_NUMBER, NULL));
}

static void all_sent(struct perf_group *group)
{
	const struct timeval pause = { 0, END_MS * 1000 };

	group->result.end_ns = tool_now_ns();
	group->result.messages = group->done;
	group->end_timer =
		event_new(group->perf->tool.event_base, -1, EV_PERSIST, end_again, group);
	if (!group->end_timer || event_add(group->end_timer, &pause))
		tool_fail(&group->perf->tool, "out of memory");
}

static void pump(struct perf_group *group)
{
	const uint64_t count = (uint64_t)group->perf->options.count;

	while (group->sent < count && group->sent - group->done < (uint64_t)group->result.window) {
		if (check(group, send_one(group, group->sent, send_done)))
			return;
		group->sent++;
	}
	if (group->done == count)
		all_sent(group);
}

/* --- the receiver ---------------------------------------------------------------------------- */

static void end_came(struct perf_group *group, uint64_t total)
{
	if (!group->result.messages) /* of a run that was over before */
		return;
	group->result.lost = total > group->result.messages ? total - group->result.messages : 0;
	finish(group);
}

/* Two machines may have queue pairs of one number. Who cannot be told has no address. */
static void name_sender(const struct perf_group *group, const struct evrdma_recv *recv,
	struct sockaddr_storage *sender)
{
	memset(sender, 0, sizeof(*sender));
	evrdma_dgram_get_sender(group->dgram, recv, sender);
}

static int is_sender(const struct perf_group *group, const struct evrdma_recv *recv)
{
	struct sockaddr_storage sender;

	if (recv->src_qp != group->sender_qp)
		return 0;
	name_sender(group, recv, &sender);
	return !memcmp(&sender, &group->sender, sizeof(sender));
}

static void data_came(struct perf_group *group, const struct evrdma_recv *recv)
{
	group->result.end_ns = tool_now_ns();
	if (!group->result.messages++) {
		group->result.begin_ns = group->result.end_ns;
		group->result.size = recv->len;
		group->sender_qp = recv->src_qp;
		name_sender(group, recv, &group->sender);
		perf_begin_watch(group->perf, 0);
	}
	group->perf->watch.progress++;
}

static void recv_came(struct evrdma_dgram *unused, const struct evrdma_recv *recv, void *arg)
{
	struct perf_group *group = arg;
	uint64_t wire[2], what;

	if (is_over(group) || recv->len < PERF_GROUP_SIZE_MIN)
		return;
	memcpy(wire, recv->data, sizeof(wire));
	what = be64toh(wire[1]);
	if (what >> TOTAL_BITS != (uint64_t)group->perf->options.port)
		return;
	if (group->result.messages && !is_sender(group, recv))
		return;
	if (be64toh(wire[0]) == END_NUMBER)
		end_came(group, what & (((uint64_t)1 << TOTAL_BITS) - 1));
	else
		data_came(group, recv);
}

/* --- both ------------------------------------------------------------------------------------ */

static void joined(struct perf_group *group)
{
	if (group->perf->options.group)
		return;
	perf_begin_watch(group->perf, (uint64_t)group->perf->options.count);
	group->result.begin_ns = tool_now_ns();
	pump(group);
}

static void member_event(struct evrdma_mcast *unused, enum evrdma_mcast_event event,
	const struct evrdma_error *error, void *arg)
{
	struct perf_group *group = arg;

	if (event == EVRDMA_MCAST_JOINED)
		joined(group);
	else if (event == EVRDMA_MCAST_ERROR)
		ends_fail_error(&group->perf->ends, error);
}

static void join(struct perf_group *group)
{
	const unsigned flags = group->perf->options.group ? 0 : EVRDMA_MCAST_OPT_SENDONLY;
	size_t mtu = evrdma_dgram_get_mtu(group->dgram);

	if (group->result.size > mtu) {
		tool_fail(&group->perf->tool, "-S %zu: a datagram has at most %zu bytes here",
			group->result.size, mtu);
		return;
	}
	group->member = evrdma_mcast_join(
		group->dgram, ends_remote(&group->perf->ends), flags, member_event, group);
	if (!group->member)
		ends_fail_call(&group->perf->ends, EVRDMA_STEP_JOIN, errno);
}

static void dgram_event(struct evrdma_dgram *unused, enum evrdma_dgram_event event,
	const struct evrdma_error *error, void *arg)
{
	struct perf_group *group = arg;

	if (event == EVRDMA_DGRAM_READY && !is_over(group))
		join(group);
	else if (event == EVRDMA_DGRAM_ERROR)
		ends_fail_error(&group->perf->ends, error);
}

static int open_dgram(struct perf_group *group, const struct evrdma_dgram_options *options)
{
	const struct ends *ends = &group->perf->ends;

	group->dgram = evrdma_dgram_new(group->perf->base, options);
	if (!group->dgram)
		return -errno;
	evrdma_dgram_setcb(group->dgram, recv_came, dgram_event, group);
	return evrdma_dgram_open(group->dgram, ends_local(ends), ends_remote(ends));
}

static struct perf_group *make(struct perf *perf, size_t buf_bytes)
{
	struct perf_group *group = calloc(1, sizeof(*group));

	perf->group = group;
	if (group)
		group->pool = evrdma_pool_new(perf->base, buf_bytes, 0);
	if (!group || !group->pool) {
		tool_fail(&perf->tool, "out of memory");
		return NULL;
	}
	group->perf = perf;
	group->result.test = PERF_GROUP;
	return group;
}

void perf_group_send(struct perf *perf)
{
	struct perf_group *group = make(perf, (size_t)perf->options.size);
	struct evrdma_dgram_options options;

	if (!group)
		return;
	group->result.size = (size_t)perf->options.size;
	group->result.window = perf->options.window;
	evrdma_dgram_options_init(&options);
	options.send_depth = (uint32_t)perf->options.window + ENDS;
	options.recv_depth = 0;
	perf_check(perf, EVRDMA_STEP_ADDR, open_dgram(group, &options));
}

void perf_group_receive(struct perf *perf)
{
	struct perf_group *group = make(perf, RECV_BYTES + EVRDMA_DGRAM_HEADER_BYTES);
	struct evrdma_dgram_options options;

	if (!group)
		return;
	evrdma_dgram_options_init(&options);
	options.recv_depth = RECV_DEPTH;
	options.recv_pool = group->pool;
	perf_check(perf, EVRDMA_STEP_ADDR, open_dgram(group, &options));
}

void perf_group_free(struct perf_group *group)
{
	if (group && group->end_timer)
		event_free(group->end_timer);
	free(group);
}
