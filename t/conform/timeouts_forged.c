/* Replies to senders whose addresses lead to nobody. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conform/member.h"
#include "conform/timeouts.h"

enum { HEADER_BYTES = 40, LEN = 8 };

/* What the server was told of a datagram. */
struct datagram {
	struct evrdma_recv recv;
	struct ibv_wc wc;
	uint8_t header[HEADER_BYTES];
};

static unsigned good, failed;

static void keep(struct evrdma_dgram *dgram, const struct evrdma_recv *recv, void *arg)
{
	struct datagram *datagram = arg;

	ck_assert_int_eq(recv->err, 0);
	ck_assert_ptr_nonnull(recv->grh);
	datagram->recv = *recv;
	datagram->wc = *recv->wc;
	memcpy(datagram->header, recv->grh, HEADER_BYTES);
	datagram->recv.wc = &datagram->wc;
	datagram->recv.grh = datagram->header;
}

static bool has_come(struct fixture *f)
{
	return ((struct datagram *)f->tag)->recv.len;
}

static void on_replied(struct evrdma_dgram *dgram, struct evrdma_buf *buf,
	const struct evrdma_error *error, void *arg)
{
	good += !error;
	failed += error != NULL;
}

static bool one_is_good(struct fixture *f)
{
	return good == 1;
}

static bool one_has_failed(struct fixture *f)
{
	return failed == 1;
}

static void address(const char *what, const char *ip)
{
	char command[128];

	snprintf(command, sizeof(command), "ip addr %s %s/32 dev %s", what, ip,
		getenv("EVR_NETDEV_A"));
	ck_assert_int_eq(system(command), 0);
}

static void join_from(struct member *m, struct fixture *f, const char *ip)
{
	struct sockaddr_in group;

	member_init(m, f, 0);
	m->ip = ip;
	member_open(m);
	member_run_until_ready(m);
	fixture_address(&group, GROUP_A, 0);
	member_try_join(m, (struct sockaddr *)&group, 0);
	member_run_until_joined(m);
}

static void send_from(struct member *server, const char *ip, struct datagram *datagram)
{
	struct fixture *f = server->f;
	struct member m;

	memset(datagram, 0, sizeof(*datagram));
	f->tag = datagram;
	evrdma_dgram_setcb(server->dgram, keep, NULL, datagram);
	join_from(&m, f, ip);
	ck_assert_int_eq(member_send(&m, LEN, NULL), 0);
	run_until(f, has_come);
	evrdma_dgram_close(m.dgram);
	member_run_until_closed(&m);
}

static int reply(struct member *server, const struct datagram *datagram)
{
	struct evrdma_buf *buf = evrdma_pool_get(server->f->pool);
	int ret = evrdma_dgram_reply(
		server->dgram, &datagram->recv, buf, LEN, NULL, on_replied, NULL);

	evrdma_buf_unref(buf);
	return ret;
}

/* The address is there as long as it takes to send from it. */
static void reply_to_forged(struct member *server, const char *ip, const struct datagram *known)
{
	struct datagram forged;

	address("add", ip);
	send_from(server, ip, &forged);
	address("del", ip);
	good = failed = 0;
	begin();
	ck_assert_int_eq(reply(server, &forged), 0);
	ck_assert_int_eq(reply(server, known), 0);
	run_until(server->f, one_is_good);
	ck_assert_uint_le(passed_ms(), SLACK_MS);
	run_until(server->f, one_has_failed);
	ck_assert_uint_eq(good, 1);
}

START_TEST(replies_to_forged_addresses_keep_nobody)
{
	struct fixture *f = fixture_new();
	struct datagram known;
	struct member server;

	join_from(&server, f, testbed.ip);
	send_from(&server, "10.77.0.1", &known);
	ck_assert_int_eq(reply(&server, &known), 0);
	run_until(f, one_is_good);
	/* In a network of the server's, and where no route leads. */
	reply_to_forged(&server, "10.77.0.66", &known);
	reply_to_forged(&server, "10.79.0.5", &known);
	evrdma_dgram_close(server.dgram);
	finish(f);
}
END_TEST

TCase *timeouts_forged_case(void)
{
	TCase *tc = new_case("forged");

	tcase_add_test(tc, replies_to_forged_addresses_keep_nobody);
	return tc;
}
