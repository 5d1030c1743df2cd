/* How a connection is found: by name, by rdma_getaddrinfo(), from where, and until when. */
#include "conform/sweep.h"

#include <errno.h>
#include <event2/dns.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { DEADLINE_MS = 30 };

/* --- names ----------------------------------------------------------------------------------- */

static struct evdns_base *names;

static void free_names(struct run *r)
{
	if (names)
		evdns_base_free(names, 0);
}

/* The right one comes after these. Whether there are any. */
static bool start_names(struct run *r, const char *wrong)
{
	char path[] = "/tmp/evrdma-hosts-XXXXXX";
	int fd = mkstemp(path);

	names = run_have(r, evdns_base_new(r->loop, 0));
	r->after = free_names;
	if (names && (dprintf(fd, "%s%s somewhere\n", wrong, sweep_ip()) < 0 ||
			     evdns_base_load_hosts(names, path)))
		run_fail(r, ENOMEM);
	close(fd);
	unlink(path);
	return !r->finished;
}

static int connect_by_name(struct run *r, struct evrdma_conn *conn)
{
	return evrdma_conn_connect_hostname(conn, names, AF_INET, "somewhere", SWEEP_PORT);
}

static void accept_from_any(struct run *r, struct evrdma_request *request)
{
	r->options.src = NULL;
	pair_accept(r, request);
}

static void connects_by_name(struct run *r)
{
	struct sockaddr_in src = *(struct sockaddr_in *)run_address(sweep_ip(), 0);

	pair_init(r);
	r->options.src = (struct sockaddr *)&src;
	r->connect = connect_by_name;
	r->on_request = accept_from_any;
	if (start_names(r, ""))
		pair_start(r);
}

/* One to which no way leads, one without a device, and the one. */
static void connects_to_several_in_turn(struct run *r)
{
	pair_init(r);
	r->connect = connect_by_name;
	r->reads_names = true;
	if (start_names(r, FAKE_NO_ROUTE_IP " somewhere\n" FAKE_NO_RDMA_IP " somewhere\n"))
		pair_start(r);
}

static void accept_into_pool(struct run *r, struct evrdma_request *request)
{
	r->options.srq = NULL;
	r->options.recv_pool = r->pool;
	pair_accept(r, request);
}

static void share_receives(struct run *r)
{
	struct evrdma_pool *pool = run_have(r, evrdma_pool_new(r->connects, SWEEP_LEN, 0));

	if (pool)
		r->options.srq = run_have(r, evrdma_srq_new(r->connects, pool, 8));
	r->pool = run_have(r, evrdma_pool_new(r->base, SWEEP_LEN, 0));
}

/* The other side's may be of an address that was given up, unless all went through before. */
static void end_with_the_client(
	struct run *r, struct evrdma_conn *conn, const struct evrdma_error *error)
{
	run_note(r, error->err);
	if (conn == r->client || r->through)
		run_finish(r);
}

/*
 * The one, and if that fails some that are not there: the device of the first, with its shared
 * queue and that one's CQ, is let go of meanwhile. There is room for one queue in each CQ.
 */
static void goes_on_to_another_address_with_a_shared_queue(struct run *r)
{
	struct evrdma_base_options options;

	pair_init(r);
	evrdma_base_options_init(&options);
	options.cq_entries = 8;
	options.device_idle_ms = 0;
	if (!start_names(r, FAKE_ROCE_IP " somewhere\n192.0.2.77 somewhere\n192.0.2.78 somewhere\n"
				     "192.0.2.79 somewhere\n"))
		return;
	r->connect = connect_by_name;
	r->on_request = accept_into_pool;
	r->on_error = end_with_the_client;
	r->awaited = ETIMEDOUT;
	r->connects = run_add_base(r, &options);
	if (r->connects)
		share_receives(r);
	if (r->options.srq && r->pool)
		pair_start(r);
}

/* --- rdma_getaddrinfo() ---------------------------------------------------------------------- */

static int connect_by_addrinfo(struct run *r, struct evrdma_conn *conn)
{
	const struct rdma_addrinfo hints = { .ai_flags = RAI_NUMERICHOST | RAI_NOROUTE,
		.ai_port_space = RDMA_PS_TCP };
	struct rdma_addrinfo *results;
	int ret;

	if (rdma_getaddrinfo(sweep_ip(), "7471", &hints, &results))
		return -errno;
	ret = evrdma_conn_connect_addrinfo(conn, results);
	rdma_freeaddrinfo(results);
	return ret;
}

static void connects_by_addrinfo(struct run *r)
{
	pair_init(r);
	r->connect = connect_by_addrinfo;
	pair_start(r);
}

/* --- from where, and how --------------------------------------------------------------------- */

static const char *device_name(void)
{
	static const char *const devices[FAKE_KINDS] = {
		[FAKE_ROCE] = "fake0", [FAKE_IWARP] = "fakeiw0", [FAKE_IB] = "fakeib0"
	};

	return devices[sweep_kind];
}

static void connects_from_a_device(struct run *r)
{
	pair_init(r);
	r->options.device = device_name();
	r->options.port_num = 1;
	pair_start(r);
}

static void connects_from_a_gid(struct run *r)
{
	pair_init(r);
	r->options.device = device_name();
	r->options.port_num = 1;
	r->options.gid_index = fake_gid_of_ip(sweep_kind);
	pair_start(r);
}

static void connects_with_options(struct run *r)
{
	pair_init(r);
	r->options.tos = 8;
	r->options.ack_timeout = 14;
	r->options.retry_count = 3;
	r->options.rnr_retry_count = 3;
	r->options.responder_resources = 1;
	r->options.initiator_depth = 1;
	r->listening.ack_timeout = 15;
	r->listening.backlog = 4;
	pair_start(r);
}

/* --- until when ------------------------------------------------------------------------------ */

static int connect_to_nobody(struct run *r, struct evrdma_conn *conn)
{
	return evrdma_conn_connect(conn, NULL, run_address(FAKE_ROCE_SILENT_IP, SWEEP_PORT));
}

static void expect_deadline(
	struct run *r, struct evrdma_conn *conn, const struct evrdma_error *error)
{
	r->through = error->err == ETIMEDOUT;
	run_fail(r, error->err);
}

static void nobody_answers(struct run *r)
{
	pair_init(r);
	r->options.connect_timeout_ms = DEADLINE_MS;
	r->connect = connect_to_nobody;
	r->on_error = expect_deadline;
	r->awaited = ETIMEDOUT;
	pair_start(r);
}

const struct scenario sweep_connect[] = {
	{ "connects by name", connects_by_name },
	{ "connects to several in turn", connects_to_several_in_turn },
	{ "goes on to another address with a shared queue",
		goes_on_to_another_address_with_a_shared_queue, .needs = FAKE_SRQS },
	{ "connects by addrinfo", connects_by_addrinfo },
	{ "connects from a device", connects_from_a_device },
	{ "connects from a GID", connects_from_a_gid, FAKE_IP_GIDS },
	{ "connects with options", connects_with_options },
	{ "nobody answers", nobody_answers },
	{ NULL, NULL },
};
