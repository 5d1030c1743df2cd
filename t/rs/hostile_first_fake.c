/*
 * The first of two addresses is hostile, on the fake: what it says and what it was shown is of no
 * use with the second, which is honest.
 */
#include "rs/hostile.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/dns.h>
#include <event2/event.h>
#include <evrdma/evrdma.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unit/cm_unit.h"

enum { HALF = 3, LONG = 64 };

static struct event_base *loop;
static struct evrdma_base *base;
static struct evdns_base *dns;
static struct evr_conndata shown; /* to the honest one */
static struct bufferevent *honest, *victim;

/* --- the loop -------------------------------------------------------------------------------- */

static void turn(void)
{
	event_base_loop(loop, EVLOOP_NONBLOCK);
}

/* One name that has the address twice: whoever listens there at the time is asked. */
static void know_name(void)
{
	int fd = memfd_create("hosts", MFD_CLOEXEC);
	char path[32];

	ck_assert_int_ge(
		dprintf(fd, "%s twice\n%s twice\n", hostile_place.ip, hostile_place.ip), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ck_assert_int_eq(evdns_base_load_hosts(dns, path), 0);
	close(fd);
}

static void set_up(void)
{
	cm_set_up();
	if (fake_kind_to_test(FAKE_ROCE) != FAKE_ROCE)
		fake_device_add(fake_kind_to_test(FAKE_ROCE));
	hostile_place.ip = fake_ip(fake_kind_to_test(FAKE_ROCE));
	hostile_place.turn = turn;
	loop = event_base_new();
	dns = evdns_base_new(loop, 0);
	know_name();
	base = evrdma_base_new(loop, NULL);
	ck_assert_ptr_nonnull(base);
}

static void on_closed(struct evrdma_base *closed, void *arg)
{
	base = NULL;
}

static void tear_down(void)
{
	evrdma_base_close(base, on_closed, NULL);
	while (base)
		event_base_loop(loop, EVLOOP_ONCE);
	evdns_base_free(dns, 0);
	event_base_free(loop);
	cm_tear_down();
}

/* --- the honest one -------------------------------------------------------------------------- */

static void on_accepted(struct bufferevent *bev, const struct evrdma_error *error, void *arg)
{
	ck_assert_ptr_nonnull(bev);
	honest = bev;
	bufferevent_enable(bev, EV_READ | EV_WRITE);
}

static void on_request(struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	size_t len;
	const void *data = evrdma_request_get_private_data(request, &len);

	ck_assert_int_eq(evr_conndata_decode(&shown, 0, data, len), 0);
	ck_assert_int_eq(evrdma_bufferevent_accept(request, NULL, 0, on_accepted, NULL), 0);
}

/* In the hostile one's place, which it leaves. */
static struct evrdma_listener *listen_instead(struct hostile *hostile, uint16_t port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct evrdma_listener *listener;

	rdma_destroy_id(hostile->listener);
	hostile->listener = NULL;
	inet_pton(AF_INET, hostile_place.ip, &addr.sin_addr);
	listener = evrdma_listener_new(base, (struct sockaddr *)&addr, NULL, on_request, NULL);
	ck_assert_ptr_nonnull(listener);
	return listener;
}

/* Both ways, and nothing that was not sent. */
static void bytes_pass(struct bufferevent *from, struct bufferevent *to, const char *bytes)
{
	struct evbuffer *input = bufferevent_get_input(to);
	char got[LONG];

	bufferevent_write(from, bytes, strlen(bytes));
	while (evbuffer_get_length(input) < strlen(bytes))
		turn();
	ck_assert_int_eq(bufferevent_read(to, got, sizeof(got)), strlen(bytes));
	ck_assert_mem_eq(got, bytes, strlen(bytes));
}

/* --- what the hostile one does --------------------------------------------------------------- */

static void refuse(struct hostile *hostile)
{
	ck_assert_int_eq(rdma_reject(hostile->id, NULL, 0), 0);
}

/*
 * Bytes that are whole, and a message that is too long: on iWARP they are there before its answer
 * is read.
 */
static void speak_and_break(struct hostile *hostile)
{
	const struct hostile_write write = {
		.addr = hostile->theirs.data.addr,
		.rkey = hostile->theirs.data.rkey,
		.len = HALF,
		.announced = true,
		.imm = evr_imm(EVR_IMM_DATA, HALF),
	};
	uint8_t data[HOSTILE_DATA_MAX];

	hostile_accept(hostile, data, hostile_encode(hostile, data));
	hostile_write(hostile, &write);
	hostile_send(hostile, LONG);
	fake_fail_next("GET_EVENT", EAGAIN);
	turn();
}

static void the_second_has_nothing_of_one_that(void (*does)(struct hostile *hostile))
{
	struct evrdma_listener *listener;
	struct hostile hostile;
	uint16_t port;

	honest = NULL;
	hostile_open(&hostile);
	port = hostile_listen(&hostile);
	victim = evrdma_bufferevent_connect_hostname(base, dns, AF_INET, "twice", port, NULL, 0);
	ck_assert_ptr_nonnull(victim);
	bufferevent_enable(victim, EV_READ | EV_WRITE);
	hostile_take_request(&hostile);
	listener = listen_instead(&hostile, port);
	does(&hostile);
	while (!honest)
		turn();
	ck_assert_uint_ne(shown.target_rkey, hostile.theirs.target_rkey);
	ck_assert_uint_ne(shown.data.rkey, hostile.theirs.data.rkey);
	bytes_pass(victim, honest, "ask");
	bytes_pass(honest, victim, "answer");
	bufferevent_free(victim);
	bufferevent_free(honest);
	evrdma_listener_close(listener);
	hostile_close(&hostile);
}

START_TEST(the_second_address_has_nothing_of_one_that_refused)
{
	the_second_has_nothing_of_one_that(refuse);
}
END_TEST

START_TEST(the_second_address_has_nothing_of_one_that_spoke_and_broke)
{
	the_second_has_nothing_of_one_that(speak_and_break);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		the_second_address_has_nothing_of_one_that_refused,
		the_second_address_has_nothing_of_one_that_spoke_and_broke,
	};

	return unit_main(
		"hostile_first", tests, sizeof(tests) / sizeof(tests[0]), set_up, tear_down);
}
