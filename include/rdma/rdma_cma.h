/*
 * The connection manager of RDMA: rdma_cm(7).
 *
 * An rdma_cm_id is to RDMA what a socket is to TCP. What happens to it arrives as events on its
 * event channel, whose file descriptor can be polled.
 *
 * Threads: calls on different ids may run in parallel, and so may rdma_get_cm_event(), in several
 * threads if need be, with any call on any id, its end included. Two calls on the same id are the
 * caller's to order, but for joining and leaving groups. The fields of an id are filled by the
 * thread that reads its event. A child of fork() opens channels of its own.
 *
 * Synchronous ids: an id made without a channel gets one of its own. Calls marked "waits on a
 * synchronous id" then wait for the next event of the id, passing over ADDR_CHANGE and
 * TIMEWAIT_EXIT, leave it in id->event until the next such call or rdma_destroy_id(), and return
 * its status: -1 with errno ECONNREFUSED for a rejection, ENODEV for DEVICE_REMOVAL, else with the
 * status as errno. USER ends the wait too, as a failure: with its status as errno, EINTR for 0. On
 * every other id they return as soon as the kernel has taken the request. id->event is the
 * library's: it is not for rdma_ack_cm_event().
 *
 * Errors: a function that returns int returns 0, or -1 and sets errno. Each may fail with these
 * beside what is listed with it: EINVAL (an argument is NULL that may not be, or the id is in the
 * wrong state or has no device yet), ENOENT (the kernel does not know the id), EACCES (the
 * credentials of the process changed since the channel was opened: open another), ENOMEM.
 * All of it is in RDMACM_1.0 where nothing else is said.
 */
#ifndef RDMA_CMA_H
#define RDMA_CMA_H

#include <infiniband/sa.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * What an event tells. Its status is 0, or: a negative errno from the kernel; for REJECTED on
 * InfiniBand and RoCE the positive reason of the CM (8: nobody listens there, 28: the peer's
 * program), on iWARP a negative errno; -1 for what failed in the library; in USER, as written.
 */
enum rdma_cm_event_type {
	RDMA_CM_EVENT_ADDR_RESOLVED,     /* rdma_resolve_addr(): verbs, pd and port_num are set */
	RDMA_CM_EVENT_ADDR_ERROR,        /* rdma_resolve_addr() failed */
	RDMA_CM_EVENT_ROUTE_RESOLVED,    /* rdma_resolve_route(): route.path_rec is set */
	RDMA_CM_EVENT_ROUTE_ERROR,       /* rdma_resolve_route() failed */
	RDMA_CM_EVENT_CONNECT_REQUEST,   /* a peer wants to connect: id is new and the caller's */
	RDMA_CM_EVENT_CONNECT_RESPONSE,  /* accepted, and the id has no QP: rdma_establish() */
	RDMA_CM_EVENT_CONNECT_ERROR,     /* the connection could not be set up */
	RDMA_CM_EVENT_UNREACHABLE,       /* the peer does not answer, or not in time */
	RDMA_CM_EVENT_REJECTED,          /* the peer said no */
	RDMA_CM_EVENT_ESTABLISHED,       /* connected; on a UD id: param.ud says how to send */
	RDMA_CM_EVENT_DISCONNECTED,      /* the connection is over */
	RDMA_CM_EVENT_DEVICE_REMOVAL,    /* the device is leaving: destroy all that is on it */
	RDMA_CM_EVENT_MULTICAST_JOIN,    /* joined: param.ud says how to send */
	RDMA_CM_EVENT_MULTICAST_ERROR,   /* could not join, or is no member any more */
	RDMA_CM_EVENT_ADDR_CHANGE,       /* the network device of the address changed */
	RDMA_CM_EVENT_TIMEWAIT_EXIT,     /* the QP number is free again (not on iWARP) */
	RDMA_CM_EVENT_ADDRINFO_RESOLVED, /* rdma_resolve_addrinfo(): rdma_query_addrinfo() has it */
	RDMA_CM_EVENT_ADDRINFO_ERROR,    /* rdma_resolve_addrinfo() failed */
	RDMA_CM_EVENT_USER,              /* rdma_write_cm_event(): param.arg is the writer's */
	RDMA_CM_EVENT_INTERNAL           /* the library's own: never seen */
};

/* Where ports are counted, and with it the type of queue pair: RC for TCP and IB, else UD. */
enum rdma_port_space {
	RDMA_PS_IPOIB = 0x0002, /* UD in the multicast groups of IP over InfiniBand */
	RDMA_PS_TCP = 0x0106,
	RDMA_PS_UDP = 0x0111,
	RDMA_PS_IB = 0x013F
};

/* The parts of a service identifier (sib_sid of struct sockaddr_ib), in host order. */
#define RDMA_IB_IP_PS_MASK 0xFFFFFFFFFFFF0000ULL
#define RDMA_IB_IP_PORT_MASK 0x000000000000FFFFULL
#define RDMA_IB_IP_PS_TCP 0x0000000001060000ULL
#define RDMA_IB_IP_PS_UDP 0x0000000001110000ULL
#define RDMA_IB_PS_IB 0x00000000013F0000ULL

/* The queue key of every UD queue pair in RDMA_PS_UDP. */
#define RDMA_UDP_QKEY 0x01234567

struct rdma_ib_addr {
	union ibv_gid sgid;
	union ibv_gid dgid;
	__be16 pkey;
};

struct rdma_addr {
	__extension__ union {
		struct sockaddr src_addr;
		struct sockaddr_in src_sin;
		struct sockaddr_in6 src_sin6;
		struct sockaddr_storage src_storage;
	};
	__extension__ union {
		struct sockaddr dst_addr;
		struct sockaddr_in dst_sin;
		struct sockaddr_in6 dst_sin6;
		struct sockaddr_storage dst_storage;
	};
	union {
		struct rdma_ib_addr ibaddr;
	} addr;
};

struct rdma_route {
	struct rdma_addr addr;
	struct ibv_sa_path_rec *path_rec; /* num_paths of them, the id's own */
	int num_paths;
};

/* fd becomes readable when an event waits; it is never writable and never hangs up. */
struct rdma_event_channel {
	int fd;
};

/*
 * Read it freely; set only context, and the completion and receive queues where a program brings
 * its own before rdma_create_qp(). verbs and pd belong to the library: an id holds them from the
 * moment it has a device until it is destroyed. The device stays open after that; one that was
 * removed is closed when the process has nothing on it any more.
 */
struct rdma_cm_id {
	struct ibv_context *verbs; /* NULL while the id has no device */
	struct rdma_event_channel *channel;
	void *context;
	struct ibv_qp *qp;
	struct rdma_route route;
	enum rdma_port_space ps;
	uint8_t port_num;
	struct rdma_cm_event *event; /* of the last call that waited */
	struct ibv_comp_channel *send_cq_channel;
	struct ibv_cq *send_cq;
	struct ibv_comp_channel *recv_cq_channel;
	struct ibv_cq *recv_cq;
	struct ibv_srq *srq;
	struct ibv_pd *pd;
	enum ibv_qp_type qp_type;
};

/* As much as the device can do, for the two depths of a connection. */
enum {
	RDMA_MAX_RESP_RES = 0xFF,
	RDMA_MAX_INIT_DEPTH = 0xFF
};

/*
 * Without private_data, private_data_len does not count. In an event, private_data points into the
 * event. Its length is that of the field it travelled
 * in, padded with zeros, except on iWARP: put a length of your own into it.
 */
struct rdma_conn_param {
	const void *private_data;
	uint8_t private_data_len;
	uint8_t responder_resources; /* RDMA reads and atomics that the peer may have under way */
	uint8_t initiator_depth;     /* and this side */
	uint8_t flow_control;
	uint8_t retry_count;     /* 0 to 7, when the peer does not acknowledge; not for accept */
	uint8_t rnr_retry_count; /* 0 to 7, the peer's, when none is posted here; 7: for ever */
	/* For a queue pair that the id does not know of. */
	uint8_t srq;
	uint32_t qp_num;
};

struct rdma_ud_param {
	const void *private_data; /* the joiner's context in an event about a group */
	uint8_t private_data_len;
	struct ibv_ah_attr ah_attr;
	uint32_t qp_num;
	uint32_t qkey;
};

struct rdma_cm_event {
	struct rdma_cm_id *id;
	struct rdma_cm_id *listen_id; /* of a CONNECT_REQUEST */
	enum rdma_cm_event_type event;
	int status;
	union {
		struct rdma_conn_param conn; /* ids of type RC */
		struct rdma_ud_param ud;     /* ids of type UD */
		uint64_t arg;                /* USER */
	} param;
};

/* ai_flags */
#define RAI_PASSIVE 0x00000001     /* an address to listen on */
#define RAI_NUMERICHOST 0x00000002 /* no names: never waits */
#define RAI_NOROUTE 0x00000004     /* no route lookup: none is made anyway */
#define RAI_FAMILY 0x00000008      /* with RAI_NUMERICHOST and AF_IB, the number is a GID */
#define RAI_SA 0x00000010          /* ask InfiniBand's subnet administrator for a service */
#define RAI_DNS 0x00000020         /* ask getaddrinfo(3), as without either */

struct rdma_addrinfo {
	int ai_flags;
	int ai_family;
	int ai_qp_type;
	int ai_port_space;
	socklen_t ai_src_len;
	socklen_t ai_dst_len;
	struct sockaddr *ai_src_addr;
	struct sockaddr *ai_dst_addr;
	char *ai_src_canonname;
	char *ai_dst_canonname;
	size_t ai_route_len;
	void *ai_route;
	size_t ai_connect_len;
	void *ai_connect;
	struct rdma_addrinfo *ai_next;
};

/* The fields of struct rdma_cm_join_mc_attr_ex that are set. */
enum rdma_cm_join_mc_attr_mask {
	RDMA_CM_JOIN_MC_ATTR_ADDRESS = 1 << 0,
	RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS = 1 << 1,
	RDMA_CM_JOIN_MC_ATTR_RESERVED = 1 << 2
};

enum rdma_cm_mc_join_flags {
	RDMA_MC_JOIN_FLAG_FULLMEMBER,
	RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER, /* receives nothing */
	RDMA_MC_JOIN_FLAG_RESERVED
};

struct rdma_cm_join_mc_attr_ex {
	uint32_t comp_mask;  /* enum rdma_cm_join_mc_attr_mask: both bits are needed */
	uint32_t join_flags; /* enum rdma_cm_mc_join_flags */
	struct sockaddr *addr;
};

/* Options of rdma_set_option(): the levels, then the names in each. */
enum {
	RDMA_OPTION_ID = 0,
	RDMA_OPTION_IB = 1
};

enum {
	RDMA_OPTION_ID_TOS = 0,        /* uint8_t: type of service */
	RDMA_OPTION_ID_REUSEADDR = 1,  /* int: as SO_REUSEADDR */
	RDMA_OPTION_ID_AFONLY = 2,     /* int: as IPV6_V6ONLY */
	RDMA_OPTION_ID_ACK_TIMEOUT = 3 /* uint8_t: 4.096 us * 2^n until a message is sent again */
};

enum {
	RDMA_OPTION_IB_PATH = 1 /* struct ibv_path_data[]: the route, instead of a lookup */
};

/*
 * Opens an event channel. It blocks in rdma_get_cm_event() until O_NONBLOCK is set on its fd with
 * fcntl(2); it is closed on exec. The channel is the caller's until rdma_destroy_event_channel().
 * Returns NULL and sets errno: ENODEV (no RDMA device, or the kernel's part of the CM is not
 * there), EACCES or EPERM (no permission on the character device), EMFILE, ENFILE, ENOMEM.
 */
struct rdma_event_channel *rdma_create_event_channel(void);

/*
 * Closes a channel and throws away the events that were not read. Ids on it must have been
 * destroyed or migrated before, for each still names the channel. NULL is ignored.
 */
void rdma_destroy_event_channel(struct rdma_event_channel *channel);

/*
 * Makes an id. channel NULL makes it synchronous. The id is the caller's until rdma_destroy_id().
 * Fails with: EINVAL (no such port space), ENODEV and what else opening a channel fails with.
 */
int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
	enum rdma_port_space ps);

/*
 * Destroys an id, with the connection or memberships it still has. Its queue pair and SRQ must have
 * gone before. Events of the id that wait on the channel vanish. Waits until every event of it that
 * was read, and every CONNECT_REQUEST it delivered, has been acknowledged: a thread that has
 * acknowledged all it read does not wait. id->event is acknowledged implicitly, and the requests of
 * rdma_get_request() do not count: a synchronous listener may go before or after their ids.
 * On failure nothing has changed and the id remains.
 */
int rdma_destroy_id(struct rdma_cm_id *id);

/*
 * Binds an id to a local address. A wildcard address binds it to no device: verbs stays NULL.
 * A port of 0 takes a free one. Fails with: EINVAL (the family, or the id is bound), EADDRINUSE,
 * EADDRNOTAVAIL, EACCES (a port below 1024), EAFNOSUPPORT, ENODEV (no device has the address), and
 * what opening the device fails with.
 */
int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr);

/*
 * Finds the device and the link address for a destination; src_addr, which may be NULL, binds the
 * id first. Ends in ADDR_RESOLVED or ADDR_ERROR after at most timeout_ms milliseconds. Waits on a
 * synchronous id. Fails with: EINVAL (the family), ENODEV, and on a synchronous id with the
 * status of ADDR_ERROR (ETIMEDOUT, EHOSTUNREACH, ENETUNREACH, ...).
 */
int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src_addr, struct sockaddr *dst_addr,
	int timeout_ms);

/*
 * Finds the route to the resolved address; asks only the kernel. Ends in ROUTE_RESOLVED or
 * ROUTE_ERROR. Waits on a synchronous id. Fails with: EINVAL (not resolved, or timeout_ms is 0).
 */
int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms);

/*
 * Makes the queue pair of an id and moves it to INIT, or to RTS for UD; the library makes the later
 * moves while connecting. pd NULL takes the id's. For each queue that qp_init_attr does not name, a
 * completion queue and a channel are made, with the id as context. The receive queue is id->srq
 * where the id has one and qp_init_attr names none. qp_init_attr->cap comes back as granted.
 * Of XRC, on an id of that type (rdma_create_ep()), the sending half (IBV_QPT_XRC_SEND) has no
 * receive queue, and the receiving half (IBV_QPT_XRC_RECV) has none at all: it takes the XRC domain
 * that all ids on the device share, and what arrives goes to the SRQ that the sender names.
 * Fails with: EINVAL (no device, a queue pair is there, a foreign pd or completion queue),
 * EOPNOTSUPP (the device has no such type; only InfiniBand has XRC), and what the verbs fail with.
 * Nothing is left behind then, and qp_init_attr is as it was.
 */
int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr);

/*
 * The same with extended attributes; without IBV_QP_INIT_ATTR_PD or with a pd of NULL, the pd is
 * the id's; without IBV_QP_INIT_ATTR_XRCD, the XRC domain is as above.
 */
int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *qp_init_attr);

/*
 * Destroys the queue pair, and the completion queues and channels that stand on the id. Waits until
 * every asynchronous event of the queue pair and every completion event of the queues has been
 * acknowledged. The queue of an XRC SRQ stays for rdma_destroy_srq(). Does nothing when there is no
 * queue pair.
 */
void rdma_destroy_qp(struct rdma_cm_id *id);

/*
 * Starts to connect; on UD, asks the peer's service for its queue pair. Ends in ESTABLISHED (an id
 * without a queue pair: CONNECT_RESPONSE), REJECTED, UNREACHABLE or CONNECT_ERROR; an unanswered
 * request may take minutes. conn_param NULL: the device's depths, 7 retries. Private data is
 * copied; it may have 56 bytes on RC (92 with AF_IB addresses), 180 on UD, 255 on iWARP. Waits on a
 * synchronous id. On one of rdma_create_ep() with ai_connect, that goes before the private data and
 * counts towards its length. Fails with: EINVAL (no route yet, too much data, in
 * RDMA_PS_TCP neither queue pair nor parameters or a depth above the device's), and on a
 * synchronous id ECONNRESET (the peer disconnected at once).
 */
int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *conn_param);

/*
 * Answers CONNECT_RESPONSE on an id whose queue pair is the caller's own, after its move to RTS.
 * Fails with: EINVAL (the id has a queue pair, or is not connecting). Since RDMACM_1.2.
 */
int rdma_establish(struct rdma_cm_id *id);

/*
 * Listens on the bound address, or on any address and a free port. At most backlog requests wait to
 * be read, or net.rdma_ucm.max_backlog if backlog is 0, negative or above it; more are rejected.
 * Fails with: EINVAL (state), EADDRINUSE.
 */
int rdma_listen(struct rdma_cm_id *id, int backlog);

/*
 * Waits for a connection request on a synchronous listener, whose file descriptor tells of one, and
 * stores the id that it brings. That id is synchronous, has a channel of its own, and is the
 * caller's until rdma_destroy_id() or rdma_destroy_ep(), to be accepted or rejected; its event is
 * the CONNECT_REQUEST with the peer's private data, there until the next call that waits. Where the
 * listener is one of rdma_create_ep() with attributes, the id has a queue pair of them. A request
 * for which the library cannot make an id is rejected, and the next one waited for. Fails with:
 * EINVAL (the listener is not synchronous, or something else happened to it, which is in
 * listen->event then), EINTR, ENODEV (its device has left), ENOMEM, ECONNABORTED (the peer has left
 * again), and what rdma_create_qp() fails with: the peer has been rejected then. Nothing remains of
 * a request that failed, and the listener can wait for the next one.
 */
int rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id);

/*
 * Accepts the request that brought this id. Moves its queue pair to RTS first. Ends in
 * ESTABLISHED, on UD in nothing. conn_param NULL: what the peer asked for, as far as the device
 * can; this needs a queue pair. Private data is copied; it may have 196 bytes on RC, 136 on UD,
 * 252 on iWARP. Waits on a synchronous id, for UD it only takes id->event away. Fails with: EINVAL
 * (no such request any more, depths, data), and what the move of the queue pair fails with; then
 * the request is still there to be rejected. When the kernel refuses, the queue pair is in the
 * error state and the peer was rejected. On a synchronous id also with: ECONNREFUSED, ETIMEDOUT,
 * ECONNRESET (the peer went before the connection was there).
 */
int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *conn_param);

/*
 * Rejects the request that brought this id, with up to 148 bytes of private data (136 on UD). The
 * id remains to be destroyed. Fails with: EINVAL (the request is gone, too much data).
 */
int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len);

/* The same, saying that the peer's ECE options are not supported. Since RDMACM_1.3. */
int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len);

/*
 * Ends a connection, or answers that the peer ended it; its queue pair flushes. Ends in
 * DISCONNECTED on both sides. Waits on a synchronous id, unless id->event is DISCONNECTED already.
 * Fails with: EINVAL (not connected).
 */
int rdma_disconnect(struct rdma_cm_id *id);

/*
 * Tells the kernel of an event on the queue pair; IBV_EVENT_COMM_EST, data before ESTABLISHED,
 * completes the connection. Fails with: EISCONN (it is complete already, which does no harm; not on
 * iWARP), EINVAL (no connection, or on InfiniBand and RoCE another event).
 */
int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event);

/*
 * Takes the next event of a channel; waits for one unless O_NONBLOCK is set on the channel's fd.
 * The event and what it points to are the caller's until rdma_ack_cm_event(). Some events end in
 * the library: on a non-blocking channel EAGAIN may follow though the fd was readable.
 * Fails with: EAGAIN, EINTR, ENOMEM (the event is still there).
 */
int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event);

/* Gives an event back and frees it. Exactly once for each, from any thread. */
int rdma_ack_cm_event(struct rdma_cm_event *event);

/*
 * Joins a multicast group as a full member; needs an address on the id. Ends in MULTICAST_JOIN or
 * MULTICAST_ERROR, where param.ud.private_data is context. When MULTICAST_JOIN is read, the id's
 * queue pair, if it has one, is attached to the group. Waits on a synchronous id.
 * Fails with: EINVAL (no device, the family), and what the kernel says of the group (ENOTSUPP,
 * 524, for one that the device cannot join).
 */
int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context);

/*
 * The same with flags. A send-only member is not attached. Fails also with: EINVAL (a bit of the
 * mask is missing, no such flag), ENOTSUP (an unknown bit). Since RDMACM_1.1.
 */
int rdma_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *mc_join_attr,
	void *context);

/*
 * Leaves a group, named by the very address it was joined with, and detaches the queue pair from
 * it. Waits until the events of the membership that were read have been acknowledged. Fails with:
 * EADDRNOTAVAIL (not joined). When the kernel refuses, the membership stays.
 */
int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr);

/*
 * Moves an id with the events that wait for it to another channel; NULL makes it synchronous. Waits
 * until its events that were read have been acknowledged. No other call on the id may be under way,
 * but others may read both channels. Fails with: EINVAL (it is synchronous already).
 */
int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel);

/* The id's own port in network order; 0 when it has none. */
__be16 rdma_get_src_port(struct rdma_cm_id *id);

/* The peer's port in network order; 0 when there is none. */
__be16 rdma_get_dst_port(struct rdma_cm_id *id);

/* The id's own address. Valid as long as the id. */
static inline struct sockaddr *rdma_get_local_addr(struct rdma_cm_id *id)
{
	return &id->route.addr.src_addr;
}

/* The peer's address. Valid as long as the id. */
static inline struct sockaddr *rdma_get_peer_addr(struct rdma_cm_id *id)
{
	return &id->route.addr.dst_addr;
}

/*
 * Opens every RDMA device. Returns an array that ends in NULL, and its length in *num_devices
 * unless that is NULL. The contexts are those that ids get; the array is the caller's until
 * rdma_free_devices(), and the contexts are there until their device is removed.
 * Returns NULL and sets errno, *num_devices being 0: ENODEV (none), ENOMEM, or why the last of them
 * could not be opened, if none could.
 */
struct ibv_context **rdma_get_devices(int *num_devices);

/* Gives an array of rdma_get_devices() back. NULL is ignored. */
void rdma_free_devices(struct ibv_context **list);

/*
 * The name of an event as written in this header. "UNKNOWN EVENT" for any other, and also for USER
 * and INTERNAL, which are not the CM's. Never freed.
 */
const char *rdma_event_str(enum rdma_cm_event_type event);

/*
 * Sets an option of an id; see RDMA_OPTION_ID above. Fails with: ENOSYS (no such option or level),
 * EINVAL (length or state), EFAULT (optval is NULL).
 */
int rdma_set_option(struct rdma_cm_id *id, int level, int optname, void *optval, size_t optlen);

/*
 * Turns names into addresses to listen on (RAI_PASSIVE: ai_src_addr) or to connect to
 * (ai_dst_addr), with getaddrinfo(3) alone: it may ask name servers and wait for them, except with
 * RAI_NUMERICHOST. There is one result, the first that getaddrinfo(3) gives, and it has neither a
 * canonical name nor a route: no daemon is asked for one, with or without RAI_NOROUTE. The family
 * of the hints limits what is found; AF_IB does not, but with RAI_NUMERICHOST and RAI_FAMILY node
 * is a GID. A source address in the hints is copied along; without node and service, the
 * destination is too, and nothing is looked up.
 *
 * RAI_SA looks a service of InfiniBand up instead, by its name or, when service is a number as
 * strtoull(3) reads it, by its identifier; node must be NULL. It asks through every active
 * InfiniBand port, one after the other, and waits for each answer: for seconds where none comes.
 * The results are AF_IB, one for each port and record: ai_src_addr is the port, ai_dst_addr where
 * the service is, and ai_dst_canonname its name. It fails only when no port found anything.
 *
 * The result is the caller's until rdma_freeaddrinfo(). Returns 0; -1 and errno: EINVAL (nothing to
 * look up; with RAI_SA also RAI_PASSIVE, no service, or a name of more than 63 characters), ENODEV
 * (no RDMA device), ENOMEM, and for RAI_SA: EOPNOTSUPP (no active InfiniBand port; or node, or
 * RAI_DNS), ENOSYS (the kernel cannot), ENOENT (no such service), ETIMEDOUT; else an error of
 * getaddrinfo(3), for gai_strerror(3), with errno as rdma_resolve_addrinfo() has it.
 */
int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
	struct rdma_addrinfo **res);

/* Frees a result of rdma_getaddrinfo() or rdma_query_addrinfo(). NULL is ignored. */
void rdma_freeaddrinfo(struct rdma_addrinfo *res);

/*
 * The same with an event for an end: ADDRINFO_RESOLVED, after which rdma_query_addrinfo() has the
 * result, or ADDRINFO_ERROR. What the id does otherwise goes on meanwhile.
 *
 * Only the look-up of a service (RAI_SA) does not wait: it goes through the port that the id is
 * bound to, which must be of InfiniBand, and is answered once in the life of an id. When
 * ADDRINFO_RESOLVED is read, the first result is the destination of the id: rdma_resolve_route()
 * may follow, or rdma_resolve_addr() with another. The look-up of a name waits, in this call, as
 * long as getaddrinfo(3) does with its time-outs, since the library has no thread to do it; when it
 * fails, so does the call, and no event comes. A loop that must not be held up uses a resolver of
 * its own, or RAI_NUMERICHOST.
 *
 * Waits on a synchronous id. Fails with: what rdma_getaddrinfo() fails with, EBUSY (a look-up of
 * the id runs, or its result was not queried yet), ENOSYS (the kernel cannot, for names neither),
 * EOPNOTSUPP (RAI_SA: the port is not InfiniBand's), EINVAL (RAI_SA: the id is not bound to a
 * device, or beyond that state), and for names, where getaddrinfo(3) failed: ENOENT (no such name
 * or service), EAGAIN (no answer for now), EIO (no answer ever), EAFNOSUPPORT. Since RDMACM_1.4.
 */
int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node, const char *service,
	const struct rdma_addrinfo *hints);

/*
 * Hands over what rdma_resolve_addrinfo() found, once, after ADDRINFO_RESOLVED was read. It is the
 * caller's until rdma_freeaddrinfo(); the id frees what nobody asked for. Fails with: ENOENT
 * (nothing found yet, or handed over already). Since RDMACM_1.4.
 */
int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info);

/*
 * Puts an event on the channel of an id, behind those that wait there: from any thread, to wake the
 * one that reads. event must be USER; status and arg arrive as they are. Unread, it vanishes with
 * the id. A call that waits on a synchronous id fails then; what it waited for may come yet, so the
 * id is best destroyed. Fails with: EINVAL (another event), ENOSYS (the kernel cannot). Since
 * RDMACM_1.4.
 */
int rdma_write_cm_event(
	struct rdma_cm_id *id, enum rdma_cm_event_type event, int status, uint64_t arg);

/*
 * Makes a synchronous id of the first answer in res: of its port space and queue pair type (0: that
 * of the port space), with RAI_PASSIVE bound to ai_src_addr and ready for rdma_listen(), else with
 * ai_dst_addr and its route resolved, at most 2 seconds for each, and ready for rdma_connect().
 * ai_src_addr, if given, binds there too; ai_route, if given, is the route; ai_connect goes before
 * the private data of rdma_connect(). All of res is copied and stays the caller's.
 *
 * qp_init_attr NULL: no queue pair. To connect, one is made as by rdma_create_qp(), and cap comes
 * back as granted. To listen, pd becomes the id's, and both are for the ids of rdma_get_request();
 * what qp_init_attr points to must outlive the listener. qp_type is that of the id in any case.
 *
 * The id is the caller's until rdma_destroy_ep(), or rdma_destroy_id() when there is no queue pair;
 * rdma_migrate_id() makes it asynchronous. Fails with: EINVAL (no address, or one that is too
 * short; more than 255 bytes of ai_connect; a pd of another device), and what rdma_create_id(),
 * rdma_bind_addr(), rdma_resolve_addr(), rdma_resolve_route(), rdma_set_option() and
 * rdma_create_qp() fail with. Nothing is left behind then.
 */
int rdma_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *res, struct ibv_pd *pd,
	struct ibv_qp_init_attr *qp_init_attr);

/*
 * Destroys an id with its queue pair, SRQ and their completion queues, in that order; any id will
 * do. Waits as rdma_destroy_qp(), rdma_destroy_srq() and rdma_destroy_id() do. NULL is ignored.
 * Should the kernel refuse, as it does with EACCES after a change of credentials, the id remains.
 */
void rdma_destroy_ep(struct rdma_cm_id *id);

/*
 * Says how a queue pair of the caller's own is to be moved to qp_attr->qp_state (INIT, RTR or RTS)
 * for this connection: fills qp_attr, and qp_attr_mask for ibv_modify_qp(). Since RDMACM_1.2.
 */
int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *qp_attr, int *qp_attr_mask);

/*
 * Says what extensions (ECE) a queue pair of the caller's own has, before rdma_connect() or
 * rdma_accept(). Fails with: EINVAL (the id has a queue pair, vendor_id is 0, comp_mask is not).
 * Since RDMACM_1.3.
 */
int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece);

/*
 * What extensions the peer offered, after CONNECT_REQUEST or CONNECT_RESPONSE, for a queue pair of
 * the caller's own. Fails with: EINVAL (the id has a queue pair). Since RDMACM_1.3.
 */
int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece);

#ifdef __cplusplus
}
#endif

#endif
