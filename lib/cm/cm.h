/* What the files of the CM share: the library's side of ids, devices, events and memberships. */
#ifndef EVR_CM_CM_H
#define EVR_CM_CM_H

#include <errno.h>
#include <infiniband/ib.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "kern/device.h"
#include "kern/ucma.h"
#include "kern/ucma_event.h"
#include "util/list.h"

/* One verbs device that was opened, shared by all ids on it. */
struct evr_cm_device {
	TAILQ_ENTRY(evr_cm_device) link;
	struct evr_device_key key;
	struct ibv_context *verbs;
	struct ibv_pd *pd;     /* for ids without one of their own; NULL until an id needs it */
	struct ibv_xrcd *xrcd; /* the same for XRC */
	uint32_t driver_id;
	bool can_close;	     /* else the kernel cannot tell what is in use: it stays open */
	atomic_bool removed; /* the kernel took the device away: for no new id */
	atomic_uint refs;
	uint8_t max_responder_resources;
	uint8_t max_initiator_depth;
};

struct evr_cm_mc {
	TAILQ_ENTRY(evr_cm_mc) link;
	struct evr_cm_id *id;
	void *context;
	uint32_t handle;
	uint32_t events_done; /* guarded by the id's lock */
	uint16_t join_flags;
	bool attached;
	bool gone; /* left in the kernel */
	uint16_t mlid;
	union ibv_gid mgid;
	struct sockaddr_storage addr;
};

/* How far rdma_resolve_addrinfo() is. */
enum evr_cm_lookup {
	EVR_CM_LOOKUP_NONE,
	EVR_CM_LOOKUP_RUNNING, /* until its event is read */
	EVR_CM_LOOKUP_DONE,    /* until its result is fetched */
};

struct evr_cm_id {
	struct rdma_cm_id id; /* first: this is what the caller holds */
	uint32_t handle;
	bool sync;
	bool gone;    /* in the kernel: its handle may be another's by now */
	bool passive; /* came with a request: what its connection takes is settled */
	/* The answer to CONNECT could not be served: what the kernel says next is not told. */
	bool response_failed;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	struct ibv_qp *init_qp; /* has from INIT what the connection takes */
	struct evr_ucma_ece local_ece;
	struct evr_ucma_ece remote_ece;
	struct evr_cm_device *dev;
	struct ibv_cq *srq_cq;		     /* where receives of the id's XRC SRQ complete */
	struct ibv_qp_init_attr *child_attr; /* for the queue pairs of requests, or NULL */
	uint8_t *connect_data;		     /* goes before the private data, or NULL */
	uint8_t connect_len;
	/*
	 * Serving an event, and taking away what that needs, come one after the other: the id's end
	 * or move in the kernel, its queue pair, its groups. Under it nobody waits for an event.
	 */
	pthread_mutex_t work_lock;
	TAILQ_HEAD(, evr_cm_mc) groups;
	pthread_mutex_t lock;
	pthread_cond_t event_done;
	uint32_t events_done; /* how many of the reported events were acknowledged */
	/* Guarded by the lock. While a look-up runs, the result waits for its event. */
	enum evr_cm_lookup lookup;
	struct rdma_addrinfo *addrinfo;
};

struct evr_cm_event {
	struct rdma_cm_event event;	    /* first: this is what the caller holds */
	struct rdma_event_channel *channel; /* where it was read */
	struct evr_cm_id *counted;	    /* the id that the kernel reported it for */
	struct evr_cm_mc *mc;
	int error; /* what failed on our side, if that is what the event tells */
	uint8_t private_data[EVR_UCMA_PRIVATE_DATA_MAX];
};

static inline struct evr_cm_id *evr_cm_id(struct rdma_cm_id *id)
{
	return (struct evr_cm_id *)id;
}

static inline bool evr_cm_is_ud(const struct evr_cm_id *id)
{
	return id->id.qp_type == IBV_QPT_UD;
}

static inline bool evr_cm_is_ib(const struct evr_cm_id *id)
{
	return id->id.verbs->device->transport_type == IBV_TRANSPORT_IB;
}

static inline int evr_cm_fd(const struct evr_cm_id *id)
{
	return id->id.channel->fd;
}

static inline uint64_t evr_cm_uid(const void *ptr)
{
	return (uint64_t)(uintptr_t)ptr;
}

/* The errno of a verb that returns NULL, which not all providers set. */
static inline int evr_cm_verbs_error(void)
{
	return errno ? -errno : -EIO;
}

/* Verbs return a positive errno, or -1 with errno from old providers. */
static inline int evr_cm_verbs_result(int ret)
{
	return ret < 0 ? -errno : -ret;
}

/* The boundary: 0 or -errno inside, 0 or -1 and errno outside. */
int evr_cm_result(int ret);

/*
 * fork: from now on it is safe beside other threads; 0 or -errno. Each file that has locks holds
 * them meanwhile, or lets go of them.
 */
int evr_cm_watch_forks(void);
void evr_cm_channel_hold(bool hold);
void evr_cm_device_hold(bool hold);
void evr_cm_devlist_hold(bool hold);
void evr_cm_map_hold(bool hold);
/* In a child, while it holds them: the devices that its parent has open are not for it. */
void evr_cm_device_begin_child(void);

/* channel: -ENODEV without a device. */
int evr_cm_init(void);
int evr_cm_channel_new(struct rdma_event_channel **channel);
void evr_cm_channel_free(struct rdma_event_channel *channel);

/* devlist: as ibv_get_device_list(3), to be freed as such; -errno without a list. */
int evr_cm_list_devices(struct ibv_device ***list, int *num);
/* -errno: after ibv_open_device(3) has failed, and has said why as well as it can. */
int evr_cm_why_closed(const struct ibv_device *ibdev);

/* device */
int evr_cm_device_get(const struct evr_device_key *key, struct evr_cm_device **dev);
/* Closes the device with its last reference if it was removed and nothing is on it. */
void evr_cm_device_put(struct evr_cm_device *dev);
/*
 * Once a second looks for devices that were removed while no id was on them, or that had something
 * of the caller's then, and closes them. Never waits for another thread, and costs nothing while
 * every open device has ids.
 */
void evr_cm_device_sweep(void);
/* For rdma_free_devices(). left_out: why a device could not be opened and is not in the list. */
int evr_cm_device_get_all(struct ibv_context ***list, int *opened, int *left_out);
/* The XRC domain that the ids on the device share, so that all their SRQs are in one. */
int evr_cm_device_xrcd(struct evr_cm_device *dev, struct ibv_xrcd **xrcd);

/* id: new ones are in the event map, and on the kernel's side once the handle is set. */
int evr_cm_id_new(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps,
	struct evr_cm_id **id);
void evr_cm_id_free(struct evr_cm_id *id);
/* A whole one. Without a type (0) it gets that of the port space. */
int evr_cm_id_create(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps,
	enum ibv_qp_type qp_type, struct evr_cm_id **id);
/* The end of one that the caller never saw: whatever the kernel answers. Keeps errno. */
void evr_cm_id_drop(struct evr_cm_id *id);
int evr_cm_migrate(struct evr_cm_id *id, struct rdma_event_channel *channel);

/* addr: 0 for a family that is none. */
socklen_t evr_cm_addr_len(const struct sockaddr *addr);
/*
 * Brings addresses, device and port up to date with the kernel, and the GIDs; with the work lock
 * held, or before anybody else knows the id.
 */
int evr_cm_addr_query(struct evr_cm_id *id);
int evr_cm_addr_query_gid(struct evr_cm_id *id);

/* route */
int evr_cm_route_query(struct evr_cm_id *id);

/* addrinfo: 1 if the hints say so, -EINVAL or -EOPNOTSUPP if that does not fit the rest. */
int evr_cm_asks_sa(const char *node, const char *service, const struct rdma_addrinfo *hints);
/* Of getaddrinfo(3) otherwise. 0 or -errno; *eai is what getaddrinfo(3) failed with, or 0. */
int evr_cm_look_up(const char *node, const char *service, const struct rdma_addrinfo *hints,
	struct rdma_addrinfo **res, int *eai);
int evr_cm_copy_addr(struct sockaddr **to, socklen_t *to_len, const void *from, socklen_t len);

/* addrinfo_async: what reading the three events means for the look-up of the id. */
int evr_cm_lookup_found(struct evr_cm_id *id);
void evr_cm_lookup_failed(struct evr_cm_id *id);
/* -EBADMSG when the id does not wait for that. */
int evr_cm_lookup_told(struct evr_cm_id *id, uint64_t arg);

/* service: names and numbers of services, which InfiniBand's subnet administrator knows. */
int evr_cm_service_resolve(struct evr_cm_id *id, const char *service);
/* The answer; the first record becomes the destination of the id, as it is in the kernel. */
int evr_cm_service_query(struct evr_cm_id *id, struct rdma_addrinfo **res);
/* Through every port that has such an administrator, one after the other. */
int evr_cm_service_look_up(
	const char *service, const struct rdma_addrinfo *hints, struct rdma_addrinfo **res);

/* queue: a completion queue and its channel, as they stand on an id. */
struct evr_cm_queue {
	struct ibv_comp_channel **channel;
	struct ibv_cq **cq;
};
struct evr_cm_queue evr_cm_send_queue(struct rdma_cm_id *id);
struct evr_cm_queue evr_cm_recv_queue(struct rdma_cm_id *id);
/* *named stays if it is one, else becomes the id's, else a new one that is the id's from now on. */
int evr_cm_queue_choose(struct rdma_cm_id *id, struct evr_cm_queue queue, struct ibv_cq **named,
	uint32_t num_wr, bool *created);
void evr_cm_queue_destroy(struct evr_cm_queue queue);

/* qp_state: they do nothing for an id without a queue pair. */
int evr_cm_qp_init(struct evr_cm_id *id, struct ibv_qp *qp);
int evr_cm_qp_connected(struct evr_cm_id *id, uint8_t responder_resources, uint8_t initiator_depth);
int evr_cm_qp_error(struct evr_cm_id *id);
int evr_cm_qp_drain(struct evr_cm_id *id);
void evr_cm_ah_from_kern(struct ibv_ah_attr *to, const struct ib_uverbs_ah_attr *from);

/* ece: for a new queue pair before INIT, and on the connecting side when the answer arrives. */
int evr_cm_ece_of_new_qp(struct evr_cm_id *id, struct ibv_qp *qp);
int evr_cm_ece_of_answer(struct evr_cm_id *id);
/* After it moved, which settles what the two sides have. */
int evr_cm_ece_refresh(struct evr_cm_id *id, struct ibv_qp *qp);
/* For the peer of a request: under the vendor that it named itself, if any. */
struct evr_ucma_ece evr_cm_ece_to_answer(const struct evr_cm_id *id);

/* connect: serves a CONNECT_RESPONSE for an id with a queue pair. */
int evr_cm_connect_finish(struct evr_cm_id *id);

/* param */
int evr_cm_param_check(const struct evr_cm_id *id, const struct rdma_conn_param *param);
void evr_cm_param_to_kern(const struct evr_cm_id *id, const struct rdma_conn_param *param,
	struct evr_ucma_conn_param *kern);
void evr_cm_param_conn(struct evr_cm_event *evt, const struct evr_ucma_event *raw);
void evr_cm_param_ud(struct evr_cm_event *evt, const struct evr_ucma_event *raw);

/* mcast: the first two with the work lock held. */
int evr_cm_mc_joined(struct evr_cm_mc *mc, const struct evr_ucma_event *raw);
void evr_cm_mc_detach_all(struct evr_cm_id *id);
void evr_cm_mc_free_all(struct evr_cm_id *id);

/* event: it has no more to do with the id it was reported for, which may go before it does. */
void evr_cm_event_hand_over(struct rdma_cm_event *event);

/* wait: on a synchronous id for the answer to what was just asked. */
int evr_cm_complete(struct evr_cm_id *id);
/*
 * The same for what a synchronous listener waits for, by any number of threads at once. The request
 * is the caller's; what is none fails, and stays on the id to be looked at.
 */
int evr_cm_await_request(struct evr_cm_id *id, struct rdma_cm_event **request);
/* Gives back the event that the last such call left on the id. */
void evr_cm_release_event(struct evr_cm_id *id);
void evr_cm_wait_events(struct evr_cm_id *id, uint32_t reported);
void evr_cm_wait_mc_events(struct evr_cm_mc *mc, uint32_t reported);

/* event_map: what the numbers in the kernel's events stand for. A stale one stands for nothing. */
int evr_cm_map_add_id(struct evr_cm_id *id);
void evr_cm_map_remove_id(struct evr_cm_id *id);
struct evr_cm_id *evr_cm_map_find_id(uint64_t uid);
int evr_cm_map_add_child(struct evr_cm_id *id);
struct evr_cm_id *evr_cm_map_find_child(uint32_t handle);
int evr_cm_map_add_mc(struct evr_cm_mc *mc);
void evr_cm_map_remove_mc(struct evr_cm_mc *mc);
struct evr_cm_mc *evr_cm_map_find_mc(uint64_t uid);

#endif
