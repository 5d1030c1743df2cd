/*
 * The kernel's ABI of the CM's character device, as far as it is used. The kernel's own header
 * cannot be included beside <rdma/rdma_cma.h>, whose names it shares; t/unit/kern_abi.c compares
 * the two. Every command starts with the header, which the kernel's structures leave out.
 */
#ifndef EVR_KERN_UCMA_ABI_H
#define EVR_KERN_UCMA_ABI_H

#include <linux/types.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>
#include <stdint.h>
#include <sys/socket.h>

/*
 * What the kernel reads is set to the last byte where an initializer sets all members: there are no
 * gaps between them, and no unions in commands, of which it may set one member only.
 */
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wpadded"

#define EVR_UCMA_PRIVATE_DATA_MAX 256
#define EVR_UCMA_PATHS_MAX 6
#define EVR_UCMA_SERVICE_NAME_SIZE 64

enum evr_ucma_op {
	EVR_UCMA_CREATE_ID = 0,
	EVR_UCMA_DESTROY_ID = 1,
	EVR_UCMA_RESOLVE_ROUTE = 4,
	EVR_UCMA_CONNECT = 6,
	EVR_UCMA_LISTEN = 7,
	EVR_UCMA_ACCEPT = 8,
	EVR_UCMA_REJECT = 9,
	EVR_UCMA_DISCONNECT = 10,
	EVR_UCMA_INIT_QP_ATTR = 11,
	EVR_UCMA_GET_EVENT = 12,
	EVR_UCMA_SET_OPTION = 14,
	EVR_UCMA_NOTIFY = 15,
	EVR_UCMA_LEAVE_MCAST = 17,
	EVR_UCMA_MIGRATE_ID = 18,
	EVR_UCMA_QUERY = 19,
	EVR_UCMA_BIND = 20,
	EVR_UCMA_RESOLVE_ADDR = 21,
	EVR_UCMA_JOIN_MCAST = 22,
	EVR_UCMA_RESOLVE_SERVICE = 23, /* this and the next: only on newer kernels */
	EVR_UCMA_WRITE_EVENT = 24,
};

enum evr_ucma_query_option {
	EVR_UCMA_QUERY_ADDR = 0,
	EVR_UCMA_QUERY_PATH = 1,
	EVR_UCMA_QUERY_GID = 2,
	EVR_UCMA_QUERY_SERVICE = 3,
};

/* Which fields of a service to look for are set. */
enum evr_ucma_service_flag {
	EVR_UCMA_SERVICE_ID = 1 << 0,
	EVR_UCMA_SERVICE_NAME = 1 << 1,
};

struct evr_ucma_hdr {
	uint32_t op;
	uint16_t in_bytes; /* without this header */
	uint16_t out_bytes;
};

struct evr_ucma_cmd_create_id {
	struct evr_ucma_hdr hdr;
	__aligned_u64 uid;
	__aligned_u64 response;
	uint16_t ps;
	uint8_t qp_type;
	uint8_t reserved[5];
};

struct evr_ucma_resp_handle {
	uint32_t handle;
};

/* DESTROY_ID and LEAVE_MCAST */
struct evr_ucma_cmd_destroy {
	struct evr_ucma_hdr hdr;
	__aligned_u64 response;
	uint32_t handle;
	uint32_t reserved;
};

/* DESTROY_ID, LEAVE_MCAST and MIGRATE_ID */
struct evr_ucma_resp_events {
	uint32_t events_reported;
};

struct evr_ucma_cmd_bind {
	struct evr_ucma_hdr hdr;
	uint32_t handle;
	uint16_t addr_size;
	uint16_t reserved;
	struct sockaddr_storage addr;
};

struct evr_ucma_cmd_resolve_addr {
	struct evr_ucma_hdr hdr;
	uint32_t handle;
	uint32_t timeout_ms;
	uint16_t src_size;
	uint16_t dst_size;
	uint32_t reserved;
	struct sockaddr_storage src;
	struct sockaddr_storage dst;
};

struct evr_ucma_cmd_resolve_route {
	struct evr_ucma_hdr hdr;
	uint32_t handle;
	uint32_t timeout_ms;
};

struct evr_ucma_cmd_query {
	struct evr_ucma_hdr hdr;
	__aligned_u64 response;
	uint32_t handle;
	uint32_t option;
};

/* QUERY ADDR and QUERY GID; kernels before 5.8 end it before the index. */
struct evr_ucma_resp_addr {
	__aligned_u64 node_guid;
	uint8_t port_num;
	uint8_t reserved;
	uint16_t pkey;
	uint16_t src_size;
	uint16_t dst_size;
	struct sockaddr_storage src;
	struct sockaddr_storage dst;
	uint32_t ibdev_index;
	uint32_t reserved1;
};

struct evr_ucma_resp_path {
	uint32_t num_paths;
	uint32_t reserved;
	struct ib_path_rec_data path[EVR_UCMA_PATHS_MAX];
};

/* As the subnet's administrator keeps it, in the order of the network. */
struct evr_ucma_service_rec {
	__aligned_u64 id;
	uint8_t gid[16];
	uint16_t pkey;
	uint8_t reserved[2];
	uint32_t lease;
	uint8_t key[16];
	char name[EVR_UCMA_SERVICE_NAME_SIZE]; /* may end without a NUL */
	uint8_t data[64];
};

/* num is how many there are, which may be more than the caller had room for. */
struct evr_ucma_resp_service {
	uint32_t num;
	uint32_t reserved;
	struct evr_ucma_service_rec rec[];
};

/* What a response's length, of 16 bits, has room for. */
#define EVR_UCMA_SERVICES_MAX                                                                      \
	((UINT16_MAX - sizeof(struct evr_ucma_resp_service)) / sizeof(struct evr_ucma_service_rec))

struct evr_ucma_conn_param {
	uint32_t qp_num;
	uint32_t qkey;
	uint8_t private_data[EVR_UCMA_PRIVATE_DATA_MAX];
	uint8_t private_data_len;
	uint8_t srq;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t flow_control;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	uint8_t valid;
};

struct evr_ucma_ud_param {
	uint32_t qp_num;
	uint32_t qkey;
	struct ib_uverbs_ah_attr ah_attr;
	uint8_t private_data[EVR_UCMA_PRIVATE_DATA_MAX];
	uint8_t private_data_len;
	uint8_t reserved[7];
};

struct evr_ucma_ece {
	uint32_t vendor_id;
	uint32_t attr_mod;
};

struct evr_ucma_cmd_connect {
	struct evr_ucma_hdr hdr;
	struct evr_ucma_conn_param param;
	uint32_t handle;
	uint32_t reserved;
	struct evr_ucma_ece ece;
};

struct evr_ucma_cmd_listen {
	struct evr_ucma_hdr hdr;
	uint32_t handle;
	uint32_t backlog;
};

struct evr_ucma_cmd_accept {
	struct evr_ucma_hdr hdr;
	__aligned_u64 uid;
	struct evr_ucma_conn_param param;
	uint32_t handle;
	uint32_t reserved;
	struct evr_ucma_ece ece;
};

struct evr_ucma_cmd_reject {
	struct evr_ucma_hdr hdr;
	uint32_t handle;
	uint8_t private_data_len;
	uint8_t reason;
	uint8_t reserved[2];
	uint8_t private_data[EVR_UCMA_PRIVATE_DATA_MAX];
};

struct evr_ucma_cmd_disconnect {
	struct evr_ucma_hdr hdr;
	uint32_t handle;
};

struct evr_ucma_cmd_init_qp_attr {
	struct evr_ucma_hdr hdr;
	__aligned_u64 response;
	uint32_t handle;
	uint32_t qp_state;
};

struct evr_ucma_cmd_notify {
	struct evr_ucma_hdr hdr;
	uint32_t handle;
	uint32_t event;
};

struct evr_ucma_cmd_join_mcast {
	struct evr_ucma_hdr hdr;
	__aligned_u64 response;
	__aligned_u64 uid;
	uint32_t handle;
	uint16_t addr_size;
	uint16_t join_flags;
	struct sockaddr_storage addr;
};

struct evr_ucma_cmd_set_option {
	struct evr_ucma_hdr hdr;
	__aligned_u64 optval;
	uint32_t handle;
	uint32_t level;
	uint32_t optname;
	uint32_t optlen;
};

struct evr_ucma_cmd_migrate_id {
	struct evr_ucma_hdr hdr;
	__aligned_u64 response;
	uint32_t handle;
	uint32_t fd;
};

struct evr_ucma_service {
	__aligned_u64 id; /* in host order */
	char name[EVR_UCMA_SERVICE_NAME_SIZE];
	uint32_t flags;
	uint32_t reserved;
};

struct evr_ucma_cmd_resolve_service {
	struct evr_ucma_hdr hdr;
	uint32_t handle;
	uint32_t reserved;
	struct evr_ucma_service service;
};

/* The kernel has room for the parameters of other events, which cannot be written. */
struct evr_ucma_cmd_write_event {
	struct evr_ucma_hdr hdr;
	uint32_t handle;
	uint32_t reserved;
	uint32_t event;
	uint32_t status;
	__aligned_u64 arg;
	uint8_t reserved1[sizeof(struct evr_ucma_ud_param) - sizeof(uint64_t)];
};

struct evr_ucma_cmd_get_event {
	struct evr_ucma_hdr hdr;
	__aligned_u64 response;
};

/* The union stands at an offset that is aligned to 4 bytes only: nothing in it needs more. */
struct evr_ucma_resp_event {
	__aligned_u64 uid;
	uint32_t handle;
	uint32_t event;
	uint32_t status;
	union {
		struct evr_ucma_conn_param conn;
		struct evr_ucma_ud_param ud;
		uint32_t arg32[2];
	} param;
	uint32_t reserved;
	struct evr_ucma_ece ece;
};

#pragma GCC diagnostic pop

#endif
