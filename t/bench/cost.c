/*
 * What the calls cost that the kernel makes its caller wait for: the median and the longest of
 * each, over the rounds given. These are the steps that a base runs under its budget.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "bench.h"
#include "util/clock.h"

enum { MAX_ROUNDS = 1000, SLAB_BYTES = 256 * 1024 };

enum call {
	CREATE_ID,
	BIND,
	ALLOC_PD,
	CREATE_CHANNEL,
	CREATE_CQ,
	REG_MR,
	CREATE_QP,
	QP_TO_ERROR,
	DESTROY_QP,
	DEREG_MR,
	DESTROY_CQ,
	DESTROY_ID,
	CALLS
};

static const char *const names[CALLS] = { "rdma_create_id", "rdma_bind_addr, opening the device",
	"ibv_alloc_pd", "ibv_create_comp_channel", "ibv_create_cq, 4096 entries",
	"ibv_reg_mr, 256 KiB", "rdma_create_qp", "ibv_modify_qp to the error state",
	"rdma_destroy_qp", "ibv_dereg_mr", "ibv_destroy_cq", "rdma_destroy_id" };

static uint64_t taken_us[CALLS][MAX_ROUNDS];

#define MEASURE(call, round, statement)                                                            \
	do {                                                                                       \
		uint64_t began_us = evr_clock_now_us();                                            \
		statement;                                                                         \
		taken_us[call][round] = evr_clock_now_us() - began_us;                             \
	} while (0)

static void measure(int round, struct rdma_event_channel *channel, struct sockaddr *addr)
{
	static char slab[SLAB_BYTES];
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
		.cap = { 64, 64, 1, 1, 0 } };
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	struct ibv_comp_channel *completions = NULL;
	struct rdma_cm_id *id = NULL;
	struct ibv_mr *mr = NULL;
	struct ibv_cq *cq = NULL;
	struct ibv_pd *pd = NULL;
	int ret = 0;

	MEASURE(CREATE_ID, round, ret = rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	bench_check(ret, names[CREATE_ID]);
	MEASURE(BIND, round, ret = rdma_bind_addr(id, addr));
	bench_check(ret, names[BIND]);
	MEASURE(ALLOC_PD, round, pd = ibv_alloc_pd(id->verbs));
	bench_check(!pd, names[ALLOC_PD]);
	MEASURE(CREATE_CHANNEL, round, completions = ibv_create_comp_channel(id->verbs));
	bench_check(!completions, names[CREATE_CHANNEL]);
	MEASURE(CREATE_CQ, round, cq = ibv_create_cq(id->verbs, 4096, NULL, completions, 0));
	bench_check(!cq, names[CREATE_CQ]);
	MEASURE(REG_MR, round, mr = ibv_reg_mr(pd, slab, sizeof(slab), IBV_ACCESS_LOCAL_WRITE));
	bench_check(!mr, names[REG_MR]);
	init.send_cq = init.recv_cq = cq;
	MEASURE(CREATE_QP, round, ret = rdma_create_qp(id, pd, &init));
	bench_check(ret, names[CREATE_QP]);
	MEASURE(QP_TO_ERROR, round, ret = ibv_modify_qp(id->qp, &error, IBV_QP_STATE));
	bench_check(ret, names[QP_TO_ERROR]);
	MEASURE(DESTROY_QP, round, rdma_destroy_qp(id));
	MEASURE(DEREG_MR, round, ibv_dereg_mr(mr));
	MEASURE(DESTROY_CQ, round, ibv_destroy_cq(cq));
	ibv_destroy_comp_channel(completions);
	ibv_dealloc_pd(pd);
	MEASURE(DESTROY_ID, round, rdma_destroy_id(id));
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void print(int rounds)
{
	int call;

	printf("%-36s %12s %12s\n", "call", "median us", "longest us");
	for (call = 0; call < CALLS; call++) {
		qsort(taken_us[call], (size_t)rounds, sizeof(taken_us[call][0]), compare);
		printf("%-36s %12llu %12llu\n", names[call],
			(unsigned long long)taken_us[call][rounds / 2],
			(unsigned long long)taken_us[call][rounds - 1]);
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	int rounds = argc > 2 ? atoi(argv[2]) : 100;
	struct rdma_event_channel *channel;
	int round;

	if (argc < 2 || inet_pton(AF_INET, argv[1], &addr.sin_addr) != 1 || rounds < 1 ||
		rounds > MAX_ROUNDS) {
		fprintf(stderr, "usage: cost ADDRESS [ROUNDS, at most %d]\n", MAX_ROUNDS);
		return 1;
	}
	channel = rdma_create_event_channel();
	bench_check(!channel, "rdma_create_event_channel");
	for (round = 0; round < rounds; round++)
		measure(round, channel, (struct sockaddr *)&addr);
	rdma_destroy_event_channel(channel);
	print(rounds);
	return 0;
}
