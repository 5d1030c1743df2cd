#include "config.h"

#include "preload/places.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/real.h"
#include "unit/cm_unit.h"

static struct evr_pre_real real;
static atomic_int tcp_error, tcp_connects;

static struct sockaddr_in address(const char *ip, in_port_t port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = port };

	inet_pton(AF_INET, ip, &addr.sin_addr);
	return addr;
}

static bool is(const struct sockaddr_in *addr, const char *ip)
{
	struct sockaddr_in other = address(ip, 0);

	return addr->sin_family == AF_INET && addr->sin_addr.s_addr == other.sin_addr.s_addr;
}

/* --- in place of the kernel's ---------------------------------------------------------------- */

static int name_here(int fd, struct sockaddr *addr, socklen_t *len)
{
	struct sockaddr_in *name = (struct sockaddr_in *)addr;
	int ret = real.getsockname(fd, addr, len);

	if (!ret && is(name, "127.0.0.1"))
		*name = address(FAKE_ROCE_IP, name->sin_port);
	return ret;
}

/* Others only ask for the way. */
static bool is_stream(int fd)
{
	int type = 0;
	socklen_t len = sizeof(type);

	return !real.getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) && type == SOCK_STREAM;
}

static int connect_here(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct sockaddr_in to;

	memcpy(&to, addr, sizeof(to));
	if (!is(&to, FAKE_ROCE_IP) && !is(&to, FAKE_ROCE_SILENT_IP))
		return real.connect(fd, addr, len);
	if (is_stream(fd)) {
		tcp_connects++;
		errno = tcp_error;
		if (tcp_error)
			return -1;
	}
	to = address("127.0.0.1", to.sin_port);
	return real.connect(fd, (struct sockaddr *)&to, sizeof(to));
}

void places_fail_tcp(int error)
{
	tcp_error = error;
}

int places_tcp_connects(void)
{
	return tcp_connects;
}

void places_install(void)
{
	tcp_error = tcp_connects = 0;
	fake_install();
	/* Once, before there are threads that call it. */
	if (real.close)
		return;
	real = *evr_pre_real();
	evr_pre_real()->getsockname = name_here;
	evr_pre_real()->connect = connect_here;
}

/* Threads of the library end what the test has closed. */
void places_reset(void)
{
	int ms;

	for (ms = 0; fake_expect_clean() && ms < PLACES_PATIENCE_MS; ms++)
		poll(NULL, 0, 1);
	ck_assert_msg(!fake_expect_clean(), "%s", fake_expect_clean());
	fake_reset();
}

const struct evr_pre_real *places_real(void)
{
	return &real;
}

TCase *places_cases(const char *name, const TTest *const *tests, size_t num)
{
	TCase *cases = tcase_create(name);
	size_t i;

	setenv("RS_TCP_AFTER_MS", "100000", 1);
	tcase_add_checked_fixture(cases, places_install, places_reset);
	for (i = 0; i < num; i++)
		tcase_add_test(cases, tests[i]);
	return cases;
}

int places_main(TCase *cases)
{
	Suite *suite = suite_create("preload");
	SRunner *runner;
	int failed;

	suite_add_tcase(suite, cases);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}

/* --- sockets --------------------------------------------------------------------------------- */

int places_socket(int flags)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);

	ck_assert_int_ge(fd, 0);
	return fd;
}

static void bind_here(int fd)
{
	struct sockaddr_in any = address("127.0.0.1", 0);

	ck_assert_ok(bind(fd, (struct sockaddr *)&any, sizeof(any)));
}

int places_bound(void)
{
	int fd = places_socket(0);

	bind_here(fd);
	return fd;
}

void places_bind(int fd, const struct sockaddr_in *addr)
{
	struct sockaddr_in here = address("127.0.0.1", addr->sin_port);

	ck_assert_ok(bind(fd, (struct sockaddr *)&here, sizeof(here)));
}

static void tell_address(int fd, struct sockaddr_in *addr)
{
	socklen_t len = sizeof(*addr);

	ck_assert_ok(getsockname(fd, (struct sockaddr *)addr, &len));
	ck_assert(is(addr, FAKE_ROCE_IP));
}

int places_listen(int flags, struct sockaddr_in *addr)
{
	int fd = places_socket(flags);

	bind_here(fd);
	ck_assert_ok(listen(fd, 5));
	tell_address(fd, addr);
	return fd;
}

int places_listen_tcp(struct sockaddr_in *addr)
{
	int fd = real.socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	bind_here(fd);
	ck_assert_ok(real.listen(fd, 5));
	tell_address(fd, addr);
	return fd;
}

int places_connect(int fd, const struct sockaddr_in *addr)
{
	return connect(fd, (const struct sockaddr *)addr, sizeof(*addr));
}

bool places_by_rdma(int fd)
{
	int domain = 0;
	socklen_t len = sizeof(domain);

	ck_assert_ok(real.getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len));
	return domain == AF_UNIX;
}

struct places_pair places_pair(int flags)
{
	struct places_pair pair;
	struct sockaddr_in addr;

	pair.listener = places_listen(0, &addr);
	pair.client = places_socket(0);
	ck_assert_ok(places_connect(pair.client, &addr));
	pair.server = accept4(pair.listener, NULL, NULL, flags);
	ck_assert_int_ge(pair.server, 0);
	ck_assert(places_by_rdma(pair.client));
	ck_assert(places_by_rdma(pair.server));
	return pair;
}

void places_close(struct places_pair *pair)
{
	if (pair->client >= 0)
		ck_assert_ok(close(pair->client));
	if (pair->server >= 0)
		ck_assert_ok(close(pair->server));
	ck_assert_ok(close(pair->listener));
}

void places_child_closes(int one, int other)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		if (recv(other, &status, 1, 0) != -1 || errno != EBADF)
			_exit(1);
		_exit(close(one) || close(other) ? 2 : 0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

/* --- steps ----------------------------------------------------------------------------------- */

short places_await(int fd, short events)
{
	struct pollfd pfd = { .fd = fd, .events = events };

	ck_assert_int_eq(poll(&pfd, 1, PLACES_PATIENCE_MS), 1);
	return pfd.revents;
}

void places_say(int fd, const char *text)
{
	ck_assert_int_eq(send(fd, text, strlen(text), 0), strlen(text));
}

void places_hear(int fd, const char *text)
{
	char buf[100] = "";

	ck_assert_int_eq(recv(fd, buf, strlen(text), MSG_WAITALL), strlen(text));
	ck_assert_str_eq(buf, text);
}

void places_set_nonblock(int fd)
{
	ck_assert_ok(fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK));
}
