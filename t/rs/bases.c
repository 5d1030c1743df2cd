#include "config.h"

#include "rs/bases.h"
#include "rs/state.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

/* --- bases ----------------------------------------------------------------------------------- */

/* Level or edge, as the backend can. */
static const struct way {
	const char *method;
	short edge;
} ways[] = {
	{ "epoll", 0 },
	{ "epoll", EV_ET },
	{ "poll", 0 },
	{ "select", 0 },
};

enum { WAYS = sizeof(ways) / sizeof(ways[0]), EDGE = 1, US_PER_MS = 1000, MS_PER_S = 1000 };

static struct event_base *make_base(const struct way *way)
{
	const char **methods = event_get_supported_methods();
	struct event_config *config = event_config_new();
	struct event_base *base;
	int i;

	for (i = 0; methods[i]; i++)
		if (strcmp(methods[i], way->method) != 0)
			event_config_avoid_method(config, methods[i]);
	base = event_base_new_with_config(config);
	event_config_free(config);
	ck_assert_ptr_nonnull(base);
	ck_assert_str_eq(event_base_get_method(base), way->method);
	return base;
}

/* Only one of them can tell the end of the peer's bytes by itself. */
static short closed_by(struct event_base *base)
{
	return event_base_get_features(base) & EV_FEATURE_EARLY_CLOSE ? EV_CLOSED : 0;
}

/* --- what is told ---------------------------------------------------------------------------- */

struct teller {
	struct event_base *base;
	struct event *event;
	int num;
	short what;
};

static void tell(evutil_socket_t fd, short what, void *arg)
{
	struct teller *teller = arg;

	(void)fd;
	teller->num++;
	teller->what |= what;
}

static struct teller *ask(struct event_base *base, int fd, int what)
{
	struct teller *teller = calloc(1, sizeof(*teller));

	teller->base = base;
	teller->event = event_new(base, fd, (short)what, tell, teller);
	ck_assert_ptr_nonnull(teller->event);
	ck_assert_int_eq(event_add(teller->event, NULL), 0);
	return teller;
}

static void ask_no_more(struct teller *teller)
{
	event_free(teller->event);
	free(teller);
}

static void loop_for(struct event_base *base, int ms, int flags)
{
	const struct timeval most = { ms / MS_PER_S, ms % MS_PER_S * US_PER_MS };

	event_base_loopexit(base, &most);
	ck_assert_int_ge(event_base_loop(base, flags), 0);
}

/* The time is a timer of the base, which ends the loop whatever comes. */
static void loop_once(struct event_base *base)
{
	event_base_loop(base, EVLOOP_ONCE);
}

static void expect_told(struct teller *teller, int what)
{
	while (!(teller->what & what))
		loop_once(teller->base);
	ck_assert_int_eq(teller->what & ~EV_ET, what);
	teller->num = teller->what = 0;
}

/* What is told late, or twice, comes within some time. */
static void expect_untold(struct teller *teller)
{
	loop_for(teller->base, QUIET_MS, 0);
	ck_assert_int_eq(teller->num, 0);
}

static void expect_told_again(struct teller *teller, int what, bool edge)
{
	if (edge)
		expect_untold(teller);
	else
		expect_told(teller, what);
}

/* --- raw events ------------------------------------------------------------------------------ */

START_TEST(a_base_tells_of_bytes)
{
	const struct way *way = &ways[_i];
	struct event_base *base = make_base(way);
	struct pair pair = make_pair();
	struct teller *teller = ask(base, pair.server, EV_READ | EV_PERSIST | way->edge);
	int i;

	for (i = 0; i < 3; i++) {
		expect_untold(teller);
		send_bytes(pair.client, 2);
		expect_told(teller, EV_READ);
		expect_told_again(teller, EV_READ, way->edge);
		receive_bytes(pair.server, 2);
		expect_nothing(pair.server);
		teller->num = teller->what = 0;
	}
	ask_no_more(teller);
	event_base_free(base);
	end_pair(&pair);
}
END_TEST

START_TEST(a_base_tells_of_room)
{
	const struct way *way = &ways[_i];
	struct event_base *base = make_base(way);
	struct pair pair = make_pair();
	size_t sent = fill_up(pair.client);
	struct teller *teller = ask(base, pair.client, EV_WRITE | EV_PERSIST | way->edge);

	expect_untold(teller);
	empty(pair.server, sent, 0);
	expect_told(teller, EV_WRITE);
	ask_no_more(teller);
	event_base_free(base);
	end_pair(&pair);
}
END_TEST

START_TEST(a_base_tells_once_who_does_not_persist)
{
	const struct way *way = &ways[_i];
	struct event_base *base = make_base(way);
	struct pair pair = make_pair();
	struct teller *teller = ask(base, pair.server, EV_READ | way->edge);

	send_bytes(pair.client, 1);
	expect_told(teller, EV_READ);
	expect_untold(teller);
	ck_assert_int_eq(event_add(teller->event, NULL), 0);
	expect_told(teller, EV_READ);
	ask_no_more(teller);
	event_base_free(base);
	end_pair(&pair);
}
END_TEST

/* Two events of one number, which the backend asks for at once. */
START_TEST(a_base_tells_each_event_its_own)
{
	const struct way *way = &ways[_i];
	struct event_base *base = make_base(way);
	struct pair pair = make_pair();
	struct teller *reader = ask(base, pair.server, EV_READ | EV_PERSIST | way->edge);
	struct teller *writer = ask(base, pair.server, EV_WRITE | EV_PERSIST | way->edge);

	expect_told(writer, EV_WRITE);
	ck_assert_int_eq(reader->num, 0);
	ck_assert_int_eq(event_del(writer->event), 0);
	expect_untold(reader);
	send_bytes(pair.client, 1);
	expect_told(reader, EV_READ);
	ck_assert_int_eq(event_add(writer->event, NULL), 0);
	expect_told(writer, EV_WRITE);
	ask_no_more(reader);
	ask_no_more(writer);
	event_base_free(base);
	end_pair(&pair);
}
END_TEST

/* EV_CLOSED where there is such a thing, though there are bytes to be read. */
START_TEST(a_base_tells_of_the_end)
{
	const struct way *way = &ways[_i];
	struct event_base *base = make_base(way);
	struct pair pair = make_pair();
	int closed = closed_by(base), i;
	struct teller *teller;

	send_bytes(pair.client, 1);
	wait_for(pair.server, POLLIN);
	teller = ask(base, pair.server, (closed ? closed : EV_READ) | EV_PERSIST | way->edge);
	if (closed)
		expect_untold(teller);
	has_met_the_end(&(struct pair){ .client = pair.server, .server = pair.client });
	expect_told(teller, closed ? closed : EV_READ);
	receive_bytes(pair.server, 1);
	expect_end(pair.server);
	for (i = 0; i < 2; i++)
		expect_told_again(teller, closed ? closed : EV_READ, way->edge);
	ask_no_more(teller);
	event_base_free(base);
	end_pair(&pair);
}
END_TEST

START_TEST(a_base_tells_all_of_a_reset)
{
	const struct way *way = &ways[_i];
	struct event_base *base = make_base(way);
	struct pair pair = make_pair();
	struct teller *reader = ask(base, pair.client, EV_READ | EV_PERSIST | way->edge);
	struct teller *writer;

	fill_up(pair.client);
	writer = ask(base, pair.client, EV_WRITE | EV_PERSIST | way->edge);
	expect_untold(reader);
	expect_untold(writer);
	was_reset(&pair);
	expect_told(writer, EV_WRITE);
	expect_told(reader, EV_READ);
	ck_assert_int_eq(so_error(pair.client), ECONNRESET);
	ask_no_more(reader);
	ask_no_more(writer);
	event_base_free(base);
	end_pair(&pair);
}
END_TEST

START_TEST(a_base_tells_of_the_time)
{
	const struct timeval soon = { 0, US_PER_MS };
	const struct way *way = &ways[_i];
	struct event_base *base = make_base(way);
	struct pair pair = make_pair();
	struct teller *teller = ask(base, pair.server, EV_READ | EV_PERSIST | way->edge);

	ck_assert_int_eq(event_add(teller->event, &soon), 0);
	expect_told(teller, EV_TIMEOUT);
	ask_no_more(teller);
	event_base_free(base);
	end_pair(&pair);
}
END_TEST

/* --- connections ----------------------------------------------------------------------------- */

START_TEST(a_base_tells_who_connects)
{
	const struct way *way = &ways[_i];
	struct event_base *base = make_base(way);
	uint16_t port;
	struct pair pair = { .listener = listen_on(&port, 0) };
	struct teller *accepts, *connects;
	int first = connect_to(port), accepted;

	accepts = ask(base, pair.listener, EV_READ | EV_PERSIST | way->edge);
	expect_told(accepts, EV_READ);
	pair.client = connect_to(port);
	connects = ask(base, pair.client, EV_WRITE | way->edge);
	expect_untold(connects);
	accepted = accept_from(pair.listener);
	expect_told(connects, EV_WRITE);
	ck_assert_int_eq(so_error(pair.client), 0);
	pair.server = accept_from(pair.listener);
	ask_no_more(accepts);
	ask_no_more(connects);
	event_base_free(base);
	ck_assert_int_eq(call()->close(accepted), 0);
	ck_assert_int_eq(call()->close(first), 0);
	end_pair(&pair);
}
END_TEST

START_TEST(a_base_tells_who_is_refused)
{
	const struct way *way = &ways[_i];
	struct event_base *base = make_base(way);
	int fd = connect_to(NOT_THERE);
	struct teller *teller = ask(base, fd, EV_WRITE | EV_PERSIST | way->edge);

	expect_told(teller, EV_WRITE);
	ck_assert_int_eq(so_error(fd), ECONNREFUSED);
	ask_no_more(teller);
	event_base_free(base);
	ck_assert_int_eq(call()->close(fd), 0);
}
END_TEST

/* --- a program ------------------------------------------------------------------------------- */

enum { MUCH = 1 << 20, PIECE = 5000 };

/* One end sends all that it has, and the other takes it, until that is at its end. */
struct flow {
	struct event_base *base;
	struct event *writes;
	char bytes[MUCH];
	size_t sent, taken;
	bool ended;
};

static bool send_some(int fd, struct flow *flow)
{
	size_t left = MUCH - flow->sent;
	ssize_t ret;

	ret = call()->send(fd, flow->bytes + flow->sent, left < PIECE ? left : PIECE, 0);
	ck_assert(ret > 0 || errno == EAGAIN);
	flow->sent += ret > 0 ? (size_t)ret : 0;
	return ret > 0;
}

/* By edge there is a call for all that there is room for. */
static void on_room(evutil_socket_t fd, short what, void *arg)
{
	struct flow *flow = arg;

	(void)what;
	while (flow->sent < MUCH)
		if (!send_some(fd, flow))
			return;
	ck_assert_int_eq(event_del(flow->writes), 0);
	ck_assert_int_eq(call()->shutdown(fd, SHUT_WR), 0);
}

static bool take_some(int fd, struct flow *flow)
{
	char bytes[PIECE];
	ssize_t ret = call()->recv(fd, bytes, sizeof(bytes), 0);

	ck_assert(ret >= 0 || errno == EAGAIN);
	if (ret > 0) {
		ck_assert_int_le((long)flow->taken + ret, MUCH);
		ck_assert(!memcmp(bytes, flow->bytes + flow->taken, (size_t)ret));
		flow->taken += (size_t)ret;
	}
	flow->ended = !ret;
	return ret > 0;
}

static void on_bytes(evutil_socket_t fd, short what, void *arg)
{
	struct flow *flow = arg;

	(void)what;
	while (take_some(fd, flow))
		;
	if (flow->ended)
		event_base_loopbreak(flow->base);
}

START_TEST(a_base_carries_much)
{
	const struct way *way = &ways[_i];
	struct flow *flow = calloc(1, sizeof(*flow));
	struct pair pair = make_pair();
	struct event *reads;

	flow->base = make_base(way);
	fill(flow->bytes, MUCH, 7);
	reads = event_new(
		flow->base, pair.server, (short)(EV_READ | EV_PERSIST | way->edge), on_bytes, flow);
	flow->writes = event_new(
		flow->base, pair.client, (short)(EV_WRITE | EV_PERSIST | way->edge), on_room, flow);
	event_add(reads, NULL);
	event_add(flow->writes, NULL);
	loop_for(flow->base, PATIENCE_MS, 0);
	ck_assert(flow->ended);
	ck_assert_uint_eq(flow->taken, MUCH);
	event_free(reads);
	event_free(flow->writes);
	event_base_free(flow->base);
	free(flow);
	end_pair(&pair);
}
END_TEST

TCase *bases_case(const char *name)
{
	TCase *cases = tcase_create(name);

	tcase_set_timeout(cases, 600);
	tcase_add_loop_test(cases, a_base_tells_of_bytes, 0, WAYS);
	tcase_add_loop_test(cases, a_base_tells_of_room, 0, WAYS);
	tcase_add_loop_test(cases, a_base_tells_once_who_does_not_persist, 0, WAYS);
	tcase_add_loop_test(cases, a_base_tells_each_event_its_own, 0, WAYS);
	tcase_add_loop_test(cases, a_base_tells_of_the_end, 0, WAYS);
	tcase_add_loop_test(cases, a_base_tells_all_of_a_reset, 0, WAYS);
	tcase_add_loop_test(cases, a_base_tells_of_the_time, 0, WAYS);
	tcase_add_loop_test(cases, a_base_tells_who_connects, 0, WAYS);
	tcase_add_loop_test(cases, a_base_tells_who_is_refused, 0, WAYS);
	tcase_add_loop_test(cases, a_base_carries_much, 0, WAYS);
	return cases;
}
