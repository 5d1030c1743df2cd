/* Whatever the stack held before, the kernel gets the same of a command: all of it is set. */
#include "unit/unit.h"

#include "kern/device.h"
#include "kern/sys.h"
#include "kern/ucma.h"

#include <infiniband/ib.h>
#include <netinet/in.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <string.h>

enum { FD = 3, HANDLE = 7, STACK = 8192 };

static uint8_t written[2][4096];
static size_t len[2];
static int turn;

static void take(const void *bytes, size_t n)
{
	ck_assert_uint_le(len[turn] + n, sizeof(written[turn]));
	memcpy(written[turn] + len[turn], bytes, n);
	len[turn] += n;
}

static ssize_t take_command(int fd, const void *buf, size_t n)
{
	take(buf, n);
	return (ssize_t)n;
}

static int take_ioctl(int fd, unsigned long request, void *arg)
{
	const struct ib_uverbs_ioctl_hdr *hdr = arg;

	take(hdr, hdr->length);
	return 0;
}

static const struct evr_sys taker = { .write = take_command, .ioctl = take_ioctl };

static __attribute__((noinline)) void soil(uint8_t byte)
{
	volatile uint8_t stack[STACK];
	size_t i;

	for (i = 0; i < sizeof(stack); i++)
		stack[i] = byte;
}

/* --- every command ------------------------------------------------------------------------- */

static const struct sockaddr_in addr = { .sin_family = AF_INET };
static const struct sockaddr *const sa = (const struct sockaddr *)&addr;
static const struct evr_ucma_conn_param param;
static const struct evr_ucma_ece ece;
static uint32_t number;

static void create_id(void)
{
	evr_ucma_create_id(FD, 1, 2, 3, &number);
}
static void destroy_id(void)
{
	evr_ucma_destroy_id(FD, HANDLE, &number);
}
static void bind_id(void)
{
	evr_ucma_bind(FD, HANDLE, sa, sizeof(addr));
}
static void resolve_addr(void)
{
	evr_ucma_resolve_addr(FD, HANDLE, NULL, 0, sa, sizeof(addr), 1);
}
static void resolve_route(void)
{
	evr_ucma_resolve_route(FD, HANDLE, 1);
}
static void query_addr(void)
{
	struct evr_ucma_addr found;

	evr_ucma_query_addr(FD, HANDLE, &found);
}
static void query_gid(void)
{
	struct evr_ucma_addr found;

	evr_ucma_query_gid(FD, HANDLE, &found);
}
static void query_path(void)
{
	struct evr_ucma_resp_path found;

	evr_ucma_query_path(FD, HANDLE, &found);
}
static void connect_id(void)
{
	evr_ucma_connect(FD, HANDLE, &param, &ece);
}
static void listen_id(void)
{
	evr_ucma_listen(FD, HANDLE, 1);
}
static void accept_id(void)
{
	evr_ucma_accept(FD, HANDLE, 1, &param, &ece);
}
static void confirm_id(void)
{
	evr_ucma_accept(FD, HANDLE, 1, NULL, &ece);
}
static void reject_id(void)
{
	evr_ucma_reject(FD, HANDLE, "no", 2, 0);
}
static void disconnect_id(void)
{
	evr_ucma_disconnect(FD, HANDLE);
}
static void init_qp_attr(void)
{
	struct ib_uverbs_qp_attr attr;

	evr_ucma_init_qp_attr(FD, HANDLE, 1, &attr);
}
static void notify_id(void)
{
	evr_ucma_notify(FD, HANDLE, 1);
}
static void join_mcast(void)
{
	evr_ucma_join_mcast(FD, HANDLE, 1, sa, sizeof(addr), 0, &number);
}
static void leave_mcast(void)
{
	evr_ucma_leave_mcast(FD, HANDLE, &number);
}
static void set_option(void)
{
	evr_ucma_set_option(FD, HANDLE, 0, 0, &number, 4);
}
static void migrate_id(void)
{
	evr_ucma_migrate_id(FD, HANDLE, FD, &number);
}
static void get_event(void)
{
	struct evr_ucma_resp_event event;

	evr_ucma_get_event(FD, &event);
}
static void resolve_service(void)
{
	const struct evr_ucma_service service = { .id = 1 };

	evr_ucma_resolve_service(FD, HANDLE, &service);
}
static void write_event(void)
{
	evr_ucma_write_event(FD, HANDLE, 18, 0, 1);
}
static void query_service(void)
{
	struct evr_ucma_resp_service resp;

	evr_ucma_query_service(FD, HANDLE, &resp, 0);
}
static void count_objects(void)
{
	evr_device_in_use(FD, 1);
}

static const struct command {
	const char *name;
	void (*run)(void);
} commands[] = {
	{ "CREATE_ID", create_id },
	{ "DESTROY_ID", destroy_id },
	{ "BIND", bind_id },
	{ "RESOLVE_ADDR", resolve_addr },
	{ "RESOLVE_ROUTE", resolve_route },
	{ "QUERY ADDR", query_addr },
	{ "QUERY GID", query_gid },
	{ "QUERY PATH", query_path },
	{ "CONNECT", connect_id },
	{ "LISTEN", listen_id },
	{ "ACCEPT", accept_id },
	{ "ACCEPT without parameters", confirm_id },
	{ "REJECT", reject_id },
	{ "DISCONNECT", disconnect_id },
	{ "INIT_QP_ATTR", init_qp_attr },
	{ "NOTIFY", notify_id },
	{ "JOIN_MCAST", join_mcast },
	{ "LEAVE_MCAST", leave_mcast },
	{ "SET_OPTION", set_option },
	{ "MIGRATE_ID", migrate_id },
	{ "GET_EVENT", get_event },
	{ "RESOLVE_IB_SERVICE", resolve_service },
	{ "WRITE_CM_EVENT", write_event },
	{ "QUERY of a service", query_service },
	{ "INFO_HANDLES", count_objects },
};

enum { NUM_COMMANDS = sizeof(commands) / sizeof(commands[0]) };

START_TEST(every_byte_of_a_command_is_set)
{
	const struct command *command = &commands[_i];
	size_t i;

	evr_sys = &taker;
	for (turn = 0; turn < 2; turn++) {
		soil(turn ? 0xaa : 0x55);
		command->run();
	}
	ck_assert_uint_gt(len[0], 0);
	ck_assert_uint_eq(len[0], len[1]);
	for (i = 0; i < len[0]; i++)
		ck_assert_msg(written[0][i] == written[1][i], "%s: byte %zu of %zu is not set",
			command->name, i, len[0]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("kern_commands");
	TCase *tc = tcase_create("kern_commands");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_loop_test(tc, every_byte_of_a_command_is_set, 0, NUM_COMMANDS);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
