/* Where a connection comes from: an address, a device, a port, a GID, what rdma_getaddrinfo() said.
 */
#include "conform/suite.h"
#include "conform/fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/dns.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <string.h>

/* The device of the testbed, as a connection finds it. */
struct found {
	char device[64];
	int port_num;
};

static void learn_device(struct fixture *f, struct found *found)
{
	struct rdma_cm_id *cm;

	fixture_connect_pair(f);
	cm = evrdma_conn_get_cm_id(f->client->conn);
	snprintf(
		found->device, sizeof(found->device), "%s", ibv_get_device_name(cm->verbs->device));
	found->port_num = cm->port_num;
	f->client = f->server = NULL;
}

static void keep_open(
	struct endpoint *endpoint, enum evrdma_conn_event event, const struct evrdma_error *error)
{
}

static bool comes_from(const struct endpoint *endpoint, const char *ip)
{
	const struct sockaddr_in *sin =
		(const struct sockaddr_in *)evrdma_conn_get_local_addr(endpoint->conn);
	char text[INET_ADDRSTRLEN];

	return sin->sin_family == AF_INET &&
	       !strcmp(inet_ntop(AF_INET, &sin->sin_addr, text, sizeof(text)), ip);
}

/* --- addresses ------------------------------------------------------------------------------ */

START_TEST(a_name_is_connected_from_the_address_of_the_options)
{
	struct fixture *f = fixture_new();
	struct evdns_base *evdns = evdns_base_new(f->loop, 0);
	struct sockaddr_in src;

	fixture_address(&src, testbed.ip, 0);
	fixture_listen(f);
	f->options.src = (struct sockaddr *)&src;
	fixture_endpoint_new(f, true);
	memset(&src, 0, sizeof(src)); /* it was copied */
	ck_assert_int_eq(evrdma_conn_connect_hostname(f->client->conn, evdns, AF_INET, testbed.ip,
				 evrdma_listener_get_port(f->listener)),
		0);
	f->options.src = NULL;
	fixture_run_until(f, fixture_pair_is_up, 20000);
	ck_assert(comes_from(f->client, testbed.ip));
	fixture_free(f);
	evdns_base_free(evdns, 0);
}
END_TEST

START_TEST(no_address_of_a_name_fits_a_source_of_another_family)
{
	struct fixture *f = fixture_new();
	struct evdns_base *evdns = evdns_base_new(f->loop, 0);
	struct sockaddr_in6 src = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };

	f->on_event = keep_open;
	f->options.src = (struct sockaddr *)&src;
	fixture_endpoint_new(f, true);
	ck_assert_int_eq(
		evrdma_conn_connect_hostname(f->client->conn, evdns, AF_UNSPEC, testbed.ip, 9), 0);
	fixture_run_until(f, fixture_client_is_down, 10000);
	ck_assert_int_eq(f->client->error, EAFNOSUPPORT);
	fixture_free(f);
	evdns_base_free(evdns, 0);
}
END_TEST

static struct rdma_addrinfo *look_up(const char *ip, uint16_t port, int flags)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_NUMERICHOST | flags,
		.ai_port_space = RDMA_PS_TCP };
	struct rdma_addrinfo *results;
	char service[8];

	snprintf(service, sizeof(service), "%u", port);
	ck_assert_int_eq(rdma_getaddrinfo(ip, service, &hints, &results), 0);
	return results;
}

static void check_data(struct fixture *f, struct evrdma_request *request)
{
	size_t len;
	const void *data = evrdma_request_get_private_data(request, &len);

	ck_assert_uint_ge(len, 9);
	ck_assert_mem_eq(data, "head,tail", 9);
	endpoint_accept(fixture_endpoint_new(f, false), request);
}

START_TEST(results_of_rdma_getaddrinfo_are_tried_in_turn)
{
	struct fixture *f = fixture_new();
	struct rdma_addrinfo *refusing = look_up(testbed.ip, 9, 0), *listening;
	char head[] = "head,";

	fixture_listen(f);
	f->on_request = check_data;
	listening = look_up(testbed.ip, evrdma_listener_get_port(f->listener), 0);
	refusing->ai_next = listening;
	listening->ai_connect = head;
	listening->ai_connect_len = 5;
	f->options.private_data = "tail";
	f->options.private_data_len = 4;
	fixture_endpoint_new(f, true);
	ck_assert_int_eq(evrdma_conn_connect_addrinfo(f->client->conn, refusing), 0);
	listening->ai_connect = NULL;
	rdma_freeaddrinfo(refusing);
	fixture_run_until(f, fixture_pair_is_up, 20000);
	fixture_free(f);
}
END_TEST

START_TEST(results_that_no_connection_can_use_are_refused)
{
	struct fixture *f = fixture_new();
	struct rdma_addrinfo *passive = look_up(testbed.ip, 9, RAI_PASSIVE);
	struct rdma_addrinfo *datagram = look_up(testbed.ip, 9, 0);

	datagram->ai_qp_type = IBV_QPT_UD;
	fixture_endpoint_new(f, true);
	ck_assert_int_eq(evrdma_conn_connect_addrinfo(f->client->conn, NULL), -EINVAL);
	ck_assert_int_eq(evrdma_conn_connect_addrinfo(f->client->conn, passive), -EINVAL);
	ck_assert_int_eq(evrdma_conn_connect_addrinfo(f->client->conn, datagram), -EINVAL);
	rdma_freeaddrinfo(passive);
	rdma_freeaddrinfo(datagram);
	fixture_free(f);
}
END_TEST

/* --- devices -------------------------------------------------------------------------------- */

START_TEST(a_device_and_its_port_are_connected_from)
{
	struct fixture *f = fixture_new();
	struct found found;

	learn_device(f, &found);
	f->options.device = found.device;
	fixture_connect_pair(f);
	f->client = f->server = NULL;
	f->options.port_num = found.port_num;
	fixture_connect_pair(f);
	ck_assert_str_eq(ibv_get_device_name(evrdma_conn_get_cm_id(f->client->conn)->verbs->device),
		found.device);
	fixture_free(f);
}
END_TEST

/* The entry of the GID table that is the testbed's address, or -1. */
static int index_of_address(struct rdma_cm_id *cm)
{
	struct ibv_port_attr attr;
	struct sockaddr_in sin;
	union ibv_gid gid;
	int i;

	fixture_address(&sin, testbed.ip, 0);
	ck_assert_int_eq(ibv_query_port(cm->verbs, cm->port_num, &attr), 0);
	for (i = 0; i < attr.gid_tbl_len; i++)
		if (!ibv_query_gid(cm->verbs, cm->port_num, i, &gid) &&
			IN6_IS_ADDR_V4MAPPED((struct in6_addr *)gid.raw) &&
			!memcmp(&gid.raw[12], &sin.sin_addr, 4))
			return i;
	return -1;
}

START_TEST(a_GID_that_is_an_address_is_connected_from)
{
	struct fixture *f = fixture_new();
	struct found found;
	int index;

	fixture_connect_pair(f);
	index = index_of_address(evrdma_conn_get_cm_id(f->client->conn));
	learn_device(f, &found);
	f->options.device = found.device;
	f->options.port_num = found.port_num;
	f->options.gid_index = index;
	if (index >= 0) {
		fixture_connect_pair(f);
		ck_assert(comes_from(f->client, testbed.ip));
	} else {
		/* Their GIDs are none. */
		ck_assert(testbed.is_iwarp || testbed.is_infiniband);
	}
	fixture_free(f);
}
END_TEST

static const struct {
	bool named;
	int port_offset, gid_index, error;
} bad_sources[] = {
	{ false, 0, -1, ENODEV },
	{ true, 100, -1, ENODEV },
	{ true, 0, 100000, EADDRNOTAVAIL },
};

START_TEST(a_source_that_is_not_there_is_an_error)
{
	struct fixture *f = fixture_new();
	struct found found;

	learn_device(f, &found);
	f->on_event = keep_open;
	f->options.device = bad_sources[_i].named ? found.device : "no such device";
	f->options.port_num = found.port_num + bad_sources[_i].port_offset;
	f->options.gid_index = bad_sources[_i].gid_index;
	fixture_connect(f);
	fixture_run_until(f, fixture_client_is_down, 10000);
	ck_assert_int_eq(f->client->error, bad_sources[_i].error);
	ck_assert_int_eq(f->client->step, EVRDMA_STEP_ADDR);
	fixture_free(f);
}
END_TEST

START_TEST(a_port_and_a_GID_want_a_device)
{
	struct fixture *f = fixture_new();

	f->options.port_num = 1;
	ck_assert(!evrdma_conn_new(f->base, &f->options) && errno == EINVAL);
	f->options.port_num = 0;
	f->options.gid_index = 0;
	ck_assert(!evrdma_conn_new(f->base, &f->options) && errno == EINVAL);
	f->options.device = "any";
	ck_assert(!evrdma_conn_new(f->base, &f->options) && errno == EINVAL);
	fixture_free(f);
}
END_TEST

TCase *source_case(void)
{
	TCase *tc = tcase_create("source");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, a_name_is_connected_from_the_address_of_the_options);
	tcase_add_test(tc, no_address_of_a_name_fits_a_source_of_another_family);
	tcase_add_test(tc, results_of_rdma_getaddrinfo_are_tried_in_turn);
	tcase_add_test(tc, results_that_no_connection_can_use_are_refused);
	tcase_add_test(tc, a_device_and_its_port_are_connected_from);
	tcase_add_test(tc, a_GID_that_is_an_address_is_connected_from);
	tcase_add_loop_test(tc, a_source_that_is_not_there_is_an_error, 0,
		(int)(sizeof(bad_sources) / sizeof(bad_sources[0])));
	tcase_add_test(tc, a_port_and_a_GID_want_a_device);
	return tc;
}
