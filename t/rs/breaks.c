/*
 * What breaks beneath a stream: on the two devices of breaks.sh, with a wire between them. The
 * other side is a process of its own. Each call ends, with an error that says why, and nothing is
 * left.
 */
#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/rsocket.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rs/unanswered.h"
#include "schedule/clock.h"
#include "schedule/resources.h"
#include "schedule/wire.h"

#define PEER_IP "10.77.0.2"

enum {
	PORT = 7500,
	BACKLOG = 1,
	CHUNK = 4096,
	LIMIT_S = 100000, /* of time that mostly is skipped */
	LEFT_S = 60,	  /* for what is left to go */
	US_PER_S = 1000000,
	CLOSE_S = 5, /* rclose() */
	LINGER_S = 2,
	KEPT_S = 90,
	AGAIN = 30,
	MS_PER_S = 1000,
};

/* --- the wire -------------------------------------------------------------------------------- */

static void lose(uint32_t mille)
{
	const struct weather weather = { .seed = 1, .loss = mille };

	wire_set(&weather);
}

static uint64_t objects(void)
{
	uint64_t counts[RESOURCES];

	ck_assert_int_eq(resources_count(counts), 0);
	return counts[RESOURCE_QP] + counts[RESOURCE_CQ] + counts[RESOURCE_MR] +
	       counts[RESOURCE_CM_ID];
}

static uint64_t objects_before;

static void set_up(void)
{
	lose(0);
	objects_before = objects();
}

static void tear_down(void)
{
	uint64_t late = clock_real_us() + (uint64_t)LEFT_S * US_PER_S;

	lose(0);
	while (objects() > objects_before && clock_real_us() < late)
		usleep(1000);
	ck_assert_uint_eq(objects(), objects_before);
}

/* --- the other side -------------------------------------------------------------------------- */

static struct sockaddr_in place(uint16_t port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(port) };

	inet_pton(AF_INET, PEER_IP, &addr.sin_addr);
	return addr;
}

static bool send_all(int fd, const char *bytes, size_t len)
{
	size_t sent = 0;
	ssize_t ret;

	while (sent < len) {
		ret = rsend(fd, bytes + sent, len - sent, 0);
		if (ret < 0)
			return false;
		sent += (size_t)ret;
	}
	return true;
}

/* 0 at the end of the bytes, or an errno. */
static int echo(int fd)
{
	char bytes[CHUNK];
	ssize_t len;

	while ((len = rrecv(fd, bytes, sizeof(bytes), 0)) > 0)
		if (!send_all(fd, bytes, (size_t)len))
			return errno;
	return len ? errno : 0;
}

static int read_nothing(int fd)
{
	for (;;)
		pause();
	return fd;
}

static int open_listener(void)
{
	struct sockaddr_in addr = place(PORT);
	int fd = rsocket(AF_INET, SOCK_STREAM, 0), one = 1;

	if (fd < 0 || rsetsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
		rbind(fd, (struct sockaddr *)&addr, sizeof(addr)) || rlisten(fd, BACKLOG))
		return -1;
	return fd;
}

static int be_the_peer(int ready, int (*serve)(int fd))
{
	int listener = open_listener(), fd, ret;

	if (write(ready, listener < 0 ? "n" : "y", 1) != 1 || listener < 0)
		return errno;
	fd = raccept(listener, NULL, NULL);
	ret = fd < 0 ? errno : serve(fd);
	rclose(fd);
	rclose(listener);
	return ret;
}

static int echo_datagrams(int fd)
{
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	char byte;

	while (rrecvfrom(fd, &byte, 1, 0, (struct sockaddr *)&from, &len) == 1)
		rsendto(fd, &byte, 1, 0, (struct sockaddr *)&from, len);
	return errno;
}

static int be_a_datagram_peer(int ready, int (*serve)(int fd))
{
	struct sockaddr_in addr = place(PORT);
	int fd = rsocket(AF_INET, SOCK_DGRAM, 0), ret;

	ret = fd < 0 ? -1 : rbind(fd, (struct sockaddr *)&addr, sizeof(addr));
	if (write(ready, ret ? "n" : "y", 1) != 1 || ret)
		return errno;
	return serve(fd);
}

/* It begins before this process has anything of RDMA. */
static pid_t start(int (*be)(int ready, int (*serve)(int fd)), int (*serve)(int fd))
{
	char ready = 0;
	int ends[2];
	pid_t pid;

	ck_assert_int_eq(pipe(ends), 0);
	pid = fork();
	if (!pid)
		_exit(be(ends[1], serve));
	close(ends[1]);
	ck_assert_int_eq(read(ends[0], &ready, 1), 1);
	ck_assert_int_eq(ready, 'y');
	close(ends[0]);
	return pid;
}

static pid_t start_peer(int (*serve)(int fd))
{
	return start(be_the_peer, serve);
}

static void expect_end_of(pid_t peer)
{
	int status;

	ck_assert_int_eq(waitpid(peer, &status, 0), peer);
	ck_assert_msg(!status, "the peer: %s", strerror(WEXITSTATUS(status)));
}

static void end_peer(pid_t peer)
{
	kill(peer, SIGKILL);
	waitpid(peer, NULL, 0);
}

/* Later, while this process waits; ends with the command's status. */
static pid_t run_after(unsigned int seconds, pid_t peer, const char *command)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	sleep(seconds);
	if (peer)
		kill(peer, SIGCONT);
	_exit(command && system(command));
}

/* --- this side ------------------------------------------------------------------------------- */

static int connect_to_peer(void)
{
	struct sockaddr_in addr = place(PORT);
	int fd = rsocket(AF_INET, SOCK_STREAM, 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_msg(!rconnect(fd, (struct sockaddr *)&addr, sizeof(addr)), "rconnect: %s",
		strerror(errno));
	return fd;
}

/* One that comes back as it went. */
static void pass_chunk(int fd, int number)
{
	char sent[CHUNK], got[CHUNK];
	size_t i;

	for (i = 0; i < CHUNK; i++)
		sent[i] = (char)(i * 31 + i / 251 + (size_t)number);
	ck_assert_msg(send_all(fd, sent, CHUNK), "chunk %d: %s", number, strerror(errno));
	ck_assert_msg(rrecv(fd, got, CHUNK, MSG_WAITALL) == CHUNK, "chunk %d: %s", number,
		strerror(errno));
	ck_assert_mem_eq(sent, got, CHUNK);
}

static void close_well(int fd, pid_t peer)
{
	ck_assert_int_eq(rshutdown(fd, SHUT_WR), 0);
	ck_assert_int_eq(rrecv(fd, (char[1]){ 0 }, 1, 0), 0);
	ck_assert_int_eq(rclose(fd), 0);
	expect_end_of(peer);
}

/* Why sending ends; what fits into buffers is taken before that. */
static int error_of_sends(int fd)
{
	char bytes[CHUNK] = { 0 };

	while (send_all(fd, bytes, sizeof(bytes)))
		;
	return errno;
}

/* --- frames that are lost -------------------------------------------------------------------- */

static const struct loss {
	uint32_t mille;
	int chunks;
} losses[] = { { 10, 100 }, { 100, 20 } };

START_TEST(each_byte_arrives_whatever_is_lost)
{
	const struct loss *loss = &losses[_i];
	pid_t peer;
	int fd, i;

	lose(loss->mille);
	peer = start_peer(echo);
	fd = connect_to_peer();
	for (i = 0; i < loss->chunks; i++)
		pass_chunk(fd, i);
	close_well(fd, peer);
}
END_TEST

/* siw tells of it as of any other end. */
START_TEST(a_peer_that_is_silent_for_good_ends_the_sends)
{
	int expected = strcmp(getenv("EVR_KIND"), "siw") ? ETIMEDOUT : ECONNRESET;
	pid_t peer = start_peer(echo);
	int fd = connect_to_peer(), error;

	pass_chunk(fd, 0);
	lose(1000);
	error = error_of_sends(fd);
	ck_assert_msg(error == expected, "%s", strerror(error));
	ck_assert_int_eq(rclose(fd), 0);
	end_peer(peer);
}
END_TEST

static void close_in_time(int fd, uint64_t most_s)
{
	uint64_t begun = clock_real_us(), took;

	ck_assert_int_eq(rclose(fd), 0);
	took = clock_real_us() - begun;
	ck_assert_msg(took <= most_s * US_PER_S, "%llu ms", (unsigned long long)took / 1000);
}

/* What nobody answers is given up, by the kernel as well. */
START_TEST(a_peer_that_is_silent_holds_up_no_close)
{
	pid_t peer = start_peer(echo);
	int fd = connect_to_peer();

	pass_chunk(fd, 0);
	lose(1000);
	if (_i)
		ck_assert_int_eq(rfcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK), 0);
	close_in_time(fd, _i ? 1 : CLOSE_S + 1);
	end_peer(peer);
}
END_TEST

/* To siw what TCP has taken has arrived. */
START_TEST(who_lingers_does_so_for_the_time_that_was_given)
{
	const struct linger linger = { .l_onoff = 1, .l_linger = LINGER_S };
	uint64_t least_s = strcmp(getenv("EVR_KIND"), "siw") ? LINGER_S : 0, begun;
	pid_t peer = start_peer(echo);
	int fd = connect_to_peer();

	pass_chunk(fd, 0);
	lose(1000);
	ck_assert_int_eq(rsetsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	begun = clock_real_us();
	close_in_time(fd, LINGER_S + 1);
	ck_assert_uint_ge(clock_real_us() - begun, least_s * US_PER_S);
	end_peer(peer);
}
END_TEST

/* --- others beside it ------------------------------------------------------------------------ */

struct pair {
	int client, server;
};

static bool becomes(int fd, short events)
{
	struct pollfd pfd = { .fd = fd, .events = events };

	return poll(&pfd, 1, LEFT_S * MS_PER_S) == 1 && pfd.revents & events;
}

/* Both of this process, on the device beside the wire; what they have is told by their numbers. */
static struct pair open_pair(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	int listener = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	struct pair pair = { .client = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0) };

	inet_pton(AF_INET, getenv("EVR_IP4"), &addr.sin_addr);
	ck_assert_int_eq(rbind(listener, (struct sockaddr *)&addr, sizeof(addr)), 0);
	ck_assert_int_eq(rlisten(listener, BACKLOG), 0);
	ck_assert_int_eq(rconnect(pair.client, (struct sockaddr *)&addr, sizeof(addr)), -1);
	ck_assert_int_eq(errno, EINPROGRESS);
	ck_assert(becomes(listener, POLLIN));
	pair.server = raccept(listener, NULL, NULL);
	ck_assert_int_ge(pair.server, 0);
	ck_assert_int_eq(rfcntl(pair.server, F_SETFL, O_RDWR | O_NONBLOCK), 0);
	ck_assert(becomes(pair.client, POLLOUT));
	ck_assert_int_eq(rclose(listener), 0);
	return pair;
}

static void close_pair(const struct pair *pair)
{
	ck_assert_int_eq(rclose(pair->client), 0);
	ck_assert_int_eq(rclose(pair->server), 0);
}

static uint64_t pass_byte_us(const struct pair *pair)
{
	uint64_t begun = clock_real_us();
	char byte = 0;

	ck_assert_int_eq(rsend(pair->client, &byte, 1, 0), 1);
	ck_assert(becomes(pair->server, POLLIN));
	ck_assert_int_eq(rrecv(pair->server, &byte, 1, 0), 1);
	return clock_real_us() - begun;
}

static uint64_t longest_of_passes_us(const struct pair *pair, unsigned seconds)
{
	uint64_t us, longest = 0;

	while (seconds--) {
		us = pass_byte_us(pair);
		longest = us > longest ? us : longest;
		sleep(1);
	}
	return longest;
}

/* Not at all, before the device gives the peer up, and after. */
static const int lingers_s[] = { 0, 1, 30 };

/* Linux may keep whoever destroys what has lost its carrier, until it gives the neighbour up. */
START_TEST(whom_the_kernel_keeps_holds_up_no_other)
{
	static const struct weather no_carrier = { .down = { true, true } };
	const struct linger linger = { .l_onoff = 1, .l_linger = lingers_s[_i] };
	pid_t peer = start_peer(echo);
	int fd = connect_to_peer();
	struct pair pair = open_pair();
	uint64_t us;

	pass_chunk(fd, 0);
	ck_assert_int_eq(rfcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK), 0);
	ck_assert_int_eq(rsetsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	wire_set(&no_carrier);
	ck_assert_int_eq(rsend(fd, "1", 1, 0), 1);
	close_in_time(fd, 1);
	us = longest_of_passes_us(&pair, KEPT_S);
	ck_assert_msg(us < US_PER_S, "%llu ms", (unsigned long long)us / 1000);
	close_pair(&pair);
	end_peer(peer);
}
END_TEST

/* The device is done with a datagram that it has handed on, and Linux waits for the neighbour. */
START_TEST(datagrams_that_wait_for_a_neighbour_hold_up_no_close)
{
	struct sockaddr_in addr = place(PORT);
	pid_t peer = start(be_a_datagram_peer, echo_datagrams);
	int fd = rsocket(AF_INET, SOCK_DGRAM, 0);
	char byte = 'd';

	ck_assert_int_eq(rconnect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	ck_assert_int_eq(rsend(fd, &byte, 1, 0), 1);
	ck_assert_int_eq(rrecv(fd, &byte, 1, 0), 1);
	ck_assert_int_eq(rfcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK), 0);
	lose(1000);
	ck_assert_int_eq(system("ip neigh flush dev evr_a"), 0);
	ck_assert_int_eq(rsend(fd, &byte, 1, 0), 1);
	close_in_time(fd, 1);
	end_peer(peer);
}
END_TEST

/* Its queue pair ends in another thread, and has the port until then. */
START_TEST(who_closes_one_has_its_port_for_the_next)
{
	struct sockaddr_in addr = place(PORT);
	int i, fd;

	for (i = 0; i < AGAIN; i++) {
		fd = rsocket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
		ck_assert_msg(!rbind(fd, (struct sockaddr *)&addr, sizeof(addr)), "%d: %s", i,
			strerror(errno));
		ck_assert_int_eq(rclose(fd), 0);
	}
}
END_TEST

/* --- peers ----------------------------------------------------------------------------------- */

START_TEST(a_peer_that_is_killed_ends_the_reads_and_the_sends)
{
	pid_t peer = start_peer(echo);
	int fd = connect_to_peer(), error;

	pass_chunk(fd, 0);
	end_peer(peer);
	ck_assert_int_eq(rrecv(fd, (char[1]){ 0 }, 1, 0), -1);
	ck_assert_msg(errno == ECONNRESET, "%s", strerror(errno));
	error = error_of_sends(fd);
	ck_assert_msg(error == EPIPE || error == ECONNRESET, "%s", strerror(error));
	ck_assert_int_eq(rclose(fd), 0);
}
END_TEST

static const unsigned int stops_s[] = { 3, 15, 60 };

START_TEST(a_peer_that_is_stopped_goes_on_where_it_was)
{
	pid_t peer = start_peer(echo), waker;
	int fd = connect_to_peer(), i;
	uint64_t begun;

	pass_chunk(fd, 0);
	kill(peer, SIGSTOP);
	begun = clock_real_us();
	waker = run_after(stops_s[_i], peer, NULL);
	for (i = 1; i < 10; i++)
		pass_chunk(fd, i);
	ck_assert_uint_ge(clock_real_us() - begun, (uint64_t)stops_s[_i] * US_PER_S);
	expect_end_of(waker);
	close_well(fd, peer);
}
END_TEST

/* A moment later the device may take some more. */
static void fill_up(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLOUT };
	char bytes[CHUNK] = { 0 };

	do {
		while (rsend(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
			;
		ck_assert_int_eq(errno, EAGAIN);
	} while (rpoll(&pfd, 1, 1000));
}

START_TEST(a_peer_that_stops_reading_holds_up_no_close)
{
	pid_t peer = start_peer(read_nothing);
	int fd = connect_to_peer();
	uint64_t begun;

	fill_up(fd);
	begun = clock_real_us();
	ck_assert_int_eq(rclose(fd), 0);
	ck_assert_uint_le(clock_real_us() - begun, (uint64_t)(CLOSE_S + 1) * US_PER_S);
	end_peer(peer);
}
END_TEST

/* --- a device that goes ---------------------------------------------------------------------- */

static bool is_active(void)
{
	return !system("rdma link show \"$EVR_DEV_A/1\" | grep -q 'state ACTIVE'");
}

static void plug_in(void)
{
	ck_assert_int_eq(system("rdma link add \"$EVR_DEV_A\" type \"$EVR_KIND\" netdev evr_a"), 0);
	while (!is_active())
		usleep(10000);
}

/* Who removes it begins first: a child of whoever has the device open keeps it open too. */
START_TEST(a_device_that_goes_ends_the_stream_and_comes_back)
{
	pid_t remover = run_after(1, 0, "rdma link delete \"$EVR_DEV_A\"");
	pid_t peer = start_peer(echo);
	int fd = connect_to_peer(), i = 0;
	char bytes[CHUNK] = { 0 };

	pass_chunk(fd, i);
	while (send_all(fd, bytes, CHUNK) && rrecv(fd, bytes, CHUNK, MSG_WAITALL) > 0)
		i++;
	ck_assert_msg(errno == ENODEV, "%s", strerror(errno));
	ck_assert_int_gt(i, 0);
	ck_assert_int_eq(rclose(fd), 0);
	expect_end_of(remover);
	end_peer(peer);
	plug_in();
	peer = start_peer(echo);
	fd = connect_to_peer();
	pass_chunk(fd, 0);
	close_well(fd, peer);
}
END_TEST

/* --- ports that TCP has ---------------------------------------------------------------------- */

enum { HELD = 20, CONNECTS = 12 };

static void set_ports(const char *range)
{
	FILE *file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "w");

	ck_assert_ptr_nonnull(file);
	ck_assert_int_gt(fputs(range, file), 0);
	ck_assert_int_eq(fclose(file), 0);
}

/* From ports of the range, one connection each; they end with the process. */
static void hold_ports(void)
{
	int listener = socket(AF_INET, SOCK_STREAM, 0), i;
	struct sockaddr_in addr = place(PORT + 1);

	ck_assert_int_eq(bind(listener, (struct sockaddr *)&addr, sizeof(addr)), 0);
	ck_assert_int_eq(listen(listener, HELD), 0);
	for (i = 0; i < HELD; i++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);

		ck_assert_int_eq(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	}
	close(listener);
}

/* A fifth of all, of which the CM does not know. */
START_TEST(a_port_that_tcp_has_is_in_nobodys_way)
{
	int i;

	set_ports("40000 40099");
	hold_ports();
	for (i = 0; i < CONNECTS; i++) {
		pid_t peer = start_peer(echo);
		int fd = connect_to_peer();

		pass_chunk(fd, i);
		close_well(fd, peer);
	}
	set_ports("32768 60999");
}
END_TEST

/* --- all ------------------------------------------------------------------------------------- */

static void start_wire(void)
{
	static const char *const ends[WIRE_ENDS] = { "wire_a", "wire_b" };
	int ret = wire_start("wire", ends);

	if (!ret)
		ret = wire_whole_frames("evr_a");
	if (!ret)
		ret = wire_whole_frames("evr_b");
	if (!ret)
		return;
	fprintf(stderr, "the wire: %s\n", strerror(-ret));
	exit(2);
}

static void prepare(Suite *suite, TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_set_timeout(tcase, LIMIT_S);
	suite_add_tcase(suite, tcase);
}

static TCase *add_case(Suite *suite, const char *name)
{
	TCase *tcase = tcase_create(name);

	prepare(suite, tcase);
	return tcase;
}

static void add_all(Suite *suite)
{
	TCase *tcase = add_case(suite, "loss");

	tcase_add_loop_test(tcase, each_byte_arrives_whatever_is_lost, 0, 2);
	tcase = add_case(suite, "peer");
	tcase_add_test(tcase, a_peer_that_is_killed_ends_the_reads_and_the_sends);
	tcase_add_loop_test(tcase, a_peer_that_is_stopped_goes_on_where_it_was, 0, 3);
	tcase_add_test(tcase, a_peer_that_stops_reading_holds_up_no_close);
	tcase = add_case(suite, "device");
	tcase_add_test(tcase, a_device_that_goes_ends_the_stream_and_comes_back);
	tcase = add_case(suite, "silence");
	tcase_add_test(tcase, a_peer_that_is_silent_for_good_ends_the_sends);
	tcase_add_loop_test(tcase, a_peer_that_is_silent_holds_up_no_close, 0, 2);
	tcase_add_test(tcase, who_lingers_does_so_for_the_time_that_was_given);
	tcase_add_loop_test(tcase, whom_the_kernel_keeps_holds_up_no_other, 0, 3);
	prepare(suite, unanswered_case());
	if (strcmp(getenv("EVR_KIND"), "siw") != 0) {
		tcase_add_test(tcase, datagrams_that_wait_for_a_neighbour_hold_up_no_close);
		tcase_add_test(tcase, who_closes_one_has_its_port_for_the_next);
		return;
	}
	tcase = add_case(suite, "ports");
	tcase_add_test(tcase, a_port_that_tcp_has_is_in_nobodys_way);
}

int main(void)
{
	Suite *suite = suite_create("breaks");
	SRunner *runner;
	int failed;

	start_wire();
	add_all(suite);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
