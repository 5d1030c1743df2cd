/*
 * The messages of ucmatose. Two of these tools know each other by their private data; the bytes of
 * a message are made from the client's number of its connection, its direction, and its index.
 */
#include "ucmatose.h"
#include "pattern.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

static const char hello_magic[8] = "EVUCMA\1";

enum direction { FROM_SERVER, FROM_CLIENT };

void ucmatose_make_hello(
	const struct ucmatose *test, uint32_t connection, struct ucmatose_hello *hello)
{
	memcpy(hello->magic, hello_magic, sizeof(hello->magic));
	hello->connection = htobe32(connection);
	hello->connections = htobe32((uint32_t)test->options.connections);
	hello->messages = htobe32((uint32_t)test->options.messages);
	hello->size_bytes = htobe32((uint32_t)test->options.size_bytes);
}

int ucmatose_read_hello(const void *data, size_t len, struct ucmatose_hello *hello)
{
	if (!data || len < sizeof(*hello))
		return 0;
	memcpy(hello, data, sizeof(*hello));
	return !memcmp(hello->magic, hello_magic, sizeof(hello->magic));
}

int ucmatose_same_options(const struct ucmatose *test, const struct ucmatose_hello *theirs)
{
	struct ucmatose_hello ours;

	ucmatose_make_hello(test, be32toh(theirs->connection), &ours);
	return !memcmp(&ours, theirs, sizeof(ours));
}

static int peer_is_ours(const struct ucmatose_node *node)
{
	struct ucmatose_hello hello;
	size_t len;
	const void *data = evrdma_conn_get_private_data(node->conn, &len);

	return ucmatose_read_hello(data, len, &hello);
}

static enum direction sending_direction(const struct ucmatose *test)
{
	return ucmatose_is_server(test) ? FROM_SERVER : FROM_CLIENT;
}

static enum direction receiving_direction(const struct ucmatose *test)
{
	return ucmatose_is_server(test) ? FROM_CLIENT : FROM_SERVER;
}

static struct evrdma_buf *make_message(struct ucmatose_node *node)
{
	struct ucmatose *test = node->test;
	struct evrdma_buf *buf = evrdma_pool_get(test->pool);

	if (buf)
		pattern_fill(evrdma_buf_data(buf), (size_t)test->options.size_bytes,
			pattern_seed(node->number, sending_direction(test), (uint32_t)node->sent));
	return buf;
}

static int check_message(struct ucmatose_node *node, const struct evrdma_recv *recv)
{
	struct ucmatose *test = node->test;
	size_t size = (size_t)test->options.size_bytes;
	size_t good;

	if (recv->len != size) {
		tool_fail(&test->tool,
			"connection %u: message %ld has %zu bytes, not %zu; give both sides the "
			"same -S",
			node->number, node->received, recv->len, size);
		return -EBADMSG;
	}
	if (!peer_is_ours(node))
		return 0;
	good = pattern_check(recv->data, size,
		pattern_seed(node->number, receiving_direction(test), (uint32_t)node->received));
	if (good == size)
		return 0;
	tool_fail(&test->tool,
		"connection %u: byte %zu of message %ld is wrong; the data was changed on its way",
		node->number, good, node->received);
	return -EBADMSG;
}

static void sent(struct evrdma_conn *conn, struct evrdma_buf *buf, const struct evrdma_error *error,
	void *arg)
{
	struct ucmatose_node *node = arg;

	if (error)
		return;
	node->acked++;
	node->test->acked++;
	ucmatose_advance(node->test);
}

static int send_next(struct ucmatose_node *node)
{
	size_t size = (size_t)node->test->options.size_bytes;
	int ret;

	if (!node->next)
		node->next = make_message(node);
	if (!node->next)
		return -errno;
	ret = evrdma_conn_send(node->conn, node->next, size, sent, node);
	if (ret)
		return ret;
	evrdma_buf_unref(node->next);
	node->next = NULL;
	node->sent++;
	return 0;
}

/* Goes on at WRITABLE after -EAGAIN. After -ENOTCONN the event that says why is on its way. */
void ucmatose_send_more(struct ucmatose_node *node)
{
	struct ucmatose *test = node->test;
	int ret = 0;

	while (!ret && node->sent < test->options.messages)
		ret = send_next(node);
	if (ret && ret != -EAGAIN && ret != -ENOTCONN)
		ucmatose_fail_call(test, ucmatose_peer_text(test), EVRDMA_STEP_TRANSFER, -ret);
}

void ucmatose_message_came(struct evrdma_conn *conn, const struct evrdma_recv *recv, void *arg)
{
	struct ucmatose_node *node = arg;
	struct ucmatose *test = node->test;

	if (recv->err || test->tool.stopping)
		return;
	if (node->received == test->options.messages) {
		tool_fail(&test->tool,
			"connection %u: more than %ld messages; give both the same -C",
			node->number, node->received);
		return;
	}
	if (check_message(node, recv))
		return;
	node->received++;
	test->received++;
	ucmatose_advance(test);
}
