#include "hello.h"
#include "common.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

struct hello {
	char magic[3];
	char sender; /* c, s; or C, S with verify */
	uint32_t size_bytes;
	uint32_t transfers;
	uint32_t iterations;
};

static char sender(int client, int verify)
{
	if (client)
		return verify ? 'C' : 'c';
	return verify ? 'S' : 's';
}

void hello_make(uint8_t *bytes, const struct series_run *run, int from_client, int verify)
{
	const struct hello hello = {
		.magic = { 'E', 'V', 'R' },
		.sender = sender(from_client, verify),
		.size_bytes = htobe32((uint32_t)run->size_bytes),
		.transfers = htobe32((uint32_t)run->transfers),
		.iterations = htobe32((uint32_t)run->iterations),
	};

	memcpy(bytes, &hello, HELLO_BYTES);
}

static int is_same(const struct hello *hello, const struct series_run *run, int verify, int other)
{
	return verify == other && be32toh(hello->size_bytes) == (uint32_t)run->size_bytes &&
	       be32toh(hello->transfers) == (uint32_t)run->transfers &&
	       be32toh(hello->iterations) == (uint32_t)run->iterations;
}

int hello_check(const char *name, const uint8_t *bytes, const struct series_run *run,
	int from_client, int verify)
{
	struct hello hello;
	int other;

	memcpy(&hello, bytes, sizeof(hello));
	other = hello.sender == sender(from_client, 1);
	if (memcmp(hello.magic, "EVR", sizeof(hello.magic)) ||
		(!other && hello.sender != sender(from_client, 0)))
		return 0;
	if (is_same(&hello, run, verify, other))
		return 0;
	return tool_complain(name,
		"the %s runs with -S %u -C %u -I %u%s here, and this side with -S %ld -C %ld -I "
		"%ld%s; give both the same options",
		from_client ? "client" : "server", be32toh(hello.size_bytes),
		be32toh(hello.transfers), be32toh(hello.iterations), other ? " -T v" : "",
		run->size_bytes, run->transfers, run->iterations, verify ? " -T v" : "");
}
