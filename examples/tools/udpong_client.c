#include "udpong.h"
#include "common.h"
#include "remedy.h"
#include "series.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How long an answer may take before the question is sent again. */
#define AGAIN_MS 1000
#define AGAIN_END_MS 1

#define SERIES_DATAGRAM_MAX 1536

struct client {
	struct udpong *test;
	struct udpong_message message;
	uint8_t id;
	uint8_t seqno;
};

static int is_silent(ssize_t ret)
{
	return ret == -ETIMEDOUT || ret == -ECONNREFUSED;
}

/* Takes what is no answer away, too; an answer that comes twice is such. */
static int recv_answer(struct client *client, struct udpong_message *answer, int timeout_ms)
{
	struct sockaddr_storage from;
	socklen_t len;
	ssize_t ret;

	do
		ret = udpong_recv(client->test, answer, sizeof(*answer), &from, &len, timeout_ms);
	while (ret >= 0 && (ret < UDPONG_HEADER_BYTES || answer->op != client->message.op ||
				   answer->seqno != client->seqno));
	return ret < 0 ? (int)ret : 0;
}

static int fail(const struct client *client, ssize_t err)
{
	return tool_complain(UDPONG, "datagrams: %s%s", strerror((int)-err),
		remedy_find((int)err, client->test->options.plain));
}

static int give_up(const struct client *client)
{
	return tool_complain(UDPONG, "no answer for %ld seconds; see whether a server runs there",
		client->test->options.patience_s);
}

/* A server's port that is closed answers at once: that is no reason to ask without a pause. */
static void pause_for(int timeout_ms)
{
	struct sock none = { .fd = -1, .plain = 1 };

	sock_poll(&none, 0, timeout_ms);
}

/* Sends and waits for the answer, again and again. Returns 0, or -1 after saying why. */
static int ask(
	struct client *client, enum udpong_op op, size_t len_bytes, struct udpong_message *answer)
{
	double until = series_now() + (double)client->test->options.patience_s;
	int again_ms = op == UDPONG_ECHO || op == UDPONG_END ? AGAIN_END_MS : AGAIN_MS;
	ssize_t ret;

	client->message.op = (uint8_t)op;
	client->message.id = client->id;
	client->message.seqno = client->seqno;
	for (;;) {
		ret = udpong_send(client->test, &client->message, len_bytes, NULL, 0);
		if (ret >= 0)
			ret = recv_answer(client, answer, again_ms);
		if (ret >= 0)
			return 0;
		if (!is_silent(ret))
			return fail(client, ret);
		if (client->test->options.patience_s && series_now() > until)
			return give_up(client);
		if (ret == -ECONNREFUSED)
			pause_for(again_ms);
	}
}

static int send_one_way(struct client *client, const struct series_run *run)
{
	ssize_t ret = 0;

	client->message.op = UDPONG_DATA;
	for (long i = 0; i < run->transfers && ret >= 0; i++)
		ret = udpong_send(client->test, &client->message, (size_t)run->size_bytes, NULL, 0);
	if (ret < 0)
		return fail(client, ret);
	return 0;
}

static int send_echoes(struct client *client, const struct series_run *run)
{
	struct udpong_message answer;
	int ret = 0;

	for (long i = 0; i < run->transfers && !ret; i++) {
		client->seqno++;
		ret = ask(client, UDPONG_ECHO, (size_t)run->size_bytes, &answer);
	}
	return ret;
}

static void print(const struct series_run *run, uint32_t received, int echo, double seconds)
{
	char name[SERIES_TEXT_MAX], size[SERIES_TEXT_MAX], xfers[SERIES_TEXT_MAX],
		total[SERIES_TEXT_MAX];
	long long messages = (long long)received * (echo ? 2 : 1);
	long long bytes = messages * run->size_bytes;

	printf("%-10s%-8s%-8s%-8s%8.2fs%10.2f%11.2f\n",
		series_name(name, run->kind, run->size_bytes),
		series_size_text(size, run->size_bytes), series_count_text(xfers, messages),
		series_size_text(total, bytes), seconds,
		seconds > 0 ? (double)bytes * 8 / 1e9 / seconds : 0,
		messages ? seconds * 1e6 / (double)messages : 0);
}

static int run_test(struct client *client, const struct series_run *run, int echo)
{
	struct udpong_message answer;
	double since;
	int ret;

	client->seqno++;
	if (ask(client, UDPONG_START, UDPONG_HEADER_BYTES, &answer))
		return -1;
	since = series_now();
	ret = echo ? send_echoes(client, run) : send_one_way(client, run);
	client->seqno++;
	if (ret || ask(client, UDPONG_END, UDPONG_HEADER_BYTES, &answer))
		return -1;
	print(run, be32toh(answer.data), echo, series_now() - since);
	if (!be32toh(answer.data))
		return tool_complain(UDPONG, "no message arrived");
	return 0;
}

/* The sizes of all streams as far as a datagram goes; one that is waited for is sent less often. */
static int run_series(struct client *client, enum series_kind kind)
{
	struct series_run run;
	int ret = 0;

	for (int n = 0; !ret && !series_get(&run, SERIES_BANDWIDTH, 1, n); n++) {
		if (run.size_bytes > SERIES_DATAGRAM_MAX)
			break;
		run.kind = kind;
		if (kind == SERIES_LATENCY)
			run.transfers /= 10;
		ret = run_test(client, &run, kind == SERIES_LATENCY);
	}
	return ret;
}

static int connect_to(struct udpong *test)
{
	struct lookup *lookup = &test->lookup;
	char text[ADDRESS_TEXT_MAX];
	int ret = 0;

	if (lookup->src_len)
		ret = sock_bind(&test->sock, (struct sockaddr *)&lookup->src, lookup->src_len);
	if (ret)
		return tool_complain(UDPONG, "bind to the address of -b: %s%s", strerror(-ret),
			remedy_find(ret, test->options.plain));
	ret = sock_connect(&test->sock, (struct sockaddr *)&lookup->addr, lookup->len);
	if (ret)
		return tool_complain(UDPONG, "connect to %s: %s%s",
			address_text(text, (const struct sockaddr *)&lookup->addr), strerror(-ret),
			remedy_find_client(ret, test->options.plain));
	return 0;
}

static int log_in(struct client *client)
{
	struct udpong_message answer;

	if (ask(client, UDPONG_LOGIN, UDPONG_HEADER_BYTES, &answer))
		return -1;
	client->id = answer.id;
	return 0;
}

static int run_all(struct client *client)
{
	const struct udpong_options *options = &client->test->options;
	const struct series_run run = { .kind = SERIES_CUSTOM,
		.size_bytes = options->size_bytes,
		.transfers = options->transfers,
		.iterations = 1 };

	if (options->custom)
		return run_test(client, &run, options->echo);
	if (run_series(client, SERIES_LATENCY))
		return -1;
	return run_series(client, SERIES_BANDWIDTH);
}

int udpong_run(struct udpong *test)
{
	struct client client = { .test = test };

	printf("%-10s%-8s%-8s%-8s%8s %10s%13s\n", "name", "bytes", "xfers", "total", "time",
		"Gb/sec", "usec/xfer");
	if (connect_to(test) || log_in(&client) || run_all(&client))
		return EXIT_FAILURE;
	return EXIT_SUCCESS;
}
