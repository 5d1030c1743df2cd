/* Look-ups of services and names, on synchronous ids. */
#include "unit/cm_scenario.h"

#include <arpa/inet.h>
#include <infiniband/ib.h>

#define SERVICE "MyService"

static void prepare(void)
{
	fake_newer_kernel(true);
	fake_service_add(RDMA_IB_PS_IB | 7471, SERVICE, FAKE_IB_GID);
	fake_service_add(RDMA_IB_PS_IB | 7472, SERVICE, FAKE_IB_GID);
}

int cm_scenario_service(struct cm_fixture *f)
{
	const struct rdma_addrinfo hints = { .ai_flags = RAI_SA };
	struct sockaddr_ib src = { .sib_family = AF_IB, .sib_pkey = UINT16_MAX };

	prepare();
	inet_pton(AF_INET6, FAKE_IB_GID, &src.sib_addr);
	if (rdma_create_id(NULL, &f->client, NULL, RDMA_PS_IB) ||
		rdma_bind_addr(f->client, (struct sockaddr *)&src) ||
		rdma_resolve_addrinfo(f->client, NULL, SERVICE, &hints) ||
		rdma_query_addrinfo(f->client, &f->info[0]))
		return -1;
	return rdma_resolve_route(f->client, 1000);
}

int cm_scenario_name(struct cm_fixture *f)
{
	const struct rdma_addrinfo hints = { .ai_flags = RAI_NUMERICHOST };

	prepare();
	if (rdma_create_id(NULL, &f->client, NULL, RDMA_PS_TCP) ||
		rdma_resolve_addrinfo(f->client, FAKE_IB_IP, "7471", &hints) ||
		rdma_write_cm_event(f->client, RDMA_CM_EVENT_USER, 0, 1))
		return -1;
	return rdma_query_addrinfo(f->client, &f->info[0]);
}

/* A device that is left out while another one has the answer is none that anybody misses. */
int cm_scenario_services(struct cm_fixture *f)
{
	const struct rdma_addrinfo hints = { .ai_flags = RAI_SA };

	prepare();
	fake_device_remove(FAKE_ROCE);
	return rdma_getaddrinfo(NULL, SERVICE, &hints, &f->info[0]);
}
