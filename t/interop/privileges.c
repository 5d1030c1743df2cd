/*
 * A process that gives its privileges up with a channel open: prints what each call says, before
 * and after it has opened another. Argument: an address of the device.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <grp.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534, PORT = 7471, TIMEOUT_MS = 2000 };

static struct sockaddr_in addr = { .sin_family = AF_INET };
static struct rdma_event_channel *channel;
static struct rdma_cm_id *id, *sync_id;

static int say(const char *what, int ret)
{
	printf("%s: %s\n", what, ret ? strerror(errno) : "ok");
	fflush(stdout);
	return ret;
}

static void must(const char *what, int ret)
{
	if (say(what, ret))
		exit(1);
}

static struct sockaddr *to(in_port_t port)
{
	addr.sin_port = htons(port);
	return (struct sockaddr *)&addr;
}

static void open_channel(const char *what)
{
	channel = rdma_create_event_channel();
	say(what, channel ? 0 : -1);
}

static void begin(void)
{
	open_channel("open");
	must("create", rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	must("bind", rdma_bind_addr(id, to(0)));
	must("create synchronous", rdma_create_id(NULL, &sync_id, NULL, RDMA_PS_TCP));
}

static void *read_event(void)
{
	struct rdma_cm_event *event = NULL;

	return rdma_get_cm_event(channel, &event) ? NULL : event;
}

static void try_all(void)
{
	struct rdma_cm_id *another;

	say("create", rdma_create_id(channel, &another, NULL, RDMA_PS_TCP));
	say("resolve", rdma_resolve_addr(id, NULL, to(PORT), TIMEOUT_MS));
	say("resolve synchronously", rdma_resolve_addr(sync_id, NULL, to(PORT), TIMEOUT_MS));
	say("read", read_event() ? 0 : -1);
	say("destroy", rdma_destroy_id(id));
	say("destroy synchronous", rdma_destroy_id(sync_id));
}

static void try_in_child(void)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		say("child: resolve", rdma_resolve_addr(id, NULL, to(PORT), TIMEOUT_MS));
		open_channel("child: open");
		_exit(0);
	}
	must("child", pid < 0 || waitpid(pid, &status, 0) != pid || status);
}

static void drop_privileges(void)
{
	must("setgroups", setgroups(0, NULL));
	must("setgid", setgid(NOBODY));
	must("setuid", setuid(NOBODY));
}

/* The ids are as they were: the one is bound, and both resolve. */
static void reopen(void)
{
	struct rdma_event_channel *old = channel;
	struct rdma_cm_event *event;

	open_channel("open again");
	must("migrate", rdma_migrate_id(id, channel));
	must("migrate synchronous", rdma_migrate_id(sync_id, channel));
	must("migrate back", rdma_migrate_id(sync_id, NULL));
	rdma_destroy_event_channel(old);
	must("resolve", rdma_resolve_addr(id, NULL, to(PORT), TIMEOUT_MS));
	event = read_event();
	must("read", event ? event->status : -1);
	must("acknowledge", rdma_ack_cm_event(event));
	must("resolve synchronously", rdma_resolve_addr(sync_id, NULL, to(PORT), TIMEOUT_MS));
	must("destroy", rdma_destroy_id(id));
	must("destroy synchronous", rdma_destroy_id(sync_id));
	rdma_destroy_event_channel(channel);
}

int main(int argc, char **argv)
{
	if (argc != 2 || inet_pton(AF_INET, argv[1], &addr.sin_addr) != 1)
		return 2;
	begin();
	try_in_child();
	drop_privileges();
	try_all();
	reopen();
	return 0;
}
