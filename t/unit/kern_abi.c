/* Our description of the kernel's ABI against the kernel's own. */
#include "unit/unit.h"

#include "kern/ucma_abi.h"

#include <rdma/rdma_user_cm.h>

/* A command of ours starts with the header that the kernel's structure leaves out. */
#define COMMAND_SIZE(ours, theirs)                                                                 \
	ck_assert_uint_eq(sizeof(struct evr_ucma_cmd_##ours),                                      \
		sizeof(struct rdma_ucm_cmd_hdr) + sizeof(struct rdma_ucm_##theirs))
#define COMMAND(ours, theirs, field, their_field)                                                  \
	ck_assert_uint_eq(offsetof(struct evr_ucma_cmd_##ours, field),                             \
		sizeof(struct rdma_ucm_cmd_hdr) + offsetof(struct rdma_ucm_##theirs, their_field))
#define SAME_SIZE(ours, theirs)                                                                    \
	ck_assert_uint_eq(sizeof(struct evr_ucma_##ours), sizeof(struct rdma_ucm_##theirs))
#define SAME(ours, theirs, field, their_field)                                                     \
	ck_assert_uint_eq(offsetof(struct evr_ucma_##ours, field),                                 \
		offsetof(struct rdma_ucm_##theirs, their_field))
#define OP(name) ck_assert_uint_eq(EVR_UCMA_##name, RDMA_USER_CM_CMD_##name)

START_TEST(commands_have_the_kernels_numbers)
{
	OP(CREATE_ID);
	OP(DESTROY_ID);
	OP(RESOLVE_ROUTE);
	OP(CONNECT);
	OP(LISTEN);
	OP(ACCEPT);
	OP(REJECT);
	OP(DISCONNECT);
	OP(INIT_QP_ATTR);
	OP(GET_EVENT);
	OP(SET_OPTION);
	OP(NOTIFY);
	OP(LEAVE_MCAST);
	OP(MIGRATE_ID);
	OP(QUERY);
	OP(BIND);
	OP(RESOLVE_ADDR);
	OP(JOIN_MCAST);
	ck_assert_uint_eq(EVR_UCMA_QUERY_ADDR, RDMA_USER_CM_QUERY_ADDR);
	ck_assert_uint_eq(EVR_UCMA_QUERY_PATH, RDMA_USER_CM_QUERY_PATH);
	ck_assert_uint_eq(EVR_UCMA_QUERY_GID, RDMA_USER_CM_QUERY_GID);
	ck_assert_uint_eq(EVR_UCMA_PRIVATE_DATA_MAX, RDMA_MAX_PRIVATE_DATA);
}
END_TEST

START_TEST(the_header_is_the_kernels)
{
	ck_assert_uint_eq(sizeof(struct evr_ucma_hdr), sizeof(struct rdma_ucm_cmd_hdr));
	SAME(hdr, cmd_hdr, op, cmd);
	SAME(hdr, cmd_hdr, in_bytes, in);
	SAME(hdr, cmd_hdr, out_bytes, out);
}
END_TEST

START_TEST(commands_on_ids_are_laid_out_as_the_kernels)
{
	COMMAND_SIZE(create_id, create_id);
	COMMAND(create_id, create_id, uid, uid);
	COMMAND(create_id, create_id, response, response);
	COMMAND(create_id, create_id, ps, ps);
	COMMAND(create_id, create_id, qp_type, qp_type);
	COMMAND_SIZE(destroy, destroy_id);
	COMMAND(destroy, destroy_id, response, response);
	COMMAND(destroy, destroy_id, handle, id);
	COMMAND_SIZE(migrate_id, migrate_id);
	COMMAND(migrate_id, migrate_id, response, response);
	COMMAND(migrate_id, migrate_id, handle, id);
	COMMAND(migrate_id, migrate_id, fd, fd);
	COMMAND_SIZE(set_option, set_option);
	COMMAND(set_option, set_option, optval, optval);
	COMMAND(set_option, set_option, handle, id);
	COMMAND(set_option, set_option, level, level);
	COMMAND(set_option, set_option, optname, optname);
	COMMAND(set_option, set_option, optlen, optlen);
	COMMAND_SIZE(get_event, get_event);
	COMMAND(get_event, get_event, response, response);
	COMMAND_SIZE(notify, notify);
	COMMAND(notify, notify, handle, id);
	COMMAND(notify, notify, event, event);
}
END_TEST

START_TEST(commands_on_addresses_are_laid_out_as_the_kernels)
{
	ck_assert_uint_eq(
		sizeof(struct sockaddr_storage), sizeof(struct __kernel_sockaddr_storage));
	COMMAND_SIZE(bind, bind);
	COMMAND(bind, bind, handle, id);
	COMMAND(bind, bind, addr_size, addr_size);
	COMMAND(bind, bind, addr, addr);
	COMMAND_SIZE(resolve_addr, resolve_addr);
	COMMAND(resolve_addr, resolve_addr, handle, id);
	COMMAND(resolve_addr, resolve_addr, timeout_ms, timeout_ms);
	COMMAND(resolve_addr, resolve_addr, src_size, src_size);
	COMMAND(resolve_addr, resolve_addr, dst_size, dst_size);
	COMMAND(resolve_addr, resolve_addr, src, src_addr);
	COMMAND(resolve_addr, resolve_addr, dst, dst_addr);
	COMMAND_SIZE(resolve_route, resolve_route);
	COMMAND(resolve_route, resolve_route, handle, id);
	COMMAND(resolve_route, resolve_route, timeout_ms, timeout_ms);
	COMMAND_SIZE(query, query);
	COMMAND(query, query, response, response);
	COMMAND(query, query, handle, id);
	COMMAND(query, query, option, option);
	COMMAND_SIZE(join_mcast, join_mcast);
	COMMAND(join_mcast, join_mcast, response, response);
	COMMAND(join_mcast, join_mcast, uid, uid);
	COMMAND(join_mcast, join_mcast, handle, id);
	COMMAND(join_mcast, join_mcast, addr_size, addr_size);
	COMMAND(join_mcast, join_mcast, join_flags, join_flags);
	COMMAND(join_mcast, join_mcast, addr, addr);
}
END_TEST

START_TEST(commands_on_connections_are_laid_out_as_the_kernels)
{
	COMMAND_SIZE(connect, connect);
	COMMAND(connect, connect, param, conn_param);
	COMMAND(connect, connect, handle, id);
	COMMAND(connect, connect, ece, ece);
	COMMAND_SIZE(listen, listen);
	COMMAND(listen, listen, handle, id);
	COMMAND(listen, listen, backlog, backlog);
	COMMAND_SIZE(accept, accept);
	COMMAND(accept, accept, uid, uid);
	COMMAND(accept, accept, param, conn_param);
	COMMAND(accept, accept, handle, id);
	COMMAND(accept, accept, ece, ece);
	COMMAND_SIZE(reject, reject);
	COMMAND(reject, reject, handle, id);
	COMMAND(reject, reject, private_data_len, private_data_len);
	COMMAND(reject, reject, reason, reason);
	COMMAND(reject, reject, private_data, private_data);
	COMMAND(disconnect, disconnect, handle, id);
	COMMAND_SIZE(disconnect, disconnect);
	COMMAND_SIZE(init_qp_attr, init_qp_attr);
	COMMAND(init_qp_attr, init_qp_attr, response, response);
	COMMAND(init_qp_attr, init_qp_attr, handle, id);
	COMMAND(init_qp_attr, init_qp_attr, qp_state, qp_state);
}
END_TEST

START_TEST(parameters_are_laid_out_as_the_kernels)
{
	SAME_SIZE(conn_param, conn_param);
	SAME(conn_param, conn_param, qp_num, qp_num);
	SAME(conn_param, conn_param, qkey, qkey);
	SAME(conn_param, conn_param, private_data, private_data);
	SAME(conn_param, conn_param, private_data_len, private_data_len);
	SAME(conn_param, conn_param, srq, srq);
	SAME(conn_param, conn_param, responder_resources, responder_resources);
	SAME(conn_param, conn_param, initiator_depth, initiator_depth);
	SAME(conn_param, conn_param, flow_control, flow_control);
	SAME(conn_param, conn_param, retry_count, retry_count);
	SAME(conn_param, conn_param, rnr_retry_count, rnr_retry_count);
	SAME(conn_param, conn_param, valid, valid);
	SAME_SIZE(ud_param, ud_param);
	SAME(ud_param, ud_param, qp_num, qp_num);
	SAME(ud_param, ud_param, qkey, qkey);
	SAME(ud_param, ud_param, ah_attr, ah_attr);
	SAME(ud_param, ud_param, private_data, private_data);
	SAME(ud_param, ud_param, private_data_len, private_data_len);
	SAME_SIZE(ece, ece);
	SAME(ece, ece, vendor_id, vendor_id);
	SAME(ece, ece, attr_mod, attr_mod);
}
END_TEST

START_TEST(responses_are_laid_out_as_the_kernels)
{
	SAME_SIZE(resp_handle, create_id_resp);
	SAME(resp_handle, create_id_resp, handle, id);
	SAME_SIZE(resp_events, destroy_id_resp);
	SAME_SIZE(resp_events, migrate_resp);
	SAME_SIZE(resp_addr, query_addr_resp);
	SAME(resp_addr, query_addr_resp, node_guid, node_guid);
	SAME(resp_addr, query_addr_resp, port_num, port_num);
	SAME(resp_addr, query_addr_resp, pkey, pkey);
	SAME(resp_addr, query_addr_resp, src_size, src_size);
	SAME(resp_addr, query_addr_resp, dst_size, dst_size);
	SAME(resp_addr, query_addr_resp, src, src_addr);
	SAME(resp_addr, query_addr_resp, dst, dst_addr);
	SAME(resp_addr, query_addr_resp, ibdev_index, ibdev_index);
	SAME(resp_path, query_path_resp, num_paths, num_paths);
	SAME(resp_path, query_path_resp, path, path_data);
	SAME_SIZE(resp_event, event_resp);
	SAME(resp_event, event_resp, uid, uid);
	SAME(resp_event, event_resp, handle, id);
	SAME(resp_event, event_resp, event, event);
	SAME(resp_event, event_resp, status, status);
	SAME(resp_event, event_resp, param, param);
	SAME(resp_event, event_resp, ece, ece);
}
END_TEST

/* The kernel's header of today does not have these: the figures stand for it. */
#define NEWER_SIZE(type, size) ck_assert_uint_eq(sizeof(struct evr_ucma_##type), (size))
#define NEWER(type, field, at) ck_assert_uint_eq(offsetof(struct evr_ucma_##type, field), (at))

START_TEST(commands_of_newer_kernels_are_laid_out_as_there)
{
	ck_assert_uint_eq(EVR_UCMA_RESOLVE_SERVICE, 23);
	ck_assert_uint_eq(EVR_UCMA_WRITE_EVENT, 24);
	ck_assert_uint_eq(EVR_UCMA_QUERY_SERVICE, 3);
	ck_assert_uint_eq(EVR_UCMA_SERVICE_ID, 1);
	ck_assert_uint_eq(EVR_UCMA_SERVICE_NAME, 2);
	NEWER_SIZE(cmd_resolve_service, 96);
	NEWER(cmd_resolve_service, handle, 8);
	NEWER(cmd_resolve_service, service.id, 16);
	NEWER(cmd_resolve_service, service.name, 24);
	NEWER(cmd_resolve_service, service.flags, 88);
	/* The union is as large as the kernel's ud_param; programs have sent 8 bytes more. */
	NEWER_SIZE(cmd_write_event, 328);
	NEWER(cmd_write_event, handle, 8);
	NEWER(cmd_write_event, event, 16);
	NEWER(cmd_write_event, status, 20);
	NEWER(cmd_write_event, arg, 24);
}
END_TEST

START_TEST(responses_of_newer_kernels_are_laid_out_as_there)
{
	NEWER_SIZE(resp_service, 8);
	NEWER(resp_service, num, 0);
	NEWER(resp_service, rec, 8);
	NEWER_SIZE(service_rec, 176);
	NEWER(service_rec, id, 0);
	NEWER(service_rec, gid, 8);
	NEWER(service_rec, pkey, 24);
	NEWER(service_rec, lease, 28);
	NEWER(service_rec, key, 32);
	NEWER(service_rec, name, 48);
	NEWER(service_rec, data, 112);
	NEWER_SIZE(resp_event, 336);
	NEWER(resp_event, param.arg32, 20);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		commands_have_the_kernels_numbers,
		the_header_is_the_kernels,
		commands_on_ids_are_laid_out_as_the_kernels,
		commands_on_addresses_are_laid_out_as_the_kernels,
		commands_on_connections_are_laid_out_as_the_kernels,
		parameters_are_laid_out_as_the_kernels,
		responses_are_laid_out_as_the_kernels,
		commands_of_newer_kernels_are_laid_out_as_there,
		responses_of_newer_kernels_are_laid_out_as_there,
	};

	return unit_main("kern_abi", tests, sizeof(tests) / sizeof(tests[0]), NULL, NULL);
}
