#include "kern/ucma.h"
#include "kern/sys.h"

#include <errno.h>
#include <string.h>

/* Fills the header in, which is the first member of every command, and hands it over. */
static int submit(int fd, enum evr_ucma_op op, void *cmd, size_t len, size_t out_len)
{
	struct evr_ucma_hdr *hdr = cmd;
	ssize_t n;

	hdr->op = op;
	hdr->in_bytes = (uint16_t)(len - sizeof(*hdr));
	hdr->out_bytes = (uint16_t)out_len;
	n = evr_sys->write(fd, cmd, len);
	if (n < 0)
		return (int)n;
	return (size_t)n == len ? 0 : -ENODATA;
}

static uint64_t user_ptr(const void *ptr)
{
	return (uint64_t)(uintptr_t)ptr;
}

static int copy_addr(struct sockaddr_storage *to, const struct sockaddr *from, size_t len)
{
	if (len > sizeof(*to))
		return -EINVAL;
	memcpy(to, from, len);
	return 0;
}

int evr_ucma_create_id(int fd, uint64_t uid, uint16_t ps, uint8_t qp_type, uint32_t *handle)
{
	struct evr_ucma_resp_handle resp = { 0 };
	struct evr_ucma_cmd_create_id cmd = {
		.uid = uid,
		.response = user_ptr(&resp),
		.ps = ps,
		.qp_type = qp_type,
	};
	int ret = submit(fd, EVR_UCMA_CREATE_ID, &cmd, sizeof(cmd), sizeof(resp));

	if (!ret)
		*handle = resp.handle;
	return ret;
}

static int destroy(int fd, enum evr_ucma_op op, uint32_t handle, uint32_t *events_reported)
{
	struct evr_ucma_resp_events resp = { 0 };
	struct evr_ucma_cmd_destroy cmd = {
		.response = user_ptr(&resp),
		.handle = handle,
	};
	int ret = submit(fd, op, &cmd, sizeof(cmd), sizeof(resp));

	if (!ret)
		*events_reported = resp.events_reported;
	return ret;
}

int evr_ucma_destroy_id(int fd, uint32_t handle, uint32_t *events_reported)
{
	return destroy(fd, EVR_UCMA_DESTROY_ID, handle, events_reported);
}

int evr_ucma_bind(int fd, uint32_t handle, const struct sockaddr *addr, size_t len)
{
	struct evr_ucma_cmd_bind cmd = {
		.handle = handle,
		.addr_size = (uint16_t)len,
	};
	int ret = copy_addr(&cmd.addr, addr, len);

	return ret ? ret : submit(fd, EVR_UCMA_BIND, &cmd, sizeof(cmd), 0);
}

int evr_ucma_resolve_addr(int fd, uint32_t handle, const struct sockaddr *src, size_t src_len,
	const struct sockaddr *dst, size_t dst_len, uint32_t timeout_ms)
{
	struct evr_ucma_cmd_resolve_addr cmd = {
		.handle = handle,
		.timeout_ms = timeout_ms,
		.src_size = src ? (uint16_t)src_len : 0,
		.dst_size = (uint16_t)dst_len,
	};
	int ret = src ? copy_addr(&cmd.src, src, src_len) : 0;

	if (!ret)
		ret = copy_addr(&cmd.dst, dst, dst_len);
	return ret ? ret : submit(fd, EVR_UCMA_RESOLVE_ADDR, &cmd, sizeof(cmd), 0);
}

int evr_ucma_resolve_route(int fd, uint32_t handle, uint32_t timeout_ms)
{
	struct evr_ucma_cmd_resolve_route cmd = {
		.handle = handle,
		.timeout_ms = timeout_ms,
	};

	return submit(fd, EVR_UCMA_RESOLVE_ROUTE, &cmd, sizeof(cmd), 0);
}

static int query(int fd, uint32_t handle, enum evr_ucma_query_option option, void *resp, size_t len)
{
	struct evr_ucma_cmd_query cmd = {
		.response = user_ptr(resp),
		.handle = handle,
		.option = option,
	};

	return submit(fd, EVR_UCMA_QUERY, &cmd, sizeof(cmd), len);
}

static size_t addr_len(uint16_t size)
{
	return size <= sizeof(struct sockaddr_storage) ? size : sizeof(struct sockaddr_storage);
}

static int query_addresses(
	int fd, uint32_t handle, enum evr_ucma_query_option option, struct evr_ucma_addr *addr)
{
	struct evr_ucma_resp_addr resp = { .ibdev_index = EVR_UCMA_NO_INDEX };
	int ret = query(fd, handle, option, &resp, sizeof(resp));

	if (ret)
		return ret;
	*addr = (struct evr_ucma_addr){
		.node_guid = resp.node_guid,
		.ibdev_index = resp.ibdev_index,
		.port_num = resp.port_num,
		.pkey = resp.pkey,
		.src = resp.src,
		.dst = resp.dst,
		.src_len = addr_len(resp.src_size),
		.dst_len = addr_len(resp.dst_size),
	};
	return 0;
}

int evr_ucma_query_addr(int fd, uint32_t handle, struct evr_ucma_addr *addr)
{
	return query_addresses(fd, handle, EVR_UCMA_QUERY_ADDR, addr);
}

int evr_ucma_query_gid(int fd, uint32_t handle, struct evr_ucma_addr *addr)
{
	return query_addresses(fd, handle, EVR_UCMA_QUERY_GID, addr);
}

int evr_ucma_query_path(int fd, uint32_t handle, struct evr_ucma_resp_path *paths)
{
	struct evr_ucma_resp_path resp = { 0 };
	int ret = query(fd, handle, EVR_UCMA_QUERY_PATH, &resp, sizeof(resp));

	if (ret)
		return ret;
	if (resp.num_paths > EVR_UCMA_PATHS_MAX)
		resp.num_paths = EVR_UCMA_PATHS_MAX;
	*paths = resp;
	return 0;
}

int evr_ucma_connect(int fd, uint32_t handle, const struct evr_ucma_conn_param *param,
	const struct evr_ucma_ece *ece)
{
	struct evr_ucma_cmd_connect cmd = {
		.param = *param,
		.handle = handle,
		.ece = *ece,
	};

	return submit(fd, EVR_UCMA_CONNECT, &cmd, sizeof(cmd), 0);
}

int evr_ucma_listen(int fd, uint32_t handle, int backlog)
{
	struct evr_ucma_cmd_listen cmd = {
		.handle = handle,
		.backlog = (uint32_t)backlog,
	};

	return submit(fd, EVR_UCMA_LISTEN, &cmd, sizeof(cmd), 0);
}

int evr_ucma_accept(int fd, uint32_t handle, uint64_t uid, const struct evr_ucma_conn_param *param,
	const struct evr_ucma_ece *ece)
{
	struct evr_ucma_cmd_accept cmd = {
		.uid = uid,
		.handle = handle,
		.ece = *ece,
	};

	if (param)
		cmd.param = *param;
	return submit(fd, EVR_UCMA_ACCEPT, &cmd, sizeof(cmd), 0);
}

int evr_ucma_reject(int fd, uint32_t handle, const void *data, uint8_t len, uint8_t reason)
{
	struct evr_ucma_cmd_reject cmd = {
		.handle = handle,
		.private_data_len = len,
		.reason = reason,
	};

	if (len)
		memcpy(cmd.private_data, data, len);
	return submit(fd, EVR_UCMA_REJECT, &cmd, sizeof(cmd), 0);
}

int evr_ucma_disconnect(int fd, uint32_t handle)
{
	struct evr_ucma_cmd_disconnect cmd = { .handle = handle };

	return submit(fd, EVR_UCMA_DISCONNECT, &cmd, sizeof(cmd), 0);
}

int evr_ucma_init_qp_attr(
	int fd, uint32_t handle, uint32_t qp_state, struct ib_uverbs_qp_attr *attr)
{
	struct ib_uverbs_qp_attr resp = { 0 };
	struct evr_ucma_cmd_init_qp_attr cmd = {
		.response = user_ptr(&resp),
		.handle = handle,
		.qp_state = qp_state,
	};
	int ret = submit(fd, EVR_UCMA_INIT_QP_ATTR, &cmd, sizeof(cmd), sizeof(resp));

	if (!ret)
		*attr = resp;
	return ret;
}

int evr_ucma_notify(int fd, uint32_t handle, uint32_t event)
{
	struct evr_ucma_cmd_notify cmd = {
		.handle = handle,
		.event = event,
	};

	return submit(fd, EVR_UCMA_NOTIFY, &cmd, sizeof(cmd), 0);
}

int evr_ucma_join_mcast(int fd, uint32_t handle, uint64_t uid, const struct sockaddr *addr,
	size_t len, uint16_t join_flags, uint32_t *mc_handle)
{
	struct evr_ucma_resp_handle resp = { 0 };
	struct evr_ucma_cmd_join_mcast cmd = {
		.response = user_ptr(&resp),
		.uid = uid,
		.handle = handle,
		.addr_size = (uint16_t)len,
		.join_flags = join_flags,
	};
	int ret = copy_addr(&cmd.addr, addr, len);

	if (!ret)
		ret = submit(fd, EVR_UCMA_JOIN_MCAST, &cmd, sizeof(cmd), sizeof(resp));
	if (!ret)
		*mc_handle = resp.handle;
	return ret;
}

int evr_ucma_leave_mcast(int fd, uint32_t mc_handle, uint32_t *events_reported)
{
	return destroy(fd, EVR_UCMA_LEAVE_MCAST, mc_handle, events_reported);
}

int evr_ucma_set_option(
	int fd, uint32_t handle, uint32_t level, uint32_t name, const void *val, size_t len)
{
	struct evr_ucma_cmd_set_option cmd = {
		.optval = user_ptr(val),
		.handle = handle,
		.level = level,
		.optname = name,
		.optlen = (uint32_t)len,
	};

	if (len > UINT32_MAX)
		return -EINVAL;
	return submit(fd, EVR_UCMA_SET_OPTION, &cmd, sizeof(cmd), 0);
}

int evr_ucma_migrate_id(int fd, uint32_t handle, int from_fd, uint32_t *events_reported)
{
	struct evr_ucma_resp_events resp = { 0 };
	struct evr_ucma_cmd_migrate_id cmd = {
		.response = user_ptr(&resp),
		.handle = handle,
		.fd = (uint32_t)from_fd,
	};
	int ret = submit(fd, EVR_UCMA_MIGRATE_ID, &cmd, sizeof(cmd), sizeof(resp));

	if (!ret)
		*events_reported = resp.events_reported;
	return ret;
}

int evr_ucma_get_event(int fd, struct evr_ucma_resp_event *resp)
{
	struct evr_ucma_cmd_get_event cmd = { .response = user_ptr(resp) };

	memset(resp, 0, sizeof(*resp));
	return submit(fd, EVR_UCMA_GET_EVENT, &cmd, sizeof(cmd), sizeof(*resp));
}

/*
 * For commands that only newer kernels have. The others answer EINVAL, which may as well be about
 * an argument; but of an id that nobody has, a kernel that knows the command says ENOENT.
 */
static int submit_newer(int fd, enum evr_ucma_op op, void *cmd, uint32_t *handle, size_t len)
{
	int ret = submit(fd, op, cmd, len, 0);

	if (ret != -EINVAL)
		return ret;
	*handle = EVR_UCMA_NO_HANDLE;
	return submit(fd, op, cmd, len, 0) == -EINVAL ? -ENOSYS : -EINVAL;
}

int evr_ucma_resolve_service(int fd, uint32_t handle, const struct evr_ucma_service *service)
{
	struct evr_ucma_cmd_resolve_service cmd = {
		.handle = handle,
		.service = *service,
	};

	return submit_newer(fd, EVR_UCMA_RESOLVE_SERVICE, &cmd, &cmd.handle, sizeof(cmd));
}

int evr_ucma_write_event(int fd, uint32_t handle, uint32_t event, int status, uint64_t arg)
{
	struct evr_ucma_cmd_write_event cmd = {
		.handle = handle,
		.event = event,
		.status = (uint32_t)status,
		.arg = arg,
	};

	return submit_newer(fd, EVR_UCMA_WRITE_EVENT, &cmd, &cmd.handle, sizeof(cmd));
}

int evr_ucma_query_service(
	int fd, uint32_t handle, struct evr_ucma_resp_service *resp, uint32_t room)
{
	size_t len = sizeof(*resp) + room * sizeof(resp->rec[0]);

	resp->num = 0;
	return len > UINT16_MAX ? -EINVAL : query(fd, handle, EVR_UCMA_QUERY_SERVICE, resp, len);
}
