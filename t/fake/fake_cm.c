/* The table of system calls, the open files, and the dispatch of commands. */
#include "fake/fake_cm.h"

#include "kern/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char device_path[] = "/dev/infiniband/rdma_cm";

static TAILQ_HEAD(, fake_file) files = TAILQ_HEAD_INITIALIZER(files);

struct fake_handler {
	const char *name;
	fake_command *run;
	size_t in; /* what it reads at least */
	bool releases;
};

static const struct fake_handler handlers[] = {
	[RDMA_USER_CM_CMD_CREATE_ID] = { "CREATE_ID", fake_create_id,
		sizeof(struct rdma_ucm_create_id) },
	[RDMA_USER_CM_CMD_DESTROY_ID] = { "DESTROY_ID", fake_destroy_id,
		sizeof(struct rdma_ucm_destroy_id), true },
	[RDMA_USER_CM_CMD_BIND_IP] = { "BIND_IP", fake_bind_ip, sizeof(struct rdma_ucm_bind_ip) },
	[RDMA_USER_CM_CMD_RESOLVE_IP] = { "RESOLVE_IP", fake_resolve_ip,
		sizeof(struct rdma_ucm_resolve_ip) },
	[RDMA_USER_CM_CMD_RESOLVE_ROUTE] = { "RESOLVE_ROUTE", fake_resolve_route,
		sizeof(struct rdma_ucm_resolve_route) },
	[RDMA_USER_CM_CMD_QUERY_ROUTE] = { "QUERY_ROUTE", fake_query_route,
		sizeof(struct rdma_ucm_query) },
	[RDMA_USER_CM_CMD_CONNECT] = { "CONNECT", fake_connect,
		offsetof(struct rdma_ucm_connect, ece) },
	[RDMA_USER_CM_CMD_LISTEN] = { "LISTEN", fake_listen, sizeof(struct rdma_ucm_listen) },
	[RDMA_USER_CM_CMD_ACCEPT] = { "ACCEPT", fake_accept,
		offsetof(struct rdma_ucm_accept, ece) },
	[RDMA_USER_CM_CMD_REJECT] = { "REJECT", fake_reject, sizeof(struct rdma_ucm_reject) },
	[RDMA_USER_CM_CMD_DISCONNECT] = { "DISCONNECT", fake_disconnect,
		sizeof(struct rdma_ucm_disconnect) },
	[RDMA_USER_CM_CMD_INIT_QP_ATTR] = { "INIT_QP_ATTR", fake_init_qp_attr,
		sizeof(struct rdma_ucm_init_qp_attr) },
	[RDMA_USER_CM_CMD_GET_EVENT] = { "GET_EVENT", fake_get_event,
		sizeof(struct rdma_ucm_get_event), true },
	[RDMA_USER_CM_CMD_SET_OPTION] = { "SET_OPTION", fake_set_option,
		sizeof(struct rdma_ucm_set_option) },
	[RDMA_USER_CM_CMD_NOTIFY] = { "NOTIFY", fake_notify, sizeof(struct rdma_ucm_notify) },
	[RDMA_USER_CM_CMD_JOIN_IP_MCAST] = { "JOIN_IP_MCAST", fake_join_ip_mcast,
		sizeof(struct rdma_ucm_join_ip_mcast) },
	[RDMA_USER_CM_CMD_LEAVE_MCAST] = { "LEAVE_MCAST", fake_leave_mcast,
		sizeof(struct rdma_ucm_destroy_id), true },
	[RDMA_USER_CM_CMD_MIGRATE_ID] = { "MIGRATE_ID", fake_migrate_id,
		sizeof(struct rdma_ucm_migrate_id) },
	[RDMA_USER_CM_CMD_QUERY] = { "QUERY", fake_query, sizeof(struct rdma_ucm_query) },
	[RDMA_USER_CM_CMD_BIND] = { "BIND", fake_bind, sizeof(struct rdma_ucm_bind) },
	[RDMA_USER_CM_CMD_RESOLVE_ADDR] = { "RESOLVE_ADDR", fake_resolve_addr,
		sizeof(struct rdma_ucm_resolve_addr) },
	[RDMA_USER_CM_CMD_JOIN_MCAST] = { "JOIN_MCAST", fake_join_mcast,
		sizeof(struct rdma_ucm_join_mcast) },
	[FAKE_CMD_RESOLVE_IB_SERVICE] = { "RESOLVE_IB_SERVICE", fake_resolve_ib_service, 88 },
	[FAKE_CMD_WRITE_CM_EVENT] = { "WRITE_CM_EVENT", fake_write_cm_event, 320 },
};

void fake_respond(uint64_t response, const void *data, size_t size, size_t out_len)
{
	memcpy((void *)(uintptr_t)response, data, size < out_len ? size : out_len);
}

struct fake_file *fake_file_of(int fd)
{
	struct fake_file *file;

	TAILQ_FOREACH (file, &files, link)
		if (file->bell.fd == fd)
			return file;
	return NULL;
}

static int sys_open(const char *path, int flags)
{
	struct fake_file *file;
	int err;

	FAKE_GUARD();
	err = fake_fault(FAKE_KERNEL, "open");
	if (err)
		return -err;
	if (strcmp(path, device_path))
		return -ENOENT;
	file = fake_alloc(sizeof(*file));
	err = fake_bell_open(&file->bell, flags);
	if (err) {
		free(file);
		return err;
	}
	TAILQ_INIT(&file->events);
	TAILQ_INSERT_TAIL(&files, file, link);
	fake_born(FAKE_FILE);
	return file->bell.fd;
}

/* The kernel destroys what is still on the file, as for DESTROY_ID. */
static void file_free(struct fake_file *file)
{
	struct fake_id *id;
	uint32_t i;

	FAKE_FOREACH_ID(id, i)
	if (id->file == file)
		fake_id_free(id);
	while (!TAILQ_EMPTY(&file->events))
		fake_event_free(TAILQ_FIRST(&file->events));
	TAILQ_REMOVE(&files, file, link);
	fake_bell_close(&file->bell);
	free(file);
	fake_died(FAKE_FILE);
}

static int sys_close(int fd)
{
	struct fake_file *file;

	FAKE_GUARD();
	file = fake_file_of(fd);
	if (!file)
		return close(fd) ? -errno : 0;
	file_free(file);
	return 0;
}

static int dispatch(struct fake_file *file, const struct rdma_ucm_cmd_hdr *hdr, const char *in)
{
	union {
		struct rdma_ucm_accept accept;
		struct rdma_ucm_resolve_addr resolve;
		char bytes[400];
	} copy = { .bytes = { 0 } };
	const struct fake_handler *handler = &handlers[hdr->cmd];
	int err;

	if (!handler->run)
		return -ENOSYS;
	if (hdr->in < handler->in)
		return -EINVAL;
	if (handler->releases)
		err = fake_fault_release(FAKE_KERNEL, handler->name);
	else
		err = fake_fault(FAKE_KERNEL, handler->name);
	if (err)
		return -err;
	memcpy(&copy, in, hdr->in < sizeof(copy) ? hdr->in : sizeof(copy));
	return handler->run(file, &copy, hdr->out);
}

static ssize_t write_once(int fd, const void *buf, size_t len)
{
	struct rdma_ucm_cmd_hdr hdr;
	struct fake_file *file;
	int err;

	FAKE_GUARD();
	file = fake_file_of(fd);
	if (!file)
		return -EBADF;
	if (len < sizeof(hdr))
		return -EINVAL;
	memcpy(&hdr, buf, sizeof(hdr));
	if (hdr.cmd >= fake_num_commands() || hdr.in + sizeof(hdr) > len)
		return -EINVAL;
	err = dispatch(file, &hdr, (const char *)buf + sizeof(hdr));
	return err ? err : (ssize_t)len;
}

static ssize_t sys_write(int fd, const void *buf, size_t len)
{
	ssize_t ret;

	do {
		ret = write_once(fd, buf, len);
	} while (ret == -EDEADLK && fake_bell_wait(fd));
	return ret;
}

static int sys_ioctl(int fd, unsigned long request, void *arg)
{
	int err;

	FAKE_GUARD();
	err = fake_fault_release(FAKE_KERNEL, "ioctl");
	return err ? -err : fake_verbs_ioctl(fd, request, arg);
}

/* A poll looks at the files themselves: also at what came to one without waking anybody. */
static void look(const struct pollfd *fds, nfds_t nfds)
{
	struct fake_file *file;
	nfds_t i;

	FAKE_GUARD();
	for (i = 0; i < nfds; i++) {
		file = fake_file_of(fds[i].fd);
		if (file)
			fake_bell_set(&file->bell, !TAILQ_EMPTY(&file->events));
	}
}

/* Waiting for ever on what nobody else can bring would hang the test. */
static int sys_poll(struct pollfd *fds, nfds_t nfds, int timeout_ms)
{
	int n = poll(fds, nfds, 0);

	if (n == 0) {
		look(fds, nfds);
		n = poll(fds, nfds, 0);
	}
	if (n == 0 && timeout_ms)
		fake_count_wait();
	if (n == 0 && timeout_ms > 0)
		n = poll(fds, nfds, timeout_ms);
	if (n < 0)
		return -errno;
	return n == 0 && timeout_ms < 0 ? -EDEADLK : n;
}

static int sys_find_cm_device(char *path, size_t size)
{
	int err;

	FAKE_GUARD();
	err = fake_fault(FAKE_KERNEL, "find_cm_device");
	if (err)
		return -err;
	if (size < sizeof(device_path))
		return -ENAMETOOLONG;
	memcpy(path, device_path, sizeof(device_path));
	return 0;
}

/* One number per device, so that one taken for another's shows in the ioctl. Both only help to
 * close a device, so they count as releasing. */
static int sys_find_driver_id(int ibdev_index, uint32_t *driver_id)
{
	int err;

	FAKE_GUARD();
	err = fake_fault_release(FAKE_KERNEL, "find_driver_id");
	return err ? -err : fake_verbs_driver(ibdev_index, driver_id);
}

static const struct evr_sys fake_sys = {
	.open = sys_open,
	.close = sys_close,
	.write = sys_write,
	.ioctl = sys_ioctl,
	.poll = sys_poll,
	.find_cm_device = sys_find_cm_device,
	.find_driver_id = sys_find_driver_id,
};

void fake_install(void)
{
	fake_reset();
	evr_sys = &fake_sys;
}

void fake_cm_reset(void)
{
	fake_wire_reset();
	while (!TAILQ_EMPTY(&files))
		file_free(TAILQ_FIRST(&files));
	fake_wire_reset();
	fake_mc_reset();
	fake_services_reset();
	fake_ports_reset();
	fake_table_free(&fake_ids);
}
