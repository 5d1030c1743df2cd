/*
 * Programs for lib/cm on the fake kernel: the input of the fuzz target "sequence".
 *
 * A program is text, a step to a line: the letter of the operation, the number of the id that it is
 * for, and up to three more arguments, each one character: 0-9, or a letter from a = 10 on. What
 * follows on the line, and a line that begins otherwise, says nothing: room for a comment. README
 * has the table.
 */
#ifndef FUZZ_SEQUENCE_H
#define FUZZ_SEQUENCE_H

#include "fuzz/fuzz.h"

#include <rdma/rdma_cma.h>

enum { SEQ_IDS = 6, SEQ_CHANNELS = 2, SEQ_EVENTS = 8, SEQ_ARGS = 3, SEQ_STEPS = 200 };

#define SEQ_SERVICE "service"

struct seq_slot {
	struct rdma_cm_id *id;
	struct ibv_qp *qp; /* one that the library knows nothing of */
	struct ibv_cq *cq;
};

/* An event that was read and is not acknowledged yet, and the id that waits for it. */
struct seq_event {
	struct rdma_cm_event *event;
	struct rdma_cm_id *counted;
};

struct seq_fixture {
	struct rdma_event_channel *channels[SEQ_CHANNELS];
	struct seq_slot slots[SEQ_IDS];
	struct seq_event events[SEQ_EVENTS]; /* oldest first */
	unsigned num_events;
	struct ibv_context **devices;
};

struct seq_step {
	char letter;
	struct seq_slot *slot;
	unsigned who;
	unsigned arg[SEQ_ARGS];
};

/* Returns what the call of the library returned: 0, or -1 with errno. */
typedef int seq_run(struct seq_fixture *f, const struct seq_step *step);

struct seq_op {
	const char *name;
	seq_run *run;
};

/* NULL for a letter that is none. */
const struct seq_op *seq_op_of(char letter);
const struct seq_op *seq_ep_op_of(char letter);
/* What the fake kernel is told to do; the rest are calls of the library. */
const struct seq_op *seq_kernel_op_of(char letter);
/* No failure is to come any more. */
void seq_calm(void);

/* Destroys what is in the slot; the events of it are acknowledged first: it would wait for them. */
int seq_destroy(struct seq_fixture *f, struct seq_slot *slot);
/* One that came with a request; where no slot is free for it, it goes. */
void seq_keep_child(struct seq_fixture *f, struct rdma_cm_id *child);
/* Acknowledges what was read for the id. */
void seq_settle(struct seq_fixture *f, const struct rdma_cm_id *id);
void seq_ack_oldest(struct seq_fixture *f);

/* Every call of DESTROY_ID, LEAVE_MCAST and MIGRATE_ID: has each event been counted once? */
void seq_watch(struct seq_fixture *f);
/* What holds between any two steps. */
void seq_check(const struct seq_fixture *f);

/* From a table; NULL for none. Valid until the fourth call after. */
struct sockaddr *seq_addr(unsigned index, unsigned port);
struct sockaddr *seq_group(unsigned index);

#endif
