/* What a child, another program and other credentials have of ids and channels. */
#include "unit/cm_unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILD_S = 30, THREADS = 2, FORKS = 20 };

static struct rdma_event_channel *channel;
static struct rdma_cm_id *id;

static void set_up(void)
{
	cm_set_up();
	channel = cm_channel();
	id = cm_id(channel, RDMA_PS_TCP);
}

static void tear_down(void)
{
	cm_destroy(id);
	rdma_destroy_event_channel(channel);
	cm_tear_down();
}

/* --- credentials: the kernel refuses whatever is written to a channel from before --- */

static void refuse_next(const char *command)
{
	fake_fail_next(command, EACCES);
}

START_TEST(other_credentials_show_in_each_call)
{
	struct rdma_cm_event *event;

	refuse_next("BIND");
	ck_assert_fails(rdma_bind_addr(id, cm_addr(FAKE_ROCE_IP, 0)), EACCES);
	refuse_next("RESOLVE_ADDR");
	ck_assert_fails(rdma_resolve_addr(id, NULL, cm_addr(FAKE_ROCE_IP, CM_PORT), 1), EACCES);
	refuse_next("GET_EVENT");
	ck_assert_fails(rdma_get_cm_event(channel, &event), EACCES);
}
END_TEST

static void move_to_new_channel(void)
{
	struct rdma_event_channel *old = channel;

	channel = cm_channel();
	ck_assert_ok(rdma_migrate_id(id, channel));
	rdma_destroy_event_channel(old);
}

START_TEST(a_new_channel_takes_the_ids_of_the_old_one_over)
{
	refuse_next("DESTROY_ID");
	ck_assert_fails(rdma_destroy_id(id), EACCES);
	move_to_new_channel();
	cm_resolve(id, FAKE_ROCE_IP);
}
END_TEST

START_TEST(a_new_channel_takes_a_synchronous_id_over_which_then_has_its_own_again)
{
	struct rdma_cm_id *sync;

	ck_assert_ok(rdma_create_id(NULL, &sync, NULL, RDMA_PS_TCP));
	refuse_next("RESOLVE_ADDR");
	ck_assert_fails(rdma_resolve_addr(sync, NULL, cm_addr(FAKE_ROCE_IP, CM_PORT), 1), EACCES);
	ck_assert_ok(rdma_migrate_id(sync, channel));
	ck_assert_ok(rdma_migrate_id(sync, NULL));
	ck_assert_ok(rdma_resolve_addr(sync, NULL, cm_addr(FAKE_ROCE_IP, CM_PORT), 1));
	ck_assert_ok(rdma_destroy_id(sync));
}
END_TEST

/* --- fork and exec --- */

/* How a child ends that does this. */
static int in_child(int (*what)(void))
{
	int status;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (!pid)
		_exit(what());
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return status;
}

static int use_own_channel(void)
{
	struct rdma_event_channel *own = rdma_create_event_channel();
	struct rdma_cm_id *mine;

	if (!own || rdma_create_id(own, &mine, NULL, RDMA_PS_TCP))
		return 1;
	if (rdma_bind_addr(mine, cm_addr(FAKE_ROCE_IP, 0)) || rdma_destroy_id(mine))
		return 2;
	rdma_destroy_event_channel(own);
	rdma_destroy_event_channel(channel);
	return 0;
}

START_TEST(a_child_works_on_its_own_channel_and_its_parent_does_not_notice)
{
	ck_assert_int_eq(in_child(use_own_channel), 0);
	cm_resolve(id, FAKE_ROCE_IP);
}
END_TEST

/* What the kernel takes from nobody but who opened it: a send, say. */
static int open_device_anew(void)
{
	struct rdma_event_channel *own = rdma_create_event_channel();
	struct rdma_cm_id *mine;
	int ret;

	if (!own || rdma_create_id(own, &mine, NULL, RDMA_PS_TCP))
		return 1;
	if (rdma_bind_addr(mine, cm_addr(FAKE_ROCE_IP, 0)))
		return 2;
	ret = mine->verbs == id->verbs || mine->pd == id->pd ? 3 : 0;
	rdma_destroy_id(mine);
	rdma_destroy_event_channel(own);
	return ret;
}

START_TEST(a_child_opens_the_device_that_its_parent_has_open_for_itself)
{
	ck_assert_ok(rdma_bind_addr(id, cm_addr(FAKE_ROCE_IP, 0)));
	ck_assert_int_eq(in_child(open_device_anew), 0);
}
END_TEST

/* --- beside other threads --- */

static atomic_bool enough;

/* What is called is slow, so that this is within the library most of the time. */
static void take_time(void)
{
	usleep(50);
}

static void *use_devices(void *arg)
{
	struct rdma_cm_id *mine;

	while (!enough) {
		struct ibv_context **list = rdma_get_devices(NULL);

		rdma_free_devices(list);
		if (!rdma_create_id(channel, &mine, NULL, RDMA_PS_TCP))
			rdma_destroy_id(mine);
	}
	return arg;
}

/* Who waits for a lock that nobody has is ended by the alarm. */
static int use_all(void)
{
	struct ibv_context **list;

	alarm(CHILD_S);
	list = rdma_get_devices(NULL);
	if (!list)
		return 3;
	rdma_free_devices(list);
	return use_own_channel();
}

START_TEST(a_child_waits_for_none_of_its_parents_threads)
{
	pthread_t threads[THREADS];
	int i;

	fake_each_call(take_time);
	for (i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, use_devices, NULL), 0);
	for (i = 0; i < FORKS; i++)
		ck_assert_int_eq(in_child(use_all), 0);
	enough = true;
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	fake_each_call(NULL);
	cm_resolve(id, FAKE_ROCE_IP);
}
END_TEST

static void assert_closed_on_exec(int fd)
{
	ck_assert_int_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

START_TEST(another_program_inherits_no_channel)
{
	struct rdma_cm_id *sync;

	ck_assert_ok(rdma_create_id(NULL, &sync, NULL, RDMA_PS_TCP));
	assert_closed_on_exec(channel->fd);
	assert_closed_on_exec(sync->channel->fd);
	ck_assert_ok(rdma_destroy_id(sync));
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		other_credentials_show_in_each_call,
		a_new_channel_takes_the_ids_of_the_old_one_over,
		a_new_channel_takes_a_synchronous_id_over_which_then_has_its_own_again,
		a_child_works_on_its_own_channel_and_its_parent_does_not_notice,
		a_child_opens_the_device_that_its_parent_has_open_for_itself,
		a_child_waits_for_none_of_its_parents_threads,
		another_program_inherits_no_channel,
	};

	return unit_main("cm_fork", tests, sizeof(tests) / sizeof(tests[0]), set_up, tear_down);
}
