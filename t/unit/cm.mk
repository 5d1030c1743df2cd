# Tests of lib/util, lib/kern and lib/cm.
EVR_UNIT_TESTS += t/unit/util_fdmap.t t/unit/util_ptrmap.t t/unit/util_clock.t
EVR_UNIT_TESTS += t/unit/kern_abi.t t/unit/kern_commands.t t/unit/kern_event.t
t_unit_util_fdmap_t_SOURCES = t/unit/util_fdmap.c
t_unit_util_fdmap_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_util_fdmap_t_LDADD = libevr_test.la libevr_util.la $(CHECK_LIBS)
t_unit_util_clock_t_SOURCES = t/unit/util_clock.c
t_unit_util_clock_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_util_clock_t_LDADD = libevr_test.la $(CHECK_LIBS)
t_unit_util_ptrmap_t_SOURCES = t/unit/util_ptrmap.c
t_unit_util_ptrmap_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_util_ptrmap_t_LDADD = libevr_test.la libevr_util.la $(CHECK_LIBS)
t_unit_kern_abi_t_SOURCES = t/unit/kern_abi.c
t_unit_kern_abi_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_kern_abi_t_LDADD = libevr_test.la $(CHECK_LIBS)
t_unit_kern_commands_t_SOURCES = t/unit/kern_commands.c
t_unit_kern_commands_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_kern_commands_t_LDADD = libevr_test.la libevr_kern.la $(CHECK_LIBS)
t_unit_kern_event_t_SOURCES = t/unit/kern_event.c
t_unit_kern_event_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_kern_event_t_LDADD = libevr_test.la libevr_kern.la $(CHECK_LIBS)

# lib/cm, on the fake
EVR_UNIT_CM_LIBS = libevr_test.la libevr_cm.la libevr_fake.la $(CHECK_LIBS)
EVR_UNIT_TESTS += \
	t/unit/cm_addr.t \
	t/unit/cm_addrinfo.t \
	t/unit/cm_bugs.t \
	t/unit/cm_channel.t \
	t/unit/cm_connect.t \
	t/unit/cm_device.t \
	t/unit/cm_ece.t \
	t/unit/cm_ep.t \
	t/unit/cm_errors.t \
	t/unit/cm_event.t \
	t/unit/cm_event_order.t \
	t/unit/cm_event_table.t \
	t/unit/cm_event_map.t \
	t/unit/cm_fault.t \
	t/unit/cm_fork.t \
	t/unit/cm_ib.t \
	t/unit/cm_id.t \
	t/unit/cm_join_ex.t \
	t/unit/cm_mcast.t \
	t/unit/cm_qp.t \
	t/unit/cm_request.t \
	t/unit/cm_service.t \
	t/unit/cm_srq.t \
	t/unit/cm_sync.t \
	t/unit/cm_sync_pair.t \
	t/unit/cm_trips.t \
	t/unit/cm_verbs.t \
	t/unit/cm_xrc.t
t_unit_cm_addr_t_SOURCES = t/unit/cm_addr.c
t_unit_cm_addr_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_cm_addr_t_LDADD = $(EVR_UNIT_CM_LIBS)
t_unit_cm_addrinfo_t_SOURCES = t/unit/cm_addrinfo.c
t_unit_cm_addrinfo_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_cm_addrinfo_t_LDADD = $(EVR_UNIT_CM_LIBS)
t_unit_cm_bugs_t_SOURCES = t/unit/cm_bugs.c
t_unit_cm_bugs_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_cm_bugs_t_LDADD = $(EVR_UNIT_CM_LIBS)
t_unit_cm_channel_t_SOURCES = t/unit/cm_channel.c
t_unit_cm_channel_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_cm_channel_t_LDADD = $(EVR_UNIT_CM_LIBS)
t_unit_cm_connect_t_SOURCES = t/unit/cm_connect.c
t_unit_cm_connect_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_cm_connect_t_LDADD = $(EVR_UNIT_CM_LIBS)
t_unit_cm_device_t_SOURCES = t/unit/cm_device.c
t_unit_cm_device_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_cm_device_t_LDADD = $(EVR_UNIT_CM_LIBS)
EVR_ERRORS_ROWS = \
	t/errors/addr.def t/errors/all.def t/errors/connect.def t/errors/ep.def t/errors/id.def \
	t/errors/mcast.def t/errors/qp.def t/errors/service.def
EVR_ERRORS = t/errors/errors.h t/errors/fixture.c t/errors/table.c $(EVR_ERRORS_ROWS)
t_unit_cm_errors_t_SOURCES = t/unit/cm_errors.c t/unit/cm_errors.def $(EVR_ERRORS)
t_unit_cm_errors_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_cm_errors_t_LDADD = $(EVR_UNIT_CM_LIBS)
t_unit_cm_event_t_SOURCES = t/unit/cm_event.c
t_unit_cm_event_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_cm_event_t_LDADD = $(EVR_UNIT_CM_LIBS)
t_unit_cm_event_map_t_SOURCES = t/unit/cm_event_map.c
t_unit_cm_event_map_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_cm_event_map_t_LDADD = $(EVR_UNIT_CM_LIBS)
t_unit_cm_ib_t_SOURCES = t/unit/cm_ib.c
t_unit_cm_ib_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_cm_ib_t_LDADD = $(EVR_UNIT_CM_LIBS)
t_unit_cm_event_order_t_SOURCES = t/unit/cm_event_order.c
t_unit_cm_event_order_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_cm_event_order_t_LDADD = $(EVR_UNIT_CM_LIBS)
t_unit_cm_event_table_t_SOURCES = t/unit/cm_event_table.c
t_unit_cm_event_table_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_cm_event_table_t_LDADD = $(EVR_UNIT_CM_LIBS)
t_unit_cm_id_t_SOURCES = t/unit/cm_id.c
t_unit_cm_id_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_cm_id_t_LDADD = $(EVR_UNIT_CM_LIBS)
EVR_JOIN_EX_SOURCES = \
	t/interop/end.c t/interop/end.h \
	t/interop/join_ex.c t/interop/join_ex.h
t_unit_cm_join_ex_t_SOURCES = $(EVR_JOIN_EX_SOURCES) t/unit/cm_join_ex.c
t_unit_cm_join_ex_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_cm_join_ex_t_LDADD = $(EVR_UNIT_CM_LIBS)
t_unit_cm_mcast_t_SOURCES = t/unit/cm_mcast.c
t_unit_cm_mcast_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_cm_mcast_t_LDADD = $(EVR_UNIT_CM_LIBS)
t_unit_cm_qp_t_SOURCES = t/unit/cm_qp.c
t_unit_cm_qp_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_cm_qp_t_LDADD = $(EVR_UNIT_CM_LIBS)
t_unit_cm_service_t_SOURCES = t/unit/cm_service.c
t_unit_cm_service_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_cm_service_t_LDADD = $(EVR_UNIT_CM_LIBS)
t_unit_cm_sync_t_SOURCES = t/unit/cm_sync.c
t_unit_cm_sync_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_cm_sync_t_LDADD = $(EVR_UNIT_CM_LIBS)
t_unit_cm_fork_t_SOURCES = t/unit/cm_fork.c
t_unit_cm_fork_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_cm_fork_t_LDADD = $(EVR_UNIT_CM_LIBS)
t_unit_cm_fault_t_SOURCES = t/unit/cm_fault.c \
	t/unit/cm_scenario.c t/unit/cm_scenario.h t/unit/cm_scenario_conn.c \
	t/unit/cm_scenario_dgram.c t/unit/cm_scenario_service.c t/unit/cm_scenario_sync.c \
	t/unit/cm_step.c t/unit/cm_step.h \
	 $(EVR_FAKE_HEAP)
t_unit_cm_fault_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_cm_fault_t_LDFLAGS = $(AM_LDFLAGS) $(EVR_FAKE_HEAP_WRAP)
t_unit_cm_fault_t_LDADD = $(EVR_UNIT_CM_LIBS)
t_unit_cm_ece_t_SOURCES = t/unit/cm_ece.c
t_unit_cm_ece_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_cm_ece_t_LDADD = $(EVR_UNIT_CM_LIBS)
t_unit_cm_ep_t_SOURCES = t/unit/cm_ep.c
t_unit_cm_ep_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_cm_ep_t_LDADD = $(EVR_UNIT_CM_LIBS)
t_unit_cm_request_t_SOURCES = t/unit/cm_request.c
t_unit_cm_request_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_cm_request_t_LDADD = $(EVR_UNIT_CM_LIBS)
t_unit_cm_trips_t_SOURCES = t/unit/cm_trips.c
t_unit_cm_trips_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_cm_trips_t_LDADD = $(EVR_UNIT_CM_LIBS)
t_unit_cm_srq_t_SOURCES = t/unit/cm_srq.c
t_unit_cm_srq_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_cm_srq_t_LDADD = $(EVR_UNIT_CM_LIBS)
t_unit_cm_verbs_t_SOURCES = t/unit/cm_verbs.c
t_unit_cm_verbs_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_cm_verbs_t_LDADD = $(EVR_UNIT_CM_LIBS)
t_unit_cm_sync_pair_t_SOURCES = t/unit/cm_sync_pair.c
t_unit_cm_sync_pair_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_cm_sync_pair_t_LDADD = $(EVR_UNIT_CM_LIBS)
t_unit_cm_xrc_t_SOURCES = t/unit/cm_xrc.c
t_unit_cm_xrc_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_cm_xrc_t_LDADD = $(EVR_UNIT_CM_LIBS)
