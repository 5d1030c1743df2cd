/* Streams to peers, and what was there before the first of them. */
#include "interop/faults.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <malloc.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "schedule/resources.h"
#include "schedule/wire.h"

enum {
	PORT = 7700,
	LOOK_MS = 20,
	LEFT_S = 300,		/* for what is left to go */
	CONNECT_MS = 300000,	/* where a tenth is lost, some are lost thrice */
	LINGER_MS = 5000,
	HEAP_SLACK = 12288,	/* the CM keeps 32 tables of 272 bytes, and others grow */
	IDLE_S = 3,		/* device_idle_ms of the peers, and a look of theirs */
	PIECE = 16384,
};

struct faults faults;

/* --- time ------------------------------------------------------------------------------------ */

uint64_t faults_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * MS_PER_S + (uint64_t)now.tv_nsec / (US_PER_MS * 1000);
}

static void look(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
}

static void run(bool (*condition)(void), uint64_t until_ms)
{
	const struct timeval often = { .tv_usec = LOOK_MS * US_PER_MS };
	struct event *timer = event_new(faults.loop, -1, EV_PERSIST, look, NULL);

	event_add(timer, &often);
	while (!(condition && condition()) && faults_now_ms() < until_ms)
		event_base_loop(faults.loop, EVLOOP_ONCE);
	event_free(timer);
}

void faults_run_until(bool (*condition)(void))
{
	run(condition, UINT64_MAX);
}

void faults_run_for(unsigned s)
{
	run(NULL, faults_now_ms() + (uint64_t)s * MS_PER_S);
}

/* --- one stream ------------------------------------------------------------------------------ */

void stream_free(struct stream *stream)
{
	struct bufferevent *bev = stream->bev;

	stream->bev = NULL;
	if (bev)
		bufferevent_free(bev);
}

static void free_at(struct stream *stream, enum when when)
{
	if (stream->free_at == when)
		stream_free(stream);
}

static void on_read(struct bufferevent *bev, void *arg)
{
	struct stream *stream = arg;
	uint8_t bytes[PIECE];
	size_t len;

	stream->late += !stream->bev;
	while (stream->bev && (len = bufferevent_read(bev, bytes, sizeof(bytes)))) {
		stream->wrong |= !pattern_is(bytes, len, stream->number, stream->got);
		stream->got += len;
		free_at(stream, AT_READ);
	}
}

static void on_written(struct bufferevent *bev, void *arg)
{
	struct stream *stream = arg;

	(void)bev;
	stream->late += !stream->bev;
	if (stream->sent)
		free_at(stream, AT_WRITTEN);
}

static void on_end(struct stream *stream, short what, int error)
{
	struct evrdma_error why;

	stream->ended++;
	stream->what = what;
	stream->error = what & BEV_EVENT_EOF ? 0 : error;
	if (stream->bev && !evrdma_bufferevent_get_error(stream->bev, &why))
		evrdma_error_text(&why, stream->text, sizeof(stream->text));
	free_at(stream, AT_END);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
	struct stream *stream = arg;
	int error = EVUTIL_SOCKET_ERROR();

	(void)bev;
	stream->late += !stream->bev;
	if (what & BEV_EVENT_CONNECTED) {
		stream->connected++;
		free_at(stream, AT_CONNECTED);
	} else if (what & BEV_EVENT_TIMEOUT) {
		stream->timeouts++;
		stream->what = what;
		free_at(stream, AT_TIMEOUT);
	} else {
		on_end(stream, what, error);
	}
}

void stream_open(struct stream *stream, const struct peer *peer)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(peer->port) };

	inet_pton(AF_INET, FAULT_PEER_IP, &addr.sin_addr);
	memset(stream, 0, sizeof(*stream));
	stream->number = (unsigned)(stream - faults.streams);
	stream->bev = evrdma_bufferevent_connect(
		faults.base, NULL, (struct sockaddr *)&addr, &faults.options, 0);
	ck_assert_msg(stream->bev, "stream %u: %s", stream->number, strerror(errno));
	bufferevent_setcb(stream->bev, on_read, on_written, on_event, stream);
	bufferevent_enable(stream->bev, EV_READ);
}

void stream_send(struct stream *stream, size_t len)
{
	uint8_t bytes[PIECE];
	size_t n;

	for (; len; len -= n, stream->sent += n) {
		n = len < PIECE ? len : PIECE;
		pattern_make(bytes, n, stream->number, stream->sent);
		ck_assert_int_eq(bufferevent_write(stream->bev, bytes, n), 0);
	}
}

/* --- all of them ----------------------------------------------------------------------------- */

/* Those that are waited for. */
static unsigned range_first, range_n;

static bool all(bool (*is)(const struct stream *stream))
{
	unsigned i;

	for (i = range_first; i < range_first + range_n; i++)
		if (!is(&faults.streams[i]))
			return false;
	return true;
}

static bool has_ended(const struct stream *stream)
{
	return stream->ended || !stream->bev;
}

static bool is_there(const struct stream *stream)
{
	return stream->connected || has_ended(stream);
}

static bool has_all(const struct stream *stream)
{
	return stream->got == stream->sent || has_ended(stream);
}

static bool all_are_there(void) { return all(is_there); }
static bool all_have_all(void) { return all(has_all); }
static bool all_have_ended(void) { return all(has_ended); }

static void await(unsigned first, unsigned n, bool (*condition)(void))
{
	range_first = first;
	range_n = n;
	faults_run_until(condition);
}

void streams_await_bytes(unsigned first, unsigned n) { await(first, n, all_have_all); }
void streams_await_ends(unsigned first, unsigned n) { await(first, n, all_have_ended); }

void streams_await(unsigned first, unsigned n) { await(first, n, all_are_there); }

void streams_connect(const struct peer *peer, unsigned n)
{
	unsigned first = faults.n;

	while (faults.n < first + n)
		stream_open(&faults.streams[faults.n++], peer);
	streams_await(first, n);
}

void streams_send(unsigned first, unsigned n, size_t len)
{
	unsigned i;

	for (i = first; i < first + n; i++)
		if (faults.streams[i].bev)
			stream_send(&faults.streams[i], len);
}

void streams_free(unsigned first, unsigned n)
{
	unsigned i;

	for (i = first; i < first + n; i++)
		stream_free(&faults.streams[i]);
}

void assert_ended(unsigned first, unsigned n, int error)
{
	unsigned i;

	for (i = first; i < first + n; i++) {
		const struct stream *s = &faults.streams[i];

		ck_assert_msg(s->connected == 1 && s->ended == 1 && !s->late && !s->wrong,
			"stream %u: connected %u ended %u late %u wrong %d", i, s->connected,
			s->ended, s->late, s->wrong);
		ck_assert_msg(s->error == error, "stream %u: %s", i, s->text);
	}
}

void assert_goes_on(unsigned first, unsigned n)
{
	unsigned i;

	for (i = first; i < first + n; i++) {
		const struct stream *s = &faults.streams[i];

		ck_assert_msg(!s->ended, "stream %u: %#x %s", i, (unsigned)s->what, s->text);
		ck_assert_msg(s->connected == 1 && s->got == s->sent && !s->wrong && !s->late,
			"stream %u: connected %u got %zu of %zu late %u wrong %d", i, s->connected,
			s->got, s->sent, s->late, s->wrong);
	}
}

/* --- what is left ---------------------------------------------------------------------------- */

static int files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static uint64_t objects(void)
{
	uint64_t counts[RESOURCES], sum = 0;
	unsigned i;

	ck_assert_int_eq(resources_count(counts), 0);
	for (i = 0; i < RESOURCES; i++)
		sum += counts[i];
	return sum;
}

static size_t heap(void) { return mallinfo2().uordblks; }

static bool base_has_nothing(void)
{
	struct evrdma_base_stats stats;

	evrdma_base_get_stats(faults.base, &stats);
	return !stats.connections && !stats.registrations_now && !stats.bytes_pinned &&
	       !stats.ids_lingering;
}

static bool nothing_is_left(void)
{
	return base_has_nothing() && objects() <= faults.objects_first &&
	       files() <= faults.files_first;
}

void faults_settle(void)
{
	streams_free(0, faults.n);
	run(nothing_is_left, faults_now_ms() + (uint64_t)LEFT_S * MS_PER_S);
	ck_assert_msg(nothing_is_left(), "objects %ju of %ju, descriptors %d of %d",
		(uintmax_t)objects(), (uintmax_t)faults.objects_first, files(), faults.files_first);
}

static void base_open(void)
{
	faults.loop = event_base_new();
	faults.base = faults_base(faults.loop);
	ck_assert_msg(faults.base, "%s", strerror(errno));
}

static void base_close(void)
{
	evrdma_base_close(faults.base, NULL, NULL);
	event_base_dispatch(faults.loop);
	event_base_free(faults.loop);
}

/* What the first stream leaves is there for good. */
static void use_once(const struct peer *peer)
{
	streams_connect(peer, 1);
	ck_assert_msg(faults.streams[0].connected == 1, "%s", faults.streams[0].text);
	streams_free(0, 1);
	faults.n = 0;
	faults_run_until(base_has_nothing);
}

static void use_peers(void)
{
	base_open();
	use_once(&faults.peers[0]);
	use_once(&faults.peers[1]);
}

/* The first base is there to be compared with. */
static void count(void)
{
	use_peers();
	base_close();
	faults.heap_first = heap();
	use_peers();
	faults_run_for(IDLE_S);
	faults.objects_first = objects();
	faults.files_first = files();
}

static void calm(void)
{
	const struct weather weather = { .seed = 1 };

	wire_set(&weather);
}

void faults_start(enum service first, enum service second)
{
	memset(&faults, 0, sizeof(faults));
	calm();
	signal(SIGPIPE, SIG_IGN);
	peer_start(&faults.peers[0], PORT, first);
	peer_start(&faults.peers[1], PORT + 1, second);
	evrdma_conn_options_init(&faults.conn_options);
	faults.conn_options.connect_timeout_ms = CONNECT_MS;
	evrdma_bev_options_init(&faults.options);
	faults_set_window(&faults.options);
	faults.options.conn = &faults.conn_options;
	faults.options.linger_timeout_ms = LINGER_MS;
	count();
}

void faults_finish(void)
{
	calm();
	faults_settle();
	base_close();
	ck_assert_msg(heap() <= faults.heap_first + HEAP_SLACK, "%zu bytes, and %zu at first",
		heap(), faults.heap_first);
	peer_end(&faults.peers[0]);
	peer_end(&faults.peers[1]);
}
