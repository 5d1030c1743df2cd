# The kernel's RDMA CM and libibverbs within the process; see fake.h. A test program lists it
# after what it tests and does not link libibverbs at all, so that no call can slip past it.
check_LTLIBRARIES += libevr_fake.la
libevr_fake_la_SOURCES = \
	t/fake/fake.h \
	t/fake/fake_cm.c t/fake/fake_cm.h \
	t/fake/fake_cm_addr.c \
	t/fake/fake_cm_bind.c \
	t/fake/fake_cm_conn.c \
	t/fake/fake_cm_end.c \
	t/fake/fake_cm_event.c \
	t/fake/fake_cm_id.c \
	t/fake/fake_cm_mcast.c \
	t/fake/fake_cm_query.c \
	t/fake/fake_cm_service.c \
	t/fake/fake_cm_sidr.c \
	t/fake/fake_core.c t/fake/fake_core.h \
	t/fake/fake_device.c \
	t/fake/fake_fault.c \
	t/fake/fake_inject.c \
	t/fake/fake_order.c \
	t/fake/fake_profile.c t/fake/fake_profile.h \
	t/fake/fake_verbs.h \
	t/fake/fake_verbs_async.c \
	t/fake/fake_verbs_cq.c \
	t/fake/fake_verbs_data.c \
	t/fake/fake_verbs_device.c \
	t/fake/fake_verbs_dgram.c \
	t/fake/fake_verbs_mcast.c \
	t/fake/fake_verbs_mem.c \
	t/fake/fake_verbs_misc.c \
	t/fake/fake_verbs_object.c \
	t/fake/fake_verbs_post.c \
	t/fake/fake_verbs_qp.c \
	t/fake/fake_verbs_srq.c \
	t/fake/fake_verbs_state.c \
	t/fake/fake_verbs_work.c \
	t/fake/fake_verbs_xrcd.c \
	t/fake/fake_wire.c
# For those that want memory to run out.
EVR_FAKE_HEAP = t/fake/fake_heap.c t/fake/fake_heap.h
EVR_FAKE_HEAP_WRAP = \
	-Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc -Wl,--wrap=strdup \
	-Wl,--wrap=posix_memalign \
	-Wl,--wrap=fake_lock -Wl,--wrap=fake_unlock
libevr_fake_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/t

# The suites that run on it, on each of the devices that it can be.
EVR_LONG_TESTS += t/fake/profiles.sh
EXTRA_DIST += t/fake/profiles.sh
