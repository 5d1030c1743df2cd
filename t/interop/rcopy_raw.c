/*
 * rcopy_raw ADDRESS PORT WHAT: a client of rcopy's server that sends what no rcopy sends, or ends
 * too early. Ends with 0 when it was connected and could send it.
 */
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rsocket.h>

enum { OPEN = 1, CLOSE = 2, WRITE = 3 };

struct header {
	uint8_t version;
	uint8_t command;
	uint16_t len_bytes;
	uint32_t data;
	uint64_t id;
};

/* What is sent, one after the other. */
static unsigned char bytes[4096];
static size_t len;

static void add(const void *data, size_t n)
{
	memcpy(bytes + len, data, n);
	len += n;
}

static void add_header(int version, int command, size_t len_bytes, uint32_t data)
{
	const struct header header = { .version = (uint8_t)version,
		.command = (uint8_t)command,
		.len_bytes = (uint16_t)len_bytes,
		.data = data };

	add(&header, sizeof(header));
}

static void add_open(const char *path)
{
	char padded[8] = { 0 };

	memcpy(padded, path, strlen(path));
	add_header(0, OPEN, sizeof(struct header) + sizeof(padded), 0644);
	add(padded, sizeof(padded));
}

static void add_write(uint64_t size)
{
	add_header(0, WRITE, sizeof(struct header) + sizeof(size), 0);
	add(&size, sizeof(size));
}

static void nothing(void)
{
}

static void half(void)
{
	add_header(0, OPEN, sizeof(struct header) + 8, 0644);
	len /= 2;
}

static void version(void)
{
	add_header(9, OPEN, sizeof(struct header) + 8, 0644);
	add("half\0\0\0", 8);
}

static void command(void)
{
	add_write(5);
}

/* A path that is longer than any, of which only a part comes. */
static void length(void)
{
	add_header(0, OPEN, UINT16_MAX, 0644);
	add("half\0\0\0", 8);
}

/* Less than the header itself. */
static void small(void)
{
	add_header(0, OPEN, 3, 0644);
	add("half\0\0\0", 8);
}

static void unended(void)
{
	add_header(0, OPEN, sizeof(struct header) + 8, 0644);
	add("halfhalf", 8);
}

static void unwritten(void)
{
	add_open("half");
	add_header(0, CLOSE, sizeof(struct header), 0);
}

static void huge(void)
{
	static const char data[1000];

	add_open("half");
	add_write(UINT64_MAX);
	add(data, sizeof(data));
}

static const struct {
	const char *name;
	void (*make)(void);
} kinds[] = {
	{ "nothing", nothing },
	{ "half", half },
	{ "version", version },
	{ "command", command },
	{ "length", length },
	{ "small", small },
	{ "unended", unended },
	{ "close", unwritten },
	{ "huge", huge },
};

static int make(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(kinds[i].name, name))
			continue;
		kinds[i].make();
		return 0;
	}
	fprintf(stderr, "rcopy_raw: %s: no such kind\n", name);
	return -1;
}

static int send_all(const char *ip, const char *port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	int fd = rsocket(AF_INET, SOCK_STREAM, 0);

	inet_pton(AF_INET, ip, &addr.sin_addr);
	addr.sin_port = htons((uint16_t)atoi(port));
	if (fd < 0 || rconnect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		perror("rcopy_raw: connect");
		return -1;
	}
	if (len && rsend(fd, bytes, len, 0) != (ssize_t)len) {
		perror("rcopy_raw: send");
		return -1;
	}
	return rclose(fd);
}

int main(int argc, char **argv)
{
	if (argc != 4 || make(argv[3]))
		return EXIT_FAILURE;
	return send_all(argv[1], argv[2]) ? EXIT_FAILURE : EXIT_SUCCESS;
}
