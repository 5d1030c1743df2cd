/* The fake kernel's RDMA CM, inside. States and names follow the kernel's. */
#ifndef FAKE_CM_H
#define FAKE_CM_H

#include "fake/fake_core.h"

#include <infiniband/ib.h>
#include <rdma/rdma_user_cm.h>

/* The events' numbers; the kernel's header has none. */
enum {
	FAKE_EV_ADDR_RESOLVED,
	FAKE_EV_ADDR_ERROR,
	FAKE_EV_ROUTE_RESOLVED,
	FAKE_EV_ROUTE_ERROR,
	FAKE_EV_CONNECT_REQUEST,
	FAKE_EV_CONNECT_RESPONSE,
	FAKE_EV_CONNECT_ERROR,
	FAKE_EV_UNREACHABLE,
	FAKE_EV_REJECTED,
	FAKE_EV_ESTABLISHED,
	FAKE_EV_DISCONNECTED,
	FAKE_EV_DEVICE_REMOVAL,
	FAKE_EV_MULTICAST_JOIN,
	FAKE_EV_MULTICAST_ERROR,
	FAKE_EV_ADDRINFO_RESOLVED = 16,
	FAKE_EV_ADDRINFO_ERROR,
	FAKE_EV_USER,
	FAKE_EV_INTERNAL,
	FAKE_EV_ADDR_CHANGE,
	FAKE_EV_TIMEWAIT_EXIT,
};

/* What the kernel's header of today does not have yet. */
enum { FAKE_CMD_RESOLVE_IB_SERVICE = 23, FAKE_CMD_WRITE_CM_EVENT, FAKE_QUERY_IB_SERVICE = 3 };

/* Reasons in REJECTED, and statuses of a SIDR answer. */
enum {
	FAKE_REJ_TIMEOUT = 4,
	FAKE_REJ_INVALID_SERVICE = 8,
	FAKE_REJ_CONSUMER = 28,
	FAKE_REJ_VENDOR_OPTION = 35,
	FAKE_SIDR_UNSUPPORTED = 1,
	FAKE_SIDR_REJECT = 2,
};

enum { FAKE_CMA_HEADER = 36, FAKE_UDP_QKEY = 0x01234567, FAKE_IPOIB_QKEY = 0x0b1b };

enum fake_id_state {
	FAKE_IDLE,
	FAKE_ADDR_QUERY,
	FAKE_ADDR_BOUND,
	FAKE_ADDR_RESOLVED,
	FAKE_ROUTE_QUERY,
	FAKE_ROUTE_RESOLVED,
	FAKE_CONNECT,
	FAKE_DISCONNECT,
	FAKE_LISTEN,
	FAKE_ADDRINFO_QUERY,
	FAKE_ADDRINFO_RESOLVED
};

/* The message machine underneath; NONE before and after. */
enum fake_conn_state {
	FAKE_CONN_NONE,
	FAKE_REQ_SENT,
	FAKE_REQ_RCVD,
	FAKE_REP_SENT,
	FAKE_REP_RCVD,
	FAKE_ESTABLISHED,
	FAKE_DREQ_SENT,
	FAKE_DREQ_RCVD,
	FAKE_TIMEWAIT,
	FAKE_SIDR_SENT,
	FAKE_SIDR_RCVD,
};

struct fake_id;

struct fake_event {
	TAILQ_ENTRY(fake_event) link;
	struct fake_file *file;
	struct fake_id *owner; /* whose count it enters; NULL: nobody's */
	struct fake_mc *mc;
	struct fake_id *child; /* of a request nobody has read yet */
	struct rdma_ucm_event_resp resp;
};
TAILQ_HEAD(fake_events, fake_event);

struct fake_file {
	TAILQ_ENTRY(fake_file) link;
	struct fake_bell bell;
	struct fake_events events;
};

struct fake_mc {
	TAILQ_ENTRY(fake_mc) link;
	struct fake_id *id;
	uint32_t number;
	uint64_t uid;
	uint32_t events_reported;
	union ibv_gid mgid;
	uint16_t mlid;
	uint32_t qkey;
};

struct fake_id {
	LIST_ENTRY(fake_id) port_link; /* of those on its port, while it is bound */
	struct fake_file *file;
	uint32_t number;
	uint64_t uid;
	uint16_t ps;
	uint8_t qp_type;
	bool closed;		/* by device removal; only DESTROY_ID and MIGRATE_ID know it */
	uint64_t held_until_us; /* closed before an iWARP peer has answered */
	uint32_t events_reported;
	uint32_t backlog;
	enum fake_id_state state;
	enum fake_conn_state conn;
	bool has_cm; /* the kernel's cm_id.ib or cm_id.iw */
	struct fake_device *device;
	struct fake_device *found; /* by an attempt to bind it, which may have failed */
	struct sockaddr_storage src;
	struct sockaddr_storage dst;
	bool bound;
	bool reuseaddr;
	bool afonly;
	bool afonly_set;
	uint8_t tos;
	uint8_t ack_timeout;
	bool has_ack_timeout;
	uint32_t qkey;
	uint32_t peer; /* the other id's number, or 0 */
	uint32_t qp_num;
	uint32_t peer_qp_num;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	struct fake_service_rec *services; /* the answer to RESOLVE_IB_SERVICE */
	uint32_t num_services;
	TAILQ_HEAD(, fake_mc) mcs;
};

/* A service to look for: with flag 1 by its number, with flag 2 by its name. */
struct fake_wanted {
	uint64_t service_id;
	char service_name[64];
	uint32_t flags;
	uint32_t reserved;
};

struct fake_packet {
	TAILQ_ENTRY(fake_packet) link;
	enum fake_message kind;
	uint32_t from; /* ids, by number: either may be gone on arrival */
	uint32_t to;
	uint32_t mc;
	int status;
	bool silent; /* for a host that never answers */
	struct rdma_ucm_conn_param param;
	struct rdma_ucm_ece ece;
	struct fake_wanted wanted;
};

/* One command: in is a zero-filled copy of what was written. 0 or -errno. */
typedef int fake_command(struct fake_file *file, const void *in, size_t out_len);

fake_command fake_create_id, fake_destroy_id, fake_migrate_id, fake_set_option, fake_notify;
fake_command fake_bind_ip, fake_bind, fake_resolve_ip, fake_resolve_addr, fake_resolve_route;
fake_command fake_query, fake_query_route, fake_init_qp_attr;
fake_command fake_connect, fake_listen, fake_accept, fake_reject, fake_disconnect;
fake_command fake_join_ip_mcast, fake_join_mcast, fake_leave_mcast, fake_get_event;
fake_command fake_resolve_ib_service, fake_write_cm_event;

/* The answer to a command, cut to what the caller has room for. */
void fake_respond(uint64_t response, const void *data, size_t size, size_t out_len);
struct fake_file *fake_file_of(int fd);

/* --- ids --- */
extern struct fake_table fake_ids;
struct fake_id *fake_id_new(struct fake_file *file, uint64_t uid, uint16_t ps, uint8_t qp_type);
void fake_id_free(struct fake_id *id);
/* The id by its number if it lives and the kernel still has it. */
struct fake_id *fake_id_alive(uint32_t number);
int fake_id_find(struct fake_file *file, uint32_t number, struct fake_id **id);
/* The same, but -EINVAL without a device. */
int fake_id_find_bound(struct fake_file *file, uint32_t number, struct fake_id **id);
/* For each id that lives: i from 1 to fake_ids.last. */
#define FAKE_FOREACH_ID(id, i)                                                                     \
	for ((i) = 1; (i) <= fake_ids.last; (i)++)                                                 \
		if (((id) = fake_table_find(&fake_ids, (i))))

/* --- events --- */
/* A blank event with the id's own uid and number; nothing when the id has no uid yet. */
struct fake_event *fake_event_new(struct fake_id *owner, unsigned type, int status);
void fake_event_queue(struct fake_event *event);
/* The same without asking whether the kernel would drop it. */
void fake_event_force(struct fake_event *event);
void fake_event_post(struct fake_id *owner, unsigned type, int status);
/* Drops what was not read: of the id, or of one membership of it. */
void fake_events_drop(struct fake_id *owner, struct fake_mc *mc);
void fake_events_move(struct fake_id *owner, struct fake_file *from, struct fake_file *to);
void fake_event_free(struct fake_event *event);

/* --- addresses --- */
size_t fake_addr_size(const void *addr);
bool fake_addr_any(const void *addr);
bool fake_addr_loopback(const void *addr);
uint16_t fake_addr_port(const void *addr); /* host order */
uint64_t fake_service(const struct fake_id *id, const void *addr);
bool fake_addr_same(const void *a, const void *b);
/* Whether a device in this process has the address. */
struct fake_device *fake_addr_owner(const void *addr);
bool fake_addr_silent(const void *addr);
/* Whether it is behind a netdev that has no RDMA device. */
bool fake_addr_plain(const void *addr);
void fake_addr_set_port(const struct fake_id *id, void *addr, uint16_t port);
int fake_bind_id(struct fake_id *id, const void *addr);
void fake_bind_any(struct fake_id *id, int family, int *err);
/* Port conflicts of an id that is about to listen. */
int fake_port_check(const struct fake_id *id, bool reuseaddr);
/* It goes, and its port is another's. */
void fake_port_leave(struct fake_id *id);
void fake_ports_reset(void);
/* Where a packet to addr goes, on the sender's device or any loopback. */
struct fake_id *fake_listener_find(const struct fake_id *from);
void fake_addr_arrive(const struct fake_packet *packet);
void fake_route_arrive(const struct fake_packet *packet);

/* --- messages --- */
/* Sends a copy, unless its kind is held. */
void fake_wire_send(const struct fake_packet *packet);
/* What fake_answer asked for, else 0. */
int fake_wire_status(enum fake_message kind);
void fake_wire_reset(void);

void fake_req_arrive(const struct fake_packet *packet);
void fake_rep_arrive(const struct fake_packet *packet);
void fake_rtu_arrive(const struct fake_packet *packet);
void fake_rej_arrive(const struct fake_packet *packet);
void fake_dreq_arrive(const struct fake_packet *packet);
void fake_drep_arrive(const struct fake_packet *packet);
void fake_sidr_req_arrive(const struct fake_packet *packet);
void fake_sidr_rep_arrive(const struct fake_packet *packet);
void fake_join_arrive(const struct fake_packet *packet);
/* The id goes: tells its peer what the kernel would. */
void fake_conn_abandon(struct fake_id *id);
void fake_wait_for_answer(const struct fake_id *id);
/* Its own side after all retries. */
void fake_conn_time_out(const struct fake_packet *packet);

/* Datagrams (SIDR). */
int fake_sidr_connect(struct fake_id *id, const struct rdma_ucm_connect *cmd);
int fake_sidr_answer(struct fake_id *id, const struct rdma_ucm_conn_param *param, int status);
bool fake_is_iwarp(const struct fake_id *id);
bool fake_is_ud(const struct fake_id *id);
void fake_ah_of(const struct fake_id *id, struct ib_uverbs_ah_attr *attr);
struct fake_id *fake_child_new(struct fake_id *listener, struct fake_id *from);
/* The child of a request that nobody sent. */
struct fake_id *fake_child_forge(struct fake_id *listener);
/* Lays data into a private data field of the given size, padded with zeroes. */
void fake_pad(uint8_t *field, uint8_t *field_len, const uint8_t *data, size_t len, size_t size);
/* What the receiver sees: the whole field, or on iWARP what was sent. */
void fake_copy_private(struct rdma_ucm_conn_param *out, const struct rdma_ucm_conn_param *in,
	size_t field, bool exact);
/* A message without contents. */
void fake_reply(const struct fake_id *id, enum fake_message kind, uint32_t to, int status);
void fake_send_reject(struct fake_id *id, int reason, const uint8_t *data, uint8_t len);
uint32_t fake_default_qkey(const struct fake_id *id);

/* --- multicast --- */
void fake_mcs_free(struct fake_id *id);
void fake_mc_reset(void);

/* --- services --- */
/* The number of the first command that this kernel does not know. */
uint32_t fake_num_commands(void);
int fake_query_ib_service(
	const struct fake_id *id, const struct rdma_ucm_query *cmd, size_t out_len);
void fake_service_arrive(const struct fake_packet *packet);
void fake_services_reset(void);

#endif
