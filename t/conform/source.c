/* Where a connection comes from: an address, a device, a port, a GID, what rdma_getaddrinfo() said.
 */
#include "conform/suite.h"
#include "conform/world.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/dns.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <string.h>

/* The device of the place, as a connection finds it. */
struct found {
	char device[64];
	int port_num;
};

static void learn_device(struct world *w, struct found *found)
{
	struct rdma_cm_id *cm;

	world_connect_pair(w);
	cm = evrdma_conn_get_cm_id(w->client->conn);
	snprintf(
		found->device, sizeof(found->device), "%s", ibv_get_device_name(cm->verbs->device));
	found->port_num = cm->port_num;
	w->client = w->server = NULL;
}

static void keep_open(
	struct side *side, enum evrdma_conn_event event, const struct evrdma_error *error)
{
}

static bool comes_from(const struct side *side, const char *ip)
{
	const struct sockaddr_in *sin =
		(const struct sockaddr_in *)evrdma_conn_get_local_addr(side->conn);
	char text[INET_ADDRSTRLEN];

	return sin->sin_family == AF_INET &&
	       !strcmp(inet_ntop(AF_INET, &sin->sin_addr, text, sizeof(text)), ip);
}

static bool pair_is_up(struct world *w)
{
	return w->client && w->client->connected && w->server && w->server->connected;
}

/* --- addresses ------------------------------------------------------------------------------ */

START_TEST(a_name_is_connected_from_the_address_of_the_options)
{
	struct world *w = world_new();
	struct evdns_base *evdns = evdns_base_new(w->loop, 0);
	struct sockaddr_in src;

	world_address(&src, place.ip, 0);
	world_listen(w);
	w->options.src = (struct sockaddr *)&src;
	world_side_new(w, true);
	memset(&src, 0, sizeof(src)); /* it was copied */
	ck_assert_int_eq(evrdma_conn_connect_hostname(w->client->conn, evdns, AF_INET, place.ip,
				 evrdma_listener_get_port(w->listener)),
		0);
	w->options.src = NULL;
	world_run_until(w, pair_is_up, 20000);
	ck_assert(comes_from(w->client, place.ip));
	world_free(w);
	evdns_base_free(evdns, 0);
}
END_TEST

START_TEST(no_address_of_a_name_fits_a_source_of_another_family)
{
	struct world *w = world_new();
	struct evdns_base *evdns = evdns_base_new(w->loop, 0);
	struct sockaddr_in6 src = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };

	w->on_event = keep_open;
	w->options.src = (struct sockaddr *)&src;
	world_side_new(w, true);
	ck_assert_int_eq(
		evrdma_conn_connect_hostname(w->client->conn, evdns, AF_UNSPEC, place.ip, 9), 0);
	world_run_until(w, world_client_is_down, 10000);
	ck_assert_int_eq(w->client->error, EAFNOSUPPORT);
	world_free(w);
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

static void check_data(struct world *w, struct evrdma_request *request)
{
	size_t len;
	const void *data = evrdma_request_get_private_data(request, &len);

	ck_assert_uint_ge(len, 9);
	ck_assert_mem_eq(data, "head,tail", 9);
	side_accept(world_side_new(w, false), request);
}

START_TEST(results_of_rdma_getaddrinfo_are_tried_in_turn)
{
	struct world *w = world_new();
	struct rdma_addrinfo *refusing = look_up(place.ip, 9, 0), *listening;
	char head[] = "head,";

	world_listen(w);
	w->on_request = check_data;
	listening = look_up(place.ip, evrdma_listener_get_port(w->listener), 0);
	refusing->ai_next = listening;
	listening->ai_connect = head;
	listening->ai_connect_len = 5;
	w->options.private_data = "tail";
	w->options.private_data_len = 4;
	world_side_new(w, true);
	ck_assert_int_eq(evrdma_conn_connect_addrinfo(w->client->conn, refusing), 0);
	listening->ai_connect = NULL;
	rdma_freeaddrinfo(refusing);
	world_run_until(w, pair_is_up, 20000);
	world_free(w);
}
END_TEST

START_TEST(results_that_no_connection_can_use_are_refused)
{
	struct world *w = world_new();
	struct rdma_addrinfo *passive = look_up(place.ip, 9, RAI_PASSIVE);
	struct rdma_addrinfo *datagram = look_up(place.ip, 9, 0);

	datagram->ai_qp_type = IBV_QPT_UD;
	world_side_new(w, true);
	ck_assert_int_eq(evrdma_conn_connect_addrinfo(w->client->conn, NULL), -EINVAL);
	ck_assert_int_eq(evrdma_conn_connect_addrinfo(w->client->conn, passive), -EINVAL);
	ck_assert_int_eq(evrdma_conn_connect_addrinfo(w->client->conn, datagram), -EINVAL);
	rdma_freeaddrinfo(passive);
	rdma_freeaddrinfo(datagram);
	world_free(w);
}
END_TEST

/* --- devices -------------------------------------------------------------------------------- */

START_TEST(a_device_and_its_port_are_connected_from)
{
	struct world *w = world_new();
	struct found found;

	learn_device(w, &found);
	w->options.device = found.device;
	world_connect_pair(w);
	w->client = w->server = NULL;
	w->options.port_num = found.port_num;
	world_connect_pair(w);
	ck_assert_str_eq(ibv_get_device_name(evrdma_conn_get_cm_id(w->client->conn)->verbs->device),
		found.device);
	world_free(w);
}
END_TEST

/* The entry of the GID table that is the place's address, or -1. */
static int index_of_address(struct rdma_cm_id *cm)
{
	struct ibv_port_attr attr;
	struct sockaddr_in sin;
	union ibv_gid gid;
	int i;

	world_address(&sin, place.ip, 0);
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
	struct world *w = world_new();
	struct found found;
	int index;

	world_connect_pair(w);
	index = index_of_address(evrdma_conn_get_cm_id(w->client->conn));
	learn_device(w, &found);
	w->options.device = found.device;
	w->options.port_num = found.port_num;
	w->options.gid_index = index;
	if (index >= 0) {
		world_connect_pair(w);
		ck_assert(comes_from(w->client, place.ip));
	} else {
		ck_assert(place.is_iwarp); /* its GIDs are no addresses */
	}
	world_free(w);
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
	struct world *w = world_new();
	struct found found;

	learn_device(w, &found);
	w->on_event = keep_open;
	w->options.device = bad_sources[_i].named ? found.device : "no such device";
	w->options.port_num = found.port_num + bad_sources[_i].port_offset;
	w->options.gid_index = bad_sources[_i].gid_index;
	world_connect(w);
	world_run_until(w, world_client_is_down, 10000);
	ck_assert_int_eq(w->client->error, bad_sources[_i].error);
	ck_assert_int_eq(w->client->step, EVRDMA_STEP_ADDR);
	world_free(w);
}
END_TEST

START_TEST(a_port_and_a_GID_want_a_device)
{
	struct world *w = world_new();

	w->options.port_num = 1;
	ck_assert(!evrdma_conn_new(w->base, &w->options) && errno == EINVAL);
	w->options.port_num = 0;
	w->options.gid_index = 0;
	ck_assert(!evrdma_conn_new(w->base, &w->options) && errno == EINVAL);
	w->options.device = "any";
	ck_assert(!evrdma_conn_new(w->base, &w->options) && errno == EINVAL);
	world_free(w);
}
END_TEST

TCase *source_case(void)
{
	TCase *tc = tcase_create("source");

	tcase_add_checked_fixture(tc, place.start, place.stop);
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
