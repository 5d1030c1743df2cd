/*
 * A program on libevrdma that also uses a library built for the distribution's librdmacm. Prints
 * which librdmacm.so.1 are in the process, and which one the calls of each go to.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <event2/event.h>
#include <evrdma/evrdma.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

/* second_lib.c */
void *second_address(void);
int second_open(void);

static int print_mapped(struct dl_phdr_info *info, size_t size, void *arg)
{
	if (strstr(info->dlpi_name, "/librdmacm.so"))
		printf("mapped %s\n", info->dlpi_name);
	return 0;
}

static void print_owner(const char *whose, void *address)
{
	Dl_info info = { 0 };

	if (!address || !dladdr(address, &info))
		info.dli_fname = "nothing";
	printf("%s %s\n", whose, info.dli_fname);
}

/* 0, or the errno that it failed with: without a device, ENODEV. */
static int open_base(void)
{
	struct event_base *loop = event_base_new();
	struct evrdma_base *base;
	int error;

	if (!loop)
		return ENOMEM;
	errno = 0;
	base = evrdma_base_new(loop, NULL);
	error = base ? 0 : errno;
	if (base) {
		evrdma_base_close(base, NULL, NULL);
		event_base_dispatch(loop);
	}
	event_base_free(loop);
	return error;
}

int main(void)
{
	dl_iterate_phdr(print_mapped, NULL);
	print_owner("program", dlsym(RTLD_DEFAULT, "rdma_event_str"));
	print_owner("second", second_address());
	printf("libevrdma opens %d\n", open_base());
	printf("second opens %d\n", second_open());
	return 0;
}
