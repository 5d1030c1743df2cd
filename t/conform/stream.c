#include "conform/stream.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct bevs bevs;

/* --- sides ---------------------------------------------------------------------------------- */

static void on_read(struct bufferevent *bev, void *arg)
{
	struct side *side = arg;
	size_t len = evbuffer_get_length(bufferevent_get_input(bev));

	side->reads++;
	if (len > side->most)
		side->most = len;
	if (side->on_read)
		side->on_read(side);
}

static void on_write(struct bufferevent *bev, void *arg)
{
	struct side *side = arg;

	side->writes++;
	if (side->on_write)
		side->on_write(side);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
	struct side *side = arg;
	bool reading = what & BEV_EVENT_READING, writing = what & BEV_EVENT_WRITING;

	side->err = what & BEV_EVENT_ERROR ? EVUTIL_SOCKET_ERROR() : side->err;
	side->connected += !!(what & BEV_EVENT_CONNECTED);
	side->eof += !!(what & BEV_EVENT_EOF);
	side->errors += !!(what & BEV_EVENT_ERROR);
	side->read_errors += what & BEV_EVENT_ERROR && reading;
	side->write_errors += what & BEV_EVENT_ERROR && writing;
	side->read_timeouts += what & BEV_EVENT_TIMEOUT && reading;
	side->write_timeouts += what & BEV_EVENT_TIMEOUT && writing;
	if (side->on_event)
		side->on_event(side, what);
}

void side_begin(struct side *side, struct bufferevent *bev)
{
	ck_assert_msg(bev != NULL, "%s", strerror(errno));
	side->bev = bev;
	bufferevent_setcb(bev, on_read, on_write, on_event, side);
	ck_assert_int_eq(bufferevent_enable(bev, EV_READ | EV_WRITE), 0);
}

void side_free(struct side *side)
{
	if (side->bev)
		bufferevent_free(side->bev);
	side->bev = NULL;
}

uint8_t pattern_at(size_t i)
{
	return (uint8_t)(i * 31 + (i >> 9) * 7 + (i >> 17));
}

void side_write(struct side *side, size_t len)
{
	uint8_t *bytes = malloc(len);
	size_t i;

	for (i = 0; i < len; i++)
		bytes[i] = pattern_at(side->written++);
	ck_assert_int_eq(bufferevent_write(side->bev, bytes, len), 0);
	free(bytes);
}

void side_check_in(struct side *side, struct evbuffer *buffer)
{
	uint8_t bytes[4096];
	int n, i;

	while ((n = evbuffer_remove(buffer, bytes, sizeof(bytes))) > 0)
		for (i = 0; i < n; i++, side->checked++)
			if (bytes[i] != pattern_at(side->checked))
				ck_abort_msg("byte %zu is %u", side->checked, bytes[i]);
}

void side_check(struct side *side)
{
	side_check_in(side, bufferevent_get_input(side->bev));
}

void side_echo(struct side *side)
{
	ck_assert_int_eq(
		bufferevent_write_buffer(side->bev, bufferevent_get_input(side->bev)), 0);
}

void side_keep(struct side *side)
{
	if (!side->kept)
		side->kept = evbuffer_new();
	evbuffer_add_buffer(side->kept, bufferevent_get_input(side->bev));
}

void side_free_at_end(struct side *side, short what)
{
	if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
		side_free(side);
}

size_t side_output(const struct side *side)
{
	return evbuffer_get_length(bufferevent_get_output(side->bev));
}

size_t side_input(const struct side *side)
{
	return evbuffer_get_length(bufferevent_get_input(side->bev));
}

/* --- the two -------------------------------------------------------------------------------- */

static void on_bufferevent(struct evrdma_listener *listener, struct bufferevent *bev,
	const struct sockaddr *peer, void *arg)
{
	ck_assert_int_eq(peer->sa_family, AF_INET);
	side_begin(&bevs.server, bev);
}

void bevs_listen(void)
{
	struct sockaddr_in sin;

	fixture_address(&sin, testbed.ip, 0);
	bevs.listener = evrdma_bufferevent_listen(bevs.f->other ? bevs.f->other : bevs.f->base,
		(struct sockaddr *)&sin, NULL, &bevs.options, bevs.bev_options, on_bufferevent,
		&bevs);
	ck_assert_ptr_nonnull(bevs.listener);
}

void bevs_connect(void)
{
	struct sockaddr_in sin;

	fixture_address(&sin, testbed.ip, evrdma_listener_get_port(bevs.listener));
	side_begin(&bevs.client,
		evrdma_bufferevent_connect(bevs.f->base, NULL, (struct sockaddr *)&sin,
			&bevs.options, bevs.bev_options));
}

void bevs_start(void)
{
	bevs_listen();
	bevs_connect();
	bevs_run_until(bevs_are_up);
}

static void on_base_closed(struct evrdma_base *base, void *arg)
{
	bevs.f->base_closed = true;
}

void bevs_shut_down(void)
{
	ck_assert_int_eq(
		evrdma_base_shutdown(bevs.f->base, PATIENCE_MS, on_base_closed, NULL), 0);
}

static void begin(struct fixture *f)
{
	signal(SIGPIPE, SIG_IGN);
	bevs = (struct bevs){ .f = f };
	evrdma_bev_options_init(&bevs.options);
	evrdma_conn_options_init(&bevs.conn);
	bevs.options.conn = &bevs.conn;
}

static void setup(void)
{
	begin(fixture_new());
}

static void setup_on_machine_time(void)
{
	begin(fixture_new_on_machine_time());
}

static void end(struct side *side)
{
	side_free(side);
	if (side->kept)
		evbuffer_free(side->kept);
}

static void teardown(void)
{
	end(&bevs.client);
	end(&bevs.server);
	fixture_run_turns(bevs.f, 2);
	fixture_free(bevs.f);
}

void bevs_add_fixture(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
}

void bevs_add_fixture_on_machine_time(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup_on_machine_time, teardown);
}

/* --- conditions ----------------------------------------------------------------------------- */

void bevs_run_until(bool (*condition)(struct fixture *))
{
	fixture_run_until(bevs.f, condition, PATIENCE_MS);
}

static struct {
	const struct side *side;
	size_t checked;
} awaited;

static bool has_checked(struct fixture *f)
{
	return awaited.side->checked >= awaited.checked;
}

void side_await(struct side *side, size_t checked)
{
	awaited.side = side;
	awaited.checked = checked;
	bevs_run_until(has_checked);
}

bool bevs_are_up(struct fixture *f)
{
	return bevs.client.connected && bevs.server.bev;
}

bool client_is_blocked(struct fixture *f)
{
	static size_t before;
	static int same;

	same = side_output(&bevs.client) == before ? same + 1 : 0;
	before = side_output(&bevs.client);
	return same > 50;
}

bool client_has_eof(struct fixture *f)
{
	return bevs.client.eof;
}

bool client_has_written(struct fixture *f)
{
	return bevs.client.writes > 1;
}

bool client_has_error(struct fixture *f)
{
	return bevs.client.errors;
}

bool server_has_eof(struct fixture *f)
{
	return bevs.server.eof;
}

bool server_has_error(struct fixture *f)
{
	return bevs.server.errors;
}
