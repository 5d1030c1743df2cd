#include "schedule/stranger.h"

#include <event2/event.h>
#include <event2/util.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "schedule/schedule.h"

enum { BUFS = 32, DEPTH = 8, MESSAGES = 5 };

static pid_t process;
static int control = -1;

/* --- the process ----------------------------------------------------------------------------- */

static struct evrdma_base *base;
static struct evrdma_pool *pool;

/* Like those of a schedule, but from number 0, which nobody in it has. */
static void speak(struct evrdma_conn *conn)
{
	struct evrdma_buf *buf;
	unsigned serial;

	for (serial = 0; serial < MESSAGES; serial++) {
		buf = evrdma_pool_get(pool);
		if (!buf)
			return;
		message_fill(evrdma_buf_data(buf), BUF_SIZE, 0, serial);
		evrdma_conn_send(conn, buf, BUF_SIZE, NULL, NULL);
		evrdma_buf_unref(buf);
	}
}

static void on_event(struct evrdma_conn *conn, enum evrdma_conn_event event,
	const struct evrdma_error *error, void *arg)
{
	if (event == EVRDMA_CONN_CONNECTED)
		speak(conn);
	if (event == EVRDMA_CONN_ERROR || event == EVRDMA_CONN_DISCONNECTED)
		evrdma_conn_close(conn);
}

static void on_recv(struct evrdma_conn *conn, const struct evrdma_recv *recv, void *arg)
{
}

static struct evrdma_conn *new_conn(void)
{
	struct evrdma_conn_options options;
	struct evrdma_conn *conn;

	evrdma_conn_options_init(&options);
	options.recv_pool = pool;
	options.recv_depth = DEPTH;
	options.send_depth = DEPTH;
	conn = evrdma_conn_new(base, &options);
	if (conn)
		evrdma_conn_setcb(conn, on_recv, on_event, NULL);
	return conn;
}

static void on_request(struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	struct evrdma_conn *conn = new_conn();

	if (conn && !evrdma_conn_accept(conn, request))
		return;
	if (conn)
		evrdma_conn_close(conn);
	evrdma_request_reject(request, NULL, 0);
}

static void on_order(evutil_socket_t fd, short what, void *arg)
{
	struct sockaddr_in sin;
	struct evrdma_conn *conn;

	if (recv(fd, &sin, sizeof(sin), 0) != sizeof(sin))
		_exit(0);
	conn = new_conn();
	if (conn && evrdma_conn_connect(conn, NULL, (struct sockaddr *)&sin))
		evrdma_conn_close(conn);
}

static _Noreturn void run(const char *ip)
{
	struct event_base *loop = event_base_new();
	struct event *order = event_new(loop, control, EV_READ | EV_PERSIST, on_order, NULL);
	struct evrdma_listener *listener;
	struct sockaddr_in sin;
	uint16_t port;

	base = evrdma_base_new(loop, NULL);
	pool = evrdma_pool_new(base, BUF_SIZE, BUFS);
	schedule_address(&sin, ip, 0);
	listener = evrdma_listener_new(base, (struct sockaddr *)&sin, NULL, on_request, NULL);
	port = listener ? evrdma_listener_get_port(listener) : 0;
	if (send(control, &port, sizeof(port), 0) != sizeof(port))
		_exit(1);
	event_add(order, NULL);
	event_base_dispatch(loop);
	_exit(1);
}

/* --- for the schedule ------------------------------------------------------------------------ */

uint16_t stranger_start(const char *ip)
{
	uint16_t port = 0;
	int pair[2];

	MUST(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), "no pair of sockets");
	process = fork();
	if (!process) {
		control = pair[1];
		close(pair[0]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		run(ip);
	}
	close(pair[1]);
	control = pair[0];
	MUST(recv(control, &port, sizeof(port), 0) == sizeof(port) && port,
		"the peer in another process does not listen");
	return port;
}

/* One that is stopped hears of it later, one that was killed never. */
void stranger_call(const char *ip, uint16_t port)
{
	struct sockaddr_in sin;
	ssize_t done;

	schedule_address(&sin, ip, port);
	done = send(control, &sin, sizeof(sin), MSG_DONTWAIT | MSG_NOSIGNAL);
	(void)done;
}

void stranger_signal(int number)
{
	if (process > 0)
		kill(process, number);
}

void stranger_end(void)
{
	if (process <= 0)
		return;
	stranger_signal(SIGKILL);
	waitpid(process, NULL, 0);
	process = 0;
	close(control);
	control = -1;
}
