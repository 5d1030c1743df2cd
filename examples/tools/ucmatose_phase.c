/*
 * The phases of ucmatose: what it says and does when one begins, and when one is over. The server
 * sends first on every connection, then the client answers with as many messages.
 */
#include "ucmatose.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const enum ucmatose_phase server_phases[] = { CONNECTING, SENDING, RECEIVING, LEAVING,
	GONE };
static const enum ucmatose_phase client_phases[] = { CONNECTING, RECEIVING, SENDING, LEAVING,
	GONE };

long ucmatose_messages_wanted(const struct ucmatose *test)
{
	return test->options.connections * test->options.messages;
}

static int phase_is_over(const struct ucmatose *test)
{
	switch (*test->phase) {
	case CONNECTING:
		return test->connected == test->options.connections;
	case SENDING:
		return test->acked == ucmatose_messages_wanted(test);
	case RECEIVING:
		return test->received == ucmatose_messages_wanted(test);
	case LEAVING:
		return test->disconnected == test->options.connections;
	case GONE:
		break;
	}
	return 0;
}

static void begin_sending(struct ucmatose *test)
{
	if (!test->options.messages)
		return;
	puts(ucmatose_is_server(test) ? "initiating data transfers" : "sending replies");
	for (long i = 0; i < test->options.connections; i++)
		ucmatose_send_more(&test->nodes[i]);
	if (ucmatose_is_server(test))
		puts("completing sends");
}

static void begin_receiving(struct ucmatose *test)
{
	if (test->options.messages)
		puts("receiving data transfers");
}

/* The listener has done its work, so that every id that is left moves. */
static void migrate(struct ucmatose *test)
{
	int ret;

	puts("migrating to new event channel");
	evrdma_listener_close(test->listener);
	test->listener = NULL;
	for (long i = 0; i < test->options.connections; i++) {
		if (test->nodes[i].disconnected)
			continue;
		ret = evrdma_conn_migrate(test->nodes[i].conn, test->spare);
		if (!ret || ret == -ENOTCONN)
			continue;
		tool_fail(&test->tool,
			"cannot move a connection to the second channel: %s; leave -m out",
			strerror(-ret));
		return;
	}
}

static void begin_leaving(struct ucmatose *test)
{
	if (test->options.messages)
		puts("data transfers complete");
	if (test->options.migrate)
		migrate(test);
	if (!ucmatose_is_server(test) || test->tool.stopping)
		return;
	puts("cmatose: disconnecting");
	for (long i = 0; i < test->options.connections; i++)
		if (!test->nodes[i].disconnected)
			evrdma_conn_disconnect(test->nodes[i].conn);
}

static void begin_phase(struct ucmatose *test)
{
	switch (*test->phase) {
	case CONNECTING:
		break;
	case SENDING:
		begin_sending(test);
		break;
	case RECEIVING:
		begin_receiving(test);
		break;
	case LEAVING:
		begin_leaving(test);
		break;
	case GONE:
		if (ucmatose_is_server(test))
			puts("disconnected");
		break;
	}
}

void ucmatose_begin(struct ucmatose *test)
{
	test->phase = ucmatose_is_server(test) ? server_phases : client_phases;
}

void ucmatose_advance(struct ucmatose *test)
{
	while (!test->tool.stopping && phase_is_over(test)) {
		test->phase++;
		begin_phase(test);
	}
}
