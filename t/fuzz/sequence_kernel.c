/* The steps of programs that tell the fake kernel what to do: capital letters. */
#include "fuzz/sequence.h"

#include "fake/fake.h"

#include "kern/ucma_abi.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

/*
 * What may fail by name. Not what releases verbs objects: a program that is refused that has a
 * leak, and so has every library. Not find_driver_id: a device without one stays open.
 */
static const char *const names[] = {
	"open",
	"CREATE_ID",
	"DESTROY_ID",
	"BIND",
	"RESOLVE_ADDR",
	"RESOLVE_ROUTE",
	"QUERY",
	"CONNECT",
	"LISTEN",
	"ACCEPT",
	"REJECT",
	"DISCONNECT",
	"INIT_QP_ATTR",
	"GET_EVENT",
	"SET_OPTION",
	"NOTIFY",
	"JOIN_MCAST",
	"LEAVE_MCAST",
	"MIGRATE_ID",
	"RESOLVE_IB_SERVICE",
	"WRITE_CM_EVENT",
	"ioctl",
	"ibv_get_device_list",
	"ibv_open_device",
	"ibv_query_device",
	"ibv_alloc_pd",
	"ibv_dealloc_pd",
	"ibv_create_srq",
	"ibv_create_comp_channel",
	"ibv_create_cq",
	"ibv_create_qp",
	"ibv_create_qp_ex",
	"ibv_modify_qp",
	"ibv_query_port",
	"ibv_attach_mcast",
	"ibv_query_ece",
	"ibv_set_ece",
};

enum { NUM_NAMES = sizeof(names) / sizeof(names[0]), UNKNOWN_EVENT = 99 };

static int error_of(unsigned arg)
{
	const int errors[] = { ENOMEM, EINVAL, EIO, EAGAIN, EINTR, ENXIO, ENODATA, EBUSY };

	return errors[arg % 8];
}

static int status_of(unsigned arg)
{
	const int statuses[] = { 0, -ETIMEDOUT, -ENODEV, 28, 1, -1, INT_MAX, INT_MIN };

	return statuses[arg % 8];
}

static enum fake_message kind_of(unsigned arg)
{
	return (enum fake_message)(arg % FAKE_MESSAGES);
}

static unsigned type_of(unsigned arg)
{
	return arg <= RDMA_CM_EVENT_INTERNAL ? arg : UNKNOWN_EVENT;
}

/* A request brings an id along, of a peer that there is not. */
static int run_inject(struct seq_fixture *f, const struct seq_step *step)
{
	static const uint8_t lengths[] = { 0, 1, 56, 196, 255 };
	static const uint8_t data[UINT8_MAX] = { 9, 8, 7 };

	if (step->slot->id)
		fake_inject_data(step->slot->id, type_of(step->arg[0]), status_of(step->arg[1]),
			data, lengths[step->arg[2] % 5]);
	return 0;
}

static bool has_unread(const struct seq_fixture *f)
{
	unsigned i, n = 0;

	for (i = 0; i < SEQ_CHANNELS; i++)
		n += fake_unread(f->channels[i]->fd);
	for (i = 0; i < SEQ_IDS; i++)
		n += f->slots[i].id ? fake_unread(f->slots[i].id->channel->fd) : 0;
	return n;
}

/* For an id that was not accepted, but never before its request: in that order they come. */
static int run_inject_early(struct seq_fixture *f, const struct seq_step *step)
{
	if (type_of(step->who) != RDMA_CM_EVENT_CONNECT_REQUEST && !has_unread(f))
		fake_inject(NULL, type_of(step->who), status_of(step->arg[0]));
	return 0;
}

/* The group is another one each time. */
static int run_inject_group(struct seq_fixture *f, const struct seq_step *step)
{
	struct evr_ucma_resp_event event = {
		.event =
			step->arg[1] ? RDMA_CM_EVENT_MULTICAST_ERROR : RDMA_CM_EVENT_MULTICAST_JOIN,
		.status = (uint32_t)status_of(step->arg[1]),
		.param.ud.ah_attr.grh.dgid = { 0xff, 0x0e, (uint8_t)step->arg[2] },
	};

	if (step->slot->id)
		fake_inject_event(step->slot->id, step->arg[0], &event);
	return 0;
}

static int fd_of(const struct seq_fixture *f, const struct seq_step *step)
{
	return f->channels[step->who % SEQ_CHANNELS]->fd;
}

static int run_bring_forward(struct seq_fixture *f, const struct seq_step *step)
{
	fake_bring_forward(fd_of(f, step), step->arg[0]);
	return 0;
}

static int run_repeat(struct seq_fixture *f, const struct seq_step *step)
{
	fake_repeat(fd_of(f, step), step->arg[0]);
	return 0;
}

static int run_hold(struct seq_fixture *f, const struct seq_step *step)
{
	fake_hold(kind_of(step->who));
	return 0;
}

static int run_let_go(struct seq_fixture *f, const struct seq_step *step)
{
	fake_release(kind_of(step->who));
	return 0;
}

static int run_time_out(struct seq_fixture *f, const struct seq_step *step)
{
	fake_time_out(kind_of(step->who));
	return 0;
}

static int run_answer(struct seq_fixture *f, const struct seq_step *step)
{
	fake_answer(kind_of(step->who), -error_of(step->arg[0]));
	return 0;
}

static int run_fail(struct seq_fixture *f, const struct seq_step *step)
{
	fake_fail_next(names[step->who % NUM_NAMES], error_of(step->arg[0]));
	return 0;
}

static int run_fail_nth(struct seq_fixture *f, const struct seq_step *step)
{
	fake_fail_nth(FAKE_ANY, step->who, error_of(step->arg[0]));
	return 0;
}

static int run_fail_from(struct seq_fixture *f, const struct seq_step *step)
{
	fake_fail_from(FAKE_ANY, step->who, error_of(step->arg[0]));
	return 0;
}

/* One that can look for services, and one service there is. */
static int run_newer_kernel(struct seq_fixture *f, const struct seq_step *step)
{
	fake_newer_kernel(step->who == 0);
	if (step->arg[0])
		fake_service_add(step->arg[0], SEQ_SERVICE, FAKE_IB_GID);
	return 0;
}

static int run_plug(struct seq_fixture *f, const struct seq_step *step)
{
	enum fake_kind kind = (enum fake_kind)(step->who % FAKE_KINDS);

	if (fake_device_gone(kind))
		fake_device_add(kind);
	return 0;
}

static int run_unplug(struct seq_fixture *f, const struct seq_step *step)
{
	fake_device_remove((enum fake_kind)(step->who % FAKE_KINDS));
	return 0;
}

static void let_all_go(void *arg)
{
	int kind;

	for (kind = 0; kind < FAKE_MESSAGES; kind++)
		fake_release((enum fake_message)kind);
}

static void lose_all(void *arg)
{
	int kind;

	for (kind = 0; kind < FAKE_MESSAGES; kind++)
		fake_time_out((enum fake_message)kind);
}

static void unplug(void *arg)
{
	fake_device_remove(FAKE_ROCE);
}

/* In the middle of the who-th call below the library from now on. */
static int run_meanwhile(struct seq_fixture *f, const struct seq_step *step)
{
	static void (*const hooks[])(void *arg) = { let_all_go, lose_all, unplug };

	fake_at_nth(FAKE_ANY, step->who, hooks[step->arg[0] % 3], NULL);
	return 0;
}

void seq_calm(void)
{
	size_t i;

	fake_fail_nth(FAKE_ANY, 0, 0);
	for (i = 0; i < NUM_NAMES; i++)
		fake_fail_next(names[i], 0);
}

static const struct seq_op ops[] = {
	['A'] = { "ANSWER", run_answer },
	['B'] = { "BRING_FORWARD", run_bring_forward },
	['E'] = { "INJECT_EARLY", run_inject_early },
	['F'] = { "FAIL_NTH", run_fail_nth },
	['G'] = { "LET_GO", run_let_go },
	['H'] = { "HOLD", run_hold },
	['I'] = { "INJECT", run_inject },
	['J'] = { "INJECT_GROUP", run_inject_group },
	['K'] = { "NEWER_KERNEL", run_newer_kernel },
	['M'] = { "MEANWHILE", run_meanwhile },
	['N'] = { "FAIL_NEXT", run_fail },
	['P'] = { "PLUG", run_plug },
	['R'] = { "REPEAT", run_repeat },
	['T'] = { "TIME_OUT", run_time_out },
	['U'] = { "UNPLUG", run_unplug },
	['W'] = { "FAIL_FROM", run_fail_from },
};

const struct seq_op *seq_kernel_op_of(char letter)
{
	const size_t i = (unsigned char)letter;

	return i < sizeof(ops) / sizeof(ops[0]) && ops[i].run ? &ops[i] : NULL;
}
