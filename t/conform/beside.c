#include "conform/beside.h"

#include <event2/event.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "conform/objects.h"
#include "schedule/clock.h"

enum {
	OTHERS = 2, /* at each place */
	PLACES = 2, /* a device of their own, and the wire */
	OTHERS_PORT = 7600,
	RELISTEN_MS = 20,
	ASK_MS = 50,
	ASK_BYTES = 64,
	DEPTH = 4,
	LARGE_CQ = 32767,   /* siw's library makes more queue pairs beside such a one */
	IDLE_S = 2,	    /* more than device_idle_ms */
	HEAP_SLACK = 16384, /* tables that grow */
	PATIENCE_MS = 300000,
	LINGER_LAST_MS = 1000,
};

/* Of either kind, told apart by where it is. */
struct party {
	struct endpoint *end; /* NULL when closed */
	bool waits;	      /* for an answer */
	unsigned answers, sent;
};

struct state {
	int objects[TESTBED_COUNTS];
	int fds;
	size_t heap;
};

static const char *const object_names[TESTBED_COUNTS] = { "QPs", "CQs", "MRs", "PDs", "ids" };

static struct party others[PLACES * OTHERS], victim_list[VICTIMS_MAX], far_other, far_victim;
static unsigned num_others;
static struct evrdma_listener *victims_listener;
static struct evrdma_pool *victims_pool;

struct victims victims;
static struct evrdma_listener_options victims_listening;
size_t victims_recv_bytes = 4096;
void (*victims_on_request)(struct fixture *f, struct evrdma_request *request);

static bool is_other(const struct party *party)
{
	return party == &far_other || (party >= others && party < others + PLACES * OTHERS);
}

/* --- messages -------------------------------------------------------------------------------- */

static uint8_t byte_of(const struct party *party, unsigned number)
{
	return (uint8_t)((unsigned)(party - victim_list) * 7 + number);
}

static int send_bytes(struct endpoint *end, struct evrdma_pool *pool, uint8_t byte, size_t len)
{
	struct evrdma_buf *buf = evrdma_pool_get(pool);
	int ret;

	ck_assert_ptr_nonnull(buf);
	memset(evrdma_buf_data(buf), byte, len);
	ret = endpoint_send_buf(end, buf, len);
	evrdma_buf_unref(buf);
	return ret;
}

static void answer(struct endpoint *end, const struct evrdma_recv *recv)
{
	int ret = endpoint_send_buf(end, recv->buf, recv->len);

	ck_assert_msg(!ret || end->down || ret == -ENOTCONN, "an answer: %s", strerror(-ret));
}

static void check_answer(struct party *party, const struct evrdma_recv *recv)
{
	uint8_t byte = byte_of(party, party->answers++);
	const uint8_t *bytes = recv->data;
	size_t i;

	for (i = 0; i < recv->len; i++)
		ck_assert_uint_eq(bytes[i], byte);
	victims.answered++;
}

static void on_recv(struct endpoint *end, const struct evrdma_recv *recv)
{
	struct party *party = end->tag;

	if (recv->err)
		return;
	if (!end->is_client)
		answer(end, recv);
	else if (!is_other(party))
		check_answer(party, recv);
	party->answers += is_other(party);
	party->waits = false;
}

/* --- what is told ---------------------------------------------------------------------------- */

static void on_other(struct party *party, enum evrdma_conn_event event)
{
	ck_assert_msg(!party->end || event == EVRDMA_CONN_CONNECTED,
		"another connection was told %d", (int)event);
}

static void on_victim(
	struct endpoint *end, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	struct party *party = end->tag;

	victims.up += end->is_client && event == EVRDMA_CONN_CONNECTED;
	if (end->is_client && (event == EVRDMA_CONN_ERROR || event == EVRDMA_CONN_DISCONNECTED)) {
		victims.told++;
		victims.error = error ? error->err : 0;
	}
	if (event == EVRDMA_CONN_CLOSED && party != &far_victim)
		party->end = NULL;
	endpoint_close_if_down(end, event);
}

static void on_event(
	struct endpoint *end, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	if (!is_other(end->tag))
		on_victim(end, event, error);
	else if (end->is_client)
		on_other(end->tag, event);
	else
		endpoint_close_if_down(end, event);
}

/* --- the victims ----------------------------------------------------------------------------- */

struct endpoint *victims_accept(struct fixture *f, struct evrdma_request *request)
{
	struct endpoint *end = fixture_endpoint_new(f, false);

	end->tag = &far_victim;
	endpoint_accept(end, request);
	return end;
}

static void on_request(struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	if (victims_on_request)
		victims_on_request(arg, request);
	else
		victims_accept(arg, request);
}

static struct evrdma_listener *listen_at(struct fixture *f, const char *ip, uint16_t port,
	const struct evrdma_listener_options *options,
	void (*on)(struct evrdma_listener *, struct evrdma_request *, void *))
{
	struct evrdma_listener *listener;
	struct sockaddr_in sin;

	fixture_address(&sin, ip, port);
	listener = evrdma_listener_new(f->base, (struct sockaddr *)&sin, options, on, f);
	ck_assert_ptr_nonnull(listener);
	return listener;
}

uint16_t victims_port(void)
{
	return evrdma_listener_get_port(victims_listener);
}

void victims_get_stats(struct evrdma_listener_stats *stats)
{
	evrdma_listener_get_stats(victims_listener, stats);
}

void victims_add(struct endpoint *end)
{
	struct party *party = &victim_list[victims.made++];

	ck_assert_uint_le(victims.made, VICTIMS_MAX);
	*party = (struct party){ .end = end };
	end->tag = party;
}

bool victims_listen(struct fixture *f)
{
	return evrdma_listener_get_cm_id(victims_listener);
}

void victims_start_over(void)
{
	memset(&victims, 0, sizeof(victims));
}

void victims_connect_to(struct fixture *f, unsigned n, const char *ip, uint16_t port)
{
	while (n--)
		victims_add(fixture_connect_to(f, ip, port));
}

void victims_connect(struct fixture *f, unsigned n)
{
	victims_connect_to(f, n, testbed.ip, victims_port());
}

struct endpoint *victim(unsigned i)
{
	return victim_list[i].end;
}

void victims_ask(struct fixture *f, unsigned n, size_t len)
{
	struct party *party;
	unsigned i, k;

	for (i = 0; i < victims.made; i++) {
		party = &victim_list[i];
		for (k = 0; k < n && party->end && party->end->connected && !party->end->down; k++)
			if (!send_bytes(party->end, victims_pool, byte_of(party, party->sent), len))
				party->sent++, victims.asked++;
	}
}

void victims_close(void)
{
	unsigned i;

	for (i = 0; i < victims.made; i++)
		if (victim_list[i].end)
			evrdma_conn_close(victim_list[i].end->conn);
}

bool victims_are_up(struct fixture *f)
{
	ck_assert_msg(!victims.told, "%s", f->last_error);
	return victims.up == victims.made;
}

bool victims_are_answered(struct fixture *f)
{
	ck_assert_msg(!victims.told, "%s", f->last_error);
	return victims.answered == victims.asked;
}

static bool each_is(bool (*is)(const struct party *party))
{
	unsigned i;

	for (i = 0; i < victims.made; i++)
		if (victim_list[i].end && !victim_list[i].end->down && !is(&victim_list[i]))
			return false;
	return true;
}

static bool is_up(const struct party *party)
{
	return party->end->connected;
}

static bool is_served(const struct party *party)
{
	return party->answers == party->sent;
}

bool victims_are_settled(struct fixture *f)
{
	return each_is(is_up);
}

bool victims_are_served(struct fixture *f)
{
	return each_is(is_served);
}

bool victims_are_gone(struct fixture *f)
{
	return f->live == 2 * num_others;
}

/* --- the others ------------------------------------------------------------------------------ */

static void accept_other(
	struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	struct endpoint *end = fixture_endpoint_new(arg, false);

	end->tag = &far_other;
	endpoint_accept(end, request);
}

static bool others_are_up(struct fixture *f)
{
	return f->established == 2 * num_others;
}

static void connect_others(struct fixture *f, unsigned place, const char *ip)
{
	struct party *party;
	unsigned i;

	listen_at(f, ip, (uint16_t)(OTHERS_PORT + place), NULL, accept_other);
	for (i = 0; i < OTHERS; i++) {
		party = &others[num_others++];
		party->end = fixture_connect_to(f, ip, (uint16_t)(OTHERS_PORT + place));
		party->end->tag = party;
	}
	run_until(f, others_are_up);
}

static void ask_others(evutil_socket_t fd, short what, void *arg)
{
	struct fixture *f = arg;
	struct party *party;

	for (party = others; party < others + num_others; party++) {
		if (party->waits)
			continue;
		ck_assert_int_eq(send_bytes(party->end, f->pool, 0, ASK_BYTES), 0);
		party->waits = true;
	}
}

static void close_others(struct fixture *f)
{
	struct endpoint *end;
	unsigned i;

	for (i = 0; i < num_others; i++) {
		end = others[i].end;
		others[i].end = NULL;
		evrdma_conn_close(end->conn);
	}
	run_until(f, fixture_none_live);
}

/* --- one run --------------------------------------------------------------------------------- */

static struct state state_now(void)
{
	struct state state = { .fds = count_fds(), .heap = mallinfo2().uordblks };

	ck_assert_int_eq(objects_count(state.objects), 0);
	return state;
}

static void start_run(struct fixture *f)
{
	unsigned i;

	victims_start_over();
	for (i = 0; i < num_others; i++)
		others[i].answers = 0, others[i].waits = false;
	victims_pool = evrdma_pool_new(f->base, victims_recv_bytes, 0);
	ck_assert_ptr_nonnull(victims_pool);
	f->options.recv_pool = victims_pool;
	victims_listener = listen_at(f, testbed.ip, 0, &victims_listening, on_request);
	begin();
}

static struct state end_run(struct fixture *f)
{
	run_until(f, victims_are_gone);
	evrdma_listener_close(victims_listener);
	evrdma_pool_free(victims_pool);
	run_until(f, fixture_none_lingers);
	run_for(f, IDLE_S);
	return state_now();
}

/* Answers of each of the others, in a thousand seconds. */
static struct state run(
	struct fixture *f, const struct trial *trial, bool strikes, uint64_t rates[PLACES * OTHERS])
{
	static const struct timeval often = { .tv_usec = ASK_MS * 1000 };
	struct event *asking = event_new(f->loop, -1, EV_PERSIST, ask_others, f);
	uint64_t ms;
	unsigned i;

	start_run(f);
	event_add(asking, &often);
	trial->run(f, strikes);
	ms = passed_ms();
	event_free(asking);
	for (i = 0; i < num_others; i++)
		rates[i] = (uint64_t)others[i].answers * 1000 * 1000 / (ms + 1);
	return end_run(f);
}

static void compare_rates(const uint64_t *calm, const uint64_t *struck)
{
	unsigned i;

	for (i = 0; i < num_others; i++) {
		ck_assert_uint_gt(calm[i], 1000 * 1000 / ASK_MS / 4);
		ck_assert_msg(2 * struck[i] >= calm[i],
			"another connection had %llu answers in 1000 s, and %llu without the fault",
			(unsigned long long)struck[i], (unsigned long long)calm[i]);
	}
}

static void compare_objects(const struct state *first, const struct state *last)
{
	int i;

	for (i = 0; i < TESTBED_COUNTS; i++)
		ck_assert_msg(last->objects[i] == first->objects[i], "%s: %d at first, %d at last",
			object_names[i], first->objects[i], last->objects[i]);
	ck_assert_int_le(last->fds, first->fds);
}

static bool has_grown(const struct state *first, const struct state *last)
{
	return last->heap > first->heap + HEAP_SLACK;
}

static void compare_heaps(const struct state *first, const struct state *last)
{
	ck_assert_msg(!has_grown(first, last), "%zu bytes at first, %zu at last",
		first->heap, last->heap);
}

/* Of this process alone: there may be others that end. */
static void count_own(int counts[TESTBED_COUNTS])
{
	ck_assert_int_eq(objects_count(counts), 0);
}

static struct fixture *fixture_with_others(const struct trial *trial)
{
	struct evrdma_base_options options;
	struct fixture *f;

	testbed.count = count_own;
	evrdma_listener_options_init(&victims_listening);
	victims_listening.relisten_ms = RELISTEN_MS;
	victims_listening.backlog = trial->backlog;
	f = fixture_new();
	evrdma_base_options_init(&options);
	options.cq_entries = LARGE_CQ;
	fixture_replace_base(f, &options);
	f->on_event = on_event;
	f->on_recv = on_recv;
	f->options.send_depth = f->options.recv_depth = DEPTH;
	f->options.connect_timeout_ms = PATIENCE_MS;
	num_others = 0;
	connect_others(f, 0, getenv("EVR_IP4"));
	if (!trial->off_the_wire)
		connect_others(f, 1, testbed.ip);
	return f;
}

void beside(const struct trial *trial)
{
	uint64_t calm_rates[PLACES * OTHERS], rates[PLACES * OTHERS];
	struct fixture *f = fixture_with_others(trial);
	struct state first = run(f, trial, false, calm_rates), last;
	unsigned again;

	last = run(f, trial, true, rates);
	compare_rates(calm_rates, rates);
	compare_objects(&first, &last);
	for (again = trial->again; again && has_grown(&first, &last); again--) {
		first = last;
		last = run(f, trial, true, rates);
		compare_objects(&first, &last);
	}
	compare_heaps(&first, &last);
	close_others(f);
	close_base(f, LINGER_LAST_MS);
}
