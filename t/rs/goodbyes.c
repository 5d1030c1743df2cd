/* How connections end, drawn: who is first, what is under way then, and when it was accepted. */
#include "config.h"

#include "rs/goodbyes.h"

#include <pthread.h>

#include "rs/pair.h"
#include "schedule/random.h"

enum {
	SEEDS = 60,
	PIECE = 4000,
	ALL = 1 << 30, /* to read: as far as the end */
	LINGER_S = 600,
	SOON_S = 300,	/* what nobody waits for, however slow the machine */
	WINDOW = 60000, /* goes to who reads nothing */
	MS_PER_S = 1000,
};

/* What one end does, in this order. */
struct goodbye {
	int fd;
	size_t sends, reads;
	bool shuts; /* its direction, before it reads */
	int pause_ms;
	/* What came of it. */
	size_t sent, got;
	int64_t close_ms;
};

/* --- what is drawn --------------------------------------------------------------------------- */

/* About the sizes at which a window is half used, or at its end. */
static size_t draw_bytes(struct random *random, unsigned most)
{
	static const unsigned some[] = { 0, 1, 4000, 20000, 32768, 40000, 65536, 100000, 131072,
		200000 };
	unsigned bytes = RANDOM_OF(random, some);

	if (random_once_in(random, 2))
		bytes = random_below(random, 150000);
	return bytes < most ? bytes : most;
}

static int draw_pause(struct random *random)
{
	static const int pauses[] = { 0, 0, 1, 20, 120 };

	return RANDOM_OF(random, pauses);
}

/*
 * The first to close sends what it likes and reads what there is for it, or, where that resets
 * nothing, less. The other sends what fits into any window and reads to the end.
 */
static void draw(struct random *random, struct goodbye *first, struct goodbye *last)
{
	last->sends = random_once_in(random, 2) ? draw_bytes(random, 16000) : 0;
	last->reads = ALL;
	last->shuts = random_once_in(random, 3);
	last->pause_ms = draw_pause(random);
	first->sends = draw_bytes(random, UINT32_MAX);
	first->reads = last->sends;
	if (call()->is_rs && first->reads)
		first->reads = random_below(random, (unsigned)first->reads + 1);
	first->shuts = random_once_in(random, 3);
	first->pause_ms = draw_pause(random);
}

/* --- what an end does ------------------------------------------------------------------------ */

static void send_its(struct goodbye *end)
{
	char bytes[PIECE] = { 0 };
	ssize_t ret = 0;

	while (ret >= 0 && end->sent < end->sends) {
		size_t left = end->sends - end->sent;

		ret = call()->send(end->fd, bytes, left < PIECE ? left : PIECE, MSG_NOSIGNAL);
		if (ret > 0)
			end->sent += (size_t)ret;
	}
}

static void read_its(struct goodbye *end)
{
	char bytes[PIECE];
	ssize_t ret = 1;

	while (ret > 0 && end->got < end->reads) {
		size_t left = end->reads - end->got;

		ret = call()->recv(end->fd, bytes, left < PIECE ? left : PIECE, 0);
		if (ret > 0)
			end->got += (size_t)ret;
	}
}

static void close_end(struct goodbye *end)
{
	const struct linger linger = { .l_onoff = 1, .l_linger = LINGER_S };
	int64_t since;

	call()->setsockopt(end->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	since = now_ms();
	call()->close(end->fd);
	end->close_ms = now_ms() - since;
}

static void *act(void *arg)
{
	struct goodbye *end = arg;

	send_its(end);
	if (end->shuts)
		call()->shutdown(end->fd, SHUT_WR);
	read_its(end);
	pause_ms(end->pause_ms);
	close_end(end);
	return NULL;
}

/* --- the test -------------------------------------------------------------------------------- */

static void expect_goodbye(const struct goodbye *end, const struct goodbye *other, const char *who)
{
	ck_assert_msg(end->close_ms < (int64_t)SOON_S * MS_PER_S,
		"the close of the %s took %lld ms", who, (long long)end->close_ms);
	ck_assert_msg(
		end->sent == end->sends, "the %s sent %zu of %zu", who, end->sent, end->sends);
	if (end->reads == ALL)
		ck_assert_msg(end->got == other->sends, "the %s got %zu of %zu", who, end->got,
			other->sends);
}

/* It may be through, and gone, before it is accepted. */
static bool draw_late(struct random *random, const struct goodbye *client)
{
	return !client->reads && client->sends < WINDOW && !random_once_in(random, 3);
}

/* Each end says goodbye to one that is there to hear it: so nobody waits, and no byte is lost. */
START_TEST(nobody_waits_for_what_nobody_sends)
{
	struct random random = { .state = (uint64_t)_i };
	bool first_is_client = random_once_in(&random, 2);
	struct goodbye client = { 0 }, server = { 0 };
	pthread_t thread;
	uint16_t port;
	bool late, lost;
	int listener;

	draw(&random, first_is_client ? &client : &server, first_is_client ? &server : &client);
	late = draw_late(&random, &client);
	lost = random_once_in(&random, 3);
	listener = listen_on(&port, 1);
	lose_confirmations(lost);
	client.fd = connect_to(port);
	wait_for(client.fd, POLLOUT);
	set_blocking(client.fd);
	ck_assert_int_eq(pthread_create(&thread, NULL, act, &client), 0);
	if (late)
		ck_assert_int_eq(pthread_join(thread, NULL), 0);
	else
		pause_ms(draw_pause(&random));
	if (lost)
		lose_confirmations(false);
	server.fd = accept_from(listener);
	set_blocking(server.fd);
	act(&server);
	if (!late)
		ck_assert_int_eq(pthread_join(thread, NULL), 0);
	call()->close(listener);
	expect_goodbye(&client, &server, "client");
	expect_goodbye(&server, &client, "server");
}
END_TEST

TCase *goodbyes_case(const char *name)
{
	TCase *tcase = tcase_create(name);

	tcase_set_timeout(tcase, 2 * LINGER_S);
	tcase_add_loop_test(tcase, nobody_waits_for_what_nobody_sends, 0, SEEDS);
	return tcase;
}
