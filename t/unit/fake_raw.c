#include "unit/fake_raw.h"

#include "kern/sys.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>

int raw_open(void)
{
	int fd = evr_sys->open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);

	if (fd >= 0)
		ck_assert_int_eq(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	return fd;
}

int raw_close(int fd)
{
	return evr_sys->close(fd);
}

int raw_command(int fd, uint32_t cmd, const void *in, size_t in_len, size_t out_len)
{
	struct rdma_ucm_cmd_hdr hdr = {
		.cmd = cmd, .in = (uint16_t)in_len, .out = (uint16_t)out_len
	};
	char buf[400];
	ssize_t n;

	memcpy(buf, &hdr, sizeof(hdr));
	memcpy(buf + sizeof(hdr), in, in_len);
	n = evr_sys->write(fd, buf, sizeof(hdr) + in_len);
	if (n < 0)
		return (int)n;
	ck_assert_int_eq(n, (ssize_t)(sizeof(hdr) + in_len));
	return 0;
}

#define RUN(fd, cmd, in, out_len) raw_command((fd), (cmd), &(in), sizeof(in), (out_len))

uint32_t raw_create(int fd, uint64_t uid, uint16_t ps)
{
	struct rdma_ucm_create_id_resp resp = { 0 };
	struct rdma_ucm_create_id cmd = { .uid = uid, .response = (uintptr_t)&resp, .ps = ps };

	ck_assert_int_eq(RUN(fd, RDMA_USER_CM_CMD_CREATE_ID, cmd, sizeof(resp)), 0);
	return resp.id;
}

int raw_destroy(int fd, uint32_t id)
{
	struct rdma_ucm_destroy_id_resp resp = { 0 };
	struct rdma_ucm_destroy_id cmd = { .response = (uintptr_t)&resp, .id = id };
	int err = RUN(fd, RDMA_USER_CM_CMD_DESTROY_ID, cmd, sizeof(resp));

	return err ? err : (int)resp.events_reported;
}

static uint16_t make_addr(void *out, const char *ip, uint16_t port)
{
	struct sockaddr_in6 *in6 = out;
	struct sockaddr_in *in = out;

	if (strchr(ip, ':')) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		ck_assert_int_eq(inet_pton(AF_INET6, ip, &in6->sin6_addr), 1);
		return sizeof(*in6);
	}
	in->sin_family = AF_INET;
	in->sin_port = htons(port);
	ck_assert_int_eq(inet_pton(AF_INET, ip, &in->sin_addr), 1);
	return sizeof(*in);
}

int raw_bind(int fd, uint32_t id, const char *ip, uint16_t port)
{
	struct rdma_ucm_bind cmd = { .id = id };

	cmd.addr_size = make_addr(&cmd.addr, ip, port);
	return RUN(fd, RDMA_USER_CM_CMD_BIND, cmd, 0);
}

int raw_resolve(int fd, uint32_t id, const char *ip, uint16_t port)
{
	struct rdma_ucm_resolve_addr cmd = { .id = id, .timeout_ms = 2000 };

	cmd.dst_size = make_addr(&cmd.dst_addr, ip, port);
	return RUN(fd, RDMA_USER_CM_CMD_RESOLVE_ADDR, cmd, 0);
}

int raw_route(int fd, uint32_t id)
{
	struct rdma_ucm_resolve_route cmd = { .id = id, .timeout_ms = 2000 };

	return RUN(fd, RDMA_USER_CM_CMD_RESOLVE_ROUTE, cmd, 0);
}

static struct rdma_ucm_conn_param make_param(uint32_t qp_num, const void *data, uint8_t len)
{
	struct rdma_ucm_conn_param param = {
		.qp_num = qp_num,
		.private_data_len = len,
		.responder_resources = 2,
		.initiator_depth = 3,
		.retry_count = 5,
		.rnr_retry_count = 6,
		.valid = 1,
	};

	if (len)
		memcpy(param.private_data, data, len);
	return param;
}

int raw_connect(int fd, uint32_t id, uint32_t qp_num, const void *data, uint8_t len)
{
	struct rdma_ucm_connect cmd = { .conn_param = make_param(qp_num, data, len), .id = id };

	return RUN(fd, RDMA_USER_CM_CMD_CONNECT, cmd, 0);
}

int raw_listen(int fd, uint32_t id, uint32_t backlog)
{
	struct rdma_ucm_listen cmd = { .id = id, .backlog = backlog };

	return RUN(fd, RDMA_USER_CM_CMD_LISTEN, cmd, 0);
}

int raw_accept(int fd, uint32_t id, uint64_t uid, uint32_t qp_num, const void *data, uint8_t len)
{
	struct rdma_ucm_accept cmd = {
		.uid = uid, .conn_param = make_param(qp_num, data, len), .id = id
	};

	return RUN(fd, RDMA_USER_CM_CMD_ACCEPT, cmd, 0);
}

int raw_confirm(int fd, uint32_t id)
{
	struct rdma_ucm_accept cmd = { .id = id };

	return RUN(fd, RDMA_USER_CM_CMD_ACCEPT, cmd, 0);
}

int raw_reject(int fd, uint32_t id, const void *data, uint8_t len)
{
	struct rdma_ucm_reject cmd = { .id = id, .private_data_len = len };

	if (len)
		memcpy(cmd.private_data, data, len);
	return RUN(fd, RDMA_USER_CM_CMD_REJECT, cmd, 0);
}

int raw_disconnect(int fd, uint32_t id)
{
	struct rdma_ucm_disconnect cmd = { .id = id };

	return RUN(fd, RDMA_USER_CM_CMD_DISCONNECT, cmd, 0);
}

int raw_event(int fd, struct rdma_ucm_event_resp *event)
{
	struct rdma_ucm_get_event cmd = { .response = (uintptr_t)event };

	memset(event, 0, sizeof(*event));
	return RUN(fd, RDMA_USER_CM_CMD_GET_EVENT, cmd, sizeof(*event));
}

struct rdma_ucm_event_resp raw_expect(int fd, enum raw_event type)
{
	struct rdma_ucm_event_resp event;

	ck_assert(raw_readable(fd));
	ck_assert_int_eq(raw_event(fd, &event), 0);
	ck_assert_uint_eq(event.event, type);
	return event;
}

bool raw_readable(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	ck_assert_int_ge(poll(&pfd, 1, 0), 0);
	return pfd.revents & POLLIN;
}

uint32_t raw_listener(int fd, uint16_t ps, const char *ip)
{
	uint32_t id = raw_create(fd, 1, ps);

	ck_assert_int_eq(raw_bind(fd, id, ip, RAW_PORT), 0);
	ck_assert_int_eq(raw_listen(fd, id, 0), 0);
	return id;
}

uint32_t raw_resolved(int fd, uint64_t uid, uint16_t ps, const char *ip)
{
	uint32_t id = raw_create(fd, uid, ps);

	ck_assert_int_eq(raw_resolve(fd, id, ip, RAW_PORT), 0);
	ck_assert_uint_eq(raw_expect(fd, RAW_ADDR_RESOLVED).uid, uid);
	ck_assert_int_eq(raw_route(fd, id), 0);
	raw_expect(fd, RAW_ROUTE_RESOLVED);
	return id;
}

struct raw_pair raw_connected(int fd, const char *ip, uint32_t client_qp, uint32_t server_qp)
{
	struct raw_pair pair;

	pair.listener = raw_listener(fd, RDMA_PS_TCP, ip);
	pair.client = raw_resolved(fd, 2, RDMA_PS_TCP, ip);
	ck_assert_int_eq(raw_connect(fd, pair.client, client_qp, NULL, 0), 0);
	pair.server = raw_expect(fd, RAW_CONNECT_REQUEST).id;
	ck_assert_int_eq(raw_accept(fd, pair.server, 3, server_qp, NULL, 0), 0);
	raw_expect(fd, RAW_CONNECT_RESPONSE);
	ck_assert_int_eq(raw_confirm(fd, pair.client), 0);
	ck_assert_uint_eq(raw_expect(fd, RAW_ESTABLISHED).uid, 3);
	return pair;
}

void raw_pair_destroy(int fd, const struct raw_pair *pair)
{
	ck_assert_int_ge(raw_destroy(fd, pair->client), 0);
	ck_assert_int_ge(raw_destroy(fd, pair->server), 0);
	ck_assert_int_ge(raw_destroy(fd, pair->listener), 0);
}
