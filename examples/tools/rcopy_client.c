#include "rcopy.h"
#include "common.h"
#include "lookup.h"
#include "remedy.h"
#include "series.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct client {
	const struct rcopy_options *options;
	struct rcopy_peer peer;
	int fd; /* of the source */
	struct stat stat;
	char *chunk; /* RCOPY_CHUNK_BYTES */
	int shows;   /* how far it is, for who sees it */
	int begun;   /* the line that says it */
};

/* What is being done, in the one line that has it all. */
static void begin(struct client *client, const char *what)
{
	printf("%s...", what);
	fflush(stdout);
	client->begun = 1;
}

/* A complaint has a line of its own, behind the one that says what is being done. */
static void end_line(const struct client *client)
{
	if (client->begun && client->shows)
		putchar('\n');
	fflush(stdout);
}

static int fail(const struct client *client, const char *what, int err)
{
	const char *remedy = "";

	if (err == -ECONNRESET)
		remedy = "; see what the server says";
	else if (err == -ETIMEDOUT)
		remedy = "; the server may be busy with another client, so wait longer (-w)";
	end_line(client);
	return tool_complain(RCOPY, "%s: %s%s", what, strerror(-err), remedy);
}

static int open_source(struct client *client)
{
	const char *source = client->options->source;

	/* What is no ordinary file does not keep it waiting before that is found out. */
	client->fd = open(source, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (client->fd < 0 || fstat(client->fd, &client->stat))
		return fail(client, source, -errno);
	if (!S_ISREG(client->stat.st_mode))
		return tool_complain(RCOPY, "%s: not an ordinary file", source);
	return 0;
}

static int connect_to(struct client *client)
{
	struct lookup lookup = { .name = RCOPY,
		.server = client->options->server,
		.port = client->options->port,
		.type = SOCK_STREAM };
	char text[ADDRESS_TEXT_MAX];
	int ret;

	if (lookup_run(&lookup))
		return -1;
	ret = sock_open(&client->peer.sock, 0, lookup.addr.ss_family, SOCK_STREAM);
	if (ret)
		return tool_complain(RCOPY, "rsocket: %s%s", strerror(-ret), remedy_find(ret, 0));
	ret = sock_connect(&client->peer.sock, (struct sockaddr *)&lookup.addr, lookup.len);
	if (ret)
		return tool_complain(RCOPY, "connect to %s: %s%s",
			address_text(text, (const struct sockaddr *)&lookup.addr), strerror(-ret),
			remedy_find_client(ret, 0));
	return 0;
}

/* Without a destination the source's own path is asked for, which is of this machine. */
static const char *find_remedy(int command, uint32_t err)
{
	return command == RCOPY_OPEN && err == EACCES
		       ? "; name a file in the server's folder (server:destination)"
		       : "";
}

static int recv_answer(struct client *client, int command, const char *what)
{
	struct rcopy_header header;
	int ret = rcopy_recv_header(&client->peer, &header, command | RCOPY_ANSWER);

	if (ret)
		return fail(client, what, ret);
	if (!header.data)
		return 0;
	end_line(client);
	return tool_complain(RCOPY, "%s: the server answers: %s%s", what,
		header.data < 4096 ? strerror((int)header.data) : "an unknown error",
		find_remedy(command, header.data));
}

static int ask_open(struct client *client)
{
	const char *path = client->options->destination;
	size_t len = (strlen(path) / RCOPY_PATH_UNIT + 1) * RCOPY_PATH_UNIT;
	char padded[PATH_MAX + RCOPY_PATH_UNIT] = { 0 };
	int ret;

	if (len > PATH_MAX)
		return fail(client, path, -ENAMETOOLONG);
	memcpy(padded, path, strlen(path));
	begin(client, "opening");
	ret = rcopy_send_header(&client->peer, RCOPY_OPEN, len, client->stat.st_mode);
	if (!ret)
		ret = rcopy_send(&client->peer, padded, len);
	return ret ? fail(client, path, ret) : recv_answer(client, RCOPY_OPEN, path);
}

static void show(const struct client *client, off_t sent)
{
	if (!client->shows)
		return;
	printf("%3d%%\b\b\b\b", (int)(100 * (double)sent / (double)client->stat.st_size));
	fflush(stdout);
}

static int fail_read(const struct client *client, ssize_t len)
{
	const char *source = client->options->source;

	if (len)
		return fail(client, source, -errno);
	end_line(client);
	return tool_complain(RCOPY, "%s: became shorter", source);
}

static int send_data(struct client *client)
{
	off_t sent = 0, left;
	ssize_t len;
	int ret;

	while ((left = client->stat.st_size - sent) > 0) {
		len = read(client->fd, client->chunk,
			left < RCOPY_CHUNK_BYTES ? (size_t)left : RCOPY_CHUNK_BYTES);
		if (len <= 0)
			return fail_read(client, len);
		ret = rcopy_send(&client->peer, client->chunk, (size_t)len);
		if (ret)
			return fail(client, "sending", ret);
		sent += len;
		show(client, sent);
	}
	return 0;
}

static int ask_write(struct client *client)
{
	const uint64_t size = (uint64_t)client->stat.st_size;
	int ret;

	begin(client, "transferring");
	ret = rcopy_send_header(&client->peer, RCOPY_WRITE, sizeof(size), 0);
	if (!ret)
		ret = rcopy_send(&client->peer, &size, sizeof(size));
	if (ret)
		return fail(client, "sending", ret);
	return send_data(client) ? -1 : recv_answer(client, RCOPY_WRITE, "writing");
}

static int ask_close(struct client *client)
{
	int ret;

	begin(client, "closing");
	ret = rcopy_send_header(&client->peer, RCOPY_CLOSE, 0, 0);
	return ret ? fail(client, "closing", ret) : recv_answer(client, RCOPY_CLOSE, "closing");
}

static int copy(struct client *client)
{
	double since = series_now(), seconds;

	if (ask_open(client) || ask_write(client) || ask_close(client))
		return -1;
	seconds = series_now() - since;
	printf("done\n%lld bytes in %.2f seconds = %.2f Gb/sec\n", (long long)client->stat.st_size,
		seconds, seconds > 0 ? (double)client->stat.st_size * 8 / 1e9 / seconds : 0);
	sock_shutdown(&client->peer.sock);
	return 0;
}

int rcopy_copy(const struct rcopy_options *options)
{
	struct client client = { .options = options,
		.peer = { .sock = SOCK_NONE,
			.timeout_ms = options->patience_s ? (int)options->patience_s * 1000 : -1 },
		.fd = -1,
		.shows = isatty(STDOUT_FILENO) };
	int ret = -1;

	client.chunk = malloc(RCOPY_CHUNK_BYTES);
	if (!client.chunk)
		tool_complain(RCOPY, "out of memory");
	else if (!open_source(&client) && !connect_to(&client))
		ret = copy(&client);
	sock_close(&client.peer.sock);
	if (client.fd >= 0)
		close(client.fd);
	free(client.chunk);
	return tool_end_output(RCOPY, ret ? EXIT_FAILURE : EXIT_SUCCESS);
}
