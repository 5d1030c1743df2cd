/* A library of somebody else's, which knows nothing of evrdma: see second.c. */
#include <errno.h>
#include <rdma/rdma_cma.h>

void *second_address(void);
int second_open(void);

void *second_address(void)
{
	return (void *)rdma_event_str;
}

/* 0, or the errno that it failed with. */
int second_open(void)
{
	struct rdma_event_channel *channel;

	errno = 0;
	channel = rdma_create_event_channel();
	if (!channel)
		return errno;
	rdma_destroy_event_channel(channel);
	return 0;
}
