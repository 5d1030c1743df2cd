# Pages by hand, one per object, and an alias for each of its calls: a page that says where to look.
dist_man_MANS += \
	man/evrdma.7 \
	man/evrdma_base.3 \
	man/evrdma_buf.3 \
	man/evrdma_bufferevent.3 \
	man/evrdma_conn.3 \
	man/evrdma_dgram.3 \
	man/evrdma_domain.3 \
	man/evrdma_error.3 \
	man/evrdma_errors.7 \
	man/evrdma_guide.7 \
	man/evrdma_id.3 \
	man/evrdma_lifetime.7 \
	man/evrdma_listener.3 \
	man/evrdma_log.3 \
	man/evrdma_mcast.3 \
	man/evrdma_peer.3 \
	man/evrdma_porting.7 \
	man/evrdma_srq.3 \
	man/evrdma_stats.3 \
	man/evrdma_threads.7 \
	man/evrdma_work.3

# The tools install their pages there, under other names.
man1dir = $(mandir)/man1

EVR_BASE_ALIASES = \
	man/evrdma_base_options_init.3 \
	man/evrdma_base_options_init_sized.3 \
	man/evrdma_base_new.3 \
	man/evrdma_base_new_with_channel.3 \
	man/evrdma_base_set_event_cb.3 \
	man/evrdma_base_set_device_cb.3 \
	man/evrdma_async_event.3 \
	man/evrdma_base_close.3 \
	man/evrdma_base_shutdown.3 \
	man/evrdma_base_run_in_loop.3 \
	man/evrdma_base_get_event_base.3 \
	man/evrdma_base_get_channel.3 \
	man/evrdma_version.3 \
	man/evrdma_version_number.3
EVR_BUF_ALIASES = \
	man/evrdma_pool_options_init.3 \
	man/evrdma_pool_options_init_sized.3 \
	man/evrdma_pool_new.3 \
	man/evrdma_pool_new_with_options.3 \
	man/evrdma_pool_set_starved_cb.3 \
	man/evrdma_pool_trim.3 \
	man/evrdma_pool_free.3 \
	man/evrdma_pool_get.3 \
	man/evrdma_pool_buf_size.3 \
	man/evrdma_buf_new_reference.3 \
	man/evrdma_buf_new_shared.3 \
	man/evrdma_buf_ref.3 \
	man/evrdma_buf_unref.3 \
	man/evrdma_buf_data.3 \
	man/evrdma_buf_size.3 \
	man/evrdma_buf_set_user.3 \
	man/evrdma_buf_get_user.3
EVR_CONN_ALIASES = \
	man/evrdma_conn_options_init.3 \
	man/evrdma_conn_options_init_sized.3 \
	man/evrdma_conn_new.3 \
	man/evrdma_conn_setcb.3 \
	man/evrdma_conn_connect.3 \
	man/evrdma_conn_connect_hostname.3 \
	man/evrdma_conn_connect_addrinfo.3 \
	man/evrdma_conn_accept.3 \
	man/evrdma_conn_enable.3 \
	man/evrdma_conn_disable.3 \
	man/evrdma_conn_recv.3 \
	man/evrdma_conn_send.3 \
	man/evrdma_conn_send_space.3 \
	man/evrdma_conn_disconnect.3 \
	man/evrdma_conn_migrate.3 \
	man/evrdma_conn_close.3 \
	man/evrdma_conn_get_cm_id.3 \
	man/evrdma_conn_get_base.3 \
	man/evrdma_conn_get_local_addr.3 \
	man/evrdma_conn_get_peer_addr.3 \
	man/evrdma_addr_text.3 \
	man/evrdma_conn_get_initiator_depth.3 \
	man/evrdma_conn_get_private_data.3
EVR_DGRAM_ALIASES = \
	man/evrdma_dgram_options_init.3 \
	man/evrdma_dgram_options_init_sized.3 \
	man/evrdma_dgram_new.3 \
	man/evrdma_dgram_setcb.3 \
	man/evrdma_dgram_open.3 \
	man/evrdma_dgram_get_mtu.3 \
	man/evrdma_dgram_get_qp_num.3 \
	man/evrdma_dgram_send.3 \
	man/evrdma_dgram_send_to.3 \
	man/evrdma_dgram_reply.3 \
	man/evrdma_dgram_get_sender.3 \
	man/evrdma_dgram_accept.3 \
	man/evrdma_dgram_close.3 \
	man/evrdma_dgram_get_cm_id.3
EVR_DOMAIN_ALIASES = \
	man/evrdma_domain_new.3 \
	man/evrdma_domain_new_shared.3 \
	man/evrdma_domain_free.3
EVR_ERROR_ALIASES = \
	man/evrdma_error_text.3 \
	man/evrdma_step_text.3
EVR_ID_ALIASES = \
	man/evrdma_id_new.3 \
	man/evrdma_id_adopt.3 \
	man/evrdma_id_bind.3 \
	man/evrdma_id_listen.3 \
	man/evrdma_id_reject.3 \
	man/evrdma_id_leave.3 \
	man/evrdma_id_migrate.3 \
	man/evrdma_id_resolve_addr.3 \
	man/evrdma_id_resolve_route.3 \
	man/evrdma_id_connect.3 \
	man/evrdma_id_accept.3 \
	man/evrdma_id_join.3 \
	man/evrdma_id_disconnect.3 \
	man/evrdma_id_get_cm_id.3 \
	man/evrdma_id_close.3
EVR_LISTENER_ALIASES = \
	man/evrdma_listener_options_init.3 \
	man/evrdma_listener_options_init_sized.3 \
	man/evrdma_listener_new.3 \
	man/evrdma_listener_set_event_cb.3 \
	man/evrdma_listener_enable.3 \
	man/evrdma_listener_disable.3 \
	man/evrdma_listener_get_port.3 \
	man/evrdma_listener_get_cm_id.3 \
	man/evrdma_listener_close.3 \
	man/evrdma_request_get_private_data.3 \
	man/evrdma_request_get_cm_id.3 \
	man/evrdma_request_get_peer_addr.3 \
	man/evrdma_request_get_base.3 \
	man/evrdma_request_reject.3 \
	man/evrdma_request_move.3
EVR_MCAST_ALIASES = \
	man/evrdma_mcast_join.3 \
	man/evrdma_mcast_close.3 \
	man/evrdma_mcast_get_ah_attr.3 \
	man/evrdma_mcast_get_qp_num.3 \
	man/evrdma_mcast_get_qkey.3 \
	man/evrdma_mcast_get_addr.3
EVR_PEER_ALIASES = \
	man/evrdma_peer_options_init.3 \
	man/evrdma_peer_options_init_sized.3 \
	man/evrdma_peer_new.3 \
	man/evrdma_peer_new_sender.3 \
	man/evrdma_peer_close.3 \
	man/evrdma_peer_get_qp_num.3 \
	man/evrdma_peer_get_qkey.3 \
	man/evrdma_peer_get_private_data.3
EVR_LOG_ALIASES = \
	man/evrdma_set_log_cb.3
EVR_STATS_ALIASES = \
	man/evrdma_base_get_stats.3 \
	man/evrdma_base_get_stats_sized.3 \
	man/evrdma_base_get_traffic_stats.3 \
	man/evrdma_base_get_traffic_stats_sized.3 \
	man/evrdma_conn_get_stats.3 \
	man/evrdma_conn_get_stats_sized.3 \
	man/evrdma_dgram_get_stats.3 \
	man/evrdma_dgram_get_stats_sized.3 \
	man/evrdma_listener_get_stats.3 \
	man/evrdma_listener_get_stats_sized.3 \
	man/evrdma_pool_get_stats.3 \
	man/evrdma_pool_get_stats_sized.3 \
	man/evrdma_base_dump.3
EVR_BUFFEREVENT_ALIASES = \
	man/evrdma_bev_options_init.3 \
	man/evrdma_bev_options_init_sized.3 \
	man/evrdma_bufferevent_connect.3 \
	man/evrdma_bufferevent_connect_hostname.3 \
	man/evrdma_bufferevent_accept.3 \
	man/evrdma_bufferevent_listen.3 \
	man/evrdma_bufferevent_get_conn.3 \
	man/evrdma_bufferevent_get_error.3
EVR_SRQ_ALIASES = \
	man/evrdma_srq_new.3 \
	man/evrdma_srq_set_limit.3 \
	man/evrdma_srq_free.3
EVR_WORK_ALIASES = \
	man/evrdma_conn_submit.3 \
	man/evrdma_conn_expose.3 \
	man/evrdma_remote_pack.3 \
	man/evrdma_remote_unpack.3 \
	man/evrdma_remote_at.3

EVR_ALIASES = $(EVR_BASE_ALIASES) \
	$(EVR_BUF_ALIASES) \
	$(EVR_BUFFEREVENT_ALIASES) \
	$(EVR_CONN_ALIASES) \
	$(EVR_DGRAM_ALIASES) \
	$(EVR_DOMAIN_ALIASES) \
	$(EVR_ERROR_ALIASES) \
	$(EVR_ID_ALIASES) \
	$(EVR_LISTENER_ALIASES) \
	$(EVR_LOG_ALIASES) \
	$(EVR_MCAST_ALIASES) \
	$(EVR_PEER_ALIASES) \
	$(EVR_SRQ_ALIASES) \
	$(EVR_STATS_ALIASES) \
	$(EVR_WORK_ALIASES)
nodist_man_MANS = $(EVR_ALIASES)
CLEANFILES += $(EVR_ALIASES)

$(EVR_BASE_ALIASES):
	$(AM_V_GEN)$(MKDIR_P) man && echo ".so man3/evrdma_base.3" >$@
$(EVR_BUF_ALIASES):
	$(AM_V_GEN)$(MKDIR_P) man && echo ".so man3/evrdma_buf.3" >$@
$(EVR_BUFFEREVENT_ALIASES):
	$(AM_V_GEN)$(MKDIR_P) man && echo ".so man3/evrdma_bufferevent.3" >$@
$(EVR_CONN_ALIASES):
	$(AM_V_GEN)$(MKDIR_P) man && echo ".so man3/evrdma_conn.3" >$@
$(EVR_DGRAM_ALIASES):
	$(AM_V_GEN)$(MKDIR_P) man && echo ".so man3/evrdma_dgram.3" >$@
$(EVR_DOMAIN_ALIASES):
	$(AM_V_GEN)$(MKDIR_P) man && echo ".so man3/evrdma_domain.3" >$@
$(EVR_ERROR_ALIASES):
	$(AM_V_GEN)$(MKDIR_P) man && echo ".so man3/evrdma_error.3" >$@
$(EVR_ID_ALIASES):
	$(AM_V_GEN)$(MKDIR_P) man && echo ".so man3/evrdma_id.3" >$@
$(EVR_LISTENER_ALIASES):
	$(AM_V_GEN)$(MKDIR_P) man && echo ".so man3/evrdma_listener.3" >$@
$(EVR_MCAST_ALIASES):
	$(AM_V_GEN)$(MKDIR_P) man && echo ".so man3/evrdma_mcast.3" >$@
$(EVR_PEER_ALIASES):
	$(AM_V_GEN)$(MKDIR_P) man && echo ".so man3/evrdma_peer.3" >$@
$(EVR_LOG_ALIASES):
	$(AM_V_GEN)$(MKDIR_P) man && echo ".so man3/evrdma_log.3" >$@
$(EVR_STATS_ALIASES):
	$(AM_V_GEN)$(MKDIR_P) man && echo ".so man3/evrdma_stats.3" >$@
$(EVR_SRQ_ALIASES):
	$(AM_V_GEN)$(MKDIR_P) man && echo ".so man3/evrdma_srq.3" >$@
$(EVR_WORK_ALIASES):
	$(AM_V_GEN)$(MKDIR_P) man && echo ".so man3/evrdma_work.3" >$@

include man/cm.mk
