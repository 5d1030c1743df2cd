/*
 * The bufferevents over RDMA that meet a hostile peer, all on one loop, which turns wherever the
 * peer waits. What a socket's number shows is what the callbacks have told.
 */
#include "rs/hostile_objects.h"
#include "rs/hostile_suite.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <evrdma/evrdma.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <time.h>

enum {
	PATIENCE_MS = 60000,
	STREAMS = 256,
	CHUNK = 100000,
	LINGER_MS = 100,
	PASSES = 4,
	BESIDE = 2, /* connections */
};

/* By its number. */
struct stream {
	struct bufferevent *bev;
	struct evrdma_listener *listener;
	struct bufferevent *waiting[STREAMS]; /* in a listener */
	unsigned int num_waiting, num_taken;
	bool is_connected, has_ended, has_failed;
	int error;
};

static struct stream streams[STREAMS];
static int num_streams;
static struct event_base *loop;
static struct evrdma_base *base;
static int keepalive_ms, linger_ms;

/* --- the loop -------------------------------------------------------------------------------- */

static void turn(void)
{
	event_base_loop(loop, EVLOOP_NONBLOCK);
}

/* What a stranger does is its stream's error alone; the log has who ended before there was one. */
static void on_log(enum evrdma_log_level level, const char *text, void *arg)
{
	if (strncmp(text, "accepting a bufferevent's connection: ", 38))
		ck_abort_msg("a peer is in the log: %s", text);
}

static void begin(void)
{
	signal(SIGPIPE, SIG_IGN);
	evrdma_set_log_cb(on_log, NULL);
	loop = event_base_new();
	base = evrdma_base_new(loop, NULL);
	ck_assert_ptr_nonnull(base);
	hostile_place.turn = turn;
}

static void on_closed(struct evrdma_base *closed, void *arg)
{
	base = NULL;
}

static void end(void)
{
	evrdma_base_close(base, on_closed, NULL);
	while (base)
		event_base_loop(loop, EVLOOP_ONCE);
	hostile_place.turn = NULL;
	event_base_free(loop);
}

/* --- what they tell -------------------------------------------------------------------------- */

static struct stream *new_stream(void)
{
	ck_assert_int_lt(num_streams, STREAMS);
	return &streams[num_streams++];
}

static int number_of(const struct stream *stream)
{
	return (int)(stream - streams);
}

/* One error is told once for each direction. */
static void on_event(struct bufferevent *bev, short what, void *arg)
{
	struct stream *stream = arg;

	stream->is_connected |= what & BEV_EVENT_CONNECTED;
	stream->has_ended |= !!(what & BEV_EVENT_EOF);
	if (what & BEV_EVENT_ERROR && !stream->has_failed)
		stream->error = EVUTIL_SOCKET_ERROR();
	stream->has_failed |= !!(what & BEV_EVENT_ERROR);
}

static void adopt(struct stream *stream, struct bufferevent *bev)
{
	ck_assert_ptr_nonnull(bev);
	stream->bev = bev;
	bufferevent_setcb(bev, NULL, NULL, on_event, stream);
	bufferevent_enable(bev, EV_READ | EV_WRITE);
}

short hostile_events(int fd)
{
	const struct stream *stream = &streams[fd];
	bool is_over = stream->has_failed ||
		       (stream->has_ended && !evrdma_bufferevent_get_conn(stream->bev));

	turn();
	if (stream->listener)
		return stream->num_waiting > stream->num_taken ? POLLIN : 0;
	if (is_over)
		return POLLIN | POLLOUT | POLLHUP | (stream->has_failed ? POLLERR : 0);
	return (short)((stream->is_connected ? POLLOUT : 0) |
		       (evbuffer_get_length(bufferevent_get_input(stream->bev)) ? POLLIN : 0));
}

void hostile_wait_for(int fd, short events)
{
	int waited;

	for (waited = 0; !(hostile_events(fd) & (events | POLLERR)); waited++) {
		ck_assert_int_lt(waited, PATIENCE_MS);
		hostile_rest(1);
	}
}

/* After an end of file an error is told to who writes. */
int hostile_error(int fd)
{
	struct stream *stream = &streams[fd];
	int waited;

	if (!stream->has_ended)
		return stream->error;
	bufferevent_write(stream->bev, "x", 1);
	for (waited = 0; !stream->has_failed; waited++) {
		ck_assert_int_lt(waited, PATIENCE_MS);
		hostile_rest(1);
	}
	return stream->error;
}

/* --- what they do ---------------------------------------------------------------------------- */

static struct sockaddr_in place(uint16_t port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(port) };

	inet_pton(AF_INET, hostile_place.ip, &addr.sin_addr);
	return addr;
}

static struct evrdma_bev_options options_with(struct evrdma_conn_options *conn)
{
	struct evrdma_bev_options options;

	evrdma_conn_options_init(conn);
	evrdma_bev_options_init(&options);
	conn->keepalive_ms = keepalive_ms;
	if (linger_ms)
		options.linger_timeout_ms = linger_ms;
	options.conn = conn;
	return options;
}

static void on_bufferevent(struct evrdma_listener *listener, struct bufferevent *bev,
	const struct sockaddr *peer, void *arg)
{
	struct stream *stream = arg;

	ck_assert_uint_lt(stream->num_waiting, STREAMS);
	stream->waiting[stream->num_waiting++] = bev;
}

int hostile_rlisten(uint16_t *port)
{
	struct evrdma_conn_options conn;
	struct evrdma_bev_options options = options_with(&conn);
	struct sockaddr_in addr = place(0);
	struct stream *stream = new_stream();

	stream->listener = evrdma_bufferevent_listen(
		base, (struct sockaddr *)&addr, NULL, &options, 0, on_bufferevent, stream);
	ck_assert_ptr_nonnull(stream->listener);
	*port = evrdma_listener_get_port(stream->listener);
	return number_of(stream);
}

int hostile_rconnect(uint16_t port)
{
	struct evrdma_conn_options conn;
	struct evrdma_bev_options options = options_with(&conn);
	struct sockaddr_in addr = place(port);
	struct stream *stream = new_stream();

	adopt(stream,
		evrdma_bufferevent_connect(base, NULL, (struct sockaddr *)&addr, &options, 0));
	return number_of(stream);
}

int hostile_raccept(int listener)
{
	struct stream *from = &streams[listener], *stream = new_stream();

	hostile_wait_for(listener, POLLIN);
	adopt(stream, from->waiting[from->num_taken++]);
	stream->is_connected = true;
	return number_of(stream);
}

/* All of it, into the output buffer. */
ssize_t hostile_rsend(int fd, const void *bytes, size_t len)
{
	if (hostile_events(fd) & (POLLERR | POLLHUP)) {
		errno = EPIPE;
		return -1;
	}
	ck_assert_int_eq(bufferevent_write(streams[fd].bev, bytes, len), 0);
	turn();
	return (ssize_t)len;
}

ssize_t hostile_rrecv(int fd, void *bytes, size_t len)
{
	size_t num;

	turn();
	num = bufferevent_read(streams[fd].bev, bytes, len);
	errno = EAGAIN;
	return num ? (ssize_t)num : -1;
}

int hostile_rclose(int fd)
{
	struct stream *stream = &streams[fd];

	for (; stream->num_taken < stream->num_waiting; stream->num_taken++)
		bufferevent_free(stream->waiting[stream->num_taken]);
	if (stream->listener)
		evrdma_listener_close(stream->listener);
	if (stream->bev)
		bufferevent_free(stream->bev);
	turn();
	return 0;
}

/* --- what is asked of them alone ------------------------------------------------------------- */

static size_t left_of(const struct hostile_victim *victim)
{
	return evbuffer_get_length(bufferevent_get_output(streams[victim->fd].bev));
}

/* Writes until nothing goes any more. */
static void fill_window(const struct hostile_victim *victim)
{
	static char bytes[CHUNK];
	size_t before;

	do {
		before = left_of(victim);
		ck_assert_int_eq(hostile_rsend(victim->fd, bytes, CHUNK), CHUNK);
		hostile_bytes_pass();
	} while (left_of(victim) != before + CHUNK);
	ck_assert_int_eq(hostile_events(victim->fd) & (POLLERR | POLLHUP), 0);
}

/* Its window is full, and stays so; what it never took goes with the base. */
START_TEST(it_reads_nothing)
{
	struct hostile_victim victim;

	hostile_meet(&victim, (enum hostile_role)_i);
	fill_window(&victim);
	hostile_bytes_pass();
	hostile_part(&victim);
}
END_TEST

/* --- freed while it is silent ---------------------------------------------------------------- */

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static uint64_t num_connections(void)
{
	struct evrdma_base_stats stats;

	evrdma_base_get_stats(base, &stats);
	return stats.connections;
}

/* But for ids that wait for an answer of their peers, and what the hostile one has. */
static unsigned int objects_but_of(const struct hostile *hostile)
{
	struct evrdma_base_stats stats;
	unsigned int own = !!hostile->id + !!hostile->listener + !!hostile->cq + !!hostile->mr;

	own += hostile->id && hostile->id->qp;
	evrdma_base_get_stats(base, &stats);
	return hostile_objects() - own - (unsigned int)stats.ids_lingering;
}

/* Nothing is waited for in the call. How long its connection is there after it. */
static uint64_t free_it(struct hostile_victim *victim)
{
	uint64_t since = now_ms();
	unsigned int with = hostile_objects();
	int waited;

	bufferevent_free(streams[victim->fd].bev);
	ck_assert_uint_eq(hostile_objects(), with);
	for (waited = 0; num_connections() > BESIDE; waited++) {
		ck_assert_int_lt(waited, PATIENCE_MS);
		hostile_rest(1);
	}
	victim->fd = -1;
	return now_ms() - since;
}

/* What there is of others, once the base and the pair beside have what they want for good. */
static unsigned int begin_to_leave(enum hostile_role role)
{
	struct hostile_victim victim;
	unsigned int objects;
	int i;

	linger_ms = LINGER_MS;
	hostile_meet(&victim, role);
	for (i = 0; i < PASSES; i++)
		hostile_bytes_pass();
	free_it(&victim);
	if (victim.listener >= 0)
		hostile_rclose(victim.listener);
	victim.listener = -1;
	hostile_bytes_pass();
	objects = objects_but_of(&victim.hostile);
	hostile_part(&victim);
	return objects;
}

/* The base and those beside it go on; the peer has all that it had. */
static void end_to_leave(struct hostile_victim *victim, unsigned int objects)
{
	int waited;

	if (victim->listener >= 0)
		hostile_rclose(victim->listener);
	victim->listener = -1;
	for (waited = 0; objects_but_of(&victim->hostile) > objects; waited++) {
		ck_assert_msg(waited < PATIENCE_MS, "%u objects are left, of %u",
			objects_but_of(&victim->hostile), objects);
		hostile_rest(1);
	}
	hostile_bytes_pass();
	hostile_part(victim);
}

/* It has the whole of linger_timeout_ms to read, and no more. */
START_TEST(it_reads_nothing_of_one_that_was_freed)
{
	unsigned int objects = begin_to_leave((enum hostile_role)_i);
	struct hostile_victim victim;

	hostile_meet(&victim, (enum hostile_role)_i);
	fill_window(&victim);
	ck_assert_uint_ge(free_it(&victim), LINGER_MS);
	end_to_leave(&victim, objects);
}
END_TEST

/* All has gone, and it answers neither the last word nor the disconnect. */
START_TEST(it_acknowledges_no_close)
{
	unsigned int objects = begin_to_leave((enum hostile_role)_i);
	struct hostile_victim victim;

	hostile_meet(&victim, (enum hostile_role)_i);
	free_it(&victim);
	end_to_leave(&victim, objects);
}
END_TEST

/* Nor does its device acknowledge anything. */
START_TEST(it_has_ended_its_queue_pair_when_one_is_freed)
{
	unsigned int objects = begin_to_leave((enum hostile_role)_i);
	struct hostile_victim victim;

	hostile_meet(&victim, (enum hostile_role)_i);
	rdma_destroy_qp(victim.hostile.id);
	ck_assert_int_eq(hostile_rsend(victim.fd, "x", 1), 1);
	free_it(&victim);
	end_to_leave(&victim, objects);
}
END_TEST

/* Where what waits for a peer can be given up at once. */
START_TEST(a_keepalive_finds_that_it_has_gone)
{
	struct hostile_victim victim;

	keepalive_ms = 50;
	hostile_meet(&victim, (enum hostile_role)_i);
	rdma_destroy_qp(victim.hostile.id);
	while (!(hostile_events(victim.fd) & POLLERR)) {
		hostile_place.give_up();
		hostile_rest(1);
	}
	hostile_part(&victim);
}
END_TEST

static TCase *own_case(void)
{
	TCase *tcase = tcase_create("silence of bufferevents");

	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, it_reads_nothing, 0, HOSTILE_ROLES);
	tcase_add_loop_test(tcase, it_reads_nothing_of_one_that_was_freed, 0, HOSTILE_ROLES);
	tcase_add_loop_test(tcase, it_acknowledges_no_close, 0, HOSTILE_ROLES);
	tcase_add_loop_test(tcase, it_has_ended_its_queue_pair_when_one_is_freed, 0, HOSTILE_ROLES);
	if (hostile_place.give_up)
		tcase_add_loop_test(tcase, a_keepalive_finds_that_it_has_gone, 0, HOSTILE_ROLES);
	return tcase;
}

const struct hostile_kind hostile_kind = {
	.name = "hostile_bufferevents",
	.shows_targets_alone = true,
	.begin = begin,
	.end = end,
	.own_case = own_case,
};
