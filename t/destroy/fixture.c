#include "destroy/fixture.h"
#include "schedule/clock.h"

#include <check.h>
#include <dirent.h>
#include <event2/dns.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { QUIET_TURNS = 12, PATIENCE_S = 20, TICK_US = 1 };

char running[256];

const char *fixture_ip(enum fake_kind kind)
{
	static const char *const ips[FAKE_KINDS] = {
		[FAKE_ROCE] = FAKE_ROCE_IP, [FAKE_IWARP] = FAKE_IWARP_IP, [FAKE_IB] = FAKE_IB_IP
	};

	return ips[kind];
}

/* --- the loop ------------------------------------------------------------------------------- */

static struct rdma_cm_id *cm_id_of(const struct object *object)
{
	if (!object->it)
		return NULL;
	switch (object->type) {
	case CONN:
		return evrdma_conn_get_cm_id(object->it);
	case DGRAM:
		return evrdma_dgram_get_cm_id(object->it);
	default:
		return NULL;
	}
}

/* The work of bystanders stays where it is. */
static unsigned do_work(struct fixture *fixture)
{
	unsigned i, done = 0;

	if (fixture->by_hand)
		return 0;
	for (i = 0; i < fixture->num_objects; i++) {
		struct object *object = &fixture->objects[i];
		struct rdma_cm_id *cm = object->bystander ? NULL : cm_id_of(object);

		if (cm && cm->qp)
			done += fake_step_qp(cm->qp, 1000);
	}
	return done;
}

void fixture_settle(struct fixture *fixture)
{
	unsigned quiet = 0;

	while (quiet < QUIET_TURNS) {
		unsigned calls = fixture->calls;

		clock_turn(fixture->loop, false);
		quiet = do_work(fixture) || calls != fixture->calls ? 0 : quiet + 1;
	}
}

void fixture_stop_work(struct fixture *fixture)
{
	fake_work_by_hand(true);
	fixture->by_hand = true;
}

void fixture_go_on_working(struct fixture *fixture)
{
	fixture->by_hand = false;
}

void fixture_pull(struct fixture *fixture, enum fake_kind kind)
{
	fake_device_remove(kind);
	fixture->removed[kind] = true;
}

void fixture_answer(struct fixture *fixture)
{
	fake_time_out(FAKE_REQ);
	fake_release(FAKE_REP);
}

static void on_late(evutil_socket_t fd, short what, void *arg)
{
	((struct fixture *)arg)->late = true;
}

static void run_to_the_end(struct fixture *fixture)
{
	static const struct timeval patience = { PATIENCE_S, 0 };
	struct event *timer = evtimer_new(fixture->loop, on_late, fixture);

	evtimer_add(timer, &patience);
	while (fixture->bases && !fixture->late)
		clock_turn(fixture->loop, !do_work(fixture));
	event_free(timer);
	MUST(!fixture->late, "%s: the base does not close", running);
}

/* --- life ----------------------------------------------------------------------------------- */

static unsigned count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	ck_assert_ptr_nonnull(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - (unsigned)fake_lost_descriptors();
}

static void start(struct fixture *fixture, enum fake_kind kind, const struct plan *plan)
{
	memset(fixture, 0, sizeof(*fixture));
	fixture->kind = kind;
	fixture->plan = plan;
	clock_start(TICK_US);
	fixture->loop = event_base_new();
	fixture->base = make_base(fixture);
	fixture->pool = make_pool(fixture->base);
	evrdma_conn_options_init(&fixture->options);
	fixture->options.recv_pool = fixture->pool->it;
	fixture->options.recv_depth = fixture->options.send_depth = 4;
	fixture->options.drain_timeout_ms = 20;
}

static void describe(const struct plan *plan)
{
	if (!plan->action)
		snprintf(running, sizeof(running), "%s", plan->scenario->name);
	else if (plan->state)
		snprintf(running, sizeof(running), "%s: in %s, %s is %s", plan->scenario->name,
			row_infos[plan->row].what, plan->state->name, plan->action->name);
	else
		snprintf(running, sizeof(running), "%s: at %u, object %u is %s",
			plan->scenario->name, plan->point, plan->object, plan->action->name);
}

static void reach_state(struct fixture *fixture)
{
	if (!fixture->plan->state)
		return;
	fixture->bystanders = true;
	fixture->plan->state->reach(fixture);
	fixture->bystanders = false;
	MUST(fixture->victim && fixture->victim->it, "%s: nobody is there", running);
	/* What the scenario uses is its own. */
	fixture->listener = fixture->client = fixture->server = fixture->endpoint = fixture->peer =
		NULL;
	fixture->second = fixture->other_endpoint = fixture->group = fixture->id = fixture->buf =
		NULL;
	fixture->srq = fixture->domain = fixture->far_client = NULL;
	fixture->remote = (struct evrdma_remote){ 0 };
}

static void play(struct fixture *fixture)
{
	void (*const *step)(struct fixture *) = fixture->plan->scenario->steps;

	fixture->playing = true;
	fixture_settle(fixture);
	for (; *step; step++) {
		(*step)(fixture);
		fixture_settle(fixture);
	}
}

/* What is held by hand, or shared, outlives the bases, and is nobody's but the program's. */
static void leave(struct fixture *fixture)
{
	unsigned i;

	/* The acknowledgements that bystanders wait for. */
	if (fixture->plan->state)
		fake_work_by_hand(false);
	for (i = 0; i < fixture->num_objects; i++)
		if (fixture->objects[i].type == BASE)
			end_object(&fixture->objects[i]);
	if (fixture->kind == FAKE_IWARP)
		fixture_answer(fixture);
	run_to_the_end(fixture);
	for (i = 0; i < fixture->num_objects; i++)
		if (fixture->objects[i].type == BUF || fixture->objects[i].shared)
			end_object(&fixture->objects[i]);
	if (fixture->dns) {
		evdns_base_free(fixture->dns, 0);
		close(fixture->dns_fd);
	}
	if (fixture->stray)
		rdma_destroy_id(fixture->stray);
	if (fixture->channel)
		rdma_destroy_event_channel(fixture->channel);
}

/* The CM keeps those that are there, and looks for those that are not. */
static void open_devices(void)
{
	rdma_free_devices(rdma_get_devices(NULL));
}

static void put_things_back(struct fixture *fixture)
{
	int kind;

	open_devices();
	for (kind = 0; kind < FAKE_KINDS; kind++) {
		if (!fixture->removed[kind])
			continue;
		MUST(fake_device_gone((enum fake_kind)kind), "%s: the device is held", running);
		fake_device_add((enum fake_kind)kind);
	}
	for (kind = 0; kind < FAKE_MESSAGES; kind++)
		fake_release((enum fake_message)kind);
	fake_work_by_hand(false);
}

/* --- what has to come of it ----------------------------------------------------------------- */

static void check_object(const struct object *object)
{
	switch (object->type) {
	case POOL:
	case SRQ:
	case DOMAIN:
	case BUF:
	case REQUEST:
		break;
	default:
		MUST(object->closed == 1, "%s: object %d was told %u times that it is closed",
			running, object->type, object->closed);
	}
	MUST(object->ended <= 1, "%s: object %d ended %u times", running, object->type,
		object->ended);
	MUST(!object->it, "%s: object %d is still there", running, object->type);
}

static void check(const struct fixture *fixture)
{
	const char *left = fake_expect_clean();
	unsigned i;

	for (i = 0; i < fixture->num_objects; i++)
		check_object(&fixture->objects[i]);
	for (i = 0; i < fixture->num_ops; i++)
		MUST(fixture->ops[i].told == fixture->ops[i].taken, "%s: %s: told %u times",
			running, row_infos[fixture->ops[i].good].what, fixture->ops[i].told);
	MUST(!left, "%s: %s", running, left);
	MUST(fixture->acted || !fixture->plan->action, "%s: that never came", running);
}

void fixture_run(struct fixture *fixture, enum fake_kind kind, const struct plan *plan)
{
	unsigned fds;

	open_devices();
	fds = count_fds();
	describe(plan);
	start(fixture, kind, plan);
	reach_state(fixture);
	play(fixture);
	leave(fixture);
	/* With nothing left to wait for, the loop ends by itself. */
	MUST(event_base_loop(fixture->loop, EVLOOP_NONBLOCK) == 1,
		"%s: something is left in the loop", running);
	event_base_free(fixture->loop);
	clock_stop();
	put_things_back(fixture);
	check(fixture);
	open_devices();
	MUST(count_fds() == fds, "%s: %u descriptors, %u before", running, count_fds(), fds);
}
