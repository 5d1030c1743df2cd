/*
 * What a program does with the CM, from the first call to the last, as scenarios that may fail at
 * any point. They assert nothing and allocate nothing: they run while calls are made to fail.
 */
#ifndef UNIT_CM_SCENARIO_H
#define UNIT_CM_SCENARIO_H

#include "fake/fake.h"

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stddef.h>

struct cm_fixture {
	struct rdma_event_channel *channel, *other;
	struct rdma_cm_id *listener, *client, *server;
	struct ibv_qp *own_qp[2];
	struct ibv_cq *own_cq;
	struct ibv_pd *own_pd;
	struct rdma_addrinfo *info[2];
	bool refused;	/* our side ended without an error of its own: the other side had it */
	int peer_error; /* which is this one, when the other side acted within our call */
};

struct cm_scenario {
	const char *name;
	/* 0, or -1 and errno. */
	int (*run)(struct cm_fixture *f);
	enum fake_kind device; /* plugged in beside the first */
	unsigned least;	       /* points at the least, all kinds of failures together */
	const char *untold;    /* may fail without a word: what it is for has failed, or can wait */
};

extern const struct cm_scenario cm_scenarios[];
extern const size_t cm_num_scenarios;

/* The scenarios, by the file that they are in. */
int cm_scenario_connection(struct cm_fixture *f);
int cm_scenario_connection_over_ipv6(struct cm_fixture *f);
int cm_scenario_connection_over_iwarp(struct cm_fixture *f);
int cm_scenario_connection_over_infiniband(struct cm_fixture *f);
int cm_scenario_connection_of_gids(struct cm_fixture *f);
int cm_scenario_connection_of_one_vendor(struct cm_fixture *f);
int cm_scenario_rejection(struct cm_fixture *f);
int cm_scenario_own_queue_pairs(struct cm_fixture *f);
int cm_scenario_shared_queues(struct cm_fixture *f);
int cm_scenario_active_endpoint(struct cm_fixture *f);
int cm_scenario_passive_endpoint(struct cm_fixture *f);
int cm_scenario_xrc(struct cm_fixture *f);
int cm_scenario_datagrams(struct cm_fixture *f);
int cm_scenario_refused_datagrams(struct cm_fixture *f);
int cm_scenario_memberships(struct cm_fixture *f);
int cm_scenario_synchronous_client(struct cm_fixture *f);
int cm_scenario_to_another_channel(struct cm_fixture *f);
int cm_scenario_to_a_channel_of_its_own_and_back(struct cm_fixture *f);
int cm_scenario_set_options(struct cm_fixture *f);
int cm_scenario_early_data(struct cm_fixture *f);
int cm_scenario_list_of_devices(struct cm_fixture *f);
int cm_scenario_names(struct cm_fixture *f);
/* Of t/unit/cm_scenario_service.c: they need a kernel and a subnet of their own. */
int cm_scenario_service(struct cm_fixture *f);
int cm_scenario_name(struct cm_fixture *f);
int cm_scenario_services(struct cm_fixture *f);

/* Gives back all that the scenario has left. False when the library refuses. */
bool cm_scenario_end(struct cm_fixture *f);

#endif
