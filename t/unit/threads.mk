# Calls in parallel; ThreadSanitizer watches these, see t/check.sh.
EVR_THREADS_TESTS = t/unit/cm_threads.t t/unit/cm_threads_conn.t t/unit/cm_threads_device.t
EVR_UNIT_TESTS += $(EVR_THREADS_TESTS)
t_unit_cm_threads_t_SOURCES = t/unit/cm_threads.c
t_unit_cm_threads_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_cm_threads_t_LDADD = $(EVR_UNIT_CM_LIBS)
t_unit_cm_threads_conn_t_SOURCES = t/unit/cm_threads_conn.c
t_unit_cm_threads_conn_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_cm_threads_conn_t_LDADD = $(EVR_UNIT_CM_LIBS)
t_unit_cm_threads_device_t_SOURCES = t/unit/cm_threads_device.c
t_unit_cm_threads_device_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_cm_threads_device_t_LDADD = $(EVR_UNIT_CM_LIBS)
EVR_THREADS_TESTS += t/unit/rs_threads.t
t_unit_rs_threads_t_SOURCES = t/unit/rs_threads.c
t_unit_rs_threads_t_CPPFLAGS = $(EVR_UNIT_CPPFLAGS)
t_unit_rs_threads_t_LDADD = libevr_rs.la $(EVR_UNIT_CM_LIBS)

# The event layer's too: bases that hand requests over, and work for a loop from any thread.
EVR_TSAN_TESTS = $(EVR_THREADS_TESTS) t/unit/rs_beside.t t/unit/rs_exit.t t/rs/random_fake.t \
	t/conform/fake_roce.t
check-threads:
	$(MAKE) $(AM_MAKEFLAGS) $(EVR_TSAN_TESTS)
	EVR_RS_SCHEDULES=$${EVR_RS_SCHEDULES:-100} $(MAKE) $(AM_MAKEFLAGS) check-TESTS TESTS='$(EVR_TSAN_TESTS)'
