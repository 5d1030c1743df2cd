/*
 * What the fuzz targets share. Each is a program of libFuzzer's form, and each is linked with
 * replay.c as well, which runs it on the files of its corpus without any fuzzer.
 */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
/* Returns 0; what is wrong ends the process. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define fuzz_check(expr)                                                                           \
	((expr) ? (void)0 : fuzz_fail("%s:%d: does not hold: %s", __FILE__, __LINE__, #expr))
_Noreturn void fuzz_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A line on stderr, if FUZZ_TRACE is set in the environment. */
void fuzz_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Before and after each input: a fresh fake kernel, and nothing may live in it. */
void fuzz_begin(void);
void fuzz_end(void);

struct rdma_event_channel;
/* One that does not block, as a loop has it; NULL where the fake was told to fail. */
struct rdma_event_channel *fuzz_channel(void);

struct ibv_qp_init_attr;
struct ibv_qp_init_attr fuzz_qp_attr(int qp_type);

#endif
