/*
 * Every call that opens a device or a channel, in a process of its own for each number of files
 * that it may still open: it works or says EMFILE, nothing else, and leaves no file behind when it
 * fails. Argument: an address of the device.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netdb.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_FILES = 24, TIMEOUT_MS = 2000 };

static struct sockaddr_in addr = { .sin_family = AF_INET };
static const char *ip;
static struct rdma_cm_id *id;

static int must(int ret)
{
	if (ret)
		exit(3);
	return ret;
}

/* --- what comes before, with files enough ---------------------------------------------------- */

static void nothing(void)
{
}

static void make_id(void)
{
	must(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP));
}

static void make_bound_id(void)
{
	make_id();
	must(rdma_bind_addr(id, (struct sockaddr *)&addr));
}

/* On a channel: the device is open then, and the caller's own is not. */
static void make_id_on_channel(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();

	must(!channel);
	must(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	must(rdma_bind_addr(id, (struct sockaddr *)&addr));
}

/* --- the calls ------------------------------------------------------------------------------- */

static int create_channel(void)
{
	return rdma_create_event_channel() ? 0 : -1;
}

static int create_id(void)
{
	return rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP);
}

static int get_devices(void)
{
	return rdma_get_devices(NULL) ? 0 : -1;
}

static int bind_addr(void)
{
	return rdma_bind_addr(id, (struct sockaddr *)&addr);
}

static int resolve_addr(void)
{
	return rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, TIMEOUT_MS);
}

static int get_addrinfo(void)
{
	const struct rdma_addrinfo hints = { .ai_flags = RAI_NUMERICHOST };
	struct rdma_addrinfo *res;
	int ret = rdma_getaddrinfo(ip, "7471", &hints, &res);

	if (!ret)
		rdma_freeaddrinfo(res);
	return ret;
}

static int create_qp(void)
{
	struct ibv_qp_init_attr attr = { .cap = { 1, 1, 1, 1, 0 }, .qp_type = IBV_QPT_RC };

	return rdma_create_qp(id, NULL, &attr);
}

static int create_ep(void)
{
	struct rdma_addrinfo res = {
		.ai_flags = RAI_PASSIVE,
		.ai_port_space = RDMA_PS_TCP,
		.ai_qp_type = IBV_QPT_RC,
		.ai_src_len = sizeof(addr),
		.ai_src_addr = (struct sockaddr *)&addr,
	};

	return rdma_create_ep(&id, &res, NULL, NULL);
}

static int migrate_id(void)
{
	return rdma_migrate_id(id, NULL);
}

static const struct row {
	const char *what;
	void (*before)(void);
	int (*call)(void);
} rows[] = {
	{ "rdma_create_event_channel", nothing, create_channel },
	{ "rdma_create_id", nothing, create_id },
	{ "rdma_get_devices", nothing, get_devices },
	{ "rdma_getaddrinfo", nothing, get_addrinfo },
	{ "rdma_create_ep", nothing, create_ep },
	{ "rdma_bind_addr", make_id, bind_addr },
	{ "rdma_resolve_addr", make_id, resolve_addr },
	{ "rdma_create_qp", make_bound_id, create_qp },
	{ "rdma_migrate_id", make_id_on_channel, migrate_id },
};

/* --- one number of files ---------------------------------------------------------------------- */

static int count_files(int below)
{
	int fd, n = 0;

	for (fd = 0; fd < below; fd++)
		n += dup2(fd, fd) == fd;
	return n;
}

/* Leaves room for so many: below the limit every other number is taken. */
static void limit(int room)
{
	struct rlimit files = { 0 };
	int fd = 0;

	for (; room >= 0; fd++)
		if (dup2(fd, fd) != fd)
			room--;
	files.rlim_cur = files.rlim_max = (rlim_t)fd - 1;
	must(setrlimit(RLIMIT_NOFILE, &files));
}

/* 0 when the call went through, 1 when it said EMFILE. */
static int run(const struct row *row, int room)
{
	int before, ret, err;

	row->before();
	before = count_files(1024);
	limit(room);
	errno = 0;
	ret = row->call();
	err = errno;
	if (!ret)
		return 0;
	if ((ret == -1 || ret == EAI_SYSTEM) && err == EMFILE && count_files(1024) == before)
		return 1;
	printf("# %s, room for %d: %d, %s; %d files, %d before\n", row->what, room, ret,
		strerror(err), count_files(1024), before);
	return 2;
}

static int run_apart(const struct row *row, int room)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		status = run(row, room);
		fflush(stdout);
		_exit(status);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return 3;
	return WEXITSTATUS(status);
}

/* EMFILE up to some number, and from there on it goes through. */
static bool says_emfile_or_works(const struct row *row)
{
	bool worked = false, good = true;
	int room, ret;

	for (room = 0; room <= MOST_FILES; room++) {
		ret = run_apart(row, room);
		good &= ret == 0 || ret == 1;
		worked = ret == 0;
	}
	return good && worked;
}

int main(int argc, char **argv)
{
	size_t i, n = sizeof(rows) / sizeof(rows[0]);
	int bad = 0;

	if (argc != 2 || !inet_pton(AF_INET, argv[1], &addr.sin_addr))
		return 2;
	ip = argv[1];
	for (i = 0; i < n; i++) {
		bool good = says_emfile_or_works(&rows[i]);

		printf("%sok %zu - %s\n", good ? "" : "not ", i + 1, rows[i].what);
		fflush(stdout);
		bad |= !good;
	}
	printf("1..%zu\n", n);
	return bad;
}
