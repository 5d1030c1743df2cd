/* The steps of programs that call the library. */
#include "fuzz/sequence.h"

#include "cm/cm.h"

#include <errno.h>
#include <rdma/rdma_verbs.h>
#include <string.h>

enum { MANY_MS = 1000, NO_ARG = 10 };

/* --- ids, and events that wait for an acknowledgement ---------------------------------------- */

static struct seq_slot *free_slot(struct seq_fixture *f)
{
	size_t i;

	for (i = 0; i < SEQ_IDS; i++)
		if (!f->slots[i].id)
			return &f->slots[i];
	return NULL;
}

static void ack(struct seq_fixture *f, unsigned i)
{
	struct rdma_cm_event *event = f->events[i].event;

	f->num_events--;
	memmove(&f->events[i], &f->events[i + 1], (f->num_events - i) * sizeof(f->events[0]));
	fuzz_check(rdma_ack_cm_event(event) == 0);
}

void seq_ack_oldest(struct seq_fixture *f)
{
	ack(f, 0);
}

void seq_settle(struct seq_fixture *f, const struct rdma_cm_id *id)
{
	unsigned i = 0;

	while (i < f->num_events)
		if (f->events[i].counted == id)
			ack(f, i);
		else
			i++;
}

static void destroy_foreign_qp(struct seq_slot *slot)
{
	if (slot->qp)
		ibv_destroy_qp(slot->qp);
	if (slot->cq)
		ibv_destroy_cq(slot->cq);
	slot->qp = NULL;
	slot->cq = NULL;
}

int seq_destroy(struct seq_fixture *f, struct seq_slot *slot)
{
	uint64_t uid = evr_cm_uid(slot->id);

	if (!slot->id)
		return 0;
	seq_settle(f, slot->id);
	rdma_destroy_qp(slot->id);
	rdma_destroy_srq(slot->id);
	if (rdma_destroy_id(slot->id))
		return -1;
	fuzz_check(!evr_cm_map_find_id(uid));
	slot->id = NULL;
	destroy_foreign_qp(slot);
	return 0;
}

void seq_keep_child(struct seq_fixture *f, struct rdma_cm_id *child)
{
	struct seq_slot *slot = free_slot(f);
	struct seq_slot none = { .id = child };

	if (slot)
		slot->id = child;
	else
		fuzz_check(seq_destroy(f, &none) == 0);
}

/* --- steps ----------------------------------------------------------------------------------- */

/* b: the port space; a: the channel, or none for a synchronous id. */
static struct rdma_event_channel *channel_of(struct seq_fixture *f, unsigned arg)
{
	return arg < SEQ_CHANNELS ? f->channels[arg] : NULL;
}

static int run_create(struct seq_fixture *f, const struct seq_step *step)
{
	const enum rdma_port_space spaces[] = { RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_IPOIB, RDMA_PS_IB,
		(enum rdma_port_space)0x7777 };

	if (step->slot->id)
		return 0;
	return rdma_create_id(
		channel_of(f, step->arg[0]), &step->slot->id, f, spaces[step->arg[1] % 5]);
}

static int run_destroy(struct seq_fixture *f, const struct seq_step *step)
{
	return seq_destroy(f, step->slot);
}

static int run_bind(struct seq_fixture *f, const struct seq_step *step)
{
	return rdma_bind_addr(step->slot->id, seq_addr(step->arg[0], step->arg[1]));
}

static int run_resolve_addr(struct seq_fixture *f, const struct seq_step *step)
{
	struct sockaddr *src = step->arg[1] ? seq_addr(step->arg[1] - 1, 1) : NULL;

	return rdma_resolve_addr(step->slot->id, src, seq_addr(step->arg[0], 0), MANY_MS);
}

static int run_resolve_route(struct seq_fixture *f, const struct seq_step *step)
{
	return rdma_resolve_route(step->slot->id, MANY_MS);
}

static int run_create_qp(struct seq_fixture *f, const struct seq_step *step)
{
	struct rdma_cm_id *id = step->slot->id;
	struct ibv_qp_init_attr attr = fuzz_qp_attr(id ? id->qp_type : IBV_QPT_RC);

	return rdma_create_qp(id, step->arg[0] && id ? id->pd : NULL, &attr);
}

static int run_destroy_qp(struct seq_fixture *f, const struct seq_step *step)
{
	rdma_destroy_qp(step->slot->id);
	return 0;
}

/* A queue pair that the program makes and moves itself, as far as INIT. */
static int run_foreign_qp(struct seq_fixture *f, const struct seq_step *step)
{
	struct seq_slot *slot = step->slot;
	struct rdma_cm_id *id = slot->id;
	struct ibv_qp_init_attr attr = fuzz_qp_attr(IBV_QPT_RC);

	if (!id || !id->verbs || slot->qp || slot->cq)
		return 0;
	slot->cq = ibv_create_cq(id->verbs, 8, NULL, NULL, 0);
	attr.send_cq = attr.recv_cq = slot->cq;
	if (slot->cq)
		slot->qp = ibv_create_qp(id->pd, &attr);
	return 0;
}

static int run_init_qp_attr(struct seq_fixture *f, const struct seq_step *step)
{
	struct ibv_qp_attr attr = { .qp_state = (enum ibv_qp_state)(step->arg[0] % 8) };
	struct ibv_qp *qp = step->slot->qp;
	int mask = 0;
	int ret = rdma_init_qp_attr(step->slot->id, &attr, &mask);

	if (!ret && qp)
		ibv_modify_qp(qp, &attr, mask);
	return ret;
}

static struct rdma_conn_param *param_of(
	const struct seq_step *step, struct rdma_conn_param *param, const uint8_t *data)
{
	static const uint8_t lengths[] = { 0, 1, 56, 57, 136, 196, 197, 255 };

	if (!step->arg[0])
		return NULL;
	*param = (struct rdma_conn_param){
		.private_data = step->arg[0] == NO_ARG ? NULL : data,
		.private_data_len = lengths[step->arg[1] % 8],
		.responder_resources =
			step->arg[0] == 2 ? RDMA_MAX_RESP_RES : (uint8_t)step->arg[2],
		.initiator_depth = step->arg[0] == 2 ? RDMA_MAX_INIT_DEPTH : (uint8_t)step->arg[2],
		.qp_num = step->slot->qp ? step->slot->qp->qp_num : 1,
	};
	return param;
}

static const uint8_t private_data[UINT8_MAX] = { 1, 2, 3, 4 };

static int run_connect(struct seq_fixture *f, const struct seq_step *step)
{
	struct rdma_conn_param param;

	return rdma_connect(step->slot->id, param_of(step, &param, private_data));
}

static int run_accept(struct seq_fixture *f, const struct seq_step *step)
{
	struct rdma_conn_param param;

	return rdma_accept(step->slot->id, param_of(step, &param, private_data));
}

static int run_listen(struct seq_fixture *f, const struct seq_step *step)
{
	return rdma_listen(step->slot->id, (int)step->arg[0]);
}

static int run_reject(struct seq_fixture *f, const struct seq_step *step)
{
	const uint8_t len = (uint8_t)(step->arg[0] * 8);

	return step->arg[1] ? rdma_reject_ece(step->slot->id, private_data, len)
			    : rdma_reject(step->slot->id, private_data, len);
}

static int run_disconnect(struct seq_fixture *f, const struct seq_step *step)
{
	return rdma_disconnect(step->slot->id);
}

static int run_establish(struct seq_fixture *f, const struct seq_step *step)
{
	return rdma_establish(step->slot->id);
}

static int run_notify(struct seq_fixture *f, const struct seq_step *step)
{
	return rdma_notify(step->slot->id,
		step->arg[0] ? IBV_EVENT_COMM_EST : (enum ibv_event_type)step->arg[1]);
}

static int run_join(struct seq_fixture *f, const struct seq_step *step)
{
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = step->arg[1],
		.addr = seq_group(step->arg[0]),
	};

	if (!step->arg[1])
		return rdma_join_multicast(step->slot->id, attr.addr, f);
	return rdma_join_multicast_ex(step->slot->id, &attr, f);
}

static int run_leave(struct seq_fixture *f, const struct seq_step *step)
{
	seq_settle(f, step->slot->id);
	return rdma_leave_multicast(step->slot->id, seq_group(step->arg[0]));
}

static int run_migrate(struct seq_fixture *f, const struct seq_step *step)
{
	seq_settle(f, step->slot->id);
	return rdma_migrate_id(step->slot->id, channel_of(f, step->arg[0]));
}

static int run_set_option(struct seq_fixture *f, const struct seq_step *step)
{
	int value = (int)step->arg[1];
	const int name = (int)step->arg[0] % 5;
	const bool is_byte = name == RDMA_OPTION_ID_TOS || name == RDMA_OPTION_ID_ACK_TIMEOUT;

	return rdma_set_option(step->slot->id, step->arg[0] < 5 ? RDMA_OPTION_ID : RDMA_OPTION_IB,
		name, &value, is_byte ? 1 : sizeof(value));
}

static int run_ece(struct seq_fixture *f, const struct seq_step *step)
{
	struct ibv_ece ece = { .vendor_id = step->arg[1], .options = step->arg[2] };

	return step->arg[0] ? rdma_set_local_ece(step->slot->id, &ece)
			    : rdma_get_remote_ece(step->slot->id, &ece);
}

/* Gets the list of devices, or gives it back. */
static int run_devices(struct seq_fixture *f, const struct seq_step *step)
{
	int num;

	if (!f->devices) {
		f->devices = rdma_get_devices(&num);
		return f->devices ? 0 : -1;
	}
	rdma_free_devices(f->devices);
	f->devices = NULL;
	return 0;
}

/* Every byte that is said to be there is read. */
static void look_into(const struct rdma_cm_event *event)
{
	const struct rdma_conn_param *conn = &event->param.conn;
	const uint8_t *data = conn->private_data;
	volatile uint8_t sum = 0;
	unsigned i;

	if (event->event == RDMA_CM_EVENT_MULTICAST_JOIN ||
		event->event == RDMA_CM_EVENT_MULTICAST_ERROR)
		return;
	for (i = 0; data && i < conn->private_data_len; i++)
		sum = (uint8_t)(sum + data[i]);
}

/* a: the channel, or the id's own; b: acknowledge it at once. */
static int run_get(struct seq_fixture *f, const struct seq_step *step)
{
	struct rdma_event_channel *channel = channel_of(f, step->arg[0]);
	struct rdma_cm_event *event;

	if (!channel && step->slot->id)
		channel = step->slot->id->channel;
	if (rdma_get_cm_event(channel, &event))
		return -1;
	fuzz_trace("  %s %d", rdma_event_str(event->event), event->status);
	look_into(event);
	if (f->num_events == SEQ_EVENTS)
		ack(f, 0);
	f->events[f->num_events++] =
		(struct seq_event){ event, event->listen_id ? event->listen_id : event->id };
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		seq_keep_child(f, event->id);
	if (step->arg[1])
		ack(f, f->num_events - 1);
	return 0;
}

static int run_ack(struct seq_fixture *f, const struct seq_step *step)
{
	if (step->who < f->num_events)
		ack(f, step->who);
	return 0;
}

static const struct seq_op ops[] = {
	['a'] = { "resolve_addr", run_resolve_addr },
	['b'] = { "bind", run_bind },
	['c'] = { "connect", run_connect },
	['d'] = { "disconnect", run_disconnect },
	['e'] = { "ece", run_ece },
	['g'] = { "get_event", run_get },
	['i'] = { "init_qp_attr", run_init_qp_attr },
	['j'] = { "join", run_join },
	['k'] = { "ack_event", run_ack },
	['l'] = { "listen", run_listen },
	['m'] = { "migrate", run_migrate },
	['n'] = { "create_id", run_create },
	['o'] = { "set_option", run_set_option },
	['p'] = { "accept", run_accept },
	['q'] = { "create_qp", run_create_qp },
	['r'] = { "resolve_route", run_resolve_route },
	['s'] = { "establish", run_establish },
	['t'] = { "notify", run_notify },
	['u'] = { "devices", run_devices },
	['v'] = { "leave", run_leave },
	['w'] = { "destroy_qp", run_destroy_qp },
	['x'] = { "destroy_id", run_destroy },
	['y'] = { "foreign_qp", run_foreign_qp },
	['z'] = { "reject", run_reject },
};

const struct seq_op *seq_op_of(char letter)
{
	const size_t i = (unsigned char)letter;

	return i < sizeof(ops) / sizeof(ops[0]) && ops[i].run ? &ops[i] : NULL;
}
