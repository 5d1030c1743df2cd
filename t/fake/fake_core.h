/* What both halves of the fake share: the lock, tables of numbered objects, bells, counts. */
#ifndef FAKE_CORE_H
#define FAKE_CORE_H

#include "fake/fake.h"
#include "fake/fake_profile.h"
#include "util/list.h"

#include <netinet/in.h>
#include <pthread.h>

/* Holds the fake's one (recursive) lock to the end of the scope. */
#define FAKE_GUARD() __attribute__((cleanup(fake_unlock), unused)) int fake_guard = fake_lock()
int fake_lock(void);
void fake_unlock(int *guard);

/*
 * For ThreadSanitizer; see fake_order.c. From hide to show it sees nothing of this thread; the
 * others are for use under the lock.
 */
void fake_hide(void);
void fake_show(void);
void fake_happens_before(void *what);
void fake_happens_after(void *what);
/* Each call, before it is hidden; what comes after all of them. */
void fake_is_called(void);
void fake_happens_last(void);
void fake_free_in_sight(void *memory);

/* Allocates zeroed memory or ends the test. */
void *fake_alloc(size_t size);

/* Numbers from 1 on, never given out twice before a reset. */
struct fake_table {
	struct fake_chunk **chunks; /* of numbers that follow each other; NULL: all are gone */
	uint32_t size;		    /* in chunks */
	uint32_t last;
};

uint32_t fake_table_add(struct fake_table *table, void *object);
void *fake_table_find(const struct fake_table *table, uint32_t number);
void fake_table_remove(struct fake_table *table, uint32_t number);
void fake_table_free(struct fake_table *table);

/* A descriptor that is readable exactly while the bell is on. */
struct fake_bell {
	int fd;
	bool on;
};

/* flags: O_NONBLOCK and O_CLOEXEC count. 0 or -errno. */
int fake_bell_open(struct fake_bell *bell, int flags);
void fake_bell_set(struct fake_bell *bell, bool on);
/* What a read on an empty queue gives: -EAGAIN, or -EDEADLK when it would block. */
int fake_bell_empty(const struct fake_bell *bell);
void fake_count_wait(void);
/* Without the lock, after -EDEADLK: whether another thread has rung it meanwhile. */
bool fake_bell_wait(int fd);
void fake_bell_close(struct fake_bell *bell);

void fake_born(enum fake_object object);
void fake_died(enum fake_object object);
/* Records misuse; the first one is kept. */
void fake_misuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* For what would hang in reality: prints the text and aborts. */
_Noreturn void fake_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Counts the call; 0, or the errno it shall fail with. releases: not part of fake_fail_nth. */
int fake_fault(enum fake_layer layer, const char *name);
int fake_fault_release(enum fake_layer layer, const char *name);
void fake_fault_reset(void);

enum { FAKE_GIDS = 8 };

struct fake_device {
	const struct fake_profile *profile;
	struct ibv_device verbs;
	enum fake_kind kind;
	bool present;
	unsigned contexts;
	int index;
	__be64 guid;
	struct in_addr ip;
	struct in6_addr ip6;
	union ibv_gid gids[FAKE_GIDS];
	int gid_count;
	uint8_t ip_gid, ip6_gid; /* where they are in the table */
	bool is_loopback;	 /* an id was bound to that: datagrams to itself come from there */
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	struct ibv_ece ece;
};

struct fake_device *fake_device(enum fake_kind kind);
/* The first that is plugged in, or NULL. */
struct fake_device *fake_device_first(void);
void fake_devices_reset(void);
/* How many of those that are there have a context. */
unsigned fake_devices_open(void);

/* The two halves' own clean-up. */
void fake_cm_reset(void);
void fake_verbs_reset(void);

bool fake_gid_is_v2(const struct fake_device *device, unsigned index);
/* The table's index of the device's own address of the family. */
uint8_t fake_gid_index(const struct fake_device *device, bool ip6);

/* What the CM half asks of the verbs half. */
void fake_verbs_device_removed(struct fake_device *device);
/* errno when a queue pair's depths of reads are more than the device has. */
int fake_depths_fit(const struct fake_device *device, unsigned initiator, unsigned responder);
bool fake_qp_exists(uint32_t qp_num);
/* iWARP: the kernel itself moves the queue pairs when a connection comes and goes. */
void fake_qp_join(uint32_t qp_num, uint32_t peer_qp_num, uint8_t initiator_depth,
	uint8_t responder_resources);
void fake_qp_fail(uint32_t qp_num);
/* The ioctl of a verbs context; -EBADF when the descriptor is none. */
int fake_verbs_ioctl(int fd, unsigned long request, void *arg);
int fake_verbs_driver(int index, uint32_t *driver_id);
/* What the verbs half and fake_device_remove ask of the CM half. */
void fake_cm_device_removed(struct fake_device *device);

#endif
