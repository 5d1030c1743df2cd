#include "unit/cm_scenario.h"
#include "unit/cm_step.h"

static void drop_own(struct cm_fixture *f)
{
	int i;

	for (i = 0; i < 2; i++)
		if (f->own_qp[i])
			ibv_destroy_qp(f->own_qp[i]);
	if (f->own_cq)
		ibv_destroy_cq(f->own_cq);
	if (f->own_pd)
		ibv_dealloc_pd(f->own_pd);
}

bool cm_scenario_end(struct cm_fixture *f)
{
	bool gone;

	cm_step_leave_peer_out();
	drop_own(f);
	gone = cm_step_drop_id(&f->client);
	gone &= cm_step_drop_id(&f->server);
	gone &= cm_step_drop_id(&f->listener);
	rdma_destroy_event_channel(f->channel);
	rdma_destroy_event_channel(f->other);
	rdma_freeaddrinfo(f->info[0]);
	rdma_freeaddrinfo(f->info[1]);
	fake_release(FAKE_RTU);
	*f = (struct cm_fixture){ 0 };
	return gone;
}

const struct cm_scenario cm_scenarios[] = {
	{ "a connection", cm_scenario_connection, FAKE_ROCE, 60 },
	{ "a connection over IPv6", cm_scenario_connection_over_ipv6, FAKE_ROCE, 50 },
	{ "a connection over iWARP", cm_scenario_connection_over_iwarp, FAKE_IWARP, 50 },
	{ "a connection over InfiniBand", cm_scenario_connection_over_infiniband, FAKE_IB, 60 },
	{ "a connection of GIDs", cm_scenario_connection_of_gids, FAKE_IB, 60 },
	{ "a connection within one vendor", cm_scenario_connection_of_one_vendor, FAKE_ROCE, 60 },
	{ "a rejection", cm_scenario_rejection, FAKE_ROCE, 30, "ibv_modify_qp" },
	{ "queue pairs of the caller's", cm_scenario_own_queue_pairs, FAKE_ROCE, 40 },
	{ "shared receive queues", cm_scenario_shared_queues, FAKE_ROCE, 60 },
	{ "a datagram service", cm_scenario_datagrams, FAKE_ROCE, 40 },
	{ "a datagram service that refuses", cm_scenario_refused_datagrams, FAKE_ROCE, 30 },
	{ "memberships", cm_scenario_memberships, FAKE_ROCE, 20 },
	{ "a synchronous client", cm_scenario_synchronous_client, FAKE_ROCE, 60 },
	{ "an active endpoint", cm_scenario_active_endpoint, FAKE_ROCE, 60 },
	{ "a passive endpoint", cm_scenario_passive_endpoint, FAKE_ROCE, 60 },
	{ "both halves of XRC", cm_scenario_xrc, FAKE_IB, 60 },
	{ "a request served elsewhere", cm_scenario_to_another_channel, FAKE_ROCE, 60 },
	{ "to a channel of its own and back", cm_scenario_to_a_channel_of_its_own_and_back,
		FAKE_ROCE, 20 },
	{ "options", cm_scenario_set_options, FAKE_ROCE, 8 },
	{ "data before the confirmation", cm_scenario_early_data, FAKE_ROCE, 60 },
	{ "the list of devices", cm_scenario_list_of_devices, FAKE_ROCE, 5, "ibv_get_device_list" },
	{ "names", cm_scenario_names, FAKE_IB, 5 },
	{ "a service for an id", cm_scenario_service, FAKE_IB, 20 },
	{ "a name for an id", cm_scenario_name, FAKE_IB, 10 },
	{ "services through every port", cm_scenario_services, FAKE_IB, 20 },
};

const size_t cm_num_scenarios = sizeof(cm_scenarios) / sizeof(cm_scenarios[0]);
