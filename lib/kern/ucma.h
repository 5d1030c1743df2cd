/*
 * One function per command of the kernel's CM. fd is an event channel, handle the kernel's name
 * of an id on it. Each returns 0 or -errno and leaves its results alone on failure.
 */
#ifndef EVR_KERN_UCMA_H
#define EVR_KERN_UCMA_H

#include "kern/ucma_abi.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define EVR_UCMA_NO_INDEX UINT32_MAX
/* No id has it. Commands marked "newer" fail with ENOENT for it where the kernel knows them. */
#define EVR_UCMA_NO_HANDLE UINT32_MAX

/* Where an id is bound. port_num is 0 while it has no device. */
struct evr_ucma_addr {
	uint64_t node_guid;
	uint32_t ibdev_index; /* EVR_UCMA_NO_INDEX on kernels that do not tell */
	uint8_t port_num;
	uint16_t pkey;
	struct sockaddr_storage src;
	struct sockaddr_storage dst;
	size_t src_len;
	size_t dst_len;
};

int evr_ucma_create_id(int fd, uint64_t uid, uint16_t ps, uint8_t qp_type, uint32_t *handle);
int evr_ucma_destroy_id(int fd, uint32_t handle, uint32_t *events_reported);
int evr_ucma_bind(int fd, uint32_t handle, const struct sockaddr *addr, size_t len);
/* src may be NULL. */
int evr_ucma_resolve_addr(int fd, uint32_t handle, const struct sockaddr *src, size_t src_len,
	const struct sockaddr *dst, size_t dst_len, uint32_t timeout_ms);
int evr_ucma_resolve_route(int fd, uint32_t handle, uint32_t timeout_ms);
int evr_ucma_query_addr(int fd, uint32_t handle, struct evr_ucma_addr *addr);
/* The same with the addresses as GIDs, in sockaddr_ib. */
int evr_ucma_query_gid(int fd, uint32_t handle, struct evr_ucma_addr *addr);
int evr_ucma_query_path(int fd, uint32_t handle, struct evr_ucma_resp_path *paths);
int evr_ucma_connect(int fd, uint32_t handle, const struct evr_ucma_conn_param *param,
	const struct evr_ucma_ece *ece);
int evr_ucma_listen(int fd, uint32_t handle, int backlog);
/* param NULL: only sends the ready-to-use message of the active side; uid is not taken over. */
int evr_ucma_accept(int fd, uint32_t handle, uint64_t uid, const struct evr_ucma_conn_param *param,
	const struct evr_ucma_ece *ece);
int evr_ucma_reject(int fd, uint32_t handle, const void *data, uint8_t len, uint8_t reason);
int evr_ucma_disconnect(int fd, uint32_t handle);
int evr_ucma_init_qp_attr(
	int fd, uint32_t handle, uint32_t qp_state, struct ib_uverbs_qp_attr *attr);
int evr_ucma_notify(int fd, uint32_t handle, uint32_t event);
int evr_ucma_join_mcast(int fd, uint32_t handle, uint64_t uid, const struct sockaddr *addr,
	size_t len, uint16_t join_flags, uint32_t *mc_handle);
int evr_ucma_leave_mcast(int fd, uint32_t mc_handle, uint32_t *events_reported);
int evr_ucma_set_option(
	int fd, uint32_t handle, uint32_t level, uint32_t name, const void *val, size_t len);
/* Runs on the channel that takes the id over; from_fd is the one that has it. */
int evr_ucma_migrate_id(int fd, uint32_t handle, int from_fd, uint32_t *events_reported);
int evr_ucma_get_event(int fd, struct evr_ucma_resp_event *resp);

/* Newer: -ENOSYS from a kernel without the command, and then never anything else. */
int evr_ucma_resolve_service(int fd, uint32_t handle, const struct evr_ucma_service *service);
int evr_ucma_write_event(int fd, uint32_t handle, uint32_t event, int status, uint64_t arg);
/* After ADDRINFO_RESOLVED; resp has room for that many records, EVR_UCMA_SERVICES_MAX at most. */
int evr_ucma_query_service(
	int fd, uint32_t handle, struct evr_ucma_resp_service *resp, uint32_t room);

#endif
