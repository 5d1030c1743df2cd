/* Connecting by name, through the caller's evdns_base. */
#define _GNU_SOURCE /* memfd_create */
#include "conform/suite.h"
#include "conform/fixture.h"

#include <errno.h>
#include <event2/dns.h>
#include <event2/dns_struct.h>
#include <event2/util.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A name server on the loopback device, and what asks it. */
struct names {
	struct evdns_base *dns;
	struct evdns_server_port *server;
	evutil_socket_t fd;
	bool answers;
	unsigned asked;
	int eai;
	enum evrdma_conn_event last; /* with it the evdns_base goes */
};

static void on_question(struct evdns_server_request *request, void *arg)
{
	struct names *names = arg;

	names->asked++;
	if (names->answers)
		evdns_server_request_respond(request, DNS_ERR_NOTEXIST);
	else
		evdns_server_request_drop(request);
}

static void start_server(struct fixture *f, struct names *names)
{
	struct sockaddr_in sin;
	socklen_t len = sizeof(sin);

	fixture_address(&sin, "127.0.0.1", 0);
	names->fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(names->fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	ck_assert_int_eq(getsockname(names->fd, (struct sockaddr *)&sin, &len), 0);
	names->server = evdns_add_server_port_with_base(f->loop, names->fd, 0, on_question, names);
	ck_assert_int_eq(
		evdns_base_nameserver_sockaddr_add(names->dns, (struct sockaddr *)&sin, len, 0), 0);
}

static void start_names(struct fixture *f, struct names *names)
{
	names->dns = evdns_base_new(f->loop, 0);
	ck_assert_ptr_nonnull(names->dns);
	f->tag = names;
}

static void end_names(struct names *names)
{
	if (names->dns)
		evdns_base_free(names->dns, 0);
	if (names->server) {
		evdns_close_server_port(names->server);
		close(names->fd);
	}
}

/* A hosts file of its own, in memory: one line for each address of the name. */
static void know_host(struct names *names, const char *name, const char *const *ips)
{
	int fd = memfd_create("hosts", MFD_CLOEXEC);
	FILE *hosts = fdopen(fd, "w");
	char path[32];

	for (; *ips; ips++)
		fprintf(hosts, "%s %s\n", *ips, name);
	fflush(hosts);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ck_assert_int_eq(evdns_base_load_hosts(names->dns, path), 0);
	fclose(hosts);
}

static void on_event(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	struct names *names = endpoint->fixture->tag;

	if (event == EVRDMA_CONN_ERROR)
		names->eai = error->eai;
}

static struct endpoint *connect_by_name(struct fixture *f, int family, const char *name)
{
	struct endpoint *endpoint = fixture_endpoint_new(f, true);
	struct names *names = f->tag;
	uint16_t port = f->listener ? evrdma_listener_get_port(f->listener) : 9;

	f->on_event = on_event;
	f->in_call = true;
	ck_assert_int_eq(
		evrdma_conn_connect_hostname(endpoint->conn, names->dns, family, name, port), 0);
	f->in_call = false;
	return endpoint;
}

static bool client_is_up(struct fixture *f)
{
	return f->client->connected;
}

static bool was_asked(struct fixture *f)
{
	return ((struct names *)f->tag)->asked;
}

/* --- names that are found ------------------------------------------------------------------- */

START_TEST(a_name_that_is_an_address_asks_nobody)
{
	struct names names = { 0 };
	struct fixture *f = fixture_new_on_machine_time();

	start_names(f, &names);
	start_server(f, &names);
	fixture_listen(f);
	connect_by_name(f, AF_UNSPEC, testbed.ip);
	fixture_run_until(f, client_is_up, 20000);
	ck_assert_uint_eq(names.asked, 0);
	end_names(&names);
	fixture_free(f);
}
END_TEST

static bool has_failed(struct fixture *f)
{
	return ((struct names *)f->tag)->eai;
}

static const struct {
	int family;
	const char *host;
	int eai;
} no_names[] = { { AF_INET6, "127.0.0.1", EVUTIL_EAI_ADDRFAMILY },
	{ AF_INET, "::1", EVUTIL_EAI_ADDRFAMILY }, { AF_UNSPEC, "", EVUTIL_EAI_NONAME },
	{ AF_UNSPEC, "::1::", EVUTIL_EAI_NONAME } };

START_TEST(what_cannot_be_a_name_asks_nobody)
{
	struct names names = { 0 };
	struct fixture *f = fixture_new_on_machine_time();

	start_names(f, &names);
	start_server(f, &names);
	connect_by_name(f, no_names[_i].family, no_names[_i].host);
	fixture_run_until(f, has_failed, 20000);
	ck_assert_int_eq(names.eai, no_names[_i].eai);
	ck_assert_uint_eq(names.asked, 0);
	end_names(&names);
	fixture_free(f);
}
END_TEST

START_TEST(a_name_in_the_hosts_file_connects)
{
	const char *const ips[] = { testbed.ip, NULL };
	struct names names = { 0 };
	struct fixture *f = fixture_new_on_machine_time();

	start_names(f, &names);
	know_host(&names, "somewhere", ips);
	fixture_listen(f);
	connect_by_name(f, AF_INET, "somewhere");
	fixture_run_until(f, client_is_up, 20000);
	end_names(&names);
	fixture_free(f);
}
END_TEST

START_TEST(the_addresses_of_a_name_are_tried_in_turn)
{
	const char *const ips[] = { "127.0.0.1", "192.0.2.77", testbed.ip, NULL };
	struct names names = { 0 };
	struct fixture *f = fixture_new_on_machine_time();

	start_names(f, &names);
	know_host(&names, "somewhere", ips);
	fixture_listen(f);
	connect_by_name(f, AF_INET, "somewhere");
	fixture_run_until(f, client_is_up, 20000);
	ck_assert_uint_eq(f->established, 1 + (f->server && f->server->connected));
	end_names(&names);
	fixture_free(f);
}
END_TEST

START_TEST(the_error_of_the_last_address_is_told_once)
{
	const char *const ips[] = { "127.0.0.1", testbed.ip, NULL };
	struct names names = { 0 };
	struct fixture *f = fixture_new_on_machine_time();

	start_names(f, &names);
	know_host(&names, "somewhere", ips);
	connect_by_name(f, AF_UNSPEC, "somewhere");
	fixture_run_until(f, fixture_client_is_down, 20000);
	ck_assert_int_eq(f->client->error, ECONNREFUSED);
	ck_assert_int_eq(f->client->step, EVRDMA_STEP_CONNECT);
	ck_assert_int_eq(names.eai, 0);
	end_names(&names);
	fixture_free(f);
}
END_TEST

/* --- names that are not --------------------------------------------------------------------- */

START_TEST(an_unknown_name_is_an_error)
{
	struct names names = { .answers = true };
	struct fixture *f = fixture_new_on_machine_time();

	start_names(f, &names);
	start_server(f, &names);
	connect_by_name(f, AF_INET, "nowhere.invalid");
	fixture_run_until(f, fixture_client_is_down, 20000);
	ck_assert_uint_gt(names.asked, 0);
	ck_assert_int_eq(f->client->error, EHOSTUNREACH);
	ck_assert_int_eq(names.eai, EVUTIL_EAI_NONAME);
	end_names(&names);
	fixture_free(f);
}
END_TEST

START_TEST(the_deadline_covers_the_name)
{
	struct names names = { 0 };
	struct fixture *f = fixture_new_on_machine_time();

	start_names(f, &names);
	start_server(f, &names);
	f->options.connect_timeout_ms = 50;
	connect_by_name(f, AF_INET, "nowhere.invalid");
	fixture_run_until(f, fixture_client_is_down, 20000);
	ck_assert_int_eq(f->client->error, ETIMEDOUT);
	ck_assert_int_eq(f->client->step, EVRDMA_STEP_NAME);
	end_names(&names);
	fixture_free(f);
}
END_TEST

START_TEST(close_cancels_a_lookup_before_and_after_it_was_sent)
{
	struct names names = { 0 };
	struct fixture *f = fixture_new_on_machine_time();

	start_names(f, &names);
	start_server(f, &names);
	connect_by_name(f, AF_UNSPEC, "nowhere.invalid");
	if (_i)
		fixture_run_until(f, was_asked, 20000);
	evrdma_conn_close(f->client->conn);
	fixture_run_until(f, fixture_none_live, 20000);
	ck_assert_uint_eq(f->closed, 1);
	end_names(&names);
	fixture_free(f);
}
END_TEST

START_TEST(close_cancels_a_lookup_that_was_answered_at_once)
{
	struct names names = { 0 };
	struct fixture *f = fixture_new_on_machine_time();

	start_names(f, &names);
	evrdma_conn_close(connect_by_name(f, AF_UNSPEC, testbed.ip)->conn);
	fixture_run_until(f, fixture_none_live, 20000);
	end_names(&names);
	fixture_free(f);
}
END_TEST

/* --- how long the evdns_base is needed ------------------------------------------------------- */

static void let_names_go(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	struct names *names = endpoint->fixture->tag;

	if (event == names->last) {
		evdns_base_free(names->dns, 0);
		names->dns = NULL;
	}
	if (event == EVRDMA_CONN_ERROR)
		evrdma_conn_close(endpoint->conn);
}

static struct fixture *fixture_that_asks(struct names *names)
{
	struct fixture *f = fixture_new();

	/* What libevent frees reads as nonsense from then on. */
	mallopt(M_PERTURB, 0xa5);
	start_names(f, names);
	start_server(f, names);
	f->options.connect_timeout_ms = 50;
	connect_by_name(f, AF_UNSPEC, "nowhere.invalid");
	f->on_event = let_names_go;
	fixture_run_until(f, was_asked, 20000);
	return f;
}

START_TEST(the_evdns_base_may_go_when_the_error_is_told)
{
	struct names names = { .last = EVRDMA_CONN_ERROR };
	struct fixture *f = fixture_that_asks(&names);

	fixture_run_until(f, fixture_none_live, 20000);
	ck_assert_ptr_null(names.dns);
	end_names(&names);
	fixture_free(f);
}
END_TEST

START_TEST(the_evdns_base_may_go_when_a_connect_that_was_closed_is_told_closed)
{
	struct names names = { .last = EVRDMA_CONN_CLOSED };
	struct fixture *f = fixture_that_asks(&names);

	evrdma_conn_close(f->client->conn);
	fixture_run_until(f, fixture_none_live, 20000);
	ck_assert_ptr_null(names.dns);
	end_names(&names);
	fixture_free(f);
}
END_TEST

static void let_names_go_with_base(struct evrdma_base *base, void *arg)
{
	struct fixture *f = arg;
	struct names *names = f->tag;

	evdns_base_free(names->dns, 0);
	names->dns = NULL;
	f->other = NULL;
}

static bool other_is_closed(struct fixture *f)
{
	return !f->other;
}

START_TEST(the_evdns_base_may_go_when_the_base_is_closed)
{
	struct names names = { 0 };
	struct fixture *f = fixture_new();
	struct endpoint *endpoint;

	mallopt(M_PERTURB, 0xa5);
	start_names(f, &names);
	start_server(f, &names);
	fixture_add_other(f);
	endpoint = fixture_endpoint_new_on(f, f->other, true);
	ck_assert_int_eq(evrdma_conn_connect_hostname(
				 endpoint->conn, names.dns, AF_UNSPEC, "nowhere.invalid", 9),
		0);
	fixture_run_until(f, was_asked, 20000);
	evrdma_base_close(f->other, let_names_go_with_base, f);
	fixture_run_until(f, other_is_closed, 20000);
	fixture_run_a_little(f);
	end_names(&names);
	fixture_free(f);
}
END_TEST

TCase *name_case(void)
{
	TCase *tc = tcase_create("name");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, a_name_that_is_an_address_asks_nobody);
	tcase_add_loop_test(tc, what_cannot_be_a_name_asks_nobody, 0,
		sizeof(no_names) / sizeof(no_names[0]));
	tcase_add_test(tc, a_name_in_the_hosts_file_connects);
	tcase_add_test(tc, the_addresses_of_a_name_are_tried_in_turn);
	tcase_add_test(tc, the_error_of_the_last_address_is_told_once);
	tcase_add_test(tc, an_unknown_name_is_an_error);
	tcase_add_test(tc, the_deadline_covers_the_name);
	tcase_add_loop_test(tc, close_cancels_a_lookup_before_and_after_it_was_sent, 0, 2);
	tcase_add_test(tc, close_cancels_a_lookup_that_was_answered_at_once);
	tcase_add_test(tc, the_evdns_base_may_go_when_the_error_is_told);
	tcase_add_test(tc, the_evdns_base_may_go_when_a_connect_that_was_closed_is_told_closed);
	tcase_add_test(tc, the_evdns_base_may_go_when_the_base_is_closed);
	return tc;
}
