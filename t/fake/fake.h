/*
 * A kernel's RDMA CM and a libibverbs that live in the test's own process.
 *
 * The fake kernel takes the place of evr_sys, the fake verbs are linked in place of libibverbs.
 * Both know the same devices; messages between ids and data between queue pairs really move.
 * Everything happens inside the calls that cause it: nothing runs by itself, and there is no
 * clock. What a network would lose or delay is held back and let go with the calls below.
 *
 * One mutex guards all of it, so several threads may use it. A call that would block for ever
 * fails with EDEADLK instead, so that a test ends; see fake_wait_for_others.
 */
#ifndef FAKE_FAKE_H
#define FAKE_FAKE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- set-up and balance ------------------------------------------------------------------ */

/* Forgets everything, puts FAKE_ROCE in, and makes the fake the kernel behind evr_sys. */
void fake_install(void);
/* Frees every object, closes every descriptor, and puts the switches back; one FAKE_ROCE. */
void fake_reset(void);

/*
 * From now on a read of an event or a completion event that finds none waits so long for another
 * thread to bring one before it fails. 0, as after a reset: not at all.
 */
void fake_wait_for_others(int timeout_ms);
/* How many calls waited since the last reset, or would have: nobody in a loop may. */
unsigned fake_waits(void);

enum fake_object {
	FAKE_FILE,
	FAKE_ID,
	FAKE_MEMBERSHIP,
	FAKE_CONTEXT,
	FAKE_PD,
	FAKE_MR,
	FAKE_AH,
	FAKE_CHANNEL,
	FAKE_CQ,
	FAKE_SRQ,
	FAKE_XRCD,
	FAKE_QP,
	FAKE_ATTACHMENT,
	FAKE_OBJECTS
};

unsigned fake_live(enum fake_object object);
/*
 * NULL when no object lives and nothing was done wrong; else a text that says what. On each device
 * that is there one context may live, with nothing on it: the library keeps it until the removal.
 */
const char *fake_expect_clean(void);
/* The first misuse seen (a CQ overrun, a context closed too early), or NULL. */
const char *fake_problem(void);

/* --- devices ------------------------------------------------------------------------------ */

enum fake_kind {
	FAKE_ROCE,  /* "fake0", 192.0.2.1/24, 2001:db8::1/64: RoCE v2, like rxe */
	FAKE_IWARP, /* "fakeiw0", 198.51.100.1/24, 2001:db8:1::1/64: no UD, like siw */
	FAKE_IB,    /* "fakeib0", 203.0.113.1/24, 2001:db8:2::1/64: AF_IB, IPoIB, XRC, all groups */
	FAKE_KINDS
};

/*
 * In each device's networks the host .250 (…::fa) resolves and never answers; other strangers
 * there end in ADDR_ERROR -ETIMEDOUT. 198.18.0.0/15 is behind a netdev without RDMA
 * (-ENODEV). Anything else has no route (-ENETUNREACH at once). Loopback is the first device;
 * once an id for datagrams is bound to it, those that the device sends to itself come from there.
 */
#define FAKE_ROCE_IP "192.0.2.1"
#define FAKE_ROCE_IP6 "2001:db8::1"
#define FAKE_ROCE_SILENT_IP "192.0.2.250"
#define FAKE_IWARP_IP "198.51.100.1"
#define FAKE_IWARP_IP6 "2001:db8:1::1"
#define FAKE_IB_IP "203.0.113.1"
#define FAKE_IB_IP6 "2001:db8:2::1"
#define FAKE_IB_GID "fe80::2:c903:0:1"
#define FAKE_NO_RDMA_IP "198.18.0.1"
#define FAKE_NO_ROUTE_IP "10.9.9.9"

/*
 * What its devices do is chosen by a profile, a row of fake_profile.c: rxe, iwarp and ib are what
 * the three kinds are. EVR_FAKE_PROFILE in the environment names another, for the kind that it is
 * of. The kind to be tested: that of the profile, if one is named.
 */
enum fake_kind fake_kind_to_test(enum fake_kind otherwise);
/* The IPv4 address of the device of a kind. */
const char *fake_ip(enum fake_kind kind);

/* What not all devices have. */
enum fake_option {
	FAKE_DATAGRAMS = 1,
	FAKE_GROUPS = 2,
	FAKE_SRQS = 4,
	FAKE_ATOMICS = 8,
	FAKE_IMMEDIATES = 16,
	FAKE_IP_GIDS = 32,
	FAKE_DEEP_QUEUES = 64 /* of 256 and more */
};

/* Which of them the device of the kind does not. */
unsigned fake_lacks(enum fake_kind kind);
/* Where its IPv4 address is in its table of GIDs. */
int fake_gid_of_ip(enum fake_kind kind);

/* Plugs the device in, with a new index and defaults again. It must not be there. */
void fake_device_add(enum fake_kind kind);
/*
 * Pulls it: it leaves the list, every id on it gets DEVICE_REMOVAL and is closed in the kernel.
 * What was opened stays usable as memory, but no work completes on it any more; where a profile
 * disassociates, calls give EIO, and nothing of it counts as alive.
 */
void fake_device_remove(enum fake_kind kind);
/* True once the device is out of the list, and nobody holds it who can. */
bool fake_device_gone(enum fake_kind kind);
/* How many descriptors stay open of devices that went without waiting. */
int fake_lost_descriptors(void);
/* What the device says about itself, to be changed before it is opened. */
struct ibv_device_attr *fake_device_attr(enum fake_kind kind);
struct ibv_port_attr *fake_port_attr(enum fake_kind kind);
/* What its new queue pairs say of enhanced connection establishment: vendor 0, that is nothing. */
struct ibv_ece *fake_device_ece(enum fake_kind kind);

/* --- failures and counts ------------------------------------------------------------------ */

enum fake_layer {
	FAKE_KERNEL = 1, /* the commands and system calls behind evr_sys */
	FAKE_VERBS = 2,	 /* the ibv_* calls, inline ones included */
	FAKE_ANY = 3
};

/*
 * The n-th call from now on (1 is the next) that may fail in these layers gives err. What
 * releases, polls or acks is not counted, so that a sweep over n can still clean up. 0 cancels.
 */
void fake_fail_nth(enum fake_layer layers, unsigned n, int err);
/* The same, and all such calls after it fail too, until this is cancelled in the same way. */
void fake_fail_from(enum fake_layer layers, unsigned n, int err);
/*
 * Instead of failing, the n-th such call first runs the hook, which may do what another part of
 * the machine does meanwhile: unplug the device, let a message go, invent an event. It must not
 * call into what is being tested.
 */
void fake_at_nth(enum fake_layer layers, unsigned n, void (*hook)(void *arg), void *arg);
/* The name of the (first) call that one of these chose, or NULL when it has not come. */
const char *fake_failed(void);
/*
 * The next call of that name gives err: "CONNECT" and the other commands' names, "open",
 * "ioctl", "find_cm_device", "find_driver_id", "ibv_create_qp" and the other verbs' names; any may
 * fail.
 */
void fake_fail_next(const char *name, int err);
/* The same of the n-th one. 0 cancels. */
void fake_fail_later(const char *name, unsigned n, int err);
/*
 * Runs at each call of all of them, those that release included: what a call takes of the time of
 * a test that has its own. NULL: nothing.
 */
void fake_each_call(void (*hook)(void));
/*
 * Runs as this thread comes into each call, and before anything of the fake is held: what others do
 * meanwhile, and so it may call the library. NULL: nothing.
 */
void fake_meanwhile(void (*hook)(void));
/* How many CQs were made with a completion vector, 0 to 7. */
unsigned fake_cqs_on(unsigned vector);
/* How often ibv_create_ah() looked for a neighbour in vain, since it was last asked. */
unsigned fake_asked_in_vain(void);
/* How often it was called since the last reset. */
unsigned fake_calls(const char *name);

/* --- messages between ids ----------------------------------------------------------------- */

enum fake_message {
	FAKE_ADDR,     /* the answer to RESOLVE_ADDR */
	FAKE_ROUTE,    /* the answer to RESOLVE_ROUTE */
	FAKE_REQ,      /* a connection request, on its way to the listener */
	FAKE_REP,      /* an accept, on its way to the connecting side */
	FAKE_RTU,      /* the connecting side's confirmation */
	FAKE_REJ,      /* a refusal */
	FAKE_DREQ,     /* a disconnect */
	FAKE_DREP,     /* its answer */
	FAKE_SIDR_REQ, /* the same for datagrams */
	FAKE_SIDR_REP,
	FAKE_JOIN,    /* the answer to a join */
	FAKE_SERVICE, /* the answer to RESOLVE_IB_SERVICE */
	FAKE_MESSAGES
};

/* From now on messages of the kind are held back. */
void fake_hold(enum fake_message kind);
/* Lets go of what is held, oldest first, and holds no more. Returns how many there were. */
unsigned fake_release(enum fake_message kind);
/* Holds no more, but what is held stays until fake_release(): it is not in anybody's way. */
void fake_keep(enum fake_message kind);
/*
 * What is held is lost: each waiting side is told what the kernel tells it at the end of all
 * retries. Requests to a silent host count as held. Returns how many there were.
 */
unsigned fake_time_out(enum fake_message kind);
/* How many are held. */
unsigned fake_held(enum fake_message kind);
/* The next FAKE_ADDR, FAKE_ROUTE, FAKE_JOIN or FAKE_SERVICE answers with this status (a -errno). */
void fake_answer(enum fake_message kind, int status);

/* --- events ------------------------------------------------------------------------------- */

struct evr_ucma_resp_event; /* an event as the kernel writes it: kern/ucma_abi.h */

/*
 * Queues an event on the id of that uid (the rdma_cm_id, for ids of lib/cm), whatever its state;
 * uid NULL is the newest id without one: of a request that was not accepted. CONNECT_REQUEST
 * brings a child from nobody, on the id's device or the first. 0, or -ENOENT.
 */
int fake_inject(const void *uid, unsigned event, int status);
int fake_inject_data(const void *uid, unsigned event, int status, const void *data, uint8_t len);
/*
 * The same with whatever parameters and ECE; uid and handle in it do not count. group: for that
 * membership of the id, the oldest is 1; 0: for the id itself.
 */
int fake_inject_event(const void *uid, unsigned group, const struct evr_ucma_resp_event *event);
/* Queues exactly this on a channel; it enters nobody's count. -EBADF: that is no channel. */
int fake_inject_stray(int fd, const struct evr_ucma_resp_event *event);

/* How many events of a channel wait to be read. */
unsigned fake_unread(int fd);
/* The n-th of them, from 1, is read next. -ENOENT when there are fewer. */
int fake_bring_forward(int fd, unsigned n);
/* Queues a copy of it behind the others. -EINVAL for a request: its child comes once. */
int fake_repeat(int fd, unsigned n);

/* --- services ----------------------------------------------------------------------------- */

/*
 * From now on the kernel knows RESOLVE_IB_SERVICE, WRITE_CM_EVENT and QUERY of a service, or does
 * not, as after a reset: those before 2025.
 */
void fake_newer_kernel(bool on);
/*
 * Tells the administrator of FAKE_IB's subnet of a service; name may be NULL. It has one record for
 * each number and GID.
 */
void fake_service_add(uint64_t id, const char *name, const char *gid);

/* --- work --------------------------------------------------------------------------------- */

/*
 * Work is carried out inside the call that posts it, unless this is on: then only fake_step
 * does it. Work that waits for the peer (no receive posted under endless RNR retry, a peer that
 * has left) stays posted until the peer does something, the queue pair goes to the error state,
 * or fake_time_out_work. On FAKE_IWARP what follows a read overtakes it, unless it is fenced.
 */
void fake_work_by_hand(bool on);
enum fake_order { FAKE_OLDEST_QP_FIRST, FAKE_NEWEST_QP_FIRST };
void fake_work_order(enum fake_order order);
/* How many sends since the last reset met a peer without a receive for them. */
unsigned fake_not_ready(void);
/* Carries out up to n work requests; returns how many. */
unsigned fake_step(unsigned n);
unsigned fake_step_qp(struct ibv_qp *qp, unsigned n);
/* Carries out up to n each time that a CQ is armed, just before: they raise no event there. */
void fake_step_before_arming(unsigned n);
/* Ends all waiting work with RETRY_EXC or RNR_RETRY_EXC; returns how many queue pairs died. */
unsigned fake_time_out_work(void);

/* The next message received by a send has a length that no buffer has. */
void fake_lie_of_length(void);

/* From now on polling it fails, whatever is in it. */
void fake_break_cq(struct ibv_cq *cq);
/* Whether a poll of it has failed; it need not be polled any more. */
bool fake_poll_failed(const struct ibv_cq *cq);
/* Completions that nobody has polled, of all CQs of which none has failed. */
unsigned fake_unpolled(void);

/*
 * From now on a queue pair on an SRQ does not tell that its last receive is reached, as many
 * devices never do; the test may, with fake_async_qp().
 */
void fake_hold_last_receive(bool on);
/* Raises an asynchronous event for a queue pair, a CQ, an SRQ, or a port of every context. */
void fake_async_qp(struct ibv_qp *qp, enum ibv_event_type type);
void fake_async_cq(struct ibv_cq *cq, enum ibv_event_type type);
void fake_async_srq(struct ibv_srq *srq, enum ibv_event_type type);
void fake_async_port(enum fake_kind kind, enum ibv_event_type type);

#endif
