#include "destroy/stage.h"
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

const char *stage_ip(enum fake_kind kind)
{
	static const char *const ips[FAKE_KINDS] = {
		[FAKE_ROCE] = FAKE_ROCE_IP, [FAKE_IWARP] = FAKE_IWARP_IP, [FAKE_IB] = FAKE_IB_IP
	};

	return ips[kind];
}

/* --- the loop ------------------------------------------------------------------------------- */

static struct rdma_cm_id *cm_id_of(const struct actor *actor)
{
	if (!actor->it)
		return NULL;
	switch (actor->object) {
	case CONN:
		return evrdma_conn_get_cm_id(actor->it);
	case DGRAM:
		return evrdma_dgram_get_cm_id(actor->it);
	default:
		return NULL;
	}
}

/* The work of bystanders stays where it is. */
static unsigned do_work(struct stage *stage)
{
	unsigned i, done = 0;

	if (stage->by_hand)
		return 0;
	for (i = 0; i < stage->num_actors; i++) {
		struct actor *actor = &stage->actors[i];
		struct rdma_cm_id *cm = actor->bystander ? NULL : cm_id_of(actor);

		if (cm && cm->qp)
			done += fake_step_qp(cm->qp, 1000);
	}
	return done;
}

void stage_settle(struct stage *stage)
{
	unsigned quiet = 0;

	while (quiet < QUIET_TURNS) {
		unsigned calls = stage->calls;

		clock_turn(stage->loop, false);
		quiet = do_work(stage) || calls != stage->calls ? 0 : quiet + 1;
	}
}

void stage_stop_work(struct stage *stage)
{
	fake_work_by_hand(true);
	stage->by_hand = true;
}

void stage_go_on_working(struct stage *stage)
{
	stage->by_hand = false;
}

void stage_pull(struct stage *stage, enum fake_kind kind)
{
	fake_device_remove(kind);
	stage->removed[kind] = true;
}

void stage_answer(struct stage *stage)
{
	fake_time_out(FAKE_REQ);
	fake_release(FAKE_REP);
}

static void on_late(evutil_socket_t fd, short what, void *arg)
{
	((struct stage *)arg)->late = true;
}

static void run_to_the_end(struct stage *stage)
{
	static const struct timeval patience = { PATIENCE_S, 0 };
	struct event *timer = evtimer_new(stage->loop, on_late, stage);

	evtimer_add(timer, &patience);
	while (stage->bases && !stage->late)
		clock_turn(stage->loop, !do_work(stage));
	event_free(timer);
	ck_assert_msg(!stage->late, "%s: the base does not close", running);
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

static void start(struct stage *stage, enum fake_kind kind, const struct plan *plan)
{
	memset(stage, 0, sizeof(*stage));
	stage->kind = kind;
	stage->plan = plan;
	clock_start(TICK_US);
	stage->loop = event_base_new();
	stage->base = make_base(stage);
	stage->pool = make_pool(stage->base);
	evrdma_conn_options_init(&stage->options);
	stage->options.recv_pool = stage->pool->it;
	stage->options.recv_depth = stage->options.send_depth = 4;
	stage->options.drain_timeout_ms = 20;
}

static void describe(const struct plan *plan)
{
	if (!plan->act)
		snprintf(running, sizeof(running), "%s", plan->scene->name);
	else if (plan->state)
		snprintf(running, sizeof(running), "%s: in %s, %s is %s", plan->scene->name,
			row_infos[plan->row].what, plan->state->name, plan->act->name);
	else
		snprintf(running, sizeof(running), "%s: at %u, actor %u is %s", plan->scene->name,
			plan->moment, plan->actor, plan->act->name);
}

static void reach_state(struct stage *stage)
{
	if (!stage->plan->state)
		return;
	stage->bystanders = true;
	stage->plan->state->reach(stage);
	stage->bystanders = false;
	ck_assert_msg(stage->victim && stage->victim->it, "%s: nobody is there", running);
	/* What the scene uses is its own. */
	stage->listener = stage->client = stage->server = stage->endpoint = stage->peer = NULL;
	stage->second = stage->other_endpoint = stage->group = stage->id = stage->buf = NULL;
	stage->srq = stage->domain = NULL;
	stage->remote = (struct evrdma_remote){ 0 };
}

static void play(struct stage *stage)
{
	void (*const *step)(struct stage *) = stage->plan->scene->steps;

	stage->playing = true;
	stage_settle(stage);
	for (; *step; step++) {
		(*step)(stage);
		stage_settle(stage);
	}
}

/* What is held by hand outlives the bases, and is nobody's but the program's. */
static void leave(struct stage *stage)
{
	unsigned i;

	/* The acknowledgements that bystanders wait for. */
	if (stage->plan->state)
		fake_work_by_hand(false);
	for (i = 0; i < stage->num_actors; i++)
		if (stage->actors[i].object == BASE)
			end_actor(&stage->actors[i]);
	if (stage->kind == FAKE_IWARP)
		stage_answer(stage);
	run_to_the_end(stage);
	for (i = 0; i < stage->num_actors; i++)
		if (stage->actors[i].object == BUF)
			end_actor(&stage->actors[i]);
	if (stage->dns) {
		evdns_base_free(stage->dns, 0);
		close(stage->dns_fd);
	}
	if (stage->stray)
		rdma_destroy_id(stage->stray);
	if (stage->channel)
		rdma_destroy_event_channel(stage->channel);
}

/* The CM keeps those that are there, and looks for those that are not. */
static void open_devices(void)
{
	rdma_free_devices(rdma_get_devices(NULL));
}

static void put_things_back(struct stage *stage)
{
	int kind;

	open_devices();
	for (kind = 0; kind < FAKE_KINDS; kind++) {
		if (!stage->removed[kind])
			continue;
		ck_assert_msg(
			fake_device_gone((enum fake_kind)kind), "%s: the device is held", running);
		fake_device_add((enum fake_kind)kind);
	}
	for (kind = 0; kind < FAKE_MESSAGES; kind++)
		fake_release((enum fake_message)kind);
	fake_work_by_hand(false);
}

/* --- what has to come of it ----------------------------------------------------------------- */

static void check_actor(const struct actor *actor)
{
	switch (actor->object) {
	case POOL:
	case SRQ:
	case DOMAIN:
	case BUF:
	case REQUEST:
		break;
	default:
		ck_assert_msg(actor->closed == 1,
			"%s: object %d was told %u times that it is closed", running, actor->object,
			actor->closed);
	}
	ck_assert_msg(actor->ended <= 1, "%s: object %d ended %u times", running, actor->object,
		actor->ended);
	ck_assert_msg(!actor->it, "%s: object %d is still there", running, actor->object);
}

static void check(const struct stage *stage)
{
	const char *left = fake_expect_clean();
	unsigned i;

	for (i = 0; i < stage->num_actors; i++)
		check_actor(&stage->actors[i]);
	for (i = 0; i < stage->num_ops; i++)
		ck_assert_msg(stage->ops[i].told == stage->ops[i].taken, "%s: %s: told %u times",
			running, row_infos[stage->ops[i].good].what, stage->ops[i].told);
	ck_assert_msg(!left, "%s: %s", running, left);
	ck_assert_msg(stage->acted || !stage->plan->act, "%s: that never came", running);
}

void stage_run(struct stage *stage, enum fake_kind kind, const struct plan *plan)
{
	unsigned fds;

	open_devices();
	fds = count_fds();
	describe(plan);
	start(stage, kind, plan);
	reach_state(stage);
	play(stage);
	leave(stage);
	/* With nothing left to wait for, the loop ends by itself. */
	ck_assert_msg(event_base_loop(stage->loop, EVLOOP_NONBLOCK) == 1,
		"%s: something is left in the loop", running);
	event_base_free(stage->loop);
	clock_stop();
	put_things_back(stage);
	check(stage);
	open_devices();
	ck_assert_msg(
		count_fds() == fds, "%s: %u descriptors, %u before", running, count_fds(), fds);
}
