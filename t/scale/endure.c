#include "scale/endure.h"

#include <dirent.h>
#include <evrdma/evrdma.h>
#include <event2/event.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"

enum {
	MOST_CLIENTS = 64,
	DEPTH = 8,
	MESSAGE_BYTES = 4096,
	BURST = 12,
	STEP_US = 1000,
	ACTIONS = 8, /* of a step */
	ROUND_STEPS = 250,
	WARM_UP = 4, /* rounds: what is made as it is needed has been by then, mostly */
	HEAP_SLACK = 256 * 1024,
	US_PER_S = 1000000,
	SAY_US = 10000000
};

struct run;

struct end {
	struct run *run;
	struct evrdma_conn *conn;
	bool is_client, is_up;
	uint32_t sent, received;
};

struct run {
	const struct endure_device *device;
	unsigned seed;
	struct sockaddr_in addr;
	struct event_base *loop;
	struct evrdma_base *base;
	struct evrdma_pool *pool;
	struct evrdma_listener *listener;
	struct event *step;
	struct end *clients[MOST_CLIENTS];
	unsigned steps; /* of this round */
	unsigned live;	/* ends */
	uint64_t made, messages;
	unsigned ended_well, ended_badly;
	char error[EVRDMA_ERROR_TEXT_MAX]; /* what must not be; or nothing */
};

static void fail(struct run *run, const char *what)
{
	if (!run->error[0])
		snprintf(run->error, sizeof(run->error), "%s", what);
	event_base_loopbreak(run->loop);
}

static unsigned draw(struct run *run, unsigned below)
{
	return (unsigned)rand_r(&run->seed) % below;
}

static void close_end(struct end *end)
{
	end->is_up = false;
	evrdma_conn_close(end->conn);
}

/* --- messages -------------------------------------------------------------------------------- */

/* Its number, and bytes that follow from that and from who sends it. */
static void fill(uint8_t *bytes, size_t len, uint32_t number, bool is_client)
{
	memset(bytes, (int)(number * 2 + is_client), len);
	memcpy(bytes, &number, sizeof(number));
}

static bool is_filled(const uint8_t *bytes, size_t len, uint32_t number, bool is_client)
{
	uint8_t wanted[MESSAGE_BYTES];

	if (len < sizeof(number) || len > sizeof(wanted))
		return false;
	fill(wanted, len, number, is_client);
	return !memcmp(bytes, wanted, len);
}

static void send_some(struct end *end)
{
	unsigned num = draw(end->run, BURST);
	struct evrdma_buf *buf;
	size_t len;
	int ret = 0;

	while (!ret && num--) {
		buf = evrdma_pool_get(end->run->pool);
		if (!buf) {
			fail(end->run, "no buffer");
			return;
		}
		len = sizeof(uint32_t) + draw(end->run, MESSAGE_BYTES - sizeof(uint32_t) + 1);
		fill(evrdma_buf_data(buf), len, end->sent, end->is_client);
		ret = evrdma_conn_send(end->conn, buf, len, NULL, NULL);
		end->sent += !ret;
		evrdma_buf_unref(buf);
	}
	if (ret && ret != -EAGAIN && ret != -ENOTCONN)
		fail(end->run, strerror(-ret));
}

static void on_recv(struct evrdma_conn *conn, const struct evrdma_recv *recv, void *arg)
{
	struct end *end = arg;

	if (recv->err)
		return;
	if (!is_filled(recv->data, recv->len, end->received++, !end->is_client))
		fail(end->run, "a message is not what was sent");
	end->run->messages++;
	if (end->is_up && !draw(end->run, 4))
		send_some(end);
	if (!draw(end->run, 200))
		close_end(end);
}

/* --- connections ----------------------------------------------------------------------------- */

static void forget(struct end *end)
{
	struct run *run = end->run;
	int i;

	for (i = 0; i < MOST_CLIENTS; i++)
		if (run->clients[i] == end)
			run->clients[i] = NULL;
	run->live--;
	free(end);
	if (!run->live)
		event_base_loopbreak(run->loop);
}

static void on_event(struct evrdma_conn *conn, enum evrdma_conn_event event,
	const struct evrdma_error *error, void *arg)
{
	struct end *end = arg;

	switch (event) {
	case EVRDMA_CONN_CONNECTED:
		end->is_up = true;
		end->run->made += end->is_client;
		break;
	case EVRDMA_CONN_DISCONNECTED:
		end->run->ended_well++;
		close_end(end);
		break;
	case EVRDMA_CONN_ERROR:
		end->run->ended_badly++;
		close_end(end);
		break;
	case EVRDMA_CONN_CLOSED:
		forget(end);
		break;
	default:
		break;
	}
}

static struct end *new_end(struct run *run, bool is_client)
{
	struct end *end = calloc(1, sizeof(*end));
	struct evrdma_conn_options options;

	if (!end)
		return NULL;
	evrdma_conn_options_init(&options);
	options.recv_pool = run->pool;
	options.recv_depth = options.send_depth = DEPTH;
	*end = (struct end){ .run = run, .is_client = is_client };
	end->conn = evrdma_conn_new(run->base, &options);
	if (!end->conn) {
		free(end);
		return NULL;
	}
	evrdma_conn_setcb(end->conn, on_recv, on_event, end);
	run->live++;
	return end;
}

static void connect_one(struct run *run, unsigned at)
{
	struct end *end = new_end(run, true);

	if (!end) {
		fail(run, "no connection");
		return;
	}
	run->clients[at] = end;
	if (evrdma_conn_connect(end->conn, NULL, (struct sockaddr *)&run->addr))
		fail(run, "no connect");
}

static void on_request(
	struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	struct run *run = arg;
	struct end *end;

	if (!draw(run, 20)) {
		evrdma_request_reject(request, NULL, 0);
		return;
	}
	end = new_end(run, false);
	if (!end || evrdma_conn_accept(end->conn, request))
		fail(run, "a request cannot be accepted");
}

/* --- steps ----------------------------------------------------------------------------------- */

static void act_on(struct end *end)
{
	if (!draw(end->run, 100))
		close_end(end);
	else if (end->is_up)
		send_some(end);
}

static void act(struct run *run)
{
	unsigned at = draw(run, run->device->clients);

	if (run->clients[at])
		act_on(run->clients[at]);
	else
		connect_one(run, at);
}

static void on_step(evutil_socket_t fd, short what, void *arg)
{
	struct run *run = arg;
	int i;

	for (i = 0; i < ACTIONS; i++)
		act(run);
	if (++run->steps == ROUND_STEPS)
		event_base_loopbreak(run->loop);
}

static void close_clients(struct run *run)
{
	int i;

	for (i = 0; i < MOST_CLIENTS; i++)
		if (run->clients[i])
			close_end(run->clients[i]);
	if (run->live && !run->error[0])
		event_base_dispatch(run->loop);
}

/* Until there is nothing left of it. */
static void pass_round(struct run *run)
{
	static const struct timeval every = { 0, STEP_US };

	run->steps = 0;
	event_add(run->step, &every);
	event_base_dispatch(run->loop);
	event_del(run->step);
	if (!run->error[0])
		close_clients(run);
}

/* --- what there is --------------------------------------------------------------------------- */

#ifdef __SANITIZE_ADDRESS__
size_t __sanitizer_get_current_allocated_bytes(void);
#endif

static size_t heap_bytes(void)
{
#ifdef __SANITIZE_ADDRESS__
	return __sanitizer_get_current_allocated_bytes();
#else
	return mallinfo2().uordblks + mallinfo2().hblkhd;
#endif
}

static unsigned count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned num = 0;

	while (dir && readdir(dir))
		num++;
	if (dir)
		closedir(dir);
	return num;
}

static struct endure_state state_of(struct run *run)
{
	struct endure_state state = { .fds = count_fds(), .heap = heap_bytes() };

	run->device->count(state.objects);
	return state;
}

static void say(const struct run *run, const struct endure_state *state, uint64_t us)
{
	int i;

	printf("# %llu s: %llu connections, %llu messages, ends %u well, %u not; %u descriptors, "
	       "%zu bytes, objects",
		(unsigned long long)us / US_PER_S, (unsigned long long)run->made,
		(unsigned long long)run->messages, run->ended_well, run->ended_badly, state->fds,
		state->heap);
	for (i = 0; i < ENDURE_KINDS; i++)
		printf(" %llu", (unsigned long long)state->objects[i]);
	printf("\n");
}

/* A pool keeps the slabs that it has had use for, each a registration, and may want one more. */
static void compare(
	struct run *run, const struct endure_state *first, const struct endure_state *now)
{
	int i;

	if (now->fds > first->fds)
		fail(run, "there are more descriptors than there were");
	if (now->heap > first->heap + HEAP_SLACK)
		fail(run, "there is more memory than there was");
	for (i = 0; i < ENDURE_KINDS; i++)
		if (now->objects[i] > first->objects[i] + run->device->slack[i])
			fail(run, "there are more objects of the kernel than there were");
}

/* --- all ------------------------------------------------------------------------------------- */

static int open_all(struct run *run)
{
	run->loop = event_base_new();
	if (run->loop)
		run->base = evrdma_base_new(run->loop, NULL);
	if (!run->base)
		return -1;
	run->pool = evrdma_pool_new(run->base, MESSAGE_BYTES, 0);
	run->step = event_new(run->loop, -1, EV_PERSIST, on_step, run);
	run->listener = evrdma_listener_new(run->base, (const struct sockaddr *)&run->device->addr,
		NULL, on_request, run);
	if (!run->pool || !run->step || !run->listener)
		return -1;
	run->addr = run->device->addr;
	run->addr.sin_port = htons(evrdma_listener_get_port(run->listener));
	return 0;
}

static void close_all(struct run *run)
{
	evrdma_listener_close(run->listener);
	evrdma_pool_free(run->pool);
	evrdma_base_close(run->base, NULL, NULL);
	event_base_dispatch(run->loop);
	event_free(run->step);
	event_base_free(run->loop);
}

/* The first rounds make what is made once. */
static void go_on(struct run *run, unsigned seconds)
{
	struct endure_state first = { 0 }, now = { 0 };
	uint64_t begun = evr_clock_now_us(), us = 0, said = 0;
	int rounds = 0;

	while (!run->error[0] && (us < (uint64_t)seconds * US_PER_S || rounds <= WARM_UP)) {
		pass_round(run);
		now = state_of(run);
		us = evr_clock_now_us() - begun;
		if (us / SAY_US > said || rounds <= WARM_UP)
			say(run, &now, us);
		said = us / SAY_US;
		if (++rounds == WARM_UP)
			first = now;
		if (rounds > WARM_UP)
			compare(run, &first, &now);
	}
	say(run, &now, us);
}

int endure(const struct endure_device *device, unsigned seconds, unsigned seed)
{
	struct run run = { .device = device, .seed = seed };

	if (open_all(&run)) {
		fprintf(stderr, "endure: cannot begin\n");
		return -1;
	}
	go_on(&run, seconds);
	if (run.error[0]) {
		printf("not ok - seed %u: %s\n", seed, run.error);
		return -1;
	}
	close_all(&run);
	printf("ok - seed %u: connects, transfers and disconnects of %u seconds leave nothing\n",
		seed, seconds);
	return 0;
}
