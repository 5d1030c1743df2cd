/*
 * Every event, in every state of an id, with every kind of status, with a queue pair and without,
 * read as it comes or by a call that waits: what the caller sees is what the rules below say, each
 * event is acknowledged once, the id goes, and nothing is left.
 */
#include "unit/cm_subject.h"

#include "kern/ucma_abi.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LAST_EVENT = RDMA_CM_EVENT_INTERNAL, UNKNOWN_EVENT = 99, HANG_S = 30 };

enum reading { AS_IT_COMES, FROM_ITS_OWN_CHANNEL, BY_A_CALL_THAT_WAITS, READINGS };

struct cell {
	const struct cm_state *state;
	unsigned type;
	int status;
	bool qp;
	enum reading reading;
};

/* What the caller sees; not delivered: nothing. */
struct sight {
	bool delivered;
	unsigned type;
	int status;
	int error; /* errno with status -1 */
};

static const uint8_t data[] = { 1, 2, 3 };
static char where[200];

/* --- the rules -----------------------------------------------------------------------------------
 */

static const struct sight nothing;

static struct sight failure(unsigned type, int error)
{
	return (struct sight){ .delivered = true, .type = type, .status = -1, .error = error };
}

static bool is_multicast(unsigned type)
{
	return type == RDMA_CM_EVENT_MULTICAST_JOIN || type == RDMA_CM_EVENT_MULTICAST_ERROR;
}

static bool is_end(unsigned type)
{
	return type == RDMA_CM_EVENT_REJECTED || type == RDMA_CM_EVENT_DISCONNECTED;
}

/* Resolving is the call that waits where there is no device yet. */
static bool kernel_has_device(const struct cell *c)
{
	return c->state->traits & CM_HAS_DEVICE || c->reading == BY_A_CALL_THAT_WAITS;
}

/* What tells of something else than the answer does not end the waiting; a request is refused. */
static bool is_by_the_way(const struct cell *c)
{
	return c->reading == BY_A_CALL_THAT_WAITS &&
	       (c->type == RDMA_CM_EVENT_ADDR_CHANGE || c->type == RDMA_CM_EVENT_TIMEWAIT_EXIT ||
		       c->type == RDMA_CM_EVENT_CONNECT_REQUEST);
}

/* Events that an id sends to itself about a result that it has, which none of these does. */
static bool is_nobodys_business(const struct cell *c)
{
	return c->type == RDMA_CM_EVENT_INTERNAL || is_by_the_way(c);
}

/* Nobody has answered this id, so a response to it cannot be served. */
static struct sight see_response(const struct cell *c)
{
	return failure(RDMA_CM_EVENT_CONNECT_ERROR, c->state->traits & CM_REMOVED ? ENXIO : EINVAL);
}

static struct sight expect(const struct cell *c)
{
	const struct sight as_sent = { .delivered = true, .type = c->type, .status = c->status };
	const unsigned traits = c->state->traits;

	if (is_multicast(c->type))
		return traits & CM_MEMBER ? as_sent : nothing;
	if (traits & CM_UNACCEPTED && c->type != RDMA_CM_EVENT_ESTABLISHED &&
		c->type != RDMA_CM_EVENT_USER)
		return nothing;
	if (is_nobodys_business(c))
		return nothing;
	if (traits & CM_FAILED && is_end(c->type))
		return nothing;
	if (c->type == RDMA_CM_EVENT_ADDR_RESOLVED && traits & CM_REMOVED)
		return failure(RDMA_CM_EVENT_ADDR_ERROR, ENXIO);
	if (c->type == RDMA_CM_EVENT_ADDR_RESOLVED && !kernel_has_device(c))
		return failure(RDMA_CM_EVENT_ADDR_ERROR, ENODEV);
	if (c->type == RDMA_CM_EVENT_ROUTE_RESOLVED && traits & CM_REMOVED)
		return failure(RDMA_CM_EVENT_ROUTE_ERROR, ENXIO);
	if (c->type == RDMA_CM_EVENT_ADDRINFO_RESOLVED)
		return failure(RDMA_CM_EVENT_ADDRINFO_ERROR, traits & CM_REMOVED ? ENXIO : ENODATA);
	if (c->type == RDMA_CM_EVENT_CONNECT_REQUEST && traits & CM_REMOVED)
		return nothing;
	if (c->type == RDMA_CM_EVENT_CONNECT_RESPONSE && c->qp)
		return see_response(c);
	return as_sent;
}

/* What the waiting call makes of it. */
static int result_of(const struct sight *seen, bool connects)
{
	if (seen->type == RDMA_CM_EVENT_DEVICE_REMOVAL)
		return ENODEV;
	if (seen->type == RDMA_CM_EVENT_DISCONNECTED && !seen->status && connects)
		return ECONNRESET;
	if (!seen->status)
		return seen->type == RDMA_CM_EVENT_USER ? EINTR : 0;
	if (seen->status == -1)
		return seen->error;
	if (seen->type == RDMA_CM_EVENT_REJECTED)
		return ECONNREFUSED;
	return seen->status < 0 ? -seen->status : seen->status;
}

static bool ends_the_queue_pair(const struct cell *c)
{
	if (c->type == RDMA_CM_EVENT_REJECTED)
		return expect(c).delivered;
	return c->type == RDMA_CM_EVENT_CONNECT_RESPONSE && expect(c).status == -1;
}

/* --- a cell
 * --------------------------------------------------------------------------------------- */

static void name(const struct cell *c)
{
	static const char *const readings[] = { "as it comes", "on its own channel", "waited for" };

	snprintf(where, sizeof(where), "%s (%u), status %d, id %s, %s queue pair, %s",
		rdma_event_str((enum rdma_cm_event_type)c->type), c->type, c->status,
		c->state->name, c->qp ? "with" : "without", readings[c->reading]);
}

static void check(const char *what, long got, long wanted)
{
	if (got != wanted)
		ck_abort_msg("%s: %s is %ld, not %ld", where, what, got, wanted);
}

static void send_it(const struct cm_subject *s, const struct cell *c)
{
	struct evr_ucma_resp_event event = { .event = c->type, .status = (uint32_t)c->status };
	bool group = is_multicast(c->type) && c->state->traits & CM_MEMBER;
	const void *uid = c->state->traits & CM_UNACCEPTED ? NULL : s->id;

	if (c->state->traits & CM_DATAGRAM) {
		memcpy(event.param.ud.private_data, data, sizeof(data));
		event.param.ud.private_data_len = sizeof(data);
		event.param.ud.qp_num = 5;
	} else {
		memcpy(event.param.conn.private_data, data, sizeof(data));
		event.param.conn.private_data_len = sizeof(data);
		event.param.conn.qp_num = 5;
	}
	check("fake_inject_event", fake_inject_event(uid, group, &event), 0);
}

static bool has_data(const struct cell *c, const struct sight *seen)
{
	if (seen->type == RDMA_CM_EVENT_CONNECT_REQUEST || seen->type == RDMA_CM_EVENT_ESTABLISHED)
		return true;
	return !(c->state->traits & CM_DATAGRAM) &&
	       (is_end(seen->type) || seen->type == RDMA_CM_EVENT_CONNECT_RESPONSE);
}

static void check_param(
	const struct cell *c, const struct sight *seen, const struct rdma_cm_event *event)
{
	bool dgram = c->state->traits & CM_DATAGRAM;
	const void *bytes = dgram ? event->param.ud.private_data : event->param.conn.private_data;
	long len = dgram ? event->param.ud.private_data_len : event->param.conn.private_data_len;

	if (!has_data(c, seen))
		return;
	check("the length of the private data", len, sizeof(data));
	check("the private data", memcmp(bytes, data, sizeof(data)), 0);
	check("the queue pair's number", dgram ? event->param.ud.qp_num : event->param.conn.qp_num,
		5);
}

static void check_subject(
	const struct cm_subject *s, const struct cell *c, const struct rdma_cm_event *event)
{
	if (c->type != RDMA_CM_EVENT_CONNECT_REQUEST) {
		check("the id", event->id == s->id, true);
		check("a listener", event->listen_id != NULL, false);
		return;
	}
	check("the listener", event->listen_id == s->id, true);
	check("the child", event->id != s->id && event->id->verbs, true);
	check("the child's own channel", event->id->channel != s->id->channel,
		c->reading != AS_IT_COMES);
}

static void check_event(const struct cm_subject *s, const struct cell *c, const struct sight *seen,
	const struct rdma_cm_event *event, int error)
{
	check("the event", event->event, seen->type);
	check("the status", event->status, seen->status);
	if (seen->status == -1 && seen->error)
		check("errno", error, seen->error);
	check_subject(s, c, event);
	check_param(c, seen, event);
	if (is_multicast(c->type))
		check("the context", event->param.ud.private_data == s, true);
}

static struct rdma_cm_id *child_of(const struct rdma_cm_event *event)
{
	return event->event == RDMA_CM_EVENT_CONNECT_REQUEST ? event->id : NULL;
}

static void drop_child(struct rdma_cm_id *child)
{
	if (child)
		check("destroying the child", rdma_destroy_id(child), 0);
}

static void read_it(const struct cm_subject *s, const struct cell *c, const struct sight *seen)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *child;
	int ret, error;

	fcntl(s->id->channel->fd, F_SETFL, O_NONBLOCK);
	ret = rdma_get_cm_event(s->id->channel, &event);
	error = errno;
	if (!seen->delivered) {
		check("reading", ret, -1);
		check("errno", error, EAGAIN);
		return;
	}
	check("reading", ret, 0);
	check_event(s, c, seen, event, error);
	child = child_of(event);
	check("acknowledging", rdma_ack_cm_event(event), 0);
	drop_child(child);
}

/* What is not told to the caller is not waited for either: the call's own answer comes. */
static void wait_for_it(const struct cm_subject *s, const struct cell *c, const struct sight *seen)
{
	int ret, error;

	errno = 0;
	ret = c->state->call(s->id);
	error = ret ? errno : 0;
	if (!seen->delivered) {
		check("not told", !s->id->event || s->id->event->event != c->type, true);
		return;
	}
	check("the event of the id", s->id->event != NULL, true);
	check("the result", error, result_of(seen, c->state->traits & CM_CONNECTS));
	check_event(s, c, seen, s->id->event, seen->error);
}

static void run(const struct cell *c)
{
	const struct sight seen = expect(c);
	enum ibv_qp_state before = IBV_QPS_RESET;
	struct cm_subject s;

	name(c);
	cm_subject_reach(&s, c->state, c->qp, c->reading != AS_IT_COMES);
	if (s.id->qp)
		before = s.id->qp->state;
	send_it(&s, c);
	(c->reading == BY_A_CALL_THAT_WAITS ? wait_for_it : read_it)(&s, c, &seen);
	if (s.id->qp && c->reading != BY_A_CALL_THAT_WAITS)
		check("the queue pair's state", s.id->qp->state,
			ends_the_queue_pair(c) ? IBV_QPS_ERR : before);
	cm_subject_end(&s);
}

/* --- the table
 * ------------------------------------------------------------------------------------- */

/* A child listens to nobody and is in no group: these have subjects of their own. */
static bool makes_sense(const struct cell *c)
{
	const unsigned traits = c->state->traits;

	if (traits & (c->qp ? CM_HAS_NO_QP : CM_NEEDS_QP))
		return false;
	if (traits & CM_UNACCEPTED &&
		(c->type == RDMA_CM_EVENT_CONNECT_REQUEST || is_multicast(c->type)))
		return false;
	return c->reading != BY_A_CALL_THAT_WAITS || c->state->call;
}

static void hang(int signal)
{
	static const char text[] = "# it hangs: ";

	if (write(STDERR_FILENO, text, sizeof(text) - 1) > 0 &&
		write(STDERR_FILENO, where, strlen(where)) > 0)
		_exit(1);
	_exit(2);
}

static unsigned run_with_all_statuses(struct cell c)
{
	const int statuses[] = { -ETIMEDOUT, 0, 28 };
	unsigned i, cells = 0;

	for (i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		c.status = statuses[i];
		if (!makes_sense(&c))
			continue;
		run(&c);
		cells++;
	}
	return cells;
}

static unsigned run_in_all_ways(const struct cm_state *state, unsigned type)
{
	unsigned qp, reading, cells = 0;

	for (qp = 0; qp < 2; qp++)
		for (reading = 0; reading < READINGS; reading++)
			cells += run_with_all_statuses((struct cell){ .state = state,
				.type = type,
				.qp = qp,
				.reading = (enum reading)reading });
	return cells;
}

START_TEST(every_event_in_this_state_is_seen_as_it_should)
{
	const struct cm_state *state = &cm_states[_i];
	unsigned type, cells = 0;

	fake_newer_kernel(true);
	signal(SIGALRM, hang);
	alarm(HANG_S);
	for (type = 0; type <= LAST_EVENT; type++)
		cells += run_in_all_ways(state, type);
	cells += run_in_all_ways(state, UNKNOWN_EVENT);
	printf("# an id %s: %u cells\n", state->name, cells);
	fflush(stdout);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cm_event_table");
	TCase *tcase = tcase_create("table");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, cm_set_up, cm_tear_down);
	tcase_set_timeout(tcase, 2 * HANG_S);
	tcase_add_loop_test(
		tcase, every_event_in_this_state_is_seen_as_it_should, 0, (int)cm_num_states);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
