/* Prints everything that a program bakes in when it is compiled with the headers of the CM. */
#include <infiniband/ib.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <rdma/rsocket.h>
#include <stddef.h>
#include <stdio.h>

#define SIZE(type) printf("sizeof(" #type ") %zu\n", sizeof(type))
#define AT(type, field)                                                                            \
	printf(#type "." #field " at %zu, %zu bytes\n", offsetof(type, field),                     \
		sizeof(((type *)0)->field))
#define VALUE(name) printf(#name " %lld\n", (long long)(name))

static void id_and_addresses(void)
{
	SIZE(struct rdma_event_channel);
	AT(struct rdma_event_channel, fd);
	SIZE(struct rdma_ib_addr);
	AT(struct rdma_ib_addr, sgid);
	AT(struct rdma_ib_addr, dgid);
	AT(struct rdma_ib_addr, pkey);
	SIZE(struct rdma_addr);
	AT(struct rdma_addr, src_addr);
	AT(struct rdma_addr, src_sin);
	AT(struct rdma_addr, src_sin6);
	AT(struct rdma_addr, src_storage);
	AT(struct rdma_addr, dst_addr);
	AT(struct rdma_addr, dst_storage);
	AT(struct rdma_addr, addr.ibaddr);
	SIZE(struct rdma_route);
	AT(struct rdma_route, addr);
	AT(struct rdma_route, path_rec);
	AT(struct rdma_route, num_paths);
	SIZE(struct rdma_cm_id);
	AT(struct rdma_cm_id, verbs);
	AT(struct rdma_cm_id, channel);
	AT(struct rdma_cm_id, context);
	AT(struct rdma_cm_id, qp);
	AT(struct rdma_cm_id, route);
	AT(struct rdma_cm_id, ps);
	AT(struct rdma_cm_id, port_num);
	AT(struct rdma_cm_id, event);
	AT(struct rdma_cm_id, send_cq_channel);
	AT(struct rdma_cm_id, send_cq);
	AT(struct rdma_cm_id, recv_cq_channel);
	AT(struct rdma_cm_id, recv_cq);
	AT(struct rdma_cm_id, srq);
	AT(struct rdma_cm_id, pd);
	AT(struct rdma_cm_id, qp_type);
	SIZE(struct sockaddr_ib);
	AT(struct sockaddr_ib, sib_family);
	AT(struct sockaddr_ib, sib_pkey);
	AT(struct sockaddr_ib, sib_flowinfo);
	AT(struct sockaddr_ib, sib_addr);
	AT(struct sockaddr_ib, sib_sid);
	AT(struct sockaddr_ib, sib_sid_mask);
	AT(struct sockaddr_ib, sib_scope_id);
}

static void events_and_parameters(void)
{
	SIZE(struct rdma_conn_param);
	AT(struct rdma_conn_param, private_data);
	AT(struct rdma_conn_param, private_data_len);
	AT(struct rdma_conn_param, responder_resources);
	AT(struct rdma_conn_param, initiator_depth);
	AT(struct rdma_conn_param, flow_control);
	AT(struct rdma_conn_param, retry_count);
	AT(struct rdma_conn_param, rnr_retry_count);
	AT(struct rdma_conn_param, srq);
	AT(struct rdma_conn_param, qp_num);
	SIZE(struct rdma_ud_param);
	AT(struct rdma_ud_param, private_data);
	AT(struct rdma_ud_param, private_data_len);
	AT(struct rdma_ud_param, ah_attr);
	AT(struct rdma_ud_param, qp_num);
	AT(struct rdma_ud_param, qkey);
	SIZE(struct rdma_cm_event);
	AT(struct rdma_cm_event, id);
	AT(struct rdma_cm_event, listen_id);
	AT(struct rdma_cm_event, event);
	AT(struct rdma_cm_event, status);
	AT(struct rdma_cm_event, param.conn);
	AT(struct rdma_cm_event, param.ud);
	SIZE(struct rdma_addrinfo);
	AT(struct rdma_addrinfo, ai_flags);
	AT(struct rdma_addrinfo, ai_family);
	AT(struct rdma_addrinfo, ai_qp_type);
	AT(struct rdma_addrinfo, ai_port_space);
	AT(struct rdma_addrinfo, ai_src_len);
	AT(struct rdma_addrinfo, ai_dst_len);
	AT(struct rdma_addrinfo, ai_src_addr);
	AT(struct rdma_addrinfo, ai_dst_addr);
	AT(struct rdma_addrinfo, ai_src_canonname);
	AT(struct rdma_addrinfo, ai_dst_canonname);
	AT(struct rdma_addrinfo, ai_route_len);
	AT(struct rdma_addrinfo, ai_route);
	AT(struct rdma_addrinfo, ai_connect_len);
	AT(struct rdma_addrinfo, ai_connect);
	AT(struct rdma_addrinfo, ai_next);
	SIZE(struct rdma_cm_join_mc_attr_ex);
	AT(struct rdma_cm_join_mc_attr_ex, comp_mask);
	AT(struct rdma_cm_join_mc_attr_ex, join_flags);
	AT(struct rdma_cm_join_mc_attr_ex, addr);
}

static void event_types(void)
{
	VALUE(RDMA_CM_EVENT_ADDR_RESOLVED);
	VALUE(RDMA_CM_EVENT_ADDR_ERROR);
	VALUE(RDMA_CM_EVENT_ROUTE_RESOLVED);
	VALUE(RDMA_CM_EVENT_ROUTE_ERROR);
	VALUE(RDMA_CM_EVENT_CONNECT_REQUEST);
	VALUE(RDMA_CM_EVENT_CONNECT_RESPONSE);
	VALUE(RDMA_CM_EVENT_CONNECT_ERROR);
	VALUE(RDMA_CM_EVENT_UNREACHABLE);
	VALUE(RDMA_CM_EVENT_REJECTED);
	VALUE(RDMA_CM_EVENT_ESTABLISHED);
	VALUE(RDMA_CM_EVENT_DISCONNECTED);
	VALUE(RDMA_CM_EVENT_DEVICE_REMOVAL);
	VALUE(RDMA_CM_EVENT_MULTICAST_JOIN);
	VALUE(RDMA_CM_EVENT_MULTICAST_ERROR);
	VALUE(RDMA_CM_EVENT_ADDR_CHANGE);
	VALUE(RDMA_CM_EVENT_TIMEWAIT_EXIT);
}

static void constants(void)
{
	VALUE(RDMA_PS_IPOIB);
	VALUE(RDMA_PS_TCP);
	VALUE(RDMA_PS_UDP);
	VALUE(RDMA_PS_IB);
	VALUE(RDMA_IB_IP_PS_MASK);
	VALUE(RDMA_IB_IP_PORT_MASK);
	VALUE(RDMA_IB_IP_PS_TCP);
	VALUE(RDMA_IB_IP_PS_UDP);
	VALUE(RDMA_IB_PS_IB);
	VALUE(RDMA_UDP_QKEY);
	VALUE(RDMA_MAX_RESP_RES);
	VALUE(RDMA_MAX_INIT_DEPTH);
	VALUE(RAI_PASSIVE);
	VALUE(RAI_NUMERICHOST);
	VALUE(RAI_NOROUTE);
	VALUE(RAI_FAMILY);
	VALUE(RDMA_CM_JOIN_MC_ATTR_ADDRESS);
	VALUE(RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS);
	VALUE(RDMA_CM_JOIN_MC_ATTR_RESERVED);
	VALUE(RDMA_MC_JOIN_FLAG_FULLMEMBER);
	VALUE(RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER);
	VALUE(RDMA_MC_JOIN_FLAG_RESERVED);
	VALUE(RDMA_OPTION_ID);
	VALUE(RDMA_OPTION_IB);
	VALUE(RDMA_OPTION_ID_TOS);
	VALUE(RDMA_OPTION_ID_REUSEADDR);
	VALUE(RDMA_OPTION_ID_AFONLY);
	VALUE(RDMA_OPTION_ID_ACK_TIMEOUT);
	VALUE(RDMA_OPTION_IB_PATH);
	VALUE(AF_IB);
	VALUE(PF_IB);
}

int main(void)
{
	id_and_addresses();
	events_and_parameters();
	event_types();
	constants();
	return 0;
}
