/* Synchronous ids, endpoints, and ids that change between the two. */
#include "unit/cm_scenario.h"
#include "unit/cm_step.h"

#include <errno.h>
#include <rdma/rdma_verbs.h>

static int serve(struct cm_fixture *f)
{
	return cm_step_take(f, RDMA_CM_EVENT_CONNECT_REQUEST) || cm_step_answer(f) ? -1 : 0;
}

/* The waiting call says what a refusal is. */
static int connect_and_wait(struct cm_fixture *f)
{
	int ret;

	cm_step_when(EVR_UCMA_CONNECT, f, &f->server, serve);
	ret = rdma_connect(f->client, NULL);
	f->refused = ret && errno == ECONNREFUSED;
	return ret;
}

int cm_scenario_synchronous_client(struct cm_fixture *f)
{
	if (cm_step_open_channel(&f->channel) ||
		cm_step_start_listening(f, f->channel, RDMA_PS_TCP))
		return -1;
	if (rdma_create_id(NULL, &f->client, NULL, RDMA_PS_TCP))
		return -1;
	if (rdma_resolve_addr(
		    f->client, NULL, cm_step_at(FAKE_ROCE_IP, CM_STEP_PORT), CM_STEP_TIMEOUT_MS) ||
		rdma_resolve_route(f->client, CM_STEP_TIMEOUT_MS) || cm_step_make_qp(f->client))
		return -1;
	if (connect_and_wait(f) || cm_step_take(f, RDMA_CM_EVENT_ESTABLISHED))
		return -1;
	if (rdma_disconnect(f->server) || rdma_disconnect(f->client))
		return -1;
	return cm_step_take(f, RDMA_CM_EVENT_DISCONNECTED);
}

/* --- endpoints --- */

/* What rdma_getaddrinfo() says stays in w, for the end. */
static struct rdma_addrinfo *look_up(
	struct cm_fixture *f, int n, const char *ip, int flags, enum ibv_qp_type type)
{
	const struct rdma_addrinfo hints = {
		.ai_flags = flags | RAI_NUMERICHOST,
		.ai_port_space = type == IBV_QPT_RC ? RDMA_PS_TCP : RDMA_PS_IB,
		.ai_qp_type = type,
	};

	return rdma_getaddrinfo(ip, "7471", &hints, &f->info[n]) ? NULL : f->info[n];
}

static int make_endpoint(struct cm_fixture *f, struct rdma_cm_id **id, int flags)
{
	struct rdma_addrinfo *info = look_up(f, 0, FAKE_ROCE_IP, flags, IBV_QPT_RC);
	struct ibv_qp_init_attr attr = cm_step_qp_attr(IBV_QPT_RC);

	return info ? rdma_create_ep(id, info, NULL, &attr) : -1;
}

static void destroy_endpoint(struct rdma_cm_id **id)
{
	rdma_destroy_ep(*id);
	*id = NULL;
}

int cm_scenario_active_endpoint(struct cm_fixture *f)
{
	if (cm_step_open_channel(&f->channel) ||
		cm_step_start_listening(f, f->channel, RDMA_PS_TCP))
		return -1;
	if (make_endpoint(f, &f->client, 0) || connect_and_wait(f) ||
		cm_step_take(f, RDMA_CM_EVENT_ESTABLISHED) || rdma_disconnect(f->server))
		return -1;
	destroy_endpoint(&f->client);
	return 0;
}

static int start_asking(struct cm_fixture *f)
{
	if (cm_step_open_channel(&f->channel) ||
		rdma_create_id(f->channel, &f->client, NULL, RDMA_PS_TCP))
		return -1;
	if (cm_step_resolve(f, cm_step_at(FAKE_ROCE_IP, CM_STEP_PORT)) ||
		cm_step_make_qp(f->client))
		return -1;
	return rdma_connect(f->client, NULL);
}

/* A request that cannot be served is refused, and the next one awaited, which does not come. */
static int get_request(struct cm_fixture *f)
{
	int error;

	if (!rdma_get_request(f->listener, &f->server))
		return 0;
	error = errno;
	if (error == EDEADLK)
		cm_step_take(f, RDMA_CM_EVENT_ESTABLISHED);
	errno = error;
	return -1;
}

static int confirm(struct cm_fixture *f)
{
	return cm_step_take(f, RDMA_CM_EVENT_ESTABLISHED);
}

static int accept_and_wait(struct cm_fixture *f)
{
	int ret;

	cm_step_when(EVR_UCMA_ACCEPT, f, &f->client, confirm);
	ret = rdma_accept(f->server, NULL);
	f->refused = ret && errno == ECONNREFUSED;
	return ret;
}

int cm_scenario_passive_endpoint(struct cm_fixture *f)
{
	if (make_endpoint(f, &f->listener, RAI_PASSIVE) || rdma_listen(f->listener, 0))
		return -1;
	if (start_asking(f) || get_request(f) || accept_and_wait(f))
		return -1;
	if (rdma_disconnect(f->client) || rdma_disconnect(f->server))
		return -1;
	destroy_endpoint(&f->server);
	destroy_endpoint(&f->listener);
	return cm_step_take(f, RDMA_CM_EVENT_DISCONNECTED);
}

/* The receiving half of XRC, with its shared queue and its domain, and the sending one. */
int cm_scenario_xrc(struct cm_fixture *f)
{
	struct rdma_addrinfo *in = look_up(f, 0, FAKE_IB_IP, RAI_PASSIVE, IBV_QPT_XRC_RECV);
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_qp_init_attr recv = cm_step_qp_attr(IBV_QPT_XRC_RECV);
	struct ibv_qp_init_attr send = cm_step_qp_attr(IBV_QPT_XRC_SEND);
	struct rdma_addrinfo *out;

	if (!in || rdma_create_ep(&f->server, in, NULL, NULL))
		return -1;
	if (rdma_create_srq(f->server, NULL, &srq) || rdma_create_qp(f->server, NULL, &recv))
		return -1;
	out = look_up(f, 1, FAKE_IB_IP, 0, IBV_QPT_XRC_SEND);
	return out ? rdma_create_ep(&f->client, out, NULL, &send) : -1;
}

/* --- moving house --- */

int cm_scenario_to_another_channel(struct cm_fixture *f)
{
	if (cm_step_listen_and_resolve(f, RDMA_PS_TCP, FAKE_ROCE_IP) ||
		cm_step_make_qp(f->client) || cm_step_ask(f, NULL))
		return -1;
	if (cm_step_open_channel(&f->other) || rdma_migrate_id(f->server, f->other) ||
		cm_step_answer(f))
		return -1;
	if (cm_step_take(f, RDMA_CM_EVENT_ESTABLISHED))
		return -1;
	return cm_step_take_from(f, f->other, RDMA_CM_EVENT_ESTABLISHED);
}

int cm_scenario_to_a_channel_of_its_own_and_back(struct cm_fixture *f)
{
	if (cm_step_open_channel(&f->channel) ||
		rdma_create_id(f->channel, &f->client, NULL, RDMA_PS_TCP))
		return -1;
	if (rdma_resolve_addr(
		    f->client, NULL, cm_step_at(FAKE_ROCE_IP, CM_STEP_PORT), CM_STEP_TIMEOUT_MS) ||
		cm_step_take(f, RDMA_CM_EVENT_ADDR_RESOLVED))
		return -1;
	if (rdma_migrate_id(f->client, NULL) || rdma_resolve_route(f->client, CM_STEP_TIMEOUT_MS))
		return -1;
	return rdma_migrate_id(f->client, f->channel);
}
