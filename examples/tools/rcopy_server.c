#include "rcopy.h"
#include "common.h"
#include "lookup.h"
#include "remedy.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct server {
	const struct rcopy_options *options;
	struct sock listener;
	struct rcopy_peer peer;
	struct rcopy_file file;
	char path[PATH_MAX];
	char *chunk; /* RCOPY_CHUNK_BYTES */
};

/* Ends the line that says how a copy goes. */
static int say(const char *what, int err)
{
	printf("%s: %s\n", what, strerror(-err));
	return err;
}

static int answer(struct server *server, int command, int err)
{
	int ret = rcopy_send_header(&server->peer, command | RCOPY_ANSWER, 0, (uint32_t)-err);

	return err ? err : ret;
}

static int recv_path(struct server *server, const struct rcopy_header *header)
{
	size_t len = header->len_bytes - RCOPY_HEADER_BYTES;
	int ret;

	if (!len || len > sizeof(server->path))
		return -ENAMETOOLONG;
	ret = rcopy_recv(&server->peer, server->path, len);
	if (ret)
		return ret;
	return memchr(server->path, '\0', len) ? 0 : -EPROTO;
}

/* A path is shown without what would move a terminal's cursor. */
static void show_path(const char *path)
{
	printf("opening: ");
	for (; *path; path++)
		putchar((unsigned char)*path < ' ' || *path == 127 ? '?' : *path);
	printf(", ");
}

static int serve_open(struct server *server)
{
	struct rcopy_header header;
	int ret = rcopy_recv_header(&server->peer, &header, RCOPY_OPEN);

	if (!ret)
		ret = recv_path(server, &header);
	if (ret)
		return say("no request to open a file", ret);
	show_path(server->path);
	ret = rcopy_file_open(
		&server->file, server->options->folder, server->path, (mode_t)header.data);
	if (ret)
		say("unable to open destination file", ret);
	return answer(server, RCOPY_OPEN, ret);
}

/* The rest of data that cannot be written is received all the same, to tell the client why. */
static int recv_data(struct server *server, uint64_t left, int *written)
{
	size_t len;
	int ret = 0;

	*written = 0;
	for (; !ret && left; left -= len) {
		len = left < (uint64_t)RCOPY_CHUNK_BYTES ? (size_t)left : RCOPY_CHUNK_BYTES;
		ret = rcopy_recv(&server->peer, server->chunk, len);
		if (!ret && !*written)
			*written = rcopy_file_write(&server->file, server->chunk, len);
	}
	return ret;
}

static int serve_write(struct server *server)
{
	struct rcopy_header header;
	uint64_t size;
	int written;
	int ret = rcopy_recv_header(&server->peer, &header, RCOPY_WRITE);

	if (!ret && header.len_bytes != RCOPY_HEADER_BYTES + sizeof(size))
		ret = -EPROTO;
	if (!ret)
		ret = rcopy_recv(&server->peer, &size, sizeof(size));
	if (ret)
		return say("no data", ret);
	printf("transferring...");
	fflush(stdout);
	ret = recv_data(server, size, &written);
	if (ret)
		return say("broken off", ret);
	if (written)
		say("unable to write", written);
	else
		printf("%llu bytes...", (unsigned long long)size);
	return answer(server, RCOPY_WRITE, written);
}

static int serve_close(struct server *server)
{
	struct rcopy_header header;
	int ret;

	printf("closing...");
	ret = rcopy_recv_header(&server->peer, &header, RCOPY_CLOSE);
	if (ret)
		return say("broken off", ret);
	ret = rcopy_file_keep(&server->file);
	if (ret)
		say("unable to name the file", ret);
	else
		printf("done\n");
	return answer(server, RCOPY_CLOSE, ret);
}

/*
 * The client ends the connection; one that does not is not waited for without end, and one that was
 * silent already not again.
 */
static void wait_end(struct server *server)
{
	char byte;

	rcopy_recv(&server->peer, &byte, sizeof(byte));
	sock_shutdown(&server->peer.sock);
}

static void serve_client(struct server *server)
{
	int ret = serve_open(server);

	if (!ret)
		ret = serve_write(server);
	if (!ret)
		ret = serve_close(server);
	rcopy_file_close(&server->file);
	if (ret != -ETIMEDOUT)
		wait_end(server);
}

static void show_client(struct sock *sock)
{
	struct sockaddr_storage addr;
	socklen_t len = sizeof(addr);
	char node[NI_MAXHOST];

	if (sock_peer(sock, &addr, &len) || getnameinfo((struct sockaddr *)&addr, len, node,
						    sizeof(node), NULL, 0, NI_NUMERICHOST))
		snprintf(node, sizeof(node), "unknown");
	printf("client: %s\n", node);
}

/* Whether the listener itself is lost; else it is one client that cannot be had now. */
static int is_over(int err)
{
	return err == -EBADF || err == -EINVAL || err == -ENODEV || err == -EOPNOTSUPP;
}

/* Where descriptors are missing the client stays there, and so would the error without a pause. */
static int wait_again(int err)
{
	say("no connection", err);
	fflush(stdout);
	sleep(1);
	return 0;
}

static int serve_next(struct server *server)
{
	int ret;

	printf("waiting for connection...");
	fflush(stdout);
	do
		ret = sock_accept(&server->listener, &server->peer.sock);
	while (ret == -EINTR || ret == -ECONNABORTED);
	if (ret && !is_over(ret))
		return wait_again(ret);
	if (ret)
		return tool_complain(RCOPY, "raccept: %s", strerror(-ret));
	server->peer.hung_up = 0;
	show_client(&server->peer.sock);
	serve_client(server);
	fflush(stdout);
	sock_close(&server->peer.sock);
	return 0;
}

static int listen_on(struct server *server)
{
	struct lookup lookup = {
		.name = RCOPY, .port = server->options->port, .type = SOCK_STREAM
	};
	int ret;

	if (lookup_run(&lookup))
		return -1;
	ret = sock_open(&server->listener, 0, lookup.addr.ss_family, SOCK_STREAM);
	if (ret)
		return tool_complain(RCOPY, "rsocket: %s%s", strerror(-ret), remedy_find(ret, 0));
	sock_set_int(&server->listener, SOL_SOCKET, SO_REUSEADDR, 1);
	ret = sock_bind(&server->listener, (struct sockaddr *)&lookup.addr, lookup.len);
	if (!ret)
		ret = sock_listen(&server->listener, 5);
	if (ret)
		return tool_complain(RCOPY, "listen on port %ld: %s%s", server->options->port,
			strerror(-ret), remedy_find_server(ret, 0, 0));
	return 0;
}

static int check_folder(const struct rcopy_options *options)
{
	if (!access(options->folder, W_OK | X_OK))
		return 0;
	return tool_complain(RCOPY, "-d %s: %s; give a folder that files may be written to",
		options->folder, strerror(errno));
}

int rcopy_serve(const struct rcopy_options *options)
{
	struct server server = { .options = options,
		.listener = SOCK_NONE,
		.peer = { .sock = SOCK_NONE,
			.timeout_ms = options->patience_s ? (int)options->patience_s * 1000 : -1 },
		.file = { .dir = -1, .fd = -1 } };
	int ret = check_folder(options);

	rcopy_file_guard();
	server.chunk = malloc(RCOPY_CHUNK_BYTES);
	if (!server.chunk)
		ret = tool_complain(RCOPY, "out of memory");
	if (!ret)
		ret = listen_on(&server);
	while (!ret)
		ret = serve_next(&server);
	sock_close(&server.listener);
	free(server.chunk);
	return EXIT_FAILURE;
}
