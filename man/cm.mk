# The CM's pages: one per topic, and an alias for each other call of it. They are installed under the
# library's own folder, like its headers: the distribution has pages of the same names.
EVR_CM_PAGES3 = \
	man/rdma_accept.3 \
	man/rdma_bind_addr.3 \
	man/rdma_connect.3 \
	man/rdma_create_ep.3 \
	man/rdma_create_event_channel.3 \
	man/rdma_create_id.3 \
	man/rdma_create_qp.3 \
	man/rdma_create_srq.3 \
	man/rdma_get_cm_event.3 \
	man/rdma_get_devices.3 \
	man/rdma_get_request.3 \
	man/rdma_get_send_comp.3 \
	man/rdma_getaddrinfo.3 \
	man/rdma_join_multicast.3 \
	man/rdma_join_multicast_ex.3 \
	man/rdma_listen.3 \
	man/rdma_post_send.3 \
	man/rdma_reg_msgs.3 \
	man/rdma_resolve_addr.3 \
	man/rdma_resolve_addrinfo.3 \
	man/rdma_set_local_ece.3 \
	man/rdma_set_option.3 \
	man/rdma_write_cm_event.3
EVR_CM_PAGES7 = man/rdma_cm.7 man/rsocket.7 man/librspreload.7

EVR_CM_ACCEPT_ALIASES = \
	man/rdma_reject.3 \
	man/rdma_reject_ece.3
EVR_CM_ADDR_ALIASES = \
	man/rdma_get_dst_port.3 \
	man/rdma_get_local_addr.3 \
	man/rdma_get_peer_addr.3 \
	man/rdma_get_src_port.3
EVR_CM_CONNECT_ALIASES = \
	man/rdma_disconnect.3 \
	man/rdma_establish.3 \
	man/rdma_notify.3
EVR_CM_EP_ALIASES = man/rdma_destroy_ep.3
EVR_CM_CHANNEL_ALIASES = man/rdma_destroy_event_channel.3
EVR_CM_ID_ALIASES = \
	man/rdma_destroy_id.3 \
	man/rdma_migrate_id.3
EVR_CM_QP_ALIASES = \
	man/rdma_create_qp_ex.3 \
	man/rdma_destroy_qp.3 \
	man/rdma_init_qp_attr.3
EVR_CM_SRQ_ALIASES = \
	man/rdma_create_srq_ex.3 \
	man/rdma_destroy_srq.3
EVR_CM_EVENT_ALIASES = \
	man/rdma_ack_cm_event.3 \
	man/rdma_event_str.3
EVR_CM_DEVICE_ALIASES = man/rdma_free_devices.3
EVR_CM_COMP_ALIASES = man/rdma_get_recv_comp.3
EVR_CM_ADDRINFO_ALIASES = man/rdma_freeaddrinfo.3
EVR_CM_MCAST_ALIASES = man/rdma_leave_multicast.3
EVR_CM_POST_ALIASES = \
	man/rdma_post_read.3 \
	man/rdma_post_readv.3 \
	man/rdma_post_recv.3 \
	man/rdma_post_recvv.3 \
	man/rdma_post_sendv.3 \
	man/rdma_post_ud_send.3 \
	man/rdma_post_write.3 \
	man/rdma_post_writev.3
EVR_CM_REG_ALIASES = \
	man/rdma_dereg_mr.3 \
	man/rdma_reg_read.3 \
	man/rdma_reg_write.3 \
	man/rdma_seterrno.3
EVR_CM_ROUTE_ALIASES = man/rdma_resolve_route.3
EVR_CM_LOOKUP_ALIASES = man/rdma_query_addrinfo.3
EVR_CM_ECE_ALIASES = man/rdma_get_remote_ece.3

EVR_CM_ALIASES = $(EVR_CM_ACCEPT_ALIASES) \
	$(EVR_CM_ADDR_ALIASES) \
	$(EVR_CM_CONNECT_ALIASES) \
	$(EVR_CM_EP_ALIASES) \
	$(EVR_CM_CHANNEL_ALIASES) \
	$(EVR_CM_ID_ALIASES) \
	$(EVR_CM_QP_ALIASES) \
	$(EVR_CM_SRQ_ALIASES) \
	$(EVR_CM_EVENT_ALIASES) \
	$(EVR_CM_DEVICE_ALIASES) \
	$(EVR_CM_COMP_ALIASES) \
	$(EVR_CM_ADDRINFO_ALIASES) \
	$(EVR_CM_MCAST_ALIASES) \
	$(EVR_CM_POST_ALIASES) \
	$(EVR_CM_REG_ALIASES) \
	$(EVR_CM_ROUTE_ALIASES) \
	$(EVR_CM_LOOKUP_ALIASES) \
	$(EVR_CM_ECE_ALIASES)

if !SYSTEM_RDMACM
cmman3dir = $(pkgdatadir)/man/man3
dist_cmman3_DATA = $(EVR_CM_PAGES3)
nodist_cmman3_DATA = $(EVR_CM_ALIASES)
cmman7dir = $(pkgdatadir)/man/man7
dist_cmman7_DATA = $(EVR_CM_PAGES7)
else
EXTRA_DIST += $(EVR_CM_PAGES3) $(EVR_CM_PAGES7)
endif
CLEANFILES += $(EVR_CM_ALIASES)

$(EVR_CM_ACCEPT_ALIASES):
	$(AM_V_GEN)$(MKDIR_P) man && echo ".so man3/rdma_accept.3" >$@
$(EVR_CM_ADDR_ALIASES):
	$(AM_V_GEN)$(MKDIR_P) man && echo ".so man3/rdma_bind_addr.3" >$@
$(EVR_CM_CONNECT_ALIASES):
	$(AM_V_GEN)$(MKDIR_P) man && echo ".so man3/rdma_connect.3" >$@
$(EVR_CM_EP_ALIASES):
	$(AM_V_GEN)$(MKDIR_P) man && echo ".so man3/rdma_create_ep.3" >$@
$(EVR_CM_CHANNEL_ALIASES):
	$(AM_V_GEN)$(MKDIR_P) man && echo ".so man3/rdma_create_event_channel.3" >$@
$(EVR_CM_ID_ALIASES):
	$(AM_V_GEN)$(MKDIR_P) man && echo ".so man3/rdma_create_id.3" >$@
$(EVR_CM_QP_ALIASES):
	$(AM_V_GEN)$(MKDIR_P) man && echo ".so man3/rdma_create_qp.3" >$@
$(EVR_CM_SRQ_ALIASES):
	$(AM_V_GEN)$(MKDIR_P) man && echo ".so man3/rdma_create_srq.3" >$@
$(EVR_CM_EVENT_ALIASES):
	$(AM_V_GEN)$(MKDIR_P) man && echo ".so man3/rdma_get_cm_event.3" >$@
$(EVR_CM_DEVICE_ALIASES):
	$(AM_V_GEN)$(MKDIR_P) man && echo ".so man3/rdma_get_devices.3" >$@
$(EVR_CM_COMP_ALIASES):
	$(AM_V_GEN)$(MKDIR_P) man && echo ".so man3/rdma_get_send_comp.3" >$@
$(EVR_CM_ADDRINFO_ALIASES):
	$(AM_V_GEN)$(MKDIR_P) man && echo ".so man3/rdma_getaddrinfo.3" >$@
$(EVR_CM_MCAST_ALIASES):
	$(AM_V_GEN)$(MKDIR_P) man && echo ".so man3/rdma_join_multicast.3" >$@
$(EVR_CM_POST_ALIASES):
	$(AM_V_GEN)$(MKDIR_P) man && echo ".so man3/rdma_post_send.3" >$@
$(EVR_CM_REG_ALIASES):
	$(AM_V_GEN)$(MKDIR_P) man && echo ".so man3/rdma_reg_msgs.3" >$@
$(EVR_CM_ROUTE_ALIASES):
	$(AM_V_GEN)$(MKDIR_P) man && echo ".so man3/rdma_resolve_addr.3" >$@
$(EVR_CM_LOOKUP_ALIASES):
	$(AM_V_GEN)$(MKDIR_P) man && echo ".so man3/rdma_resolve_addrinfo.3" >$@
$(EVR_CM_ECE_ALIASES):
	$(AM_V_GEN)$(MKDIR_P) man && echo ".so man3/rdma_set_local_ece.3" >$@
