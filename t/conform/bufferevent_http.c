/*
 * libevent's HTTP on both sides of a pair, as evrdma_bufferevent(3) has it: each bufferevent gets
 * its own descriptor back after evhttp has given it another.
 */
#ifdef EVR_WITH_TLS
#include "conform/bufferevent_tls.h"
#endif
#include "conform/stream.h"
#include "conform/suite.h"

#include <event2/http.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct side *const client = &bevs.client, *const server = &bevs.server;

static struct {
	struct evhttp *http;
	struct bufferevent *bev; /* the server's, which is evhttp's as soon as it was given */
	int own;		 /* its descriptor */
	int here, there; /* the local connection that evhttp has accepted */
	struct evhttp_connection *asker;
	int vain; /* what the asker dials */
	unsigned answers;
	int code; /* of the last; 0: there was none */
	size_t got;
	bool leaves; /* the server, within its answer */
	bool has_tls;
} us;

/* What evhttp is given: the bufferevent, or TLS upon it. */
static struct bufferevent *upon(struct bufferevent *bev, bool is_client)
{
#ifdef EVR_WITH_TLS
	if (us.has_tls)
		return tls_upon(bev,
			is_client ? BUFFEREVENT_SSL_CONNECTING : BUFFEREVENT_SSL_ACCEPTING,
			BEV_OPT_DEFER_CALLBACKS);
#endif
	return bev;
}

/* --- the server ----------------------------------------------------------------------------- */

static void set_back(evutil_socket_t fd, short what, void *arg)
{
	us.there = bufferevent_getfd(us.bev);
	ck_assert_int_eq(bufferevent_setfd(us.bev, us.own), 0);
}

static struct bufferevent *give(struct event_base *loop, void *arg)
{
	us.own = bufferevent_getfd(us.bev);
	event_base_once(loop, -1, EV_TIMEOUT, set_back, NULL, NULL);
	return upon(us.bev, false);
}

static void free_connection(evutil_socket_t fd, short what, void *http)
{
	evhttp_connection_free(http);
}

/* What was asked for by the length of the path, or posted. */
static void answer(struct evhttp_request *request, void *arg)
{
	struct evhttp_connection *http = evhttp_request_get_connection(request);
	struct bufferevent *bev = evhttp_connection_get_bufferevent(http);
	struct evbuffer *body = evhttp_request_get_input_buffer(request);

	if (us.has_tls)
		bev = bufferevent_get_underlying(bev);
	ck_assert_ptr_nonnull(evrdma_bufferevent_get_conn(bev));
	if (us.leaves)
		event_base_once(bevs.f->loop, -1, EV_TIMEOUT, free_connection, http, NULL);
	else
		evhttp_send_reply(request, HTTP_OK, "OK", body);
}

static int local_listener(struct sockaddr_un *name, socklen_t *len)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	*name = (struct sockaddr_un){ .sun_family = AF_UNIX };
	*len = sizeof(*name);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)name, sizeof(sa_family_t)), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)name, len), 0);
	ck_assert_int_eq(listen(fd, 1), 0);
	return fd;
}

static void serve(void)
{
	struct sockaddr_un name;
	socklen_t len;
	int fd = local_listener(&name, &len);

	us.bev = server->bev;
	server->bev = NULL;
	us.http = evhttp_new(bevs.f->loop);
	evhttp_set_gencb(us.http, answer, NULL);
	evhttp_set_bevcb(us.http, give, NULL);
	ck_assert_int_eq(evhttp_accept_socket(us.http, fd), 0);
	us.here = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(connect(us.here, (struct sockaddr *)&name, len), 0);
}

/* --- the client ----------------------------------------------------------------------------- */

static void on_answer(struct evhttp_request *request, void *arg)
{
	us.code = request ? evhttp_request_get_response_code(request) : 0;
	if (us.code)
		side_check_in(client, evhttp_request_get_input_buffer(request));
	us.answers++;
}

/* Posts the next bytes of the pattern. */
static void ask(size_t len)
{
	struct evhttp_request *request = evhttp_request_new(on_answer, NULL);
	struct evbuffer *body = evhttp_request_get_output_buffer(request);
	size_t i;

	for (i = 0; i < len; i++) {
		uint8_t byte = pattern_at(client->written++);

		evbuffer_add(body, &byte, 1);
	}
	evhttp_add_header(evhttp_request_get_output_headers(request), "Host", "test");
	ck_assert_int_eq(evhttp_make_request(us.asker, request,
				 len ? EVHTTP_REQ_POST : EVHTTP_REQ_GET, "/"),
		0);
}

static uint16_t listen_in_vain(void)
{
	struct sockaddr_in sin;
	socklen_t len = sizeof(sin);

	fixture_address(&sin, "127.0.0.1", 0);
	us.vain = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(us.vain, (struct sockaddr *)&sin, len), 0);
	ck_assert_int_eq(listen(us.vain, 1), 0);
	ck_assert_int_eq(getsockname(us.vain, (struct sockaddr *)&sin, &len), 0);
	return ntohs(sin.sin_port);
}

static void ask_first(size_t len)
{
	int own = bufferevent_getfd(client->bev), dialled;
	struct bufferevent *bev = upon(client->bev, true);

	bufferevent_setfd(client->bev, -1);
	us.asker = evhttp_connection_base_bufferevent_new(
		bevs.f->loop, NULL, bev, "127.0.0.1", listen_in_vain());
	ask(len);
	dialled = bufferevent_getfd(client->bev);
	bufferevent_setfd(client->bev, own);
	close(dialled);
}

static unsigned answers_wanted;

static bool has_answers(struct fixture *f)
{
	return us.answers >= answers_wanted;
}

static void await_answers(unsigned n)
{
	answers_wanted = n;
	bevs_run_until(has_answers);
}

/* --- both ----------------------------------------------------------------------------------- */

static void start(void)
{
	memset(&us, 0, sizeof(us));
	us.here = us.there = us.vain = -1;
	bevs.bev_options = BEV_OPT_DEFER_CALLBACKS;
	bevs_start();
	fixture_run_a_little(bevs.f);
	serve();
}

static void free_asker(void)
{
	if (us.asker)
		evhttp_connection_free(us.asker);
	us.asker = NULL;
	client->bev = NULL;
}

static void free_server(void)
{
	if (us.http)
		evhttp_free(us.http);
	us.http = NULL;
}

static void stop(void)
{
	free_asker();
	free_server();
	close(us.vain);
	close(us.here);
	close(us.there);
	fixture_run_a_little(bevs.f);
}

static const size_t lengths[] = { 0, 1, 100, 65536, 131073, MILLION + 7 };

static void check_answers(size_t len)
{
	ask_first(len);
	await_answers(1);
	ask(len);
	await_answers(2);
	ask(1);
	await_answers(3);
	ck_assert_int_eq(us.code, HTTP_OK);
	ck_assert_uint_eq(client->checked, 2 * len + 1);
	stop();
}

START_TEST(requests_are_answered_one_after_the_other)
{
	start();
	check_answers(lengths[_i]);
}
END_TEST

#ifdef EVR_WITH_TLS
START_TEST(so_they_are_through_TLS)
{
	tls_start();
	start();
	us.has_tls = true;
	check_answers(lengths[_i]);
	tls_stop();
}
END_TEST
#endif

static bool evhttp_is_done_with_it(struct fixture *f)
{
	char byte;

	return recv(us.here, &byte, 1, 0) == 0;
}

START_TEST(a_client_that_leaves_is_noticed)
{
	start();
	ask_first(MILLION);
	fixture_run_turns(bevs.f, _i);
	free_asker();
	bevs_run_until(evhttp_is_done_with_it);
	stop();
}
END_TEST

START_TEST(a_server_that_leaves_is_no_answer)
{
	start();
	us.leaves = true;
	ask_first(1000);
	await_answers(1);
	ck_assert_int_eq(us.code, 0);
	stop();
}
END_TEST

START_TEST(a_server_that_ends_before_it_was_asked_is_no_answer)
{
	start();
	fixture_run_a_little(bevs.f);
	free_server();
	ask_first(1000);
	await_answers(1);
	ck_assert_int_eq(us.code, 0);
	stop();
}
END_TEST

TCase *bufferevent_http_case(void)
{
	TCase *tcase = tcase_create("bufferevent_http");

	tcase_set_timeout(tcase, 120);
	tcase_add_checked_fixture(tcase, testbed.start, testbed.stop);
	bevs_add_fixture(tcase);
	tcase_add_loop_test(tcase, requests_are_answered_one_after_the_other, 0, 6);
#ifdef EVR_WITH_TLS
	tcase_add_loop_test(tcase, so_they_are_through_TLS, 0, 6);
#endif
	tcase_add_loop_test(tcase, a_client_that_leaves_is_noticed, 0, 20);
	tcase_add_test(tcase, a_server_that_leaves_is_no_answer);
	tcase_add_test(tcase, a_server_that_ends_before_it_was_asked_is_no_answer);
	return tcase;
}
