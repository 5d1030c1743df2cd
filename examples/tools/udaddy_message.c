/*
 * The datagrams of udaddy. Two of these tools know each other by their private data: then the bytes
 * of a datagram are made from the client's number of its endpoint, its direction, and its index,
 * which stands in front where there is room for it. The stock tool sends the same bytes over and
 * over, whatever they are.
 */
#include "udaddy.h"
#include "pattern.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

static const char hello_magic[8] = "EVUDADY\1";

enum direction { FROM_SERVER, FROM_CLIENT };

void udaddy_make_hello(const struct udaddy *test, uint32_t connection, struct udaddy_hello *hello)
{
	memcpy(hello->magic, hello_magic, sizeof(hello->magic));
	hello->connection = htobe32(connection);
	hello->connections = htobe32((uint32_t)test->options.connections);
	hello->messages = htobe32((uint32_t)test->options.messages);
	hello->size_bytes = htobe32((uint32_t)test->options.size_bytes);
}

int udaddy_read_hello(const void *data, size_t len, struct udaddy_hello *hello)
{
	if (!data || len < sizeof(*hello))
		return 0;
	memcpy(hello, data, sizeof(*hello));
	return !memcmp(hello->magic, hello_magic, sizeof(hello->magic));
}

int udaddy_same_options(const struct udaddy *test, const struct udaddy_hello *theirs)
{
	struct udaddy_hello ours;

	udaddy_make_hello(test, be32toh(theirs->connection), &ours);
	return !memcmp(&ours, theirs, sizeof(ours));
}

/* What is too short for its index has the contents of every other one. */
static size_t index_bytes(size_t size)
{
	return size >= 2 * sizeof(uint32_t) ? sizeof(uint32_t) : 0;
}

struct evrdma_buf *udaddy_make_message(struct udaddy_node *node)
{
	struct evrdma_buf *buf = evrdma_pool_get(node->test->pool);
	size_t size = (size_t)node->test->options.size_bytes;
	size_t head = index_bytes(size);
	uint32_t index = head ? (uint32_t)node->sent : 0;
	const uint32_t mark = htobe32(index);
	char *data;

	if (!buf)
		return NULL;
	data = evrdma_buf_data(buf);
	memcpy(data, &mark, head);
	pattern_fill(data + head, size - head,
		pattern_seed(node->number, udaddy_is_server(node->test) ? FROM_SERVER : FROM_CLIENT,
			index));
	return buf;
}

static int fail_message(struct udaddy_node *node, const char *what)
{
	tool_fail(&node->test->tool, "endpoint %u, datagram %ld: %s", node->number, node->received,
		what);
	return -EBADMSG;
}

static int is_new(struct udaddy_node *node, uint32_t index)
{
	if (index >= node->test->options.messages || node->seen[index])
		return 0;
	node->seen[index] = 1;
	return 1;
}

static int check_bytes(struct udaddy_node *node, const char *data, size_t size)
{
	size_t head = index_bytes(size);
	uint32_t index = 0;
	size_t good;

	memcpy(&index, data, head);
	index = be32toh(index);
	if (head && !is_new(node, index))
		return fail_message(node, "it came twice, or was never sent; see the network");
	good = pattern_check(data + head, size - head,
		pattern_seed(node->number, udaddy_is_server(node->test) ? FROM_CLIENT : FROM_SERVER,
			index));
	if (good < size - head)
		return fail_message(node, "wrong contents; the data was changed on its way");
	return 0;
}

int udaddy_check_message(struct udaddy_node *node, const struct evrdma_recv *recv)
{
	size_t size = (size_t)node->test->options.size_bytes;

	if (recv->len != size)
		return fail_message(node, "another length; give both sides the same -S");
	if (!recv->has_imm || recv->imm != recv->src_qp)
		return fail_message(node,
			"its immediate data is not the sender's QP number; see what runs on the "
			"other side");
	if (node->received == node->test->options.messages)
		return fail_message(node, "one too many; give both sides the same -C");
	return node->peer_is_ours ? check_bytes(node, recv->data, size) : 0;
}
