/*
 * A device is removed under a process that lives on: every id is told, the removal ends once what
 * was on the device is gone, and the device can be used again when it comes back.
 * Arguments: the command that removes the device, the one that brings it back, its address.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PORT = 7999, PATIENCE_MS = 60000 };

static struct rdma_event_channel *channel;
static int cells;

static void check(int good, const char *what)
{
	printf("%sok %d - %s\n", good ? "" : "not ", ++cells, what);
	fflush(stdout);
	if (good)
		return;
	printf("Bail out! %s: %s\n", what, strerror(errno));
	exit(1);
}

static struct rdma_cm_event *next_event(int timeout_ms)
{
	struct pollfd pfd = { .fd = channel->fd, .events = POLLIN };
	struct rdma_cm_event *event;

	while (rdma_get_cm_event(channel, &event)) {
		if (errno != EAGAIN || poll(&pfd, 1, timeout_ms) != 1)
			return NULL;
	}
	return event;
}

/* Waits for one kind of event, passing over others; its id is what it is for. */
static struct rdma_cm_id *expect(enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id = NULL;

	while (!id && (event = next_event(PATIENCE_MS))) {
		if (event->event == type)
			id = event->id;
		rdma_ack_cm_event(event);
	}
	check(id != NULL, rdma_event_str(type));
	return id;
}

static void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	check(!rdma_create_qp(id, NULL, &attr), "a queue pair is made");
}

static void connect_pair(struct sockaddr *addr, struct rdma_cm_id *pair[2])
{
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1 };
	struct rdma_cm_id *id;

	check(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), "an id is made");
	check(!rdma_resolve_addr(id, NULL, addr, PATIENCE_MS), "its address is looked for");
	expect(RDMA_CM_EVENT_ADDR_RESOLVED);
	check(!rdma_resolve_route(id, PATIENCE_MS), "its route is looked for");
	expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
	make_qp(id);
	check(!rdma_connect(id, &param), "it connects");
	pair[0] = id;
	pair[1] = expect(RDMA_CM_EVENT_CONNECT_REQUEST);
	make_qp(pair[1]);
	check(!rdma_accept(pair[1], NULL), "it is accepted");
	expect(RDMA_CM_EVENT_ESTABLISHED);
	expect(RDMA_CM_EVENT_ESTABLISHED);
}

static void destroy(struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
	check(!rdma_destroy_id(id), "an id is destroyed");
}

static pid_t start(const char *command)
{
	pid_t pid = fork();

	if (!pid) {
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	return pid;
}

/* Whether the process ends well in time. */
static int ends(pid_t pid, int ms)
{
	const struct timespec tick = { .tv_nsec = 10 * 1000 * 1000 };
	int status = 1;

	for (; ms > 0; ms -= 10) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return status == 0;
		nanosleep(&tick, NULL);
	}
	return 0;
}

static void removed_with_a_connection(struct sockaddr *addr, const char *remove)
{
	struct rdma_cm_id *pair[2];
	pid_t pid;

	connect_pair(addr, pair);
	pid = start(remove);
	expect(RDMA_CM_EVENT_DEVICE_REMOVAL);
	expect(RDMA_CM_EVENT_DEVICE_REMOVAL);
	destroy(pair[0]);
	destroy(pair[1]);
	check(ends(pid, PATIENCE_MS), "the removal ends though the process lives");
}

/* Nobody tells of the removal: a loop that turns for other reasons finds out. */
static int ends_while_the_loop_turns(pid_t pid)
{
	int i;

	for (i = 0; i < PATIENCE_MS / 100 && !ends(pid, 100); i++)
		next_event(0);
	return i < PATIENCE_MS / 100;
}

static void removed_while_idle(struct sockaddr *addr, const char *remove)
{
	struct rdma_cm_id *pair[2];

	connect_pair(addr, pair);
	destroy(pair[0]);
	destroy(pair[1]);
	check(ends_while_the_loop_turns(start(remove)), "a device that nobody uses can be removed");
}

static void removed_after_a_pd_of_ours(struct sockaddr *addr, const char *remove)
{
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	pid_t pid;

	check(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), "an id is made");
	check(!rdma_bind_addr(id, addr) && id->verbs, "it is bound to the device");
	pd = ibv_alloc_pd(id->verbs);
	check(pd && !rdma_destroy_id(id), "its device outlives it with a domain");
	pid = start(remove);
	check(!ends(pid, 300), "the removal waits for the domain");
	check(!ibv_dealloc_pd(pd), "the domain goes");
	check(ends_while_the_loop_turns(pid), "the removal ends without the domain");
}

static struct ibv_context *look_up(struct sockaddr *addr)
{
	struct ibv_context *verbs;
	struct rdma_cm_id *id;

	check(!rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), "a synchronous id is made");
	check(!rdma_bind_addr(id, addr) && id->verbs, "it leads to the device");
	verbs = id->verbs;
	check(!rdma_destroy_id(id), "it is destroyed");
	return verbs;
}

static void removed_after_a_look_up(struct sockaddr *addr, const char *remove)
{
	struct ibv_context *verbs = look_up(addr);
	struct ibv_device_attr attr;

	check(!next_event(0), "the loop turns");
	check(!ibv_query_device(verbs, &attr), "the context is there without an id");
	check(ends_while_the_loop_turns(start(remove)), "the removal ends while the loop turns");
}

static int is_listed(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int found = 0, i;

	for (i = 0; list && list[i]; i++)
		found = found || !strcmp(ibv_get_device_name(list[i]), name);
	if (list)
		ibv_free_device_list(list);
	return found;
}

static int goes_from_the_list(const char *name)
{
	const struct timespec tick = { .tv_nsec = 10 * 1000 * 1000 };
	int i;

	for (i = 0; i < PATIENCE_MS / 10 && is_listed(name); i++)
		nanosleep(&tick, NULL);
	return !is_listed(name);
}

/* Asking for the devices is a look as well. */
static void removed_before_a_listing(struct sockaddr *addr, const char *remove)
{
	char name[IBV_SYSFS_NAME_MAX];
	pid_t pid;

	snprintf(name, sizeof(name), "%s", ibv_get_device_name(look_up(addr)->device));
	pid = start(remove);
	check(goes_from_the_list(name), "the device goes from the list");
	check(!ends(pid, 300), "the removal waits for a look");
	rdma_free_devices(rdma_get_devices(NULL));
	check(ends(pid, PATIENCE_MS), "the removal ends with the list of devices");
}

static void bring_back(const char *add)
{
	check(ends(start(add), PATIENCE_MS), "the device comes back");
}

static void *watchdog(int seconds)
{
	alarm((unsigned int)seconds);
	return NULL;
}

int main(int argc, char **argv)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	struct sockaddr_in addr = any;
	struct rdma_cm_id *listener;

	if (argc != 4 || !inet_pton(AF_INET, argv[3], &addr.sin_addr))
		return 2;
	watchdog(900);
	channel = rdma_create_event_channel();
	check(channel && !fcntl(channel->fd, F_SETFL, O_NONBLOCK), "a channel is opened");
	check(!rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP), "a listener is made");
	check(!rdma_bind_addr(listener, (struct sockaddr *)&any), "it is bound to any address");
	check(!rdma_listen(listener, 8), "it listens");
	removed_with_a_connection((struct sockaddr *)&addr, argv[1]);
	bring_back(argv[2]);
	removed_while_idle((struct sockaddr *)&addr, argv[1]);
	bring_back(argv[2]);
	addr.sin_port = 0;
	removed_after_a_pd_of_ours((struct sockaddr *)&addr, argv[1]);
	bring_back(argv[2]);
	removed_after_a_look_up((struct sockaddr *)&addr, argv[1]);
	bring_back(argv[2]);
	removed_before_a_listing((struct sockaddr *)&addr, argv[1]);
	bring_back(argv[2]);
	check(!rdma_destroy_id(listener), "the listener is destroyed");
	rdma_destroy_event_channel(channel);
	printf("1..%d\n", cells);
	return 0;
}
