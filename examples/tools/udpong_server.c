#include "udpong.h"
#include "common.h"
#include "remedy.h"

#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLIENTS_MAX 256

struct client {
	struct sockaddr_storage addr;
	socklen_t len;
	uint32_t received;
	uint8_t seqno;
	uint8_t is_new; /* what it sends first, it sends for the first time */
};

struct server {
	struct udpong *test;
	struct client clients[CLIENTS_MAX];
	int n; /* of those that ever were; the oldest goes for the next one */
	struct udpong_message message;
	struct sockaddr_storage from;
	socklen_t len;
};

static int is_from(const struct server *server, const struct client *client)
{
	return client->len == server->len && !memcmp(&client->addr, &server->from, server->len);
}

static void show_login(const struct server *server)
{
	char node[NI_MAXHOST];

	if (getnameinfo((const struct sockaddr *)&server->from, server->len, node, sizeof(node),
		    NULL, 0, NI_NUMERICHOST))
		snprintf(node, sizeof(node), "an unknown address");
	printf("client login from %s\n", node);
}

/* A client that logs in again, since it had no answer, keeps its number, and what was counted. */
static void log_in(struct server *server)
{
	int id = 0;

	while (id < CLIENTS_MAX && !is_from(server, &server->clients[id]))
		id++;
	if (id == CLIENTS_MAX) {
		id = server->n++ % CLIENTS_MAX;
		show_login(server);
		server->clients[id] = (struct client){ .addr = server->from, .len = server->len };
	}
	server->clients[id].is_new = 1;
	server->message.id = (uint8_t)id;
}

/* What is sent again is counted once. */
static void count(struct server *server, struct client *client)
{
	struct udpong_message *message = &server->message;

	switch (message->op) {
	case UDPONG_START:
		if (client->is_new || client->seqno != message->seqno)
			client->received = 0;
		client->is_new = 0;
		break;
	case UDPONG_ECHO:
		client->received += client->seqno != message->seqno;
		break;
	case UDPONG_DATA:
		client->received += client->seqno == message->seqno;
		return;
	default:
		message->data = htobe32(client->received);
		break;
	}
	client->seqno = message->seqno;
}

/* Returns how many bytes to answer with. */
static size_t take(struct server *server, size_t len_bytes)
{
	struct udpong_message *message = &server->message;
	struct client *client = &server->clients[message->id];

	if (len_bytes < UDPONG_HEADER_BYTES || message->op > UDPONG_END)
		return 0;
	if (message->op == UDPONG_LOGIN)
		log_in(server);
	else if (is_from(server, client))
		count(server, client);
	else
		return 0;
	if (message->op == UDPONG_DATA)
		return 0;
	return message->op == UDPONG_ECHO ? len_bytes : UDPONG_HEADER_BYTES;
}

/* A client that is gone is no reason to end: its port is closed, or its host cannot be reached. */
static int is_of_one(ssize_t err)
{
	return err == -ECONNREFUSED || err == -EHOSTUNREACH || err == -ENETUNREACH ||
	       err == -ETIMEDOUT;
}

static int serve_next(struct server *server)
{
	struct udpong *test = server->test;
	ssize_t ret = udpong_recv(
		test, &server->message, sizeof(server->message), &server->from, &server->len, -1);
	size_t len;

	if (ret >= 0) {
		len = take(server, (size_t)ret);
		ret = len ? udpong_send(test, &server->message, len, &server->from, server->len)
			  : 0;
	}
	if (ret < 0 && !is_of_one(ret))
		return tool_complain(UDPONG, "datagrams: %s%s", strerror((int)-ret),
			remedy_find((int)ret, test->options.plain));
	return 0;
}

int udpong_serve(struct udpong *test)
{
	struct server *server = calloc(1, sizeof(*server));
	char text[ADDRESS_TEXT_MAX];
	int ret;

	if (!server)
		return tool_complain(UDPONG, "out of memory"), EXIT_FAILURE;
	server->test = test;
	ret = sock_bind(&test->sock, (struct sockaddr *)&test->lookup.addr, test->lookup.len);
	if (ret)
		tool_complain(UDPONG, "bind to %s: %s%s",
			address_text(text, (const struct sockaddr *)&test->lookup.addr),
			strerror(-ret),
			remedy_find_server(ret, test->options.plain, test->options.bind != NULL));
	while (!ret)
		ret = serve_next(server);
	free(server);
	return EXIT_FAILURE;
}
