/* Datagrams, groups, and what needs no peer. */
#include "unit/cm_scenario.h"
#include "unit/cm_step.h"

#include <errno.h>
#include <infiniband/ib.h>

#define GROUP "239.1.2.3"
#define OTHER_GROUP "239.1.2.4"

int cm_scenario_datagrams(struct cm_fixture *f)
{
	if (cm_step_listen_and_resolve(f, RDMA_PS_UDP, FAKE_ROCE_IP) || cm_step_make_qp(f->client))
		return -1;
	if (cm_step_ask(f, NULL) || cm_step_answer(f))
		return -1;
	return cm_step_take(f, RDMA_CM_EVENT_ESTABLISHED);
}

int cm_scenario_refused_datagrams(struct cm_fixture *f)
{
	struct rdma_cm_event *event;
	int ret;

	if (cm_step_listen_and_resolve(f, RDMA_PS_UDP, FAKE_ROCE_IP) || cm_step_make_qp(f->client))
		return -1;
	if (cm_step_ask(f, NULL) || rdma_reject(f->server, NULL, 0))
		return -1;
	if (rdma_get_cm_event(f->channel, &event))
		return -1;
	ret = event->event == RDMA_CM_EVENT_UNREACHABLE ? 0 : -1;
	rdma_ack_cm_event(event);
	return ret;
}

static int join_send_only(struct cm_fixture *f, const char *group)
{
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER,
		.addr = cm_step_at(group, 0),
	};

	return rdma_join_multicast_ex(f->client, &attr, f) ||
			       cm_step_take(f, RDMA_CM_EVENT_MULTICAST_JOIN)
		       ? -1
		       : 0;
}

int cm_scenario_memberships(struct cm_fixture *f)
{
	if (cm_step_open_channel(&f->channel) ||
		rdma_create_id(f->channel, &f->client, NULL, RDMA_PS_UDP))
		return -1;
	if (rdma_bind_addr(f->client, cm_step_at(FAKE_ROCE_IP, 0)) || cm_step_make_qp(f->client))
		return -1;
	if (rdma_join_multicast(f->client, cm_step_at(GROUP, 0), f) ||
		cm_step_take(f, RDMA_CM_EVENT_MULTICAST_JOIN))
		return -1;
	if (join_send_only(f, OTHER_GROUP) || rdma_leave_multicast(f->client, cm_step_at(GROUP, 0)))
		return -1;
	return rdma_join_multicast(f->client, cm_step_at(GROUP, 0), f);
}

/* --- without a peer --- */

int cm_scenario_set_options(struct cm_fixture *f)
{
	uint8_t tos = 4, timeout = 12;
	int on = 1;

	if (cm_step_open_channel(&f->channel) ||
		rdma_create_id(f->channel, &f->client, NULL, RDMA_PS_TCP))
		return -1;
	if (rdma_set_option(f->client, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos)) ||
		rdma_set_option(
			f->client, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on)) ||
		rdma_set_option(f->client, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof(on)))
		return -1;
	return rdma_set_option(
		f->client, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof(timeout));
}

int cm_scenario_early_data(struct cm_fixture *f)
{
	if (cm_step_listen_and_resolve(f, RDMA_PS_TCP, FAKE_ROCE_IP) || cm_step_make_qp(f->client))
		return -1;
	fake_hold(FAKE_RTU);
	if (cm_step_ask(f, NULL) || cm_step_answer(f) || cm_step_take(f, RDMA_CM_EVENT_ESTABLISHED))
		return -1;
	if (rdma_notify(f->server, IBV_EVENT_COMM_EST))
		return -1;
	return cm_step_take(f, RDMA_CM_EVENT_ESTABLISHED);
}

int cm_scenario_list_of_devices(struct cm_fixture *f)
{
	struct ibv_context **list = rdma_get_devices(NULL);
	int error = errno;

	rdma_free_devices(list);
	errno = error;
	return list ? 0 : -1;
}

static int look_up(struct rdma_addrinfo **info, int flags, int family, const char *node)
{
	const struct rdma_addrinfo hints = { .ai_flags = flags | RAI_NUMERICHOST,
		.ai_family = family,
		.ai_port_space = RDMA_PS_TCP };

	return rdma_getaddrinfo(node, "7471", &hints, info) ? -1 : 0;
}

int cm_scenario_names(struct cm_fixture *f)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP };
	struct rdma_addrinfo *copy;

	if (look_up(&f->info[0], RAI_PASSIVE, 0, FAKE_ROCE_IP) ||
		look_up(&f->info[1], RAI_FAMILY, AF_IB, FAKE_IB_GID))
		return -1;
	hints.ai_src_addr = f->info[0]->ai_src_addr;
	hints.ai_src_len = f->info[0]->ai_src_len;
	hints.ai_dst_addr = f->info[1]->ai_dst_addr;
	hints.ai_dst_len = f->info[1]->ai_dst_len;
	if (rdma_getaddrinfo(NULL, NULL, &hints, &copy))
		return -1;
	rdma_freeaddrinfo(copy);
	return 0;
}
