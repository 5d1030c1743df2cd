/*
 * Another thread comes between any two looks of a call: at the first place where it takes a lock
 * and holds none, then at the second, and so on, at last while it sleeps. There is but one thread,
 * so it is the same in every run.
 *
 * Or it comes to wait by the number, in poll(2), for what the call does not wait for, and only when
 * it was woken brings about what the call waits for.
 */
#include "rs/random.h"

#include "unit/rs_dgram_unit.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <unistd.h>

enum { PLACES = 500, PLUGS = 32, LARGE = 1 << 20, SLEPT_ON = 8, BYTE = 'x' };

/* What one call gave. */
struct outcome {
	ssize_t ret;
	int error;
};

struct call {
	const char *name;
	ssize_t (*run)(void);
	enum { NOW, TAKEN, FOR_NEWS, FOR_SPACE, FOR_ANOTHER, FOR_ANSWER, FOR_DATAGRAM } waits;
};

static struct {
	struct rs_pair pair; /* its listener has another one, for the number when it is free */
	int client;	     /* and who connected to that */
	int fd, peer;
	int again; /* who has the number now, or -1 */
	bool closed;
	struct pollfd by_number; /* what another waits for in poll(2); its fd is -1: nobody does */
	int plugs[PLUGS];
	unsigned num_plugs;
} between;

static _Thread_local const struct call *under_way;

static uint8_t bytes[LARGE];

/* --- in the place of what the library calls -------------------------------------------------- */

/* Without spinning a call comes to the same places each time. */
uint32_t __wrap_evr_rs_polling_time_us(void);
uint32_t __real_evr_rs_polling_time_us(void);
int __wrap_poll(struct pollfd *fds, nfds_t num, int timeout_ms);
int __real_poll(struct pollfd *fds, nfds_t num, int timeout_ms);
/* What poll(2) is where _FORTIFY_SOURCE is defined. */
int __wrap___poll_chk(struct pollfd *fds, nfds_t num, int timeout_ms, size_t size);

uint32_t __wrap_evr_rs_polling_time_us(void)
{
	return under_way ? 0 : __real_evr_rs_polling_time_us();
}

static int sleep_on(struct pollfd *fds, nfds_t num)
{
	int ret = __real_poll(fds, num, HANG_S * 1000);

	if (!ret)
		ck_abort_msg("%s sleeps on", under_way->name);
	return ret;
}

static void bring_what_it_waits_for(void);

/* The call, and who waits by the number. */
static int sleep_beside(struct pollfd *fds, nfds_t num)
{
	struct pollfd all[SLEPT_ON + 1];

	ck_assert_uint_le(num, SLEPT_ON);
	memcpy(all, fds, num * sizeof(*fds));
	all[num] = between.by_number;
	sleep_on(all, num + 1);
	if (all[num].revents) {
		between.by_number.fd = -1;
		bring_what_it_waits_for();
	}
	return sleep_on(fds, num);
}

/* Who sleeps is woken by what was done, or by what is done now. */
int __wrap_poll(struct pollfd *fds, nfds_t num, int timeout_ms)
{
	if (!under_way || !timeout_ms)
		return __real_poll(fds, num, timeout_ms);
	random_come_now();
	return between.by_number.fd < 0 ? sleep_on(fds, num) : sleep_beside(fds, num);
}

int __wrap___poll_chk(struct pollfd *fds, nfds_t num, int timeout_ms, size_t size)
{
	ck_assert_uint_le(num * sizeof(*fds), size);
	return __wrap_poll(fds, num, timeout_ms);
}

/* --- what comes between ---------------------------------------------------------------------- */

static void set_blocking(int fd)
{
	ck_assert_ok(rfcntl(fd, F_SETFL, O_RDWR));
}

/* All that there is is taken in beside the call, which has to see it all the same. */
static void bring_news(void)
{
	uint8_t byte = BYTE;

	ck_assert_int_eq(rsend(between.peer, &byte, 1, MSG_DONTWAIT), 1);
	rrecv(between.fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
}

static void drain(void)
{
	while (rrecv(between.peer, bytes, LARGE, MSG_DONTWAIT) > 0)
		;
}

static void bring_space(void)
{
	drain();
	rsend(between.fd, bytes, 1, MSG_DONTWAIT);
}

static void bring_what_it_waits_for(void)
{
	if (under_way->waits == FOR_NEWS)
		bring_news();
	else
		bring_space();
}

/* The number shows something only of who does not block. */
static void wait_by_number(void)
{
	uint8_t byte = BYTE;

	ck_assert_ok(rfcntl(between.fd, F_SETFL, O_RDWR | O_NONBLOCK));
	between.by_number.fd = between.fd;
	if (under_way->waits == FOR_NEWS) {
		between.by_number.events = POLLOUT;
		drain();
	} else {
		between.by_number.events = POLLIN;
		ck_assert_int_eq(rsend(between.peer, &byte, 1, MSG_DONTWAIT), 1);
	}
}

/* No number below its own is free. */
static void plug_holes(void)
{
	int fd;

	while ((fd = dup(STDIN_FILENO)) < between.fd) {
		ck_assert_uint_lt(between.num_plugs, PLUGS);
		between.plugs[between.num_plugs++] = fd;
	}
	close(fd);
}

/* The next one that is accepted has its number. Who closes it already has
 * taken it away. */
static void close_it(void)
{
	if (under_way->waits == TAKEN) {
		ck_assert_fails(rclose(between.fd), EBADF);
		return;
	}
	ck_assert_ok(rclose(between.fd));
	between.closed = true;
	plug_holes();
	between.again = raccept(between.pair.listener, NULL, NULL);
	ck_assert_int_ge(between.again, 0);
}

/* What it says last does not arrive before the call has ended. */
static void close_slowly(void)
{
	fake_work_by_hand(true);
	rfcntl(between.fd, F_SETFL, O_RDWR | O_NONBLOCK);
	close_it();
}

/* --- the calls ------------------------------------------------------------------------------- */

static ssize_t poll_for(short events)
{
	struct pollfd pfd = { .fd = between.fd, .events = events };
	int ret = rpoll(&pfd, 1, -1);

	errno = EBADF;
	return pfd.revents & POLLNVAL ? -1 : ret;
}

static ssize_t poll_in(void)
{
	return poll_for(POLLIN);
}

static ssize_t poll_out(void)
{
	return poll_for(POLLOUT);
}

static ssize_t select_in(void)
{
	fd_set in;

	FD_ZERO(&in);
	FD_SET(between.fd, &in);
	return rselect(between.fd + 1, &in, NULL, NULL, NULL);
}

static ssize_t receive(void)
{
	return rrecv(between.fd, bytes, 1, 0);
}

static ssize_t look(void)
{
	return rrecv(between.fd, bytes, 1, MSG_PEEK);
}

static ssize_t send_one(void)
{
	return rsend(between.fd, bytes, 1, 0);
}

static ssize_t shut_down(void)
{
	return rshutdown(between.fd, SHUT_RDWR);
}

static ssize_t ask(void)
{
	int value;
	socklen_t len = sizeof(value);

	return rgetsockopt(between.fd, SOL_SOCKET, SO_ERROR, &value, &len);
}

static ssize_t set(void)
{
	int on = 1;

	return rsetsockopt(between.fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

static ssize_t name(void)
{
	struct sockaddr_storage addr;
	socklen_t len = sizeof(addr);

	return rgetpeername(between.fd, (struct sockaddr *)&addr, &len);
}

static ssize_t set_mode(void)
{
	return rfcntl(between.fd, F_SETFL, O_RDWR | O_NONBLOCK);
}

static ssize_t map(void)
{
	off_t at = riomap(between.fd, bytes, LARGE, PROT_WRITE, 0, -1);

	return at < 0 ? -1 : riounmap(between.fd, bytes, LARGE);
}

static ssize_t write_there(void)
{
	return (ssize_t)riowrite(between.fd, bytes, 1, 0, 0);
}

static ssize_t put_into_a_set(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	int set = repoll_create(0), error;
	ssize_t ret = repoll_ctl(set, EPOLL_CTL_ADD, between.fd, &event);

	error = errno;
	ck_assert_ok(rclose(set));
	errno = error;
	return ret;
}

static ssize_t close_too(void)
{
	return rclose(between.fd);
}

static ssize_t take_another(void)
{
	return raccept(between.fd, NULL, NULL);
}

static ssize_t connect_it(void)
{
	return rconnect(
		between.fd, cm_addr(FAKE_ROCE_SILENT_IP, CM_PORT), sizeof(struct sockaddr_in));
}

static const struct call calls[] = {
	{ "rpoll() for bytes", poll_in, FOR_NEWS },
	{ "rselect()", select_in, FOR_NEWS },
	{ "rrecv()", receive, FOR_NEWS },
	{ "rrecv() with MSG_PEEK", look, FOR_NEWS },
	{ "rpoll() for room", poll_out, FOR_SPACE },
	{ "rsend()", send_one, FOR_SPACE },
	{ "raccept()", take_another, FOR_ANOTHER },
	{ "rconnect()", connect_it, FOR_ANSWER },
	{ "rrecv() of a datagram", receive, FOR_DATAGRAM },
	{ "rpoll() for a datagram", poll_in, FOR_DATAGRAM },
	{ "rshutdown()", shut_down, NOW },
	{ "rgetsockopt()", ask, NOW },
	{ "rsetsockopt()", set, NOW },
	{ "rgetpeername()", name, NOW },
	{ "rfcntl()", set_mode, NOW },
	{ "riomap()", map, NOW },
	{ "riowrite()", write_there, NOW },
	{ "repoll_ctl()", put_into_a_set, NOW },
	{ "rclose()", close_too, TAKEN },
};

/* --- one of them ----------------------------------------------------------------------------- */

static int connect_one(int listener)
{
	int fd = rs_client();

	while (!rs_events(fd, POLLOUT))
		rs_events(listener, POLLIN);
	while (!rs_events(listener, POLLIN))
		rs_events(fd, POLLOUT);
	return fd;
}

static void fill_up(int fd)
{
	while (rsend(fd, bytes, LARGE, MSG_DONTWAIT) > 0)
		;
	ck_assert_int_eq(errno, EAGAIN);
}

static int new_one(void)
{
	int fd = rsocket(AF_INET, SOCK_STREAM, 0);

	ck_assert_int_ge(fd, 0);
	return fd;
}

static int new_listener(void)
{
	int fd = new_one();

	ck_assert_ok(rbind(fd, cm_addr(FAKE_ROCE_IP, CM_PORT + 1), sizeof(struct sockaddr_in)));
	ck_assert_ok(rlisten(fd, 1));
	return fd;
}

static void prepare(const struct call *call)
{
	between.pair = rs_connect();
	between.fd = between.pair.server;
	between.peer = between.pair.client;
	set_blocking(between.fd);
	if (call->waits == FOR_SPACE)
		fill_up(between.fd);
	if (call->waits == FOR_ANOTHER)
		between.fd = new_listener();
	if (call->waits == FOR_ANSWER)
		between.fd = new_one();
	if (call->waits == FOR_DATAGRAM) {
		between.fd = dgram_open_one(0);
		dgram_bind_to(between.fd, DGRAM_HOST);
	}
	between.client = connect_one(between.pair.listener);
	between.by_number = (struct pollfd){ .fd = -1 };
	between.again = -1;
	between.closed = false;
}

/* It has no room, and was in rpoll(), which keeps its number from showing what comes. */
static void prepare_nonblocking(const struct call *call)
{
	if (call->waits == FOR_NEWS)
		fill_up(between.fd);
	ck_assert_ok(rfcntl(between.fd, F_SETFL, O_RDWR | O_NONBLOCK));
	rs_events(between.fd, POLLIN | POLLOUT);
}

static void prepare_blocking(const struct call *call)
{
	prepare_nonblocking(call);
	set_blocking(between.fd);
}

/* The call may have ended before: it did not wait. */
static void check_number(const struct call *call, unsigned place)
{
	if (between.by_number.fd >= 0 && __real_poll(&between.by_number, 1, HANG_S * 1000) <= 0)
		ck_abort_msg("beside %s, from its place %u on, the number shows nothing",
			call->name, place);
}

/* Who has the number now has what was sent to it. */
static void check_another(void)
{
	uint8_t byte = BYTE;

	ck_assert_int_eq(between.again, between.fd);
	ck_assert_int_eq(rsend(between.client, &byte, 1, 0), 1);
	ck_assert_int_eq(rs_await(between.again, POLLIN), POLLIN);
	byte = 0;
	ck_assert_int_eq(rrecv(between.again, &byte, 1, MSG_DONTWAIT), 1);
	ck_assert_int_eq(byte, BYTE);
	ck_assert_ok(rclose(between.again));
}

static void clean_up(const struct call *call)
{
	if (!between.closed && call->waits != TAKEN)
		ck_assert_ok(rclose(between.fd));
	if (between.fd != between.pair.server)
		ck_assert_ok(rclose(between.pair.server));
	ck_assert_ok(rclose(between.client));
	ck_assert_ok(rclose(between.peer));
	ck_assert_ok(rclose(between.pair.listener));
	while (between.num_plugs)
		close(between.plugs[--between.num_plugs]);
}

static void check(const struct call *call, unsigned place, const struct outcome *outcome)
{
	bool fails = outcome->ret < 0 && outcome->error == EBADF;
	bool ends = outcome->ret < 0 && outcome->error == EAGAIN && between.by_number.events;

	if (between.closed ? fails || (call->waits == NOW && outcome->ret >= 0)
			   : ends || outcome->ret == (call->waits > TAKEN)) {
		check_number(call, place);
		return;
	}
	ck_abort_msg("%s, %s at place %u, gives %zd, %s", call->name,
		between.closed ? "closed" : "helped", place, outcome->ret,
		strerror(outcome->error));
}

/* What comes between. */
struct event {
	void (*prepare)(const struct call *call); /* or NULL */
	void (*come)(void);
};

static const struct event news = { NULL, bring_news }, space = { NULL, bring_space },
			  slow_close = { NULL, close_slowly }, a_close = { NULL, close_it },
			  by_number = { prepare_nonblocking, wait_by_number },
			  by_number_at_last = { prepare_blocking, wait_by_number };

/* Whether it has that place, and maybe another. */
static bool run_one(const struct call *call, unsigned place, const struct event *event)
{
	struct outcome outcome;
	bool has, asleep;

	prepare(call);
	if (event->prepare)
		event->prepare(call);
	under_way = call;
	random_come_at(place, event->come);
	outcome.ret = call->run();
	outcome.error = errno;
	has = random_has_come(&asleep);
	under_way = NULL;
	if (has)
		check(call, place, &outcome);
	fake_work_by_hand(false);
	if (between.again >= 0)
		check_another();
	clean_up(call);
	return has && !asleep;
}

/* After the last place it sleeps, or ends. */
static void run_all(const struct call *call, const struct event *event, void (*end)(void))
{
	unsigned place;
	bool has = true;

	for (place = 1; has; place++) {
		ck_assert_uint_lt(place, PLACES);
		fake_install();
		has = run_one(call, place, event);
		end();
	}
}

static void run_waiting(const struct call *call, void (*end)(void))
{
	run_all(call, call->waits == FOR_NEWS ? &news : &space, end);
	run_all(call, &slow_close, end);
	run_all(call, &by_number, end);
	run_all(call, &by_number_at_last, end);
}

void random_between(void (*end)(void))
{
	size_t i;

	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (calls[i].waits == FOR_NEWS || calls[i].waits == FOR_SPACE)
			run_waiting(&calls[i], end);
		run_all(&calls[i], &a_close, end);
	}
}
