/* Datagrams to one peer: a service that is found, a sender who is answered. */
#include "conform/suite.h"
#include "conform/fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>

enum { MANY = 40, BUFS = 16, REFUSAL = 136 };

/* An endpoint, what it heard, and its peer if it has one. */
struct end {
	struct fixture *fixture;
	struct evrdma_dgram *dgram;
	bool ready, closed;
	int error;
	unsigned received, sent, cancelled;
	char text[64];
	uint32_t imm;
	struct sockaddr_storage sender;

	struct evrdma_peer *peer;
	bool peer_ready, peer_closed;
	int peer_error;
	enum evrdma_step peer_step;
};

struct service {
	struct end client, server;
	struct evrdma_listener *listener;
	struct evrdma_request *pending;
	bool answers, refuses, keeps_senders;
};

static struct service *service_of(struct fixture *f)
{
	return f->tag;
}

static void on_sent(struct evrdma_dgram *dgram, struct evrdma_buf *buf,
	const struct evrdma_error *error, void *arg)
{
	struct end *end = arg;

	end->sent += !error;
	end->cancelled += error != NULL;
}

static struct evrdma_buf *text_buf(struct end *end, const char *text)
{
	struct evrdma_buf *buf = evrdma_pool_get(end->fixture->pool);

	ck_assert_ptr_nonnull(buf);
	strcpy(evrdma_buf_data(buf), text);
	return buf;
}

static void on_peer(struct evrdma_peer *peer, enum evrdma_peer_event event,
	const struct evrdma_error *error, void *arg)
{
	struct end *end = arg;

	ck_assert(!end->fixture->in_call && !end->peer_closed);
	switch (event) {
	case EVRDMA_PEER_READY:
		ck_assert(!end->peer_ready);
		end->peer_ready = true;
		break;
	case EVRDMA_PEER_ERROR:
		end->peer_error = error->err;
		end->peer_step = error->step;
		break;
	case EVRDMA_PEER_CLOSED:
		end->peer_closed = true;
		end->peer = NULL;
		break;
	}
}

static void answer(struct end *end, const struct evrdma_recv *recv)
{
	struct service *service = service_of(end->fixture);
	struct evrdma_buf *buf = text_buf(end, "and back");
	uint32_t imm = recv->imm + 1;

	if (service->keeps_senders && !end->peer) {
		end->peer = evrdma_peer_new_sender(end->dgram, recv, on_peer, end);
		ck_assert_ptr_nonnull(end->peer);
		ck_assert_uint_eq(evrdma_peer_get_qp_num(end->peer), recv->src_qp);
	}
	if (!service->keeps_senders)
		ck_assert_int_eq(
			evrdma_dgram_reply(end->dgram, recv, buf, 9, &imm, on_sent, end), 0);
	evrdma_buf_unref(buf);
}

/* Within a subnet InfiniBand's datagrams have no header that names one. */
static void keep_sender(
	struct evrdma_dgram *dgram, const struct evrdma_recv *recv, struct end *end)
{
	int ret = evrdma_dgram_get_sender(dgram, recv, &end->sender);

	ck_assert_int_eq(ret, testbed.is_infiniband ? -ENODATA : 0);
}

static void on_recv(struct evrdma_dgram *dgram, const struct evrdma_recv *recv, void *arg)
{
	struct end *end = arg;
	struct service *service = service_of(end->fixture);

	ck_assert_int_eq(recv->err, 0);
	end->received++;
	memcpy(end->text, recv->data, recv->len < 64 ? recv->len : 64);
	end->imm = recv->imm;
	keep_sender(dgram, recv, end);
	if (end == &service->server && service->answers)
		answer(end, recv);
}

static void on_dgram(struct evrdma_dgram *dgram, enum evrdma_dgram_event event,
	const struct evrdma_error *error, void *arg)
{
	struct end *end = arg;

	end->ready |= event == EVRDMA_DGRAM_READY;
	end->closed |= event == EVRDMA_DGRAM_CLOSED;
	if (error)
		end->error = error->err;
}

static void open_end(struct fixture *f, struct end *end, const char *ip)
{
	struct evrdma_dgram_options options;
	struct sockaddr_in sin;

	evrdma_dgram_options_init(&options);
	options.recv_pool = f->pool;
	options.recv_depth = BUFS;
	options.send_queue = MANY;
	end->fixture = f;
	end->dgram = evrdma_dgram_new(f->base, &options);
	ck_assert_ptr_nonnull(end->dgram);
	evrdma_dgram_setcb(end->dgram, on_recv, on_dgram, end);
	fixture_address(&sin, ip, 0);
	ck_assert_int_eq(evrdma_dgram_open(end->dgram, (struct sockaddr *)&sin, NULL), 0);
}

/* With as much as there is room for. */
static void refuse(struct evrdma_request *request)
{
	char large[REFUSAL + 1] = "no";

	ck_assert_int_eq(evrdma_request_reject(request, large, sizeof(large)), -EINVAL);
	ck_assert_int_eq(evrdma_request_reject(request, large, REFUSAL), 0);
}

static void on_request(struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	struct service *service = arg;
	size_t len;
	const char *data = evrdma_request_get_private_data(request, &len);

	ck_assert_uint_ge(len, 6);
	ck_assert_str_eq(data, "hello");
	service->pending = request;
	if (service->refuses)
		refuse(request);
	else
		ck_assert_int_eq(evrdma_dgram_accept(service->server.dgram, request, "yes", 4), 0);
}

static bool both_ready(struct fixture *f)
{
	return service_of(f)->client.ready && service_of(f)->server.ready;
}

static void service_listen(struct fixture *f)
{
	struct service *service = service_of(f);
	struct evrdma_listener_options options;
	struct sockaddr_in sin;

	evrdma_listener_options_init(&options);
	options.port_space = RDMA_PS_UDP;
	fixture_address(&sin, testbed.ip, 0);
	service->listener = evrdma_listener_new(
		f->base, (struct sockaddr *)&sin, &options, on_request, service);
	ck_assert_msg(service->listener, "listen: %s", strerror(errno));
}

static struct fixture *service_start(struct service *service)
{
	struct fixture *f = fixture_new();

	*service = (struct service){ 0 };
	f->tag = service;
	open_end(f, &service->client, testbed.ip);
	open_end(f, &service->server, testbed.ip);
	fixture_run_until(f, both_ready, 10000);
	service_listen(f);
	return f;
}

static void find_service(struct fixture *f, uint16_t port)
{
	struct service *service = service_of(f);
	struct evrdma_peer_options options;
	struct sockaddr_in sin;

	evrdma_peer_options_init(&options);
	options.private_data = "hello";
	options.private_data_len = 6;
	fixture_address(&sin, testbed.ip, port);
	f->in_call = true;
	service->client.peer = evrdma_peer_new(service->client.dgram, (struct sockaddr *)&sin,
		&options, on_peer, &service->client);
	f->in_call = false;
	ck_assert_ptr_nonnull(service->client.peer);
}

static bool peer_is_known(struct fixture *f)
{
	return service_of(f)->client.peer_ready || service_of(f)->client.peer_error;
}

static void find_listener(struct fixture *f)
{
	find_service(f, evrdma_listener_get_port(service_of(f)->listener));
	fixture_run_until(f, peer_is_known, 20000);
}

static void send_hello(struct end *end, uint32_t imm)
{
	struct evrdma_buf *buf = text_buf(end, "there");

	ck_assert_int_eq(
		evrdma_dgram_send_to(end->dgram, end->peer, buf, 6, &imm, on_sent, end), 0);
	evrdma_buf_unref(buf);
}

static bool client_received(struct fixture *f)
{
	return service_of(f)->client.received;
}

static bool server_received(struct fixture *f)
{
	return service_of(f)->server.received;
}

static void check_sender(const struct end *end)
{
	const struct sockaddr_in *sin = (const struct sockaddr_in *)&end->sender;
	char text[INET_ADDRSTRLEN];

	ck_assert_int_eq(sin->sin_family, AF_INET);
	ck_assert_str_eq(inet_ntop(AF_INET, &sin->sin_addr, text, sizeof(text)), testbed.ip);
}

/* --- a service ------------------------------------------------------------------------------ */

START_TEST(a_service_is_found_and_answers)
{
	struct service service;
	struct fixture *f = service_start(&service);
	size_t len;

	service.answers = true;
	find_listener(f);
	ck_assert_int_eq(service.client.peer_error, 0);
	ck_assert_str_eq(evrdma_peer_get_private_data(service.client.peer, &len), "yes");
	ck_assert_uint_eq(evrdma_peer_get_qp_num(service.client.peer),
		evrdma_dgram_get_qp_num(service.server.dgram));
	send_hello(&service.client, 41);
	fixture_run_until(f, client_received, 10000);
	ck_assert_str_eq(service.server.text, "there");
	ck_assert_uint_eq(service.server.imm, 41);
	ck_assert_str_eq(service.client.text, "and back");
	ck_assert_uint_eq(service.client.imm, 42);
	if (!testbed.is_infiniband) {
		check_sender(&service.server);
		check_sender(&service.client);
	}
	fixture_free(f);
	ck_assert(service.client.peer_closed && service.client.closed);
}
END_TEST

static bool many_sent(struct fixture *f)
{
	struct service *service = service_of(f);

	return service->client.sent == MANY && service->server.received;
}

static bool sender_is_ready(struct fixture *f)
{
	return service_of(f)->server.peer_ready;
}

START_TEST(a_sender_becomes_a_peer_that_is_ready)
{
	struct service service;
	struct fixture *f = service_start(&service);
	unsigned i;

	service.answers = service.keeps_senders = true;
	find_listener(f);
	for (i = 0; i < MANY; i++)
		send_hello(&service.client, i);
	fixture_run_until(f, many_sent, 10000);
	ck_assert_uint_eq(service.client.cancelled, 0);
	fixture_run_until(f, sender_is_ready, 10000);
	send_hello(&service.server, 7);
	fixture_run_until(f, client_received, 10000);
	ck_assert_str_eq(service.client.text, "there");
	fixture_free(f);
	ck_assert(service.server.peer_closed);
}
END_TEST

START_TEST(a_service_that_says_no_is_an_error)
{
	struct service service;
	struct fixture *f = service_start(&service);

	service.refuses = true;
	find_listener(f);
	ck_assert_int_eq(service.client.peer_error, ECONNREFUSED);
	ck_assert_int_eq(service.client.peer_step, EVRDMA_STEP_CONNECT);
	ck_assert_str_eq(evrdma_peer_get_private_data(service.client.peer, NULL), "no");
	fixture_free(f);
}
END_TEST

START_TEST(a_service_that_is_not_there_is_an_error)
{
	struct service service;
	struct fixture *f = service_start(&service);

	find_service(f, 9);
	fixture_run_until(f, peer_is_known, 20000);
	ck_assert(service.client.peer_error);
	ck_assert_int_eq(service.client.peer_step, EVRDMA_STEP_CONNECT);
	fixture_free(f);
}
END_TEST

/* --- the end -------------------------------------------------------------------------------- */

static bool peer_is_closed(struct fixture *f)
{
	return service_of(f)->client.peer_closed;
}

START_TEST(a_peer_is_closed_with_sends_in_flight_and_found_again)
{
	struct service service;
	struct fixture *f = service_start(&service);
	struct evrdma_buf *buf;

	find_listener(f);
	send_hello(&service.client, 1);
	buf = text_buf(&service.client, "late");
	evrdma_peer_close(service.client.peer);
	evrdma_peer_close(service.client.peer);
	ck_assert_int_eq(evrdma_dgram_send_to(service.client.dgram, service.client.peer, buf, 5,
				 NULL, NULL, NULL),
		-ENOTCONN);
	evrdma_buf_unref(buf);
	fixture_run_until(f, peer_is_closed, 10000);
	fixture_run_until(f, server_received, 10000);
	service.client.peer_closed = service.client.peer_ready = false;
	find_listener(f);
	ck_assert(service.client.peer_ready);
	fixture_free(f);
}
END_TEST

START_TEST(a_peer_is_closed_while_it_is_looked_for)
{
	struct service service;
	struct fixture *f = service_start(&service);

	find_service(f, evrdma_listener_get_port(service.listener));
	evrdma_peer_close(service.client.peer);
	fixture_run_until(f, peer_is_closed, 10000);
	ck_assert(!service.client.peer_ready && !service.client.peer_error);
	fixture_free(f);
}
END_TEST

static bool client_is_closed(struct fixture *f)
{
	return service_of(f)->client.closed;
}

START_TEST(an_endpoint_closes_its_peers_before_itself)
{
	struct service service;
	struct fixture *f = service_start(&service);

	find_listener(f);
	evrdma_dgram_close(service.client.dgram);
	fixture_run_until(f, client_is_closed, 10000);
	ck_assert(service.client.peer_closed);
	ck_assert_int_eq(service.client.peer_error, 0);
	fixture_free(f);
}
END_TEST

/* --- what cannot be ------------------------------------------------------------------------- */

static void try_wrong_requests(
	struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	struct service *service = arg;
	struct evrdma_conn *conn = fixture_endpoint_new(service->client.fixture, false)->conn;
	char data[137] = { 0 };

	service->pending = request;
	ck_assert_int_eq(evrdma_conn_accept(conn, request), -EINVAL);
	ck_assert_int_eq(evrdma_dgram_accept(service->server.dgram, request, data, 137), -EINVAL);
	ck_assert_int_eq(evrdma_dgram_accept(service->server.dgram, request, NULL, 1), -EINVAL);
	ck_assert_int_eq(evrdma_dgram_accept(service->server.dgram, request, data, 136), 0);
}

START_TEST(a_request_that_does_not_fit_is_refused_and_stays)
{
	struct service service;
	struct fixture *f = service_start(&service);
	struct evrdma_listener_options options;
	struct sockaddr_in sin;
	struct evrdma_listener *listener;

	evrdma_listener_options_init(&options);
	options.port_space = RDMA_PS_UDP;
	fixture_address(&sin, testbed.ip, 0);
	listener = evrdma_listener_new(
		f->base, (struct sockaddr *)&sin, &options, try_wrong_requests, &service);
	ck_assert_ptr_nonnull(listener);
	find_service(f, evrdma_listener_get_port(listener));
	fixture_run_until(f, peer_is_known, 20000);
	ck_assert(service.client.peer_ready);
	fixture_free(f);
}
END_TEST

START_TEST(a_peer_wants_an_endpoint_and_an_address)
{
	struct service service;
	struct fixture *f = service_start(&service);
	struct evrdma_dgram *fresh = evrdma_dgram_new(f->base, NULL);
	const struct evrdma_recv nothing = { 0 };
	struct evrdma_peer_options options;
	struct sockaddr_in sin;
	struct sockaddr *addr = (struct sockaddr *)&sin;
	struct sockaddr_storage sender;

	fixture_address(&sin, testbed.ip, 9);
	ck_assert(!evrdma_peer_new(fresh, addr, NULL, NULL, NULL) && errno == ENOTCONN);
	ck_assert(
		!evrdma_peer_new(service.client.dgram, NULL, NULL, NULL, NULL) && errno == EINVAL);
	evrdma_peer_options_init(&options);
	options.timeout_ms = 0;
	ck_assert(!evrdma_peer_new(service.client.dgram, addr, &options, NULL, NULL) &&
		  errno == EINVAL);
	options.timeout_ms = 1;
	options.private_data = "";
	options.private_data_len = 181;
	ck_assert(!evrdma_peer_new(service.client.dgram, addr, &options, NULL, NULL) &&
		  errno == EINVAL);
	ck_assert(!evrdma_peer_new_sender(service.client.dgram, &nothing, NULL, NULL) &&
		  errno == EINVAL);
	ck_assert_int_eq(
		evrdma_dgram_get_sender(service.client.dgram, &nothing, &sender), -ENODATA);
	sin.sin_family = AF_UNIX;
	ck_assert(!evrdma_peer_new(service.client.dgram, addr, NULL, NULL, NULL) &&
		  errno == EAFNOSUPPORT);
	evrdma_peer_close(NULL);
	fixture_free(f);
}
END_TEST

/* --- what a header says --------------------------------------------------------------------- */

enum { IPV4_AT = 20, HEADER = 40 };

/* 192.0.2.7 to 192.0.2.1, with its checksum. */
static const uint8_t ipv4[HEADER - IPV4_AT] = { 0x45, 0x02, 0x01, 0x20, 0, 0, 0x40, 0, 0x40, 0x11,
	0xb5, 0xc2, 192, 0, 2, 7, 192, 0, 2, 1 };

static int sender_family(struct evrdma_dgram *dgram, const uint8_t *header)
{
	const struct evrdma_recv recv = { .grh = header };
	struct sockaddr_storage addr;
	int ret = evrdma_dgram_get_sender(dgram, &recv, &addr);

	return ret ? ret : addr.ss_family;
}

/* In front of an IPv4 header stands what was there before, whatever it looks like. */
START_TEST(the_sender_of_a_datagram_over_IPv4_is_found_behind_junk)
{
	struct service service;
	struct fixture *f = service_start(&service);
	uint8_t header[HEADER];
	unsigned junk;

	for (junk = 0; junk < 0x100; junk += 5) {
		memset(header, (int)junk, IPV4_AT);
		memcpy(header + IPV4_AT, ipv4, sizeof(ipv4));
		ck_assert_int_eq(sender_family(service.client.dgram, header), AF_INET);
	}
	fixture_free(f);
}
END_TEST

START_TEST(what_is_no_header_has_no_sender)
{
	struct service service;
	struct fixture *f = service_start(&service);
	uint8_t header[HEADER] = { 0 };

	ck_assert_int_eq(sender_family(service.client.dgram, header), -ENODATA);
	memset(header, 0xff, sizeof(header));
	ck_assert_int_eq(sender_family(service.client.dgram, header), -ENODATA);
	/* An IPv6 address may look like the beginning of an IPv4 header. */
	header[0] = 0x60;
	header[IPV4_AT] = 0x45;
	ck_assert_int_eq(sender_family(service.client.dgram, header), AF_INET6);
	fixture_free(f);
}
END_TEST

TCase *peer_case(void)
{
	TCase *tc = tcase_create("peer");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	/* iWARP has no datagrams. */
	if (!testbed_has(TESTBED_DATAGRAMS))
		return tc;
	tcase_add_test(tc, a_service_is_found_and_answers);
	tcase_add_test(tc, a_sender_becomes_a_peer_that_is_ready);
	tcase_add_test(tc, a_service_that_says_no_is_an_error);
	tcase_add_test(tc, a_service_that_is_not_there_is_an_error);
	tcase_add_test(tc, a_peer_is_closed_with_sends_in_flight_and_found_again);
	tcase_add_test(tc, a_peer_is_closed_while_it_is_looked_for);
	tcase_add_test(tc, an_endpoint_closes_its_peers_before_itself);
	tcase_add_test(tc, a_request_that_does_not_fit_is_refused_and_stays);
	tcase_add_test(tc, a_peer_wants_an_endpoint_and_an_address);
	/* The rest is for those with IP headers. */
	if (testbed.is_infiniband)
		return tc;
	tcase_add_test(tc, the_sender_of_a_datagram_over_IPv4_is_found_behind_junk);
	tcase_add_test(tc, what_is_no_header_has_no_sender);
	return tc;
}
