/*
 * The datagrams of mckey. One that has room for it begins with a mark, and the rest is made from
 * what the mark says. A shorter one is made from its sender's QP number alone, so that all of a
 * sender's are equal. The stock tool sends the same bytes over and over, whatever they are: of one
 * QP either all datagrams are marked, or none.
 */
#include "mckey.h"
#include "pattern.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Big-endian. */
struct mark {
	char magic[8];
	uint64_t sender;
	uint32_t src_qp;
	uint32_t index;
};

static const char mark_magic[8] = "EVMCKEY\1";

static uint32_t long_seed(const struct mark *mark)
{
	uint64_t sender = be64toh(mark->sender);

	return pattern_seed(
		pattern_seed((uint32_t)(sender >> 32), (uint32_t)sender, be32toh(mark->src_qp)),
		be32toh(mark->index), 0);
}

static uint32_t short_seed(uint32_t src_qp)
{
	return pattern_seed(src_qp, 0, 0);
}

static void fill_long(struct mckey_node *node, uint32_t src_qp, char *data, size_t size)
{
	struct mark mark = { .sender = htobe64(node->sender),
		.src_qp = htobe32(src_qp),
		.index = htobe32((uint32_t)node->sent) };

	memcpy(mark.magic, mark_magic, sizeof(mark.magic));
	memcpy(data, &mark, sizeof(mark));
	pattern_fill(data + sizeof(mark), size - sizeof(mark), long_seed(&mark));
}

struct evrdma_buf *mckey_make_message(struct mckey_node *node)
{
	struct evrdma_buf *buf = evrdma_pool_get(node->test->pool);
	uint32_t src_qp = evrdma_dgram_get_qp_num(node->dgram);
	size_t size = (size_t)node->test->options.size_bytes;

	if (!buf)
		return NULL;
	if (size < sizeof(struct mark))
		pattern_fill(evrdma_buf_data(buf), size, short_seed(src_qp));
	else
		fill_long(node, src_qp, evrdma_buf_data(buf), size);
	return buf;
}

static int fail_message(struct mckey_node *node, const struct evrdma_recv *recv, const char *what)
{
	tool_fail(&node->test->tool, "datagram %ld of endpoint %u, from QP 0x%x: %s",
		node->received, node->number, recv->src_qp, what);
	return -EBADMSG;
}

static int check_long(
	struct mckey_node *node, const struct evrdma_recv *recv, struct mckey_record *record)
{
	const char *data = recv->data;
	size_t rest = recv->len - sizeof(struct mark);
	struct mark mark;

	memcpy(&mark, data, sizeof(mark));
	record->marked = !memcmp(mark.magic, mark_magic, sizeof(mark.magic));
	if (!record->marked)
		return 0;
	record->sender = be64toh(mark.sender);
	record->index = be32toh(mark.index);
	if (be32toh(mark.src_qp) != recv->src_qp)
		return fail_message(
			node, recv, "it names another QP; the data was changed on its way");
	if (pattern_check(data + sizeof(mark), rest, long_seed(&mark)) != rest)
		return fail_message(node, recv, "wrong contents; the data was changed on its way");
	return 0;
}

int mckey_check_message(struct mckey_node *node, const struct evrdma_recv *recv)
{
	struct mckey_record *record = &node->records[node->received];
	size_t size = (size_t)node->test->options.size_bytes;

	if (recv->len != size)
		return fail_message(node, recv, "another length; give both sides the same -S");
	if (!recv->has_imm || recv->imm != recv->src_qp)
		return fail_message(node, recv,
			"its immediate data is not the sender's QP number; "
			"see what else sends to this group");
	record->src_qp = recv->src_qp;
	if (size >= sizeof(struct mark))
		return check_long(node, recv, record);
	record->marked = pattern_check(recv->data, size, short_seed(recv->src_qp)) == size;
	return 0;
}

static int compare(uint64_t left, uint64_t right)
{
	return (left > right) - (left < right);
}

static int compare_records(const void *left, const void *right)
{
	const struct mckey_record *a = left, *b = right;
	int order = compare(a->src_qp, b->src_qp);

	if (!order)
		order = compare(a->sender, b->sender);
	return order ? order : compare(a->index, b->index);
}

static const char *find_fault(const struct mckey_options *options, const struct mckey_record *a,
	const struct mckey_record *b)
{
	if (a->src_qp != b->src_qp)
		return NULL;
	if (a->marked != b->marked)
		return "some of its datagrams have wrong contents; the data was changed on its way";
	if (!a->marked || options->size_bytes < (long)sizeof(struct mark))
		return NULL;
	return compare_records(a, b) ? NULL : "a datagram came twice; see the network's switches";
}

int mckey_check_records(struct mckey_node *node)
{
	const struct mckey_record *records = node->records;
	const char *fault;

	qsort(node->records, (size_t)node->received, sizeof(*records), compare_records);
	for (long i = 1; i < node->received; i++) {
		fault = find_fault(&node->test->options, &records[i - 1], &records[i]);
		if (!fault)
			continue;
		tool_fail(&node->test->tool, "endpoint %u, from QP 0x%x: %s", node->number,
			records[i].src_qp, fault);
		return -EBADMSG;
	}
	return 0;
}
