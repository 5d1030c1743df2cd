#include "config.h"

#include "rs/seen.h"
#include "rs/state.h"

#include <errno.h>
#include <string.h>

#define LEN(of) (sizeof(of) / sizeof((of)[0]))

enum {
	RW = POLLIN | POLLOUT,
	ENDED = RW | POLLRDHUP,
	GONE = ENDED | POLLHUP,
	BROKEN = GONE | POLLERR,
};

/*
 * What TCP shows, and an rsocket by its number and in rpoll(); and what SO_ERROR and getpeername()
 * say. What is not the same is listed in rsocket(7) as a difference.
 */
static const struct sight {
	const char *name;
	void (*state)(struct pair *pair);
	short tcp, number, rpoll;
	int error;
	int tcp_peer, rs_peer;
} sights[] = {
	{ "new", be_new, POLLOUT | POLLHUP, POLLOUT, POLLOUT | POLLHUP, 0, ENOTCONN, ENOTCONN },
	{ "bound", be_bound, POLLOUT | POLLHUP, POLLOUT, POLLOUT | POLLHUP, 0, ENOTCONN, ENOTCONN },
	{ "a listener", listens, 0, 0, 0, 0, ENOTCONN, ENOTCONN },
	{ "a listener that was shut down", listens_no_more, POLLOUT | POLLHUP, GONE, GONE, 0,
		ENOTCONN, ENOTCONN },
	{ "connecting", connects, 0, 0, 0, 0, ENOTCONN, ENOTCONN },
	{ "refused", was_refused, BROKEN, BROKEN, BROKEN, ECONNREFUSED, ENOTCONN, ENOTCONN },
	{ "refused and told", was_refused_and_told, GONE, GONE, GONE, 0, ENOTCONN, ENOTCONN },
	{ "connected", be_connected, POLLOUT, POLLOUT, POLLOUT, 0, 0, 0 },
	{ "sends no more", sends_no_more, POLLOUT, POLLOUT, POLLOUT, 0, 0, 0 },
	{ "reads no more", reads_no_more, ENDED, ENDED, ENDED, 0, 0, 0 },
	{ "does neither", does_neither, GONE, GONE, GONE, 0, 0, 0 },
	{ "has met the end", has_met_the_end, ENDED, ENDED, ENDED, 0, 0, 0 },
	{ "both ended", has_ended, GONE, GONE, GONE, 0, ENOTCONN, ENOTCONN },
	{ "the peer has closed", peer_has_closed, ENDED, GONE, GONE, 0, 0, 0 },
	{ "the peer has closed too", peer_has_closed_too, GONE, GONE, GONE, 0, ENOTCONN, ENOTCONN },
	{ "reset", was_reset, BROKEN, BROKEN, BROKEN, ECONNRESET, ENOTCONN, ENOTCONN },
	{ "reset and told", was_reset_and_told, GONE, GONE, GONE, 0, ENOTCONN, ENOTCONN },
	{ "ended and reset", ended_and_was_reset, BROKEN, BROKEN, BROKEN, ECONNRESET, ENOTCONN,
		ENOTCONN },
};

static short events_in_poll_of_its_own(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN | POLLOUT | POLLRDHUP };

	ck_assert_int_ge(call()->poll(&pfd, 1, 0), 0);
	return pfd.revents;
}

START_TEST(each_state_shows_its_events)
{
	const struct sight *sight = &sights[_i];
	struct pair pair = make_pair();
	short events;

	sight->state(&pair);
	ck_assert_msg(shows(pair.client, call()->is_rs ? sight->number : sight->tcp), "%s: %x",
		sight->name, events_of(pair.client));
	events = events_in_poll_of_its_own(pair.client);
	ck_assert_msg(events == (call()->is_rs ? sight->rpoll : sight->tcp), "%s: %x in rpoll()",
		sight->name, events);
	end_pair(&pair);
}
END_TEST

START_TEST(each_state_has_its_error_once)
{
	const struct sight *sight = &sights[_i];
	struct pair pair = make_pair();
	int error;

	sight->state(&pair);
	error = so_error(pair.client);
	ck_assert_msg(error == sight->error, "%s: %s", sight->name, strerror(error));
	ck_assert_int_eq(so_error(pair.client), 0);
	end_pair(&pair);
}
END_TEST

typedef int name_call(int fd, struct sockaddr_storage *addr, socklen_t *len);

static int peer_of(int fd, struct sockaddr_storage *addr, socklen_t *len)
{
	return error_of(call()->getpeername(fd, (struct sockaddr *)addr, len));
}

static int name_of(int fd, struct sockaddr_storage *addr, socklen_t *len)
{
	return error_of(call()->getsockname(fd, (struct sockaddr *)addr, len));
}

static struct sockaddr_storage whole_name(int fd, name_call *get)
{
	struct sockaddr_storage addr = { .ss_family = AF_UNSPEC };
	socklen_t len = sizeof(addr);

	ck_assert_int_eq(get(fd, &addr, &len), 0);
	ck_assert_uint_eq(len, place_len());
	return addr;
}

/*
 * In as much room as there is: so many bytes, of the name that there was before, or of the one
 * since: who is connecting may be given it meanwhile.
 */
static void expect_name_in(int fd, name_call *get, socklen_t room)
{
	struct sockaddr_storage none, addr, before = whole_name(fd, get), after;
	socklen_t len = room;

	memset(&none, 0x55, sizeof(none));
	addr = none;
	ck_assert_int_eq(get(fd, &addr, &len), 0);
	ck_assert_uint_eq(len, place_len());
	after = whole_name(fd, get);
	ck_assert(!memcmp(&addr, &before, room) || !memcmp(&addr, &after, room));
	ck_assert(!memcmp((char *)&addr + room, (char *)&none + room, sizeof(addr) - room));
}

START_TEST(each_state_has_its_names)
{
	const struct sight *sight = &sights[_i];
	struct sockaddr_storage addr = { .ss_family = AF_UNSPEC };
	struct pair pair = make_pair();
	socklen_t len = sizeof(addr);
	int error;

	sight->state(&pair);
	error = peer_of(pair.client, &addr, &len);
	ck_assert_msg(error == (call()->is_rs ? sight->rs_peer : sight->tcp_peer), "%s: %s",
		sight->name, strerror(error));
	if (!error) {
		expect_name_in(pair.client, peer_of, 0);
		expect_name_in(pair.client, peer_of, 5);
	}
	expect_name_in(pair.client, name_of, 0);
	expect_name_in(pair.client, name_of, 5);
	end_pair(&pair);
}
END_TEST

TCase *seen_case(const char *name)
{
	TCase *cases = tcase_create(name);

	tcase_set_timeout(cases, 600);
	tcase_add_loop_test(cases, each_state_shows_its_events, 0, LEN(sights));
	tcase_add_loop_test(cases, each_state_has_its_error_once, 0, LEN(sights));
	tcase_add_loop_test(cases, each_state_has_its_names, 0, LEN(sights));
	return cases;
}
