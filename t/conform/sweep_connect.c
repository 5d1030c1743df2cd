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
	evdns_base_free(names, 0);
}

static void start_names(struct run *r, const char *hosts)
{
	char path[] = "/tmp/evrdma-hosts-XXXXXX";
	int fd = mkstemp(path);

	names = evdns_base_new(r->loop, 0);
	r->after = free_names;
	if (dprintf(fd, "%s", hosts) < 0 || evdns_base_load_hosts(names, path))
		run_fail(r, EBADF);
	close(fd);
	unlink(path);
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
	struct sockaddr_in src = *(struct sockaddr_in *)run_address(FAKE_ROCE_IP, 0);

	pair_init(r);
	start_names(r, FAKE_ROCE_IP " somewhere\n");
	r->options.src = (struct sockaddr *)&src;
	r->connect = connect_by_name;
	r->on_request = accept_from_any;
	pair_start(r);
}

/* One to which no way leads, one without a device, and the one. */
static void connects_to_several_in_turn(struct run *r)
{
	pair_init(r);
	start_names(r, FAKE_NO_ROUTE_IP " somewhere\n" FAKE_NO_RDMA_IP " somewhere\n" FAKE_ROCE_IP
					" somewhere\n");
	r->connect = connect_by_name;
	pair_start(r);
}

/* --- rdma_getaddrinfo() ---------------------------------------------------------------------- */

static int connect_by_addrinfo(struct run *r, struct evrdma_conn *conn)
{
	const struct rdma_addrinfo hints = { .ai_flags = RAI_NUMERICHOST | RAI_NOROUTE,
		.ai_port_space = RDMA_PS_TCP };
	struct rdma_addrinfo *results;
	int ret;

	if (rdma_getaddrinfo(FAKE_ROCE_IP, "7471", &hints, &results))
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

static void connects_from_a_device(struct run *r)
{
	pair_init(r);
	r->options.device = "fake0";
	r->options.port_num = 1;
	pair_start(r);
}

static void connects_from_a_gid(struct run *r)
{
	pair_init(r);
	r->options.device = "fake0";
	r->options.port_num = 1;
	r->options.gid_index = 1; /* FAKE_ROCE_IP */
	pair_start(r);
}

static void connects_with_options(struct run *r)
{
	pair_init(r);
	r->options.tos = 8;
	r->options.ack_timeout = 14;
	r->options.retry_count = 3;
	r->options.rnr_retry_count = 3;
	r->options.responder_resources = 2;
	r->options.initiator_depth = 2;
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
	{ "connects by addrinfo", connects_by_addrinfo },
	{ "connects from a device", connects_from_a_device },
	{ "connects from a GID", connects_from_a_gid },
	{ "connects with options", connects_with_options },
	{ "nobody answers", nobody_answers },
	{ NULL, NULL },
};
